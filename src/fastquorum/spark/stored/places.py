"""Where in a log's files an offset is: what was read is not read again, and what may change is not read at all."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from fastquorum.client.committed_log import first_from
from fastquorum.kernels import BATCH_HEADER_BYTES, Kernels
from fastquorum.spark.stored.logs import FoundLog, StoredSegment
from fastquorum.spark.stored.splits import Cut, Piece, cuts_of, piece_between
from fastquorum.spark.stored.stores import store_of
from fastquorum.types import Offset

_WINDOW_BYTES: Final = 1 << 20
_OFFSET_BYTES: Final = 8


class FilePlace(NamedTuple):
    """Position of an offset in a log's files."""

    segment: int
    """Index of the segment among the log's segments, in order."""
    position: int
    """Position in the segment's file."""


class Places:
    """Finds positions of offsets, from the last one in the same file on: committed batches do not move."""

    def __init__(self, kernels: Kernels) -> None:
        self._kernels = kernels
        self._found: dict[str, tuple[Offset, int]] = {}
        """By file: an offset, and the position where its batch begins or will begin."""

    def of(self, segments: list[StoredSegment], offset: Offset, *, begins: bool) -> FilePlace:
        """Return the position of the first batch that ends behind `offset`, or with `begins`, that begins at it or
        behind it; else where the log ends. DirectoryError."""
        return self._find(segments, offset, begins=begins)[0]

    def _find(self, segments: list[StoredSegment], offset: Offset, *, begins: bool) -> tuple[FilePlace, bool]:
        """Return the position, and whether the batch that holds `offset`, or a later one, is there."""
        at = self._segment(segments, offset)
        position, is_there = self._position(segments[at], offset, begins=begins)
        goes_on = at + 1 < len(segments)
        if begins and goes_on and not is_there:
            # What is in front of it is damaged, or missing: whoever reads the segment to its end finds that.
            position = segments[at].size_bytes
        return FilePlace(at, position), is_there or goes_on

    def reaches(self, segments: list[StoredSegment], offset: Offset) -> bool:
        """Return whether the log holds the record before `offset`, or one behind it. DirectoryError."""
        return offset <= segments[0].base_offset or self._find(segments, offset - 1, begins=False)[1]

    def next_batch(self, segments: list[StoredSegment], offset: Offset) -> Offset | None:
        """Return where the first batch begins that ends behind `offset`: not behind it, unless something is missing.
        None: there is none, or damage is in front of it. DirectoryError."""
        at = self._segment(segments, offset)
        position, is_there = self._position(segments[at], offset, begins=False)
        path = segments[at].path
        header = store_of(path).read(path, position, BATCH_HEADER_BYTES)
        if is_there:
            return int.from_bytes(header[:_OFFSET_BYTES], "big")
        return segments[at + 1].base_offset if at + 1 < len(segments) and not any(header) else None

    def _segment(self, segments: list[StoredSegment], offset: Offset) -> int:
        """Return the index of the segment in which the offset would be."""
        return max((number for number, each in enumerate(segments) if each.base_offset <= offset), default=0)

    def _position(self, segment: StoredSegment, offset: Offset, *, begins: bool) -> tuple[int, bool]:
        known = self._found.get(segment.path)
        position = known[1] if known is not None and known[0] <= offset else 0
        if offset < segment.base_offset or (begins and offset == segment.base_offset):
            return 0, True
        store, size = store_of(segment.path), _WINDOW_BYTES
        while position < segment.size_bytes:
            window = store.read(segment.path, position, min(size, segment.size_bytes - position))
            scan = self._kernels.scan(window, verify_crc=False)
            good = memoryview(window)[: scan.valid_bytes]
            if len(good) == 0:
                if len(window) < size or not any(window[:BATCH_HEADER_BYTES]):
                    break  # what is being written, or laid ahead of use
                size *= 2
                continue
            at = self._kernels.slice_batches(good, offset, 1)[0]
            if at < len(good):
                self._found[segment.path] = (int.from_bytes(good[at : at + _OFFSET_BYTES], "big"), position + at)
                return position + (first_from(self._kernels, good, offset) if begins else at), True
            position, size = position + len(good), _WINDOW_BYTES
            self._found[segment.path] = (scan.next_offset, position)
        return position, False


def pieces_between(
    log: FoundLog, places: Places, start: Offset, end: Offset | None, split_bytes: int, *, by_batch: bool = False
) -> Iterator[Piece]:
    """Yield the batches that hold [start, end), or with `by_batch`, that begin there. No file yields other batches, or
    fewer, whatever its node does meanwhile. None: to the end, as it is now. DirectoryError."""
    segments = sorted(log.segments)
    if not segments:
        return
    first = places.of(segments, start, begins=by_batch)
    last = FilePlace(len(segments), 0) if end is None else places.of(segments, end, begins=True)
    for number, segment in enumerate(segments[first.segment : last.segment + 1], first.segment):
        low = first.position if number == first.segment else 0
        high = min(last.position, segment.size_bytes) if number == last.segment else segment.size_bytes
        if low >= high:
            continue
        following = segments[number + 1].base_offset if number + 1 < len(segments) else -1
        inner = cuts_of(log, segment, split_bytes) if high - low > split_bytes + split_bytes // 2 else []
        behind = Cut(high, following if high == segment.size_bytes else -1)
        within = (cut for cut in inner if low < cut.position < high)
        for begin, stop in pairwise([Cut(low, -1), *within, behind]):
            is_tail = stop.position == segment.size_bytes and following < 0 and end is None
            yield piece_between(log, segment, begin, stop, is_tail=is_tail, is_cut=stop is not behind)
