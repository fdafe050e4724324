"""The segments of one log directory: written at the end, rolled, cut off, and looked up by offset or timestamp.

Knows where bytes lie, and nothing of what is synced or committed, nor of epochs: the log, which owns it, says when.
"""

from bisect import bisect_right
from collections.abc import Iterable
from operator import attrgetter
from typing import Final, NamedTuple

from fastquorum.closing import end_all
from fastquorum.config import QuorumConfig
from fastquorum.kernels import Kernels
from fastquorum.kernels.loan import Zeros
from fastquorum.storage import names
from fastquorum.storage.log.index import RELATIVE_OFFSET_MAX
from fastquorum.storage.log.mark import LogPosition
from fastquorum.storage.log.preparing import Preparation
from fastquorum.storage.log.reading import (
    TimestampOffset,
    batch_position,
    first_at_or_after,
    max_timestamp_below,
    read_batches,
)
from fastquorum.storage.log.segment import Segment, remove_index, write_index
from fastquorum.storage.ports import Disk
from fastquorum.types import Micros, Offset

SEGMENT_BYTES_MAX: Final = 2**31 - 1
"""Positions in Kafka's index files are int32."""
SEGMENT_RECORDS_MAX: Final = RELATIVE_OFFSET_MAX + 1
"""Offsets from a segment's base on that its index can address. No batch has more, so an empty segment takes any one."""
_base_offset = attrgetter("base_offset")


class Stretch(NamedTuple):
    """What lies between two offsets of the log."""

    size_bytes: int
    first_segment: Offset
    last_segment: Offset
    """Where they begin in which it begins and ends: one read crosses none."""

    @property
    def crosses_segments(self) -> bool:
        return self.first_segment != self.last_segment


