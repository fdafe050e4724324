"""The little that raft/ may look at or draw from outside: the log's offsets and epochs, and random numbers."""

from typing import Protocol

from fastquorum.types import Epoch, Offset, OffsetAndEpoch


class SnapshotsView(Protocol):
    """The finished snapshots at hand; never (0, 0), which only makes the first voters known."""

    @property
    def latest(self) -> OffsetAndEpoch | None: ...
    @property
    def earliest(self) -> OffsetAndEpoch | None: ...
    def size_bytes(self, snapshot: OffsetAndEpoch) -> int:
        """-1 if there is none such."""


class LogView(Protocol):
    """The log as raft/ sees it. Read-only facts in memory (storage.Log is one).

    They change only between steps: by the effects ordered, or by the lane, which is frozen during a step and until its
    effects are done. Within a step an effect that was ordered is not yet visible here.
    """

    @property
    def snapshots(self) -> SnapshotsView: ...
    @property
    def start_offset(self) -> Offset: ...
    @property
    def end_offset(self) -> Offset:
        """Exclusive; unflushed bytes included: what a vote's "up to date" goes by (lane rule 2)."""

    @property
    def flushed_end(self) -> Offset: ...
    @property
    def committed_offset(self) -> Offset:
        """All below it was known to be committed when this was last made durable; 0 if nothing was."""

    @property
    def is_full(self) -> bool:
        """There is no room on the disk for what is appended: who leads gives up, and this replica does not stand."""

    @property
    def takes_nothing(self) -> bool:
        """Not even a control batch: whoever is elected could commit nothing with this replica's help."""

    @property
    def last_epoch(self) -> Epoch:
        """Epoch of the last record, or of the snapshot that an empty log begins with; else 0."""

    def end_offset_for(self, epoch: Epoch) -> tuple[Epoch, Offset]:
        """(epoch', end offset) as Kafka's `RaftLog.endOffsetForEpoch` has it; (-1, -1) for an empty log."""

    def epoch_for(self, offset: Offset) -> Epoch:
        """Epoch of the record at `offset`, -1 if there is none."""


class Random(Protocol):
    """Injected randomness (random.Random in a node, the seed's generator in the simulator)."""

    def randrange(self, stop: int, /) -> int:
        """0 <= n < stop."""
