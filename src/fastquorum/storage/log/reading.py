"""Reading batches back from segments: by offset, by timestamp, one after another."""

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from fastquorum.errors import CorruptionError
from fastquorum.kernels import BATCH_HEADER_BYTES, INDEX_INTERVAL_BYTES, BatchInfo, Kernels, SegmentFile
from fastquorum.storage.log.mark import LogPosition
from fastquorum.storage.log.scanning import BATCH_SCAN_BYTES_MAX, WINDOW_BYTES, bytes_needed
from fastquorum.storage.log.segment import Passed, Segment
from fastquorum.types import Epoch, Offset

_WALK_BYTES = 256 * 1024
_PLACE: Final = struct.Struct(">qi11xi")
"""In a batch's header: base offset, length of what follows it, and how far the last record's offset lies behind."""
_LENGTH_END: Final = 12


class TimestampOffset(NamedTuple):
    """A record found by its timestamp."""

    timestamp_ms: int
    offset: Offset
    leader_epoch: Epoch


class Window(NamedTuple):
    """Part of a segment's file and the whole batches in it, from its first byte on."""

    position: int
    data: bytes
    batches: list[BatchInfo]
    """Positions are relative to `data`."""


def walk(
    kernels: Kernels,
    file: SegmentFile,
    start: int,
    end: int,
    *,
    verify_crc: bool = False,
    window_bytes: int = WINDOW_BYTES,
    timestamp_ms_min: int | None = None,
) -> Iterator[Window]:
    """The batches in [start, end) one window after another, up to the first bytes that are no whole batch, or to where
    the file ends: it may have been cut meanwhile.

    With timestamp_ms_min, windows in which every batch is older are passed over, without a look at each batch.
    """
    position, size = start, window_bytes
    while position < end:
        wanted = min(size, end - position)
        data = file.read(position, wanted)
        seen = kernels.scan(data, verify_crc=False) if timestamp_ms_min is not None else None
        if seen is not None and seen.batch_count and seen.max_timestamp_ms < (timestamp_ms_min or 0):
            position += seen.valid_bytes
            size = window_bytes
            continue
        batches = kernels.batch_headers(data, verify_crc=verify_crc)
        if not batches:
            needed = bytes_needed(data)
            if len(data) < wanted or not len(data) < needed <= min(end - position, BATCH_SCAN_BYTES_MAX):
                return
            size = needed
            continue
        yield Window(position, data, batches)
        position += batches[-1].position + batches[-1].size_bytes
        size = window_bytes


def whole_batches(kernels: Kernels, file: SegmentFile, end: int, start: int = 0) -> Iterator[tuple[BatchInfo, bytes]]:
    """Every batch from `start` to `end`, or to the first bytes that are no whole batch.

    `position` is the file's. The CRC was looked at, but what is wrong is the caller's to judge.
    """
    for window in walk(kernels, file, start, end, verify_crc=True):
        for info in window.batches:
            data = window.data[info.position : info.position + info.size_bytes]
            yield info._replace(position=window.position + info.position), data


def read_batches(kernels: Kernels, segment: Segment, offset: Offset, bytes_max: int) -> bytes:
    """Whole, checked batches from the one that contains `offset`, at most bytes_max but at least one. Crosses no
    segment."""
    position = segment.index.lookup(offset)
    size = 2 * INDEX_INTERVAL_BYTES + min(bytes_max, segment.size_bytes)
    while True:
        data = segment.file.read(position, min(size, segment.size_bytes - position))
        start, end = kernels.slice_batches(data, offset, bytes_max)
        if start < end:
            break
        if position + size >= segment.size_bytes:
            raise CorruptionError("offset", position=position, offset=offset, path=segment.file.path)
        size *= 4
    found = data[start:end]
    scan = kernels.scan(found)
    if scan.fault is not None:
        fault = scan.fault
        raise CorruptionError(
            fault.reason,
            position + start + fault.position,
            fault.offset,
            fault.stored_crc,
            fault.computed_crc,
            segment.file.path,
        )
    if not scan.first_offset <= offset < scan.next_offset:
        raise CorruptionError("offset", position + start, scan.first_offset, path=segment.file.path)
    return found


