"""One open segment of the log: its file, how much of it is written and how much is prepared with zeros, its index."""

from dataclasses import InitVar, dataclass, field
from typing import NamedTuple

from fastquorum.errors import StorageFailed
from fastquorum.kernels import Kernels, OffsetIndex, SegmentFile
from fastquorum.storage.names import index_name, join, segment_name
from fastquorum.storage.ports import Borrower, Disk
from fastquorum.types import Offset


class Passed(NamedTuple):
    """Where a part of a segment ends that somebody has looked through, and what lies before that."""

    position: int
    next_offset: Offset
    max_timestamp_ms: int
    """The largest timestamp of all batches up to there."""


@dataclass(slots=True)
class Segment:
    """`size_bytes` bytes of batches, then zeros up to `prepared_bytes`, where the file ends: written ones, or blocks
    that only read as zeros."""

    kernels: InitVar[Kernels]
    base_offset: Offset
    file: SegmentFile
    size_bytes: int = 0
    prepared_bytes: int = 0
    max_timestamp_ms: int = -1
    index: OffsetIndex = field(init=False)
    passed: list[Passed] = field(init=False, default_factory=list)
    """Whoever looks for a timestamp needs to look through no part a second time. Ascending."""
    borrower: Borrower | None = field(default=None, init=False)
    """The borrower that appends to it in place of the log; None if there is none."""

    def __post_init__(self, kernels: Kernels) -> None:
        self.index = kernels.OffsetIndex(self.base_offset)

    def allocate(self, end: int) -> bool:
        """Zeros up to `end` that nobody has to write, for something larger than those in front of the writer: it would
        be written twice. No more than that, as written ones sync faster. Where they cannot be had, as `prepare`."""
        assert self.borrower is None, "the log's end is lent"
        if end > self.prepared_bytes:
            if not self.file.allocate(max(self.prepared_bytes, self.size_bytes), end):
                return self.prepare(end)
            self.prepared_bytes = end
        return True

    def prepare(self, end: int) -> bool:
        """Zero-fill ahead up to `end`; False, and all is as it was, if the file system has no room for that.

        Not synced here: the next sync of the file covers it.
        """
        if self.borrower is not None:
            self.prepared_bytes = self.borrower.prepare(end)
        elif end > self.prepared_bytes:
            self.prepared_bytes = self._zero_fill(max(self.prepared_bytes, self.size_bytes), end)
        return self.prepared_bytes >= end

    def _zero_fill(self, start: int, end: int) -> int:
        """Where the zeros end now."""
        try:
            self.file.zero_fill(start, end)
        except StorageFailed as failed:
            if not failed.lacks_room:
                raise
            self.file.truncate(start)  # the little that was left is for what cannot wait: a vote, the mark
            return start
        return end

    def truncate_to(self, position: int) -> None:
        """Its bytes end there."""
        self.size_bytes = position
        self.index.truncate_to(position)
        while self.passed and self.passed[-1].position > position:
            self.passed.pop()

    def trim(self) -> None:
        """Cut the zero tail off and sync: what remains is a file as Kafka writes it."""
        if self.prepared_bytes != self.size_bytes:
            self.file.truncate(self.size_bytes)
            self.prepared_bytes = self.size_bytes
        self.file.sync()


def create_segment(disk: Disk, kernels: Kernels, directory: str, base_offset: Offset, prepare_bytes: int) -> Segment:
    """A new, zero-filled segment; the file and its name are durable when this returns."""
    name = join(directory, segment_name(base_offset))
    segment = Segment(kernels, base_offset, disk.open(name, "create"))
    segment.prepare(prepare_bytes)  # where there is no room it begins without
    segment.file.sync()
    disk.sync_directory(directory)
    return segment


def write_index(disk: Disk, directory: str, segment: Segment) -> None:
    """Beside a closed segment, as Kafka's tools want it, unless it is there."""
    name = join(directory, index_name(segment.base_offset))
    if not disk.exists(name):
        disk.replace_file(name, segment.index.encode())


def remove_index(disk: Disk, directory: str, base_offset: Offset) -> None:
    """Remove the index of the segment that begins there, if any. It is durable with the directory's next sync."""
    name = join(directory, index_name(base_offset))
    if disk.exists(name):
        disk.remove(name)
