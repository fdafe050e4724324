"""Zeros ahead of the writer: a sync of a file that need not grow is a quarter to a third faster (README,
decision 5).

It happens between commits, in steps that an ordinary sync hardly notices; where appends are too fast for that, they
make a step themselves now and then. In the second half of a segment the next one is made ready beside it, so that a
roll renames a file instead of writing megabytes.
"""

from typing import Final

from fastquorum.kernels import Kernels
from fastquorum.kernels.loan import Zeros
from fastquorum.storage import names
from fastquorum.storage.ports import Disk
from fastquorum.storage.segment import Segment, create_segment
from fastquorum.types import Offset

AHEAD_LEAST_BYTES: Final = 256 * 1024
AHEAD_STEP_BYTES: Final = 1024 * 1024
"""Written into the segment in use at once: at least by upkeep, at most by anybody. The next sync of it covers them."""
SPARE_STEP_BYTES: Final = 1024 * 1024
"""Written into the next segment, and synced at once."""


class Preparation:
    """What is zero-filled, and what comes next. The spare lies under a name that recovery sweeps away."""

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

    def maintain(self, segment: Segment) -> None:
        """Keep half a preallocation of zeros in front of a writer that is not too fast; get the next segment ready."""
        appended = max(segment.size_bytes - self._seen_bytes, 0)
        self._seen_bytes = segment.size_bytes
        if segment.prepared_bytes - segment.size_bytes < self._ahead_bytes // 2:
            self._extend(segment, min(max(AHEAD_LEAST_BYTES, 2 * appended), self.zeros.step_bytes))
        if segment.size_bytes > self._segment_bytes // 2:
            self._grow_spare()

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

    def discard(self) -> None:
        """Remove the spare, as a closed directory has none."""
        spare, self._spare = self._spare, None
        if spare is not None:
            spare.file.close()
            self._disk.remove(names.join(self._directory, names.SPARE_SEGMENT))

    def _extend(self, segment: Segment, step_bytes: int) -> None:
        segment.prepare(min(segment.prepared_bytes + step_bytes, self._segment_bytes))

    def _grow_spare(self) -> None:
        if self._spare is None:
            name = names.join(self._directory, names.SPARE_SEGMENT)
            self._spare = Segment(self._kernels, -1, self._disk.open(name, "create"))
        elif self._spare.prepared_bytes == self._ahead_bytes:
            return
        self._spare.prepare(min(self._spare.prepared_bytes + SPARE_STEP_BYTES, self._ahead_bytes))
        self._spare.file.sync()
