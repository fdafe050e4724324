"""Record batches, read: to columns, to Python records, to values. Every byte is hostile until checked.

Source: KIP-98.
"""

from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from fastquorum.errors import CorruptionError, DecompressedTooLarge
from fastquorum.kernels import (
    BATCH_HEADER_BYTES,
    DECOMPRESSED_BYTES_MAX,
    Attribute,
    BatchFault,
    BatchInfo,
    Buffer,
    Columns,
    Header,
    Int64Array,
    Record,
)
from fastquorum.kernels.compression import decompress
from fastquorum.kernels.pure.batch_header import checked_header, view_from
from fastquorum.kernels.pure.varint import VarintError, read_varint

_RECORD_BYTES_MIN: Final = 7
"""Length, attributes, two deltas, null key, null value, no headers: one byte each."""
_HEADER_BYTES_MIN: Final = 2


class _RecordError(ValueError):
    """A record inside a batch does not parse."""


class _Section(NamedTuple):
    """A batch whose header is good, and where its records are."""

    info: BatchInfo
    data: Buffer
    view: memoryview
    start: int
    end: int


class _Row(NamedTuple):
    """One parsed record: slices are (start, length) in the section's data, length -1 = null."""

    offset_delta: int
    timestamp_delta: int
    key: tuple[int, int]
    value: tuple[int, int]
    headers: list[tuple[int, int, int, int]]
    """(key start, key length, value start, value length)"""


def check_records(
    buffer: Buffer,
    position: int = 0,
    *,
    verify_crc: bool = True,
    decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
) -> BatchInfo:
    section = _open(buffer, position, verify_crc, decompressed_bytes_max)
    deque(_parsed(section), maxlen=0)
    return section.info


def decode_batch(
    buffer: Buffer,
    position: int = 0,
    *,
    verify_crc: bool = True,
    decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
) -> Columns:
    section = _open(buffer, position, verify_crc, decompressed_bytes_max)
    info = section.info
    rows = _rows(section)
    headers = [header for row in rows for header in row.headers]
    return Columns(
        info=info,
        data=section.data,
        offsets=_int64([info.base_offset + row.offset_delta for row in rows]),
        timestamps_ms=_int64([_timestamp_ms(info, row) for row in rows]),
        key_starts=_int64([row.key[0] for row in rows]),
        key_lengths=_int64([row.key[1] for row in rows]),
        value_starts=_int64([row.value[0] for row in rows]),
        value_lengths=_int64([row.value[1] for row in rows]),
        header_starts=np.cumsum([0, *(len(row.headers) for row in rows)], dtype=np.int64),
        header_key_starts=_int64([header[0] for header in headers]),
        header_key_lengths=_int64([header[1] for header in headers]),
        header_value_starts=_int64([header[2] for header in headers]),
        header_value_lengths=_int64([header[3] for header in headers]),
    )


def decode_records(
    buffer: Buffer,
    position: int = 0,
    *,
    verify_crc: bool = True,
    decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
) -> list[Record]:
    section = _open(buffer, position, verify_crc, decompressed_bytes_max)
    info, view = section.info, section.view
    return [
        Record(
            value=_slice(view, *row.value),
            key=_slice(view, *row.key),
            headers=tuple(_headers(view, row)) if row.headers else (),
            timestamp_ms=_timestamp_ms(info, row),
            offset=info.base_offset + row.offset_delta,
        )
        for row in _rows(section)
    ]


def decode_values(
    buffer: Buffer,
    position: int = 0,
    *,
    verify_crc: bool = True,
    decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
) -> list[bytes | None]:
    section = _open(buffer, position, verify_crc, decompressed_bytes_max)
    return [_slice(section.view, *row.value) for row in _rows(section)]


