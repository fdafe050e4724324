"""The epochs of a log. Source: KIP-101."""

from collections.abc import Sequence
from typing import Protocol


class EpochCache(Protocol):
    """Which epoch begins at which offset (KIP-101): strictly ascending in both. O(log epochs) lookups. Not
    thread-safe."""

    def __init__(self, entries: Sequence[tuple[int, int]] = ()) -> None:
        """`entries` are (epoch, start offset); CorruptionError(reason="epoch") unless both strictly ascend from >=
        0."""

    def __len__(self) -> int: ...

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Epoch begins at start_offset. True if it is new.

        An epoch equal to the latest is ignored; entries at or beyond start_offset are replaced (an epoch without a
        record). CorruptionError(reason="epoch") if `epoch` is below the latest, CorruptionError(reason="offset") if
        start_offset is below the latest entry's start or negative.
        """

    @property
    def latest_epoch(self) -> int:
        """-1 if empty."""

    @property
    def latest_start(self) -> int:
        """-1 if empty."""

    def epoch_for(self, offset: int) -> int:
        """Epoch of the record at offset; -1 if it precedes the first entry or the cache is empty."""

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """(epoch', end offset) as Kafka's `RaftLog.endOffsetForEpoch` has it, snapshots left aside.

        The latest epoch -> (epoch, log end); above it -> (latest, log end); else the floor entry and the next one's
        start; without a floor -> (epoch, start of the first entry). Empty cache -> (-1, -1).
        """

    def truncate_to(self, end_offset: int) -> None:
        """Drop entries that start at or beyond end_offset."""

    def truncate_before(self, start_offset: int) -> None:
        """Log start moved: drop entries wholly below it; the one that covers it now starts there."""

    def entries(self) -> list[tuple[int, int]]:
        """(epoch, start offset), ascending."""
