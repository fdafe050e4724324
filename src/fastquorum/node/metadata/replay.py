"""The image of what is committed here, kept up with the high watermark, a piece a turn. Sans-IO; the replica's thread.

It begins with the latest snapshot, whatever the log still has of what that covers.

A record that does not fit stops the replica, leader or follower: going on without it, or a snapshot without it, would
lose it for good (KAFKA-14275, KAFKA-14203). Source: Kafka `MetadataLoader`.
"""

import struct
from dataclasses import dataclass
from typing import Final

from fastquorum.controller.image import Image
from fastquorum.controller.image.counts import PartitionCounts
from fastquorum.controller.image.fold import Fold, Place
from fastquorum.errors import CorruptionError
from fastquorum.kernels import BatchFault, Kernels
from fastquorum.node.lane.port import Shell
from fastquorum.node.metadata.folding import Foreseen, MetadataFolder
from fastquorum.node.metadata.gc_pause import CollectorAtRest, spare_images
from fastquorum.node.records.log_reader import LogReader
from fastquorum.storage.names import checkpoint_name
from fastquorum.types import Offset, OffsetAndEpoch

TURN_BYTES: Final = 256 * 1024
"""Most that is read in one turn, but for a batch that is larger: what else the thread has to do must not wait for
more."""
_LENGTH: Final = struct.Struct(">8xi")
_LENGTH_END: Final = 12


@dataclass(slots=True)
class _Loading:
    """A snapshot, read up to `position`."""

    snapshot: OffsetAndEpoch
    timestamp_ms: int
    counts: PartitionCounts
    fold: Fold
    position: int = 0


class Replay:
    """One replica's."""

    def __init__(self, kernels: Kernels, shell: Shell, reader: LogReader) -> None:
        self._kernels = kernels
        self._shell = shell
        self._reader = reader
        self.counts = PartitionCounts()
        """Counts of the image's partitions."""
        self._fold = Fold(counts=self.counts, make=kernels.untracked)
        self._folder = MetadataFolder(kernels)
        self._loading: _Loading | None = None
        self.taken_bytes = 0
        """Bytes read of the log since this was made."""

    @property
    def image(self) -> Image:
        return self._fold.image

    @property
    def foreseen(self) -> Foreseen:
        """Where a controller says what it has appended."""
        return self._folder.foreseen

    @property
    def place(self) -> Place:
        """Where in the log the image stands."""
        return self._fold.place

    @property
    def next_offset(self) -> Offset:
        """Behind the last record that was looked at."""
        return self._fold.next_offset

    @property
    def is_in_transaction(self) -> bool:
        return self._fold.is_in_transaction

    @property
    def is_behind(self) -> bool:
        """There are committed records that were not looked at yet."""
        return self.next_offset < self._shell.high_watermark

    def turn(self) -> None:
        """Take in some of what is committed. ImageFailed, naming the record that does not fit."""
        if not self.is_behind:
            return
        latest = self._shell.log.snapshots.latest
        if latest is not None and self.next_offset < max(self._shell.log.start_offset, 1):
            if latest.offset <= self._shell.high_watermark:
                self._load(latest)
            return
        data = self._reader.read(self.next_offset, TURN_BYTES, self._shell.high_watermark)
        with CollectorAtRest():
            self._folder.take(data, self._fold)
            self.taken_bytes += len(data)
            self._fold.image  # noqa: B018  # made now, piece by piece, and not all at once by whoever begins to lead
            spare_images(self._kernels)

    def _load(self, latest: OffsetAndEpoch) -> None:
        """Some more of the latest snapshot. Once all is read the image is what it holds. CorruptionError."""
        log = self._shell.log
        snapshots, state = log.snapshots, log.snapshots.latest_state
        loading = self._loading
        if loading is None or loading.snapshot != latest:
            counts = PartitionCounts()
            fold = Fold(counts=counts, make=self._kernels.untracked)
            loading = _Loading(latest, 0 if state is None else state.last_contained_ms, counts, fold)
            self._loading = loading
        data = snapshots.read(latest, loading.position, TURN_BYTES)
        if len(data) >= _LENGTH_END and (first := _LENGTH_END + _LENGTH.unpack_from(data)[0]) > len(data):
            data = snapshots.read(latest, loading.position, first)
        scan = self._kernels.scan(data)
        if not scan.valid_bytes:
            fault = BatchFault.TRUNCATED if scan.fault is None else scan.fault.reason
            raise CorruptionError(fault, loading.position, path=f"{log.path}/{checkpoint_name(latest)}")
        self._folder.take(data[: scan.valid_bytes], loading.fold)
        loading.position += scan.valid_bytes
        if loading.position == snapshots.size_bytes(latest):
            image, self.counts = loading.fold.image, loading.counts
            place = Place(latest.offset, latest.epoch, loading.timestamp_ms)
            self._fold = Fold(image, place, self.counts, self._kernels.untracked)
            self._loading = None
