"""Zeros ahead of the writer: a sync of a file that need not grow is a quarter to a third faster (README,
decision 5).

It happens between commits, in steps that an ordinary sync hardly notices; where appends are too fast for that, they
make a step themselves now and then. In the second half of a segment the next one is made ready beside it, so that a
roll renames a file instead of writing megabytes.

It is also what notices that the file system is full, before anything is written that would end half-way: an append
goes into zeros that are there (`make_room`); if it is larger than those, into blocks that are allocated for it, which
read as zeros. Where they cannot be had nothing has changed, and `is_full` says so until all that is wanted ahead is
there again.
"""

from typing import Final

from fastquorum.config import MS
from fastquorum.errors import StorageFailed
from fastquorum.kernels import Kernels
from fastquorum.kernels.loan import Zeros
from fastquorum.storage import names
from fastquorum.storage.log.segment import Segment, create_segment
from fastquorum.storage.ports import Disk
from fastquorum.types import Micros, Offset

AHEAD_LEAST_BYTES: Final = 256 * 1024
AHEAD_STEP_BYTES: Final = 1024 * 1024
"""Written into the segment in use at once: at least by upkeep, at most by anybody. The next sync of it covers them."""
SPARE_STEP_BYTES: Final = 1024 * 1024
"""Written into the next segment, and synced at once."""
LOOK_US: Final = 200 * MS
"""While the file system is full it is looked at no more often: each look takes what is left of it for a moment."""


class Preparation:
    """The zero-filled rest of the active segment, and the next one's spare, under a name that recovery sweeps away."""

    def __init__(
        self, disk: Disk, kernels: Kernels, directory: str, *, preallocate_bytes: int, segment_bytes: int
    ) -> None:
        self._disk = disk
        self._kernels = kernels
        self._directory = directory
        self._segment_bytes = segment_bytes
        self._ahead_bytes = min(preallocate_bytes, segment_bytes)
        self.zeros = Zeros(min(AHEAD_LEAST_BYTES, self._ahead_bytes // 4), min(AHEAD_STEP_BYTES, self._ahead_bytes))
        """By whom appends: the log, or who borrows its end."""
        self._seen_bytes = 0
        """Size of the active segment at the last `maintain`: zeros are prepared as fast as used, up to a step."""
        self._spare: Segment | None = None
        self._lacking_bytes = 0
        """Zeros in front of the writer that there was no room for; 0: there was."""
        self._lacks_next = False
        """There was none for the next segment."""
        self.lacks_descriptor = False
        """The next segment could not be made because this process may open no more files."""
        self._look_at_us: Micros = 0
        """When to look for room again."""

    @property
    def is_full(self) -> bool:
        """There was no room for what was to be prepared, and there is not yet for all that is wanted ahead."""
        return self._lacks_next or self._lacking_bytes > 0

    def maintain(self, segment: Segment, now_us: Micros) -> None:
        """Keep half a preallocation of zeros in front of a writer that is not too fast; get the next segment ready."""
        if self.is_full:
            if now_us >= self._look_at_us:
                self._look_at_us = now_us + LOOK_US
                self._catch_up(segment)
            return
        appended = max(segment.size_bytes - self._seen_bytes, 0)
        self._seen_bytes = segment.size_bytes
        if segment.prepared_bytes - segment.size_bytes < self._ahead_bytes // 2:
            self._extend(segment, min(max(AHEAD_LEAST_BYTES, 2 * appended), self.zeros.step_bytes))
        if segment.size_bytes > self._segment_bytes // 2:
            has_grown = self._grow_spare(SPARE_STEP_BYTES)
            self._lacks_next = not (has_grown or self.lacks_descriptor)  # a descriptor may be there when it is needed

    def make_room(self, segment: Segment, size_bytes: int) -> bool:
        """Are there zeros for so many more bytes, or can they be made? False: the file system is full."""
        if segment.allocate(segment.size_bytes + size_bytes):
            return True
        self._lacks(size_bytes)
        return False

    def make_next(self) -> bool:
        """Have the next segment ready, whole. False: the file system is full, or no file can be made."""
        self._lacks_next = not self._grow_spare(self._ahead_bytes)
        return not self._lacks_next

    def written(self, segment: Segment) -> None:
        """The writer has gone on: give it a step more if the prepared end is near, or behind."""
        if segment.size_bytes + self.zeros.least_bytes > segment.prepared_bytes:
            segment.prepared_bytes = max(segment.prepared_bytes, segment.size_bytes)
            self._extend(segment, self.zeros.step_bytes)

    def next_segment(self, base_offset: Offset) -> Segment:
        """The segment to go on with; its zeros and its name are durable."""
        spare, self._spare = self._spare, None
        if spare is None:
            return create_segment(self._disk, self._kernels, self._directory, base_offset, self._ahead_bytes)
        spare.file.close()
        name = names.join(self._directory, names.segment_name(base_offset))
        self._disk.rename(names.join(self._directory, names.SPARE_SEGMENT), name)
        self._disk.sync_directory(self._directory)
        return Segment(self._kernels, base_offset, self._disk.open(name, "open"), prepared_bytes=spare.prepared_bytes)

    def give_room(self, segment: Segment) -> None:
        """Give the file system back what is prepared, for something that cannot wait."""
        self.discard()
        segment.file.truncate(segment.size_bytes)
        segment.prepared_bytes = segment.size_bytes
        self._lacks(self.zeros.least_bytes)

    def discard(self) -> None:
        """Remove the spare, as a closed directory has none."""
        spare, self._spare = self._spare, None
        if spare is not None:
            spare.file.close()
            self._disk.remove(names.join(self._directory, names.SPARE_SEGMENT))

    def _extend(self, segment: Segment, step_bytes: int) -> None:
        if not segment.prepare(min(segment.prepared_bytes + step_bytes, self._segment_bytes)):
            self._lacks(self.zeros.least_bytes)

    def _lacks(self, size_bytes: int) -> None:
        self._lacking_bytes = max(self._lacking_bytes, size_bytes, 1)  # upkeep looks ahead even if nothing is wanted

    def _catch_up(self, segment: Segment) -> None:
        """A step towards all that is wanted ahead: with less the next append might find the file system full again."""
        ahead_end = min(segment.size_bytes + self._ahead_bytes, self._segment_bytes)
        end = max(ahead_end, segment.size_bytes + self._lacking_bytes)
        step_end = max(segment.prepared_bytes, segment.size_bytes) + max(AHEAD_STEP_BYTES, self._lacking_bytes)
        if segment.prepare(min(step_end, end)) and segment.prepared_bytes >= end:
            self._lacking_bytes = 0
        if self._lacks_next or segment.size_bytes > self._segment_bytes // 2:
            self._lacks_next = not (self._grow_spare(SPARE_STEP_BYTES) and self._has_spare)

    @property
    def _has_spare(self) -> bool:
        return self._spare is not None and self._spare.prepared_bytes >= self._ahead_bytes

    def _grow_spare(self, step_bytes: int) -> bool:
        """False: the file system is full, or no file can be made; the spare is as it was, or not there."""
        if self._spare is None:
            name = names.join(self._directory, names.SPARE_SEGMENT)
            try:
                self._spare = Segment(self._kernels, -1, self._disk.open(name, "create"))
            except StorageFailed as failed:
                if not failed.can_wait:
                    raise
                self.lacks_descriptor = failed.lacks_descriptor
                return False
            self.lacks_descriptor = False
        elif self._has_spare:
            return True
        if not self._spare.prepare(min(self._spare.prepared_bytes + step_bytes, self._ahead_bytes)):
            return False
        self._spare.file.sync()
        return True