def _open(buffer: Buffer, position: int, verify_crc: bool, decompressed_bytes_max: int) -> _Section:
    """Check the batch's header and find, or decompress, its records section."""
    view = view_from(buffer, position)
    info = checked_header(view, position, verify_crc=verify_crc)
    start, end = position + BATCH_HEADER_BYTES, position + info.size_bytes
    if not info.compression:
        return _Section(info, buffer, view, start, end)
    try:
        section = decompress(info.compression, view[start:end], decompressed_bytes_max)
    except DecompressedTooLarge as error:
        raise DecompressedTooLarge(
            position=position, offset=info.base_offset, limit_bytes=decompressed_bytes_max
        ) from error
    except CorruptionError as error:
        raise CorruptionError(error.reason, position, info.base_offset) from error
    return _Section(info, section, memoryview(section), 0, len(section))


def _rows(section: _Section) -> list[_Row]:
    """Return all records, parsed, like `_parsed`."""
    return list(_parsed(section))


def _parsed(section: _Section) -> Iterator[_Row]:
    """Parse every record; CorruptionError(reason="record") unless they fill the section exactly."""
    info, position = section.info, section.start
    previous = -1
    last_offset_delta = info.last_offset - info.base_offset
    try:
        # A count that the bytes cannot hold is refused before anything grows with it.
        if info.records_count * _RECORD_BYTES_MIN > section.end - position:
            raise _RecordError
        for _ in range(info.records_count):
            row, position = _parse_record(section.view, position, section.end)
            if not previous < row.offset_delta <= last_offset_delta:
                raise _RecordError
            previous = row.offset_delta
            yield row
        if position != section.end:
            raise _RecordError
    except (_RecordError, VarintError) as error:
        raise CorruptionError(BatchFault.RECORD, info.position, info.base_offset) from error


def _parse_record(data: memoryview, position: int, section_end: int) -> tuple[_Row, int]:
    size, position = read_varint(data, position, section_end)
    end = position + size
    if size < 1 or end > section_end:
        raise _RecordError
    # The byte skipped is the record's attributes: unused in v2, and not looked at by Kafka either.
    timestamp_delta, position = read_varint(data, position + 1, end, bits=64)
    offset_delta, position = read_varint(data, position, end)
    key_start, key_length, position = _parse_nullable(data, position, end)
    value_start, value_length, position = _parse_nullable(data, position, end)
    headers_count, position = read_varint(data, position, end)
    if headers_count < 0 or headers_count * _HEADER_BYTES_MIN > end - position:
        raise _RecordError
    headers: list[tuple[int, int, int, int]] = []
    for _ in range(headers_count):
        name_start, name_length, position = _parse_nullable(data, position, end)
        if name_length < 0:
            raise _RecordError
        start, length, position = _parse_nullable(data, position, end)
        headers.append((name_start, name_length, start, length))
    if position != end:
        raise _RecordError
    return _Row(offset_delta, timestamp_delta, (key_start, key_length), (value_start, value_length), headers), end


def _parse_nullable(data: memoryview, position: int, end: int) -> tuple[int, int, int]:
    """(start, length, position after it) of length-prefixed bytes; length -1 = null."""
    length, start = read_varint(data, position, end)
    if length < -1 or length > end - start:
        raise _RecordError
    return start, length, start + max(0, length)


def _timestamp_ms(info: BatchInfo, row: _Row) -> int:
    if info.attributes & Attribute.LOG_APPEND_TIME:
        return info.max_timestamp_ms
    # Wraps as Java's long does: the timestamp is the client's business, not a reason to lose the record.
    return (info.base_timestamp_ms + row.timestamp_delta + 2**63) % 2**64 - 2**63


def _headers(view: memoryview, row: _Row) -> Iterator[Header]:
    for name_start, name_length, start, length in row.headers:
        # Kafka replaces bytes that are no UTF-8 as well: one client's bad header must not stop every reader of the log.
        name = bytes(view[name_start : name_start + name_length]).decode("utf-8", "replace")
        yield Header(name, _slice(view, start, length))


def _slice(view: memoryview, start: int, length: int) -> bytes | None:
    return None if length < 0 else bytes(view[start : start + length])


def _int64(values: list[int]) -> Int64Array:
    return np.array(values, dtype=np.int64)
