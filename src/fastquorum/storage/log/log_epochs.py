"""Which epoch begins where in one log; below its first record too, of which only a snapshot tells. KIP-101, KIP-630."""

from fastquorum.kernels import EpochCache
from fastquorum.storage.log.snapshots import Snapshots, log_end
from fastquorum.types import Epoch, Offset, OffsetAndEpoch


class LogEpochs:
    """The epochs of the log's records, and of the snapshot that an empty log begins behind."""

    def __init__(self, cache: EpochCache, snapshots: Snapshots, start_offset: Offset) -> None:
        self.cache = cache
        """The epochs of the records alone, without the snapshots'."""
        self._snapshots = snapshots
        self._start_offset = start_offset
        self._empty_epoch = log_end(snapshots.latest, start_offset, None).epoch

    @property
    def last(self) -> Epoch:
        """Epoch of the last record; of an empty log that of the snapshot which it begins behind, else 0."""
        latest = self.cache.latest_epoch
        return latest if latest >= 0 else self._empty_epoch

    def end_offset_for(self, epoch: Epoch, start_offset: Offset, end_offset: Offset) -> tuple[Epoch, Offset]:
        """The largest epoch <= `epoch` in a log from start_offset to end_offset, and where it ends; (-1, -1) for an
        empty log that starts at 0.

        Below the log's first epoch all that is known is the earliest snapshot; of an empty log, the one that it begins
        behind (Kafka `KafkaRaftLog.endOffsetForEpoch`).
        """
        if self.cache.latest_epoch < 0 and start_offset > 0:
            return self._empty_epoch, end_offset
        found = self.cache.end_offset_for(epoch, end_offset)
        earliest = self._snapshots.earliest
        if earliest is not None and found == (epoch, earliest.offset):
            return earliest.epoch, earliest.offset
        return found

    def continued(self, end_offset: Offset) -> None:
        """The log goes up to end_offset now, by records of its last epoch: the first of them all begins that epoch."""
        if self.cache.latest_epoch < 0 and end_offset > self._start_offset:
            self.cache.assign(self._empty_epoch, self._start_offset)

    def begins_at(self, start_offset: Offset) -> None:
        """The log has nothing below start_offset any more."""
        self.cache.truncate_before(start_offset)
        self._start_offset = start_offset

    def begin_anew(self, snapshot: OffsetAndEpoch) -> None:
        """The log is empty and begins behind this snapshot."""
        self.cache.truncate_to(0)
        self._start_offset, self._empty_epoch = snapshot
