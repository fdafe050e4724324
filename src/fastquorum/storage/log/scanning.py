"""Checking the batches of one segment's file, a window at a time."""

import struct
from collections.abc import Callable
from typing import Final, NamedTuple

from fastquorum.kernels import BATCH_HEADER_BYTES, BatchFault, Buffer, Fault, Kernels, OffsetIndex, Scan, SegmentFile
from fastquorum.storage.log.windows import BLOCK_BYTES, Windows
from fastquorum.types import Epoch, Offset

WINDOW_BYTES: Final = 2 * 1024 * 1024
"""The window of other reads: small enough to stay in the cache between the read and the check."""
BATCH_SCAN_BYTES_MAX: Final = 128 * 1024 * 1024
"""A longer batch is taken for a damaged length: no peer can send one in a frame."""
_LENGTH: Final = struct.Struct(">i")
_LENGTH_AT: Final = 8
_LAST_OFFSET: Final = struct.Struct(">q15xi")
"""baseOffset, and lastOffsetDelta where a v2 batch has it."""
_LENGTH_END: Final = 12
_MAGIC_AT: Final = 16
_ZEROS: Final = bytes(WINDOW_BYTES)
EPOCH_MAX: Final = 2**31 - 1


class SegmentScan(NamedTuple):
    """The good prefix of a range of a segment, and why it ends; positions are the file's."""

    end_position: int
    batch_count: int
    record_count: int
    next_offset: Offset
    last_epoch: Epoch
    """-1 if no batch."""
    max_timestamp_ms: int
    epoch_starts: tuple[tuple[Epoch, Offset], ...]
    fault: Fault | None
    """None if the range ends exactly with a batch."""


def scan_segment(
    kernels: Kernels,
    file: SegmentFile,
    start: int,
    end: int,
    *,
    expected_offset: Offset,
    epoch_min: Epoch,
    epoch_max: Epoch = EPOCH_MAX,
    index: OffsetIndex | None = None,
    visit: Callable[[Buffer, Scan], None] | None = None,
) -> SegmentScan:
    """Check the batches in [start, end): CRCs, offsets that continue from `expected_offset`, epochs that do not fall.

    Fills `index` and shows `visit` the good batches on the way, whose bytes are there until it returns. Never raises
    for bad bytes; StorageFailed if they cannot be read.
    """
    windows = Windows(file, start, end, BLOCK_BYTES)
    position, needed = start, 0
    batches = records = 0
    last_epoch = timestamp = -1
    epoch_starts: list[tuple[Epoch, Offset]] = []
    fault: Fault | None = None
    while position < end:
        window = windows.at(position, needed)
        if not window:
            fault = Fault(BatchFault.TRUNCATED, position, expected_offset, -1, -1)
            break
        scan = kernels.scan(
            window,
            expected_offset=expected_offset,
            epoch_min=epoch_min,
            epoch_max=epoch_max,
            batch_bytes_max=BATCH_SCAN_BYTES_MAX,
        )
        if scan.batch_count:
            batches += scan.batch_count
            records += scan.record_count
            timestamp = max(timestamp, scan.max_timestamp_ms)
            epoch_starts.extend(entry for entry in scan.epoch_starts if entry[0] != last_epoch)
            expected_offset, epoch_min, last_epoch = scan.next_offset, scan.last_epoch, scan.last_epoch
            if index is not None:
                index.add(window, 0, scan.first_offset, position)
                for offset, at in scan.index:
                    index.add(window, at, offset, position + at)
            if visit is not None:
                visit(window[: scan.valid_bytes], scan)
            position += scan.valid_bytes
            needed = 0
            continue  # a fault, if any, is looked at again from the start of a window
        assert scan.fault is not None, "a scan without a batch and without a fault"
        is_short = len(window) < needed  # the file has ended before its end
        needed = bytes_needed(window)
        if len(window) < needed <= min(end - position, BATCH_SCAN_BYTES_MAX) and not is_short:
            continue
        fault = scan.fault._replace(position=position)
        break
    return SegmentScan(position, batches, records, expected_offset, last_epoch, timestamp, tuple(epoch_starts), fault)


def bytes_needed(window: Buffer) -> int:
    """How long the batch at the window's start claims to be."""
    if len(window) < _LENGTH_END:
        return BATCH_HEADER_BYTES
    length: int = _LENGTH.unpack_from(window, _LENGTH_AT)[0]
    return max(_LENGTH_END + length, BATCH_HEADER_BYTES)


def last_offset_at(file: SegmentFile, position: int) -> Offset:
    """Return the last offset of the batch at `position`, whose header is there."""
    base_offset, delta = _LAST_OFFSET.unpack(file.read(position, _LAST_OFFSET.size))
    return base_offset + delta  # type: ignore[no-any-return]


def nonzero_end(file: SegmentFile, start: int, end: int) -> int:
    """Position after the last byte in [start, end) that is not zero; `start` if there is none."""
    last, position = start, start
    while position < end:
        window = file.read(position, min(WINDOW_BYTES, end - position))
        if not window:
            break
        if window != _ZEROS[: len(window)]:
            last = position + len(window.rstrip(b"\0"))
        position += len(window)
    return last


def find_batch(kernels: Kernels, file: SegmentFile, start: int, end: int) -> Fault | None:
    """The first whole batch with a good checksum at any byte of [start, end), behind which the file has only zeros.

    As a Fault (reason OFFSET) naming where it lies: it is there, but does not continue the log. Its own last bytes may
    be zeros that lie behind `end`.
    """
    data = file.read(start, end - start)
    left = file.size_bytes - start
    at = data.find(b"\x02", _MAGIC_AT)
    while at >= 0:
        candidate = at - _MAGIC_AT
        (length,) = _LENGTH.unpack_from(data, candidate + _LENGTH_AT)
        size = _LENGTH_END + length
        if BATCH_HEADER_BYTES <= size <= left - candidate:
            zeros = bytes(max(0, candidate + size - len(data)))
            batch = data[candidate:] + zeros if zeros else memoryview(data)[candidate : candidate + size]
            scan = kernels.scan(batch)
            if scan.batch_count:
                return Fault(BatchFault.OFFSET, start + candidate, scan.first_offset, -1, -1)
        at = data.find(b"\x02", at + 1)
    return None