class Segments(list[Segment]):
    """By base offset, ascending; never empty. The last is the active one."""

    def __init__(
        self, disk: Disk, kernels: Kernels, config: QuorumConfig, directory: str, segments: Iterable[Segment]
    ) -> None:
        super().__init__(segments)
        self._disk = disk
        self._kernels = kernels
        self._directory = directory
        self.segment_bytes = min(config.segment_bytes, SEGMENT_BYTES_MAX)
        """What a segment holds at most, unless its only append is larger."""
        self._preparation = Preparation(
            disk, kernels, directory, preallocate_bytes=config.preallocate_bytes, segment_bytes=self.segment_bytes
        )

    @property
    def zeros(self) -> Zeros:
        return self._preparation.zeros

    @property
    def start_offset(self) -> Offset:
        return self[0].base_offset

    def written_end(self, end_offset: Offset) -> LogPosition:
        """Where the log's end lies."""
        active = self[-1]
        return LogPosition(end_offset, active.base_offset, active.size_bytes)

    def written_since(self, position: LogPosition) -> list[Segment]:
        """Return the segments with bytes beyond `position`."""
        first = self._number_of(position.segment_base)
        if position.position == self[first].size_bytes:
            first += 1
        return self[first:]

    def holding(self, offset: Offset) -> Segment:
        """The one in which this offset lies, or would lie."""
        return self[self._number_of(offset)]

    def _number_of(self, offset: Offset) -> int:
        return bisect_right(self, offset, key=_base_offset) - 1

    # --- written ------------------------------------------------------------------------------------------------------

    def has_room(self, size_bytes: int, next_offset: Offset) -> bool:
        """May so many bytes, up to next_offset, go into the active segment? An empty one takes any number of bytes."""
        active = self[-1]
        if next_offset - active.base_offset > SEGMENT_RECORDS_MAX:
            return False
        return not active.size_bytes or active.size_bytes + size_bytes <= self.segment_bytes

    def make_room(self, size_bytes: int) -> bool:
        """Zeros for so many more bytes in the active segment. False: the file system is full."""
        return self._preparation.make_room(self[-1], size_bytes)

    def has_zeros(self, size_bytes: int) -> bool:
        """For so many more bytes in the active segment; none has to be made."""
        active = self[-1]
        return active.size_bytes + size_bytes <= active.prepared_bytes

    def give_room(self) -> None:
        """Let go of what is prepared."""
        self._preparation.give_room(self[-1])

    def make_next(self) -> bool:
        """Have the next segment ready. False: the file system is full."""
        return self._preparation.make_next()

    @property
    def is_full(self) -> bool:
        """The file system had no room for zeros, and has not yet for all that are wanted."""
        return self._preparation.is_full

    @property
    def hindrance(self) -> str:
        """Why it is full, and what to do; for messages."""
        root = self._disk.root
        if self._preparation.lacks_descriptor:
            limit = "raise its limit (`ulimit -n`, or LimitNOFILE= of its service)"
            return f"no segment can be made in {root}, since this process may open no more files: {limit}"
        return (
            f"no space is left on the file system of {root}, or none that this user (quota) or process (ulimit -f) may "
            "have: make room there, or raise the limit"
        )

    def write(self, span: bytes) -> tuple[Segment, int]:
        """Put bytes at the end of the active segment: that one, and where they begin in it."""
        segment = self[-1]
        position = segment.size_bytes
        segment.file.write(position, span)
        segment.size_bytes = position + len(span)
        self._preparation.written(segment)
        return segment, position

    def begin_next(self, base_offset: Offset) -> None:
        """Go on in a new segment; its zeros and its name are durable."""
        self.append(self._preparation.next_segment(base_offset))

    def begin_anew(self, base_offset: Offset) -> None:
        """One empty segment takes the place of all. Their files stay open: a sync may be under way."""
        self[:] = [self._preparation.next_segment(base_offset)]

    def remove_behind(self, segment: Segment) -> None:
        """Remove the later ones, from the last down, so that a crash in between leaves no gap; an index before its
        segment, as one that is left alone tells of a segment that was lost."""
        keep = self._number_of(segment.base_offset) + 1
        for each in reversed(self[keep:]):  # their files stay open: a sync may be under way
            remove_index(self._disk, self._directory, each.base_offset)
            self._disk.remove(names.join(self._directory, names.segment_name(each.base_offset)))
            self._disk.sync_directory(self._directory)
        del self[keep:]

    def remove_before(self, segment: Segment) -> None:
        """Remove the earlier ones and their indexes, from the first up, so that a crash in between leaves no gap."""
        count = self._number_of(segment.base_offset)
        for each in self[:count]:  # their files stay open: somebody may be reading
            self._disk.remove(names.join(self._directory, names.segment_name(each.base_offset)))
            self._disk.sync_directory(self._directory)
        del self[:count]
        for name in self._disk.list(self._directory):
            base = names.parse_index(name)
            if base is not None and base < segment.base_offset:
                self._disk.remove(names.join(self._directory, name))

    def maintain(self, now_us: Micros) -> None:
        """Prepare zeros ahead, and the next segment. To be called between commits."""
        self._preparation.maintain(self[-1], now_us)

    # --- read ---------------------------------------------------------------------------------------------------------

    def read(self, offset: Offset, bytes_max: int) -> bytes:
        """Whole, checked batches from the one that contains `offset`, at most bytes_max but at least one."""
        return read_batches(self._kernels, self.holding(offset), offset, bytes_max)

    def stretch(self, offset: Offset, end_offset: Offset) -> Stretch:
        """Return the stretch from the batch that contains `offset` to the last one below end_offset, by positions: no
        batch is read."""
        first, last = self._number_of(offset), self._number_of(end_offset)
        begin, end = batch_position(self[first], offset), batch_position(self[last], end_offset)
        size_bytes = end - begin + sum(each.size_bytes for each in self[first:last])
        return Stretch(size_bytes, self[first].base_offset, self[last].base_offset)

    def offset_for_timestamp(self, timestamp_ms: int) -> TimestampOffset | None:
        """The first record whose timestamp is at least `timestamp_ms`; None if there is none."""
        for segment in self:
            if segment.max_timestamp_ms >= timestamp_ms and segment.size_bytes:
                found = first_at_or_after(self._kernels, segment, timestamp_ms)
                if found is not None:
                    return found
        return None

    def max_timestamp_below(self, end_offset: Offset, log_end: Offset) -> int:
        """Largest timestamp of any batch that lies below `end_offset`; -1 if there is none."""
        found = -1
        for segment, end in zip(self, [*map(_base_offset, self[1:]), log_end], strict=True):
            if end <= end_offset:
                found = max(found, segment.max_timestamp_ms)
            elif segment.base_offset < end_offset:
                found = max(found, max_timestamp_below(self._kernels, segment, end_offset))
        return found

    # --- closed -------------------------------------------------------------------------------------------------------

    def discard_prepared(self) -> None:
        """Remove what was made ready, as a closed directory has nothing of the kind."""
        self._preparation.discard()

    def write_indexes(self) -> None:
        """Write the indexes that Kafka's tools want beside closed segments."""
        for segment in self:
            write_index(self._disk, self._directory, segment)

    def close(self) -> None:
        end_all(segment.file.close for segment in self)
