"""Record batches, written: from values, from full records, and from columns. Source: KIP-98."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from fastquorum.errors import RecordTooLarge, UsageError
from fastquorum.kernels import BATCH_HEADER_BYTES, Buffer, Int64Array, Record
from fastquorum.kernels.compression import compress
from fastquorum.kernels.packing import Column, RowColumns, checked_rows
from fastquorum.kernels.pure.batch_header import (
    BATCH_SIZE_MAX,
    INT32_MAX,
    INT64_MAX,
    as_view,
    check_encoding,
    seal,
)
from fastquorum.kernels.pure.varint import encode_varint, varint_size
from fastquorum.kernels.rows import Packed, PackedHeaders

_Pair = tuple[bytes, bytes | None]
"""A header: its key and value."""
_COMPRESSION_MASK: Final = 0x07
_NULL: Final = encode_varint(-1)
_OVERHEAD_BYTES_MAX: Final = 19
"""Most that a record without key and headers adds to its value: three 5-byte varints and four single bytes."""


def encode_value(offset_delta: int, value: Buffer) -> bytes:
    """A record with a null key, no headers and timestamp delta 0; `value` is a buffer of bytes."""
    size = len(value)
    head = b"\x00\x00" + encode_varint(offset_delta) + _NULL + encode_varint(size)
    return b"".join((encode_varint(len(head) + size + 1), head, value, b"\x00"))


def value_size(offset_delta: int, size: int) -> int:
    """Length of encode_value for a value of `size` bytes, without encoding it."""
    body = 4 + varint_size(offset_delta) + varint_size(size) + size
    return varint_size(body) + body


def encode_values(
    values: Sequence[Buffer],
    *,
    base_offset: int,
    leader_epoch: int,
    timestamp_ms: int,
    attributes: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytes:
    producer = (producer_id, producer_epoch, base_sequence)
    check_encoding(base_offset, leader_epoch, timestamp_ms, attributes, producer)
    views = [value if isinstance(value, bytes) else as_view(value) for value in values]
    if not views:
        raise UsageError("a batch needs at least one record")
    if sum(map(len, views)) + len(views) * _OVERHEAD_BYTES_MAX > BATCH_SIZE_MAX:
        _refuse_too_large(value_size(delta, len(view)) for delta, view in enumerate(views))
    return seal(
        _section([encode_value(delta, view) for delta, view in enumerate(views)], attributes),
        base_offset=base_offset,
        last_offset_delta=len(views) - 1,
        records_count=len(views),
        leader_epoch=leader_epoch,
        base_timestamp_ms=timestamp_ms,
        max_timestamp_ms=timestamp_ms,
        attributes=attributes,
        producer=producer,
    )


def encode_columns(
    data: Buffer,
    offsets: Buffer | Int64Array | npt.NDArray[np.int32],
    *,
    base_offset: int,
    leader_epoch: int,
    timestamp_ms: int,
    attributes: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytes:
    view = as_view(data)
    bounds = np.asarray(offsets)
    if bounds.ndim != 1 or bounds.dtype not in (np.int32, np.int64) or len(bounds) < 2:
        raise UsageError("offsets must be int32 or int64 of shape (n + 1,) with n >= 1")
    if bounds[0] < 0 or bounds[-1] > len(view) or bool((bounds[1:] < bounds[:-1]).any()):
        raise UsageError(f"offsets must ascend within 0..{len(view)}")
    edges: list[int] = bounds.tolist()
    return encode_values(
        [view[start:end] for start, end in pairwise(edges)],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        timestamp_ms=timestamp_ms,
        attributes=attributes,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
    )


def encode_records(
    records: Sequence[Record],
    *,
    base_offset: int,
    leader_epoch: int,
    timestamp_ms: int,
    attributes: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytes:
    producer = (producer_id, producer_epoch, base_sequence)
    check_encoding(base_offset, leader_epoch, timestamp_ms, attributes, producer)
    if not records:
        raise UsageError("a batch needs at least one record")
    deltas = _offset_deltas(records, base_offset)
    timestamps = [timestamp_ms if record.timestamp_ms == -1 else record.timestamp_ms for record in records]
    for timestamp in timestamps:
        if not -INT64_MAX - 1 <= timestamp <= INT64_MAX:
            raise UsageError(f"timestamp_ms {timestamp} is not an int64")
    parts = [
        _record_parts(delta, _wrap_int64(timestamp - timestamp_ms), record.key, record.value, _headers(record))
        for delta, timestamp, record in zip(deltas, timestamps, records, strict=True)
    ]
    _refuse_too_large(sum(map(len, pieces)) for pieces in parts)
    return seal(
        _section([b"".join(pieces) for pieces in parts], attributes),
        base_offset=base_offset,
        last_offset_delta=deltas[-1],
        records_count=len(records),
        leader_epoch=leader_epoch,
        base_timestamp_ms=timestamp_ms,
        max_timestamp_ms=max(timestamps),
        attributes=attributes,
        producer=producer,
    )


def encode_rows(
    values: Packed,
    keys: Packed | None = None,
    headers: PackedHeaders | None = None,
    *,
    base_offset: int,
    leader_epoch: int,
    timestamp_ms: int,
    attributes: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytes:
    rows = checked_rows(values, keys, headers)
    producer = (producer_id, producer_epoch, base_sequence)
    check_encoding(base_offset, leader_epoch, timestamp_ms, attributes, producer)
    count = len(rows.values.valid)
    parts = [
        _record_parts(delta, 0, key, value, pairs)
        for delta, (key, value, pairs) in enumerate(
            zip(_items(rows.keys, count), _items(rows.values, count), _pairs(rows, count), strict=True)
        )
    ]
    _refuse_too_large(sum(map(len, pieces)) for pieces in parts)
    return seal(
        _section([b"".join(pieces) for pieces in parts], attributes),
        base_offset=base_offset,
        last_offset_delta=count - 1,
        records_count=count,
        leader_epoch=leader_epoch,
        base_timestamp_ms=timestamp_ms,
        max_timestamp_ms=timestamp_ms,
        attributes=attributes,
        producer=producer,
    )


def _items(column: Column | None, count: int) -> list[bytes | None]:
    if column is None:
        return [None] * count
    view = memoryview(column.data).cast("B")
    edges = pairwise(column.ends.tolist())
    return [bytes(view[start:end]) if valid else None for (start, end), valid in zip(edges, column.valid, strict=True)]


def _pairs(rows: RowColumns, count: int) -> Iterator[list[_Pair]]:
    """The headers of each row."""
    if rows.header_ends is None or rows.header_keys is None or rows.header_values is None:
        yield from [[]] * count
        return
    total = len(rows.header_keys.valid)
    names = [name or b"" for name in _items(rows.header_keys, total)]
    pairs = list(zip(names, _items(rows.header_values, total), strict=True))
    for start, end in pairwise(rows.header_ends.tolist()):
        yield pairs[start:end]


def _section(records: list[bytes], attributes: int) -> Sequence[Buffer]:
    """The records section in pieces: as it is, or compressed into one."""
    compression = attributes & _COMPRESSION_MASK
    return records if compression == 0 else [compress(compression, b"".join(records))]


def _refuse_too_large(sizes: Iterable[int]) -> None:
    """RecordTooLarge before anything is built that no batch could hold."""
    size_bytes = BATCH_HEADER_BYTES + sum(sizes)
    if size_bytes > BATCH_SIZE_MAX:
        raise RecordTooLarge(size_bytes=size_bytes, limit_bytes=BATCH_SIZE_MAX)


def _offset_deltas(records: Sequence[Record], base_offset: int) -> list[int]:
    deltas: list[int] = []
    next_offset = base_offset
    for record in records:
        offset = next_offset if record.offset == -1 else record.offset
        if offset < next_offset:
            raise UsageError(f"record offset {offset} does not ascend", f"at least {next_offset} must follow")
        if offset - base_offset > INT32_MAX:
            raise UsageError(f"record offset {offset} is too far from base offset {base_offset} for one batch")
        deltas.append(offset - base_offset)
        next_offset = offset + 1
    return deltas


def _wrap_int64(value: int) -> int:
    """Wrap like Java's long arithmetic: base + delta gives the timestamp back, whatever the two are."""
    return (value + 2**63) % 2**64 - 2**63


def _record_parts(
    offset_delta: int, timestamp_delta: int, key: bytes | None, value: bytes | None, headers: Sequence[_Pair]
) -> tuple[bytes, ...]:
    """A record in pieces that share the caller's key and value, so that its size is known before anything is copied."""
    body = (
        b"\x00",
        encode_varint(timestamp_delta),
        encode_varint(offset_delta),
        *_encode_nullable(key),
        *_encode_nullable(value),
        encode_varint(len(headers)),
        *_header_parts(headers),
    )
    return encode_varint(sum(map(len, body))), *body


def _encode_nullable(data: bytes | None) -> tuple[bytes, bytes]:
    return (_NULL, b"") if data is None else (encode_varint(len(data)), data)


def _headers(record: Record) -> list[_Pair]:
    found = []
    for name, value in record.headers:
        try:
            found.append((name.encode(), value))
        except UnicodeEncodeError as error:
            raise UsageError(f"header key {name!r} is not valid Unicode text") from error
    return found


def _header_parts(headers: Sequence[_Pair]) -> Iterator[bytes]:
    for key, value in headers:
        yield encode_varint(len(key))
        yield key
        yield from _encode_nullable(value)
