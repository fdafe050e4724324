"""A declaration resolved for one version, as the message kernel wants it."""

from typing import Any

from fastquorum.kernels.messages import FieldLayout, Fresh, StructLayout, ValueKind, ValueLayout
from fastquorum.wire.codec.source import foreign_tags, size_min, wire_fields
from fastquorum.wire.message import Struct
from fastquorum.wire.types import IMPLIED, Field, Shape, WireType

_KINDS = {
    "bool": ValueKind.BOOL,
    "int8": ValueKind.INT8,
    "int16": ValueKind.INT16,
    "uint16": ValueKind.UINT16,
    "int32": ValueKind.INT32,
    "int64": ValueKind.INT64,
    "float64": ValueKind.FLOAT64,
    "uuid": ValueKind.UUID,
}
_SHAPES = {
    Shape.STRING: ValueKind.STRING,
    Shape.BYTES: ValueKind.BYTES,
    Shape.ARRAY: ValueKind.ARRAY,
    Shape.STRUCT: ValueKind.STRUCT,
}


def struct_layout(cls: type[Struct], version: int, flexible: bool) -> StructLayout:
    """`cls` in `version`, down to its last field."""
    plain, tagged, absent = wire_fields(cls.__wire__.fields, version)

    def resolved(fields: list[Field]) -> tuple[FieldLayout, ...]:
        return tuple(_field_layout(each, version, flexible) for each in fields)

    foreign = foreign_tags(cls.__wire__.fields, version)
    return StructLayout(cls, flexible, resolved(plain), resolved(tagged), resolved(absent), foreign)


def _field_layout(each: Field, version: int, flexible: bool) -> FieldLayout:
    return FieldLayout(
        name=each.name,
        json_name=each.json_name,
        value=_value_layout(each.type, each.is_nullable(version), version, flexible, flexible and each.flexible),
        tag=each.tag if each.is_tagged(version) else -1,
        default=Fresh.FRESH if each.default is IMPLIED else each.default,
        ignorable=each.ignorable,
    )


def _value_layout(wire_type: WireType[Any], nullable: bool, version: int, flexible: bool, compact: bool) -> ValueLayout:
    element, struct = wire_type.element, wire_type.struct
    return ValueLayout(
        kind=_SHAPES[wire_type.shape] if wire_type.shape in _SHAPES else _KINDS[wire_type.name],
        nullable=nullable,
        compact=compact,
        bytes_min=max(1, size_min(wire_type, version, compact)),
        element=None if element is None else _value_layout(element, False, version, flexible, compact),
        struct=None if struct is None else struct_layout(struct, version, flexible),
    )
