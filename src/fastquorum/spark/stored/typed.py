"""Records as typed columns: a struct for each type of record, derived from the declarations that the wire is read by.

A struct has the fields of all versions, as the JSON text spells them; null is what a record's version lacks. A tagged
field that is at its default is not in the text, and is here. Uuids are text, bytes binary, uint16 int. A type without
fields has no struct: its name in `type` says it all. Rows go from text to columns by Arrow's JSON reader, many at once.
"""

import base64
import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.kernels import Int64Array
from fastquorum.kernels.rows import Rows, control_row_type
from fastquorum.spark.stored.texts import parsed
from fastquorum.wire.message import Message, Struct
from fastquorum.wire.records.control import CONTROL_MESSAGES, VERSION
from fastquorum.wire.records.metadata import METADATA_RECORDS
from fastquorum.wire.records.row_layouts import ROW_TYPE_NAMES
from fastquorum.wire.types import IMPLIED, Field, Shape, Versions, WireType

_SCALARS: Final = MappingProxyType(
    {
        "bool": pa.bool_(),
        "int8": pa.int8(),
        "int16": pa.int16(),
        "uint16": pa.int32(),
        "int32": pa.int32(),
        "int64": pa.int64(),
        "float64": pa.float64(),
        "uuid": pa.string(),
        "string": pa.string(),
    }
)
_NO_NUMBERS: Final = MappingProxyType({"NaN": np.nan, "Infinity": np.inf, "-Infinity": -np.inf})
"""Values that are not JSON numbers, as texts have them."""


class RecordType(NamedTuple):
    """One type of record that has fields."""

    number: int
    """Number of the type, as rows have it."""
    name: str
    """Name of the type as Kafka prints it, and of the column."""
    struct: pa.StructType
    texts: pa.Schema
    """Schema of the same fields as they are in the JSON text."""
    versions: Versions
    fields: tuple[Field, ...]


@functools.cache
def record_types() -> Mapping[str, RecordType]:
    """Return every type that has fields, by name: metadata by key, then KRaft's control records."""
    metadata = [_record_type(number, cls, cls.__wire__.versions) for number, cls in METADATA_RECORDS.items()]
    control = [
        _record_type(control_row_type(kind), cls, Versions(VERSION, VERSION)) for kind, cls in CONTROL_MESSAGES.items()
    ]
    return MappingProxyType({each.name: each for each in (*metadata, *control) if each.fields})


def struct_column(kind: RecordType, rows: Rows, texts: pa.Array) -> pa.StructArray:
    """Return a type's column for all rows; null for rows of another type and rows without a text."""
    is_wanted = (rows.types == kind.number) & np.asarray(texts.is_valid())
    at = np.flatnonzero(is_wanted)
    if not len(at):
        return pa.nulls(len(texts), kind.struct)
    own = texts.filter(pa.array(is_wanted))
    readable = _without_no_numbers(own, kind)
    found = parsed(pa.chunked_array([readable]), kind.texts, np.ones(len(at), np.bool_)).combine_chunks()
    versions = rows.versions[at].astype(np.int64)
    columns = [_column(each, found[each.json_name], own, versions) for each in kind.fields]
    columns = [each.cast(field.type) for each, field in zip(columns, kind.struct, strict=True)]
    struct = pa.StructArray.from_arrays(columns, fields=list(kind.struct))
    if len(at) == len(texts):
        return struct
    places = np.zeros(len(texts), np.int64)
    places[at] = np.arange(len(at))
    return struct.take(pa.array(places, mask=~is_wanted))


# --- what columns there are -------------------------------------------------------------------------------------------


def _record_type(number: int, cls: type[Message], versions: Versions) -> RecordType:
    fields = tuple(each for each in cls.__wire__.fields if _is_in(each, versions))
    in_text = pa.schema([(each.json_name, _kind(each.type, versions, pa.string())) for each in fields])
    struct = pa.struct([(each.json_name, _kind(each.type, versions, pa.binary())) for each in fields])
    return RecordType(number, ROW_TYPE_NAMES[number], struct, in_text, versions, fields)


def _kind(wire_type: WireType[Any], versions: Versions, of_bytes: pa.DataType) -> pa.DataType:
    match wire_type.shape:
        case Shape.ARRAY:
            assert wire_type.element is not None
            return pa.list_(_kind(wire_type.element, versions, of_bytes))
        case Shape.STRUCT:
            assert wire_type.struct is not None
            inner: type[Struct] = wire_type.struct
            fields = [each for each in inner.__wire__.fields if _is_in(each, versions)]
            assert not any(_is_tagged(each, versions) for each in fields), "its default would be null"
            assert not any(each.type.shape is Shape.BYTES for each in fields), "it would stay as it is in the text"
            return pa.struct([(each.json_name, _kind(each.type, versions, of_bytes)) for each in fields])
        case Shape.BYTES:
            return of_bytes
        case _:
            return _SCALARS[wire_type.name]


def _is_in(field: Field, versions: Versions) -> bool:
    return field.versions.first <= versions.last and field.versions.last >= versions.first


def _is_tagged(field: Field, versions: Versions) -> bool:
    return any(field.is_tagged(version) for version in range(versions.first, versions.last + 1))


# --- columns out of texts ---------------------------------------------------------------------------------------------


def _column(field: Field, values: pa.ChunkedArray, texts: pa.Array, versions: Int64Array) -> pa.Array:
    column = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if field.type.shape is Shape.BYTES:  # credentials: they are few
        return pa.array([None if each is None else base64.b64decode(each) for each in column.to_pylist()], pa.binary())
    if field.type.name == "float64":
        for text, value in _NO_NUMBERS.items():
            column = pc.if_else(pc.match_substring(texts, f'"{field.json_name}":"{text}"'), value, column)
    is_default = np.array([_has_default(field, each) for each in range(int(versions.max()) + 1)])[versions]
    is_default &= np.asarray(column.is_null())
    return _with_default(field, column, is_default) if is_default.any() else column


def _has_default(field: Field, version: int) -> bool:
    """Return whether a field that a text lacks has a default other than null."""
    return field.versions.has(version) and field.is_tagged(version) and field.default is not None


def _with_default(field: Field, column: pa.Array, is_default: "np.ndarray[Any, np.dtype[np.bool_]]") -> pa.Array:
    if field.type.shape is Shape.ARRAY:
        assert field.default is IMPLIED, "an array's default is none, or an empty one"
        is_null = np.asarray(column.is_null()) & ~is_default
        return pa.ListArray.from_arrays(column.offsets, column.values, mask=pa.array(is_null))
    value = field.type.zero if field.default is IMPLIED else field.default
    return pc.if_else(pa.array(is_default), pa.scalar(value, column.type), column)


def _without_no_numbers(texts: pa.Array, kind: RecordType) -> pa.Array:
    """Texts that Arrow can read: null where there is no number."""
    for field in kind.fields:
        if field.type.name == "float64":
            texts = pc.replace_substring_regex(
                texts, f'"{field.json_name}":"(NaN|-?Infinity)"', f'"{field.json_name}":null'
            )
    return texts
