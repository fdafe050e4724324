"""Columns in Arrow from what kernels give, and the other way round: no Python object for a row."""

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.kernels import Int64Array
from fastquorum.kernels.rows import NO_TYPE, Packed, PackedHeaders, Rows
from fastquorum.wire.records.row_layouts import ROW_TYPE_NAMES

TIMESTAMP: Final = pa.timestamp("us", "UTC")
OWNER: Final = ("cluster_id", "node_id", "directory")
"""Columns that name a row's log, in every table."""
OWNER_FIELDS: Final = (
    pa.field("cluster_id", pa.string()),
    pa.field("node_id", pa.int32()),
    pa.field("directory", pa.string(), nullable=False),
)
HEADERS: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_TIMESTAMP_MS_MIN: Final = -62_135_596_800_000
"""0001-01-01, the first that Spark has."""
_TIMESTAMP_MS_MAX: Final = 253_402_300_799_999
"""The end of 9999."""
_NO_TIMESTAMP: Final = -1
_REPEATED_MAX: Final = 16
"""Most columns of one value that are kept; each takes a few megabytes."""
_NAMES: Final = np.array([ROW_TYPE_NAMES.get(number) for number in range(NO_TYPE, -NO_TYPE)], dtype=object)


def same(value: Any, kind: pa.DataType, count: int) -> pa.Array:
    """Return a column of one repeated value. Most columns of most batches are such, and share it as slices."""
    return _repeated(value, kind, 1 << max(count - 1, 0).bit_length()).slice(0, count)


@functools.lru_cache(maxsize=_REPEATED_MAX)
def _repeated(value: Any, kind: pa.DataType, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, kind), count)


def numbers(values: npt.NDArray[Any], kind: pa.DataType, *, null: int | None = None) -> pa.Array:
    """Return numbers of one width as a column; the value `null` becomes null."""
    return pa.array(values, kind, mask=None if null is None else values == null)


def timestamps(values_ms: Int64Array) -> pa.Array:
    """Return times from milliseconds since 1970; null: none (-1), or one that Spark lacks: clients claim any."""
    if not len(values_ms) or (values_ms.min() > _NO_TIMESTAMP and values_ms.max() <= _TIMESTAMP_MS_MAX):
        return pa.array(values_ms * 1000, pa.int64()).view(TIMESTAMP)
    is_none = (values_ms == _NO_TIMESTAMP) | (values_ms < _TIMESTAMP_MS_MIN) | (values_ms > _TIMESTAMP_MS_MAX)
    micros = np.where(is_none, 0, values_ms) * 1000
    return pa.array(micros, pa.int64(), mask=is_none).cast(TIMESTAMP)


def moment(value_ms: int) -> int | None:
    """Return one time as `batch_of` takes it for a column of TIMESTAMP."""
    return (
        None if value_ms == _NO_TIMESTAMP or not _TIMESTAMP_MS_MIN <= value_ms <= _TIMESTAMP_MS_MAX else value_ms * 1000
    )


def type_names(types: npt.NDArray[np.int16]) -> pa.Array:
    """Return the names of record types as Kafka's tools print them; null for an unknown type."""
    if len(types) and bool((types == types[0]).all()):
        return same(_NAMES[types[0] - NO_TYPE], pa.string(), len(types))
    names = pa.array(_NAMES, pa.string())
    return names.take(pa.array(types.astype(np.int32) - NO_TYPE))


def strings(packed: Packed) -> pa.Array:
    """Return packed UTF-8 as a column of strings."""
    return _of(packed, pa.string())


def binaries(packed: Packed) -> pa.Array:
    return _of(packed, pa.binary())


def headers(rows: Rows) -> pa.Array:
    """Return a list of headers for each record; names that are not UTF-8 are mended, as Kafka's clients do."""
    assert rows.header_ends is not None
    assert rows.header_keys is not None
    assert rows.header_values is not None
    keys = binaries(rows.header_keys)
    try:
        names = keys.cast(pa.string())
    except pa.ArrowInvalid:
        names = pa.array([each.as_py().decode("utf-8", "replace") for each in keys], pa.string())
    pairs = pa.StructArray.from_arrays([names, binaries(rows.header_values)], fields=list(HEADERS.value_type))
    return pa.ListArray.from_arrays(pa.array(rows.header_ends), pairs)


def _of(packed: Packed, kind: pa.DataType) -> pa.Array:
    count = len(packed.valid)
    whole = bool(packed.valid.all())
    validity = None if whole else pa.py_buffer(np.packbits(packed.valid, bitorder="little"))
    buffers = [validity, pa.py_buffer(packed.ends), pa.py_buffer(packed.data)]
    return pa.Array.from_buffers(kind, count, buffers)


def packed(column: pa.Array) -> Packed:
    """Return a column of binary or string as kernels take it."""
    if not len(column):
        return Packed(b"", np.zeros(1, np.int32), np.zeros(0, np.uint8))  # it may have no buffers
    _, ends, data = column.buffers()
    bounds = np.frombuffer(ends, np.int32)[column.offset : column.offset + len(column) + 1]
    return Packed(data or b"", bounds, _valid(column))


def packed_headers(column: pa.Array) -> PackedHeaders:
    """Return HEADERS as kernels take them. No list and an empty one are the same: a record without headers."""
    pairs = column.flatten()
    counts = np.diff(np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1])
    ends = np.concatenate([np.zeros(1, np.int32), np.cumsum(np.where(_valid(column), counts, 0), dtype=np.int32)])
    keys, values = (packed(pc.struct_field(pairs, name)) for name in ("key", "value"))
    return PackedHeaders(ends, keys, values)


def _valid(column: pa.Array) -> npt.NDArray[np.uint8]:
    if not column.null_count:
        return np.ones(len(column), np.uint8)
    valid: npt.NDArray[np.uint8] = column.is_valid().to_numpy(zero_copy_only=False).astype(np.uint8)
    return valid


def batch_of(schema: pa.Schema, rows: Sequence[Mapping[str, Any]]) -> pa.RecordBatch:
    """Make a batch from a few rows, for tables that have one for each file, broker or topic."""
    columns = [pa.array([row.get(field.name) for row in rows], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def fields(kind: pa.DataType, *names: str, nullable: bool = True) -> list[pa.Field]:
    """Return columns of one type, in this order."""
    return [pa.field(name, kind, nullable=nullable) for name in names]


def pruned(schema: pa.Schema, columns: Iterable[str]) -> pa.Schema:
    """Return a schema of only these columns, in their order."""
    return pa.schema([schema.field(name) for name in columns])
