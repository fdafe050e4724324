"""The next segment, made ready before it is needed: a roll then renames a file instead of writing megabytes of
zeros.
"""

from typing import Final

from fastquorum.storage import names
from fastquorum.storage.ports import Disk
from fastquorum.storage.segment import Segment
from fastquorum.types import Offset

STEP_BYTES: Final = 1024 * 1024
"""Zeros written and synced at once."""


class SpareSegment:
    """At most one file beside the segments, under a name that recovery sweeps away."""

    def __init__(self, disk: Disk, directory: str, bytes_max: int) -> None:
        self._disk = disk
        self._directory = directory
        self._bytes_max = bytes_max
        self._spare: Segment | None = None

    def grow(self) -> None:
        """Make a little more of it ready; nothing to do once it is whole."""
        if self._spare is None:
            self._spare = Segment(-1, self._disk.open(names.join(self._directory, names.SPARE_SEGMENT), "create"))
        elif self._spare.prepared_bytes == self._bytes_max:
            return
        self._spare.prepare(min(self._spare.prepared_bytes + STEP_BYTES, self._bytes_max))
        self._spare.file.sync()

    def take(self, base_offset: Offset) -> Segment | None:
        """The spare as the segment of that base, its name durable; None if there is none."""
        spare, self._spare = self._spare, None
        if spare is None:
            return None
        spare.file.close()
        name = names.join(self._directory, names.segment_name(base_offset))
        self._disk.rename(names.join(self._directory, names.SPARE_SEGMENT), name)
        self._disk.sync_directory(self._directory)
        return Segment(base_offset, self._disk.open(name, "open"), prepared_bytes=spare.prepared_bytes)

    def discard(self) -> None:
        """Remove it, as a closed directory has none."""
        spare, self._spare = self._spare, None
        if spare is not None:
            spare.file.close()
            self._disk.remove(names.join(self._directory, names.SPARE_SEGMENT))
