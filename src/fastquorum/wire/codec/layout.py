"""What a message looks like on the wire in one version, as a flat list: for people (`wire spec`) and for generated
code.

Entries come in wire order. An array or struct is followed by its content, one level deeper; every struct of a
flexible version ends with its tag section, whose fields follow it one level deeper, by tag.
"""

from typing import Any, Literal, NamedTuple

from fastquorum.wire.codec.codec import check_version, is_flexible
from fastquorum.wire.codec.source import wire_fields
from fastquorum.wire.message import Message, Struct
from fastquorum.wire.types import IMPLIED, Field, Shape, WireType

Framing = Literal["fixed", "int16", "int32", "uvarint", "null_mark", "inline", "tags"]
"""How a value begins. fixed, inline: nothing leads it. int16, int32: that length or count, -1 for null. uvarint: length
or count plus one, 0 for null. null_mark: int8, -1 or 1 (a nullable struct). tags: a tag section, led by its count."""


class LayoutField(NamedTuple):
    """One entry of a layout."""

    path: str
    """Dotted path; `[]` marks array elements: `topics[].partitions[].fetch_offset`. Tag sections end in `(tags)`."""
    type: str
    """The declared type; `tags` for a tag section."""
    framing: Framing
    size: int
    """Bytes of a fixed-size value, or of one element of an array of them; 0 where the value decides."""
    depth: int
    nullable: bool
    tag: int
    """The field's tag, -1 outside tag sections."""
    default: Any
    """The declared default; None for arrays and structs unless null is declared."""


def layout(cls: type[Message], version: int) -> tuple[LayoutField, ...]:
    """The entries of `cls` in `version`. Raises UnsupportedVersion if it has no such version."""
    check_version(cls, version)
    entries: list[LayoutField] = []
    _add_struct(entries, cls, version, is_flexible(cls, version), "", 0)
    return tuple(entries)


def _add_struct(
    entries: list[LayoutField], cls: type[Struct], version: int, flexible: bool, path: str, depth: int
) -> None:
    plain, tagged, _ = wire_fields(cls.__wire__.fields, version)
    for each in plain:
        _add_field(entries, each, version, flexible, f"{path}.{each.name}".lstrip("."), depth, tag=-1)
    if flexible:
        tags_path = f"{path}.(tags)".lstrip(".")
        entries.append(LayoutField(tags_path, "tags", "tags", 0, depth, False, -1, None))
        for each in tagged:
            _add_field(entries, each, version, flexible, f"{path}.{each.name}".lstrip("."), depth + 1, tag=each.tag)


def _add_field(
    entries: list[LayoutField], each: Field, version: int, flexible: bool, path: str, depth: int, tag: int
) -> None:
    nullable = each.is_nullable(version)
    default = None if each.default is IMPLIED else each.default
    framing = _framing(each.type, nullable, flexible and each.flexible)
    size = each.type.size if each.type.element is None else each.type.element.size
    entries.append(LayoutField(path, each.type.name, framing, size, depth, nullable, tag, default))
    inner = each.type if each.type.element is None else each.type.element
    if inner.struct is not None:
        suffix = "" if each.type.element is None else "[]"
        _add_struct(entries, inner.struct, version, flexible, path + suffix, depth + 1)


def _framing(wire_type: WireType[Any], nullable: bool, compact: bool) -> Framing:
    match wire_type.shape:
        case Shape.FIXED:
            return "fixed"
        case Shape.STRUCT:
            return "null_mark" if nullable else "inline"
        case Shape.STRING:
            return "uvarint" if compact else "int16"
        case _:
            return "uvarint" if compact else "int32"