def batch_start(kernels: Kernels, segment: Segment, offset: Offset) -> LogPosition:
    """Where the batch that holds `offset` begins: its base offset and its position."""
    start = segment.index.lookup(offset)
    for window in walk(kernels, segment.file, start, segment.size_bytes, window_bytes=_WALK_BYTES):
        for info in window.batches:
            if info.last_offset >= offset:
                return LogPosition(info.base_offset, segment.base_offset, window.position + info.position)
    raise CorruptionError("offset", position=start, offset=offset, path=segment.file.path)


def batch_position(segment: Segment, offset: Offset) -> int:
    """Where in the segment the batch begins that holds `offset`; its end if none does. Only headers are looked at, a
    few thousand bytes of them at most, however large the batches are. CorruptionError, StorageFailed."""
    position = segment.index.lookup(offset)
    while position < segment.size_bytes:
        data = segment.file.read(position, min(2 * INDEX_INTERVAL_BYTES, segment.size_bytes - position))
        at = 0
        while at + BATCH_HEADER_BYTES <= len(data):
            base_offset, length, last_delta = _PLACE.unpack_from(data, at)
            if base_offset + last_delta >= offset:
                return position + at
            if length < BATCH_HEADER_BYTES - _LENGTH_END:
                raise CorruptionError("length", position=position + at, offset=offset, path=segment.file.path)
            at += _LENGTH_END + length
        if at == 0:
            raise CorruptionError("offset", position=position, offset=offset, path=segment.file.path)
        position += at
    return segment.size_bytes


def _look_through(kernels: Kernels, segment: Segment, is_enough: Callable[[Passed], bool]) -> None:
    """Note what lies in the segment, a window after another, up to one that is enough. Each window is read once,
    however often somebody asks: the quorum waits meanwhile."""
    passed = segment.passed
    while not passed or not is_enough(passed[-1]):
        position, largest = (passed[-1].position, passed[-1].max_timestamp_ms) if passed else (0, -1)
        if segment.size_bytes - position < WINDOW_BYTES:
            return
        data = segment.file.read(position, WINDOW_BYTES)
        needed = bytes_needed(data)
        if len(data) < needed <= min(segment.size_bytes - position, BATCH_SCAN_BYTES_MAX):
            data = segment.file.read(position, needed)
        seen = kernels.scan(data, verify_crc=False)
        if not seen.batch_count:
            return
        largest = max(largest, seen.max_timestamp_ms)
        passed.append(Passed(position + seen.valid_bytes, seen.next_offset, largest))


def max_timestamp_below(kernels: Kernels, segment: Segment, end_offset: Offset) -> int:
    """Largest timestamp of the segment's batches below `end_offset`; -1 if there are none."""
    _look_through(kernels, segment, lambda passed: passed.next_offset >= end_offset)
    count = bisect_right(segment.passed, end_offset, key=lambda passed: passed.next_offset)
    position, found = 0, -1
    if count:
        position, _, found = segment.passed[count - 1]
    for window in walk(kernels, segment.file, position, segment.size_bytes, window_bytes=_WALK_BYTES):
        for info in window.batches:
            if info.last_offset >= end_offset:
                return found
            found = max(found, info.max_timestamp_ms)
    return found


def first_at_or_after(kernels: Kernels, segment: Segment, timestamp_ms: int) -> TimestampOffset | None:
    """The segment's first record whose timestamp is at least `timestamp_ms`."""
    _look_through(kernels, segment, lambda passed: passed.max_timestamp_ms >= timestamp_ms)
    count = bisect_left(segment.passed, timestamp_ms, key=lambda passed: passed.max_timestamp_ms)
    start = segment.passed[count - 1].position if count else 0
    end = segment.size_bytes
    for window in walk(kernels, segment.file, start, end, window_bytes=WINDOW_BYTES, timestamp_ms_min=timestamp_ms):
        for info in window.batches:
            if info.max_timestamp_ms < timestamp_ms:
                continue
            # In columns: of a million small records in one batch objects would take seconds, and the quorum waits.
            columns = kernels.decode_batch(window.data, info.position)
            is_late = columns.timestamps_ms >= timestamp_ms
            if is_late.any():
                at = int(is_late.argmax())
                return TimestampOffset(int(columns.timestamps_ms[at]), int(columns.offsets[at]), info.leader_epoch)
    return None
