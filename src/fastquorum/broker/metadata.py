"""A member's copy of the metadata log: an image of all committed records, and the few batches that are not committed.

It is in memory: a member that restarts reads the log again, or the snapshot in place of its beginning, or goes on from
its own stored snapshot. It has no use for the log on disk, the flusher and the port of an observer of `node/`. Sans-IO.
Source: KIP-595 (log reconciliation), KIP-630 (snapshots); Kafka `MetadataLoader`.
"""

from collections import deque
from typing import NamedTuple

from fastquorum.controller.image import Image
from fastquorum.controller.image.fold import Fold, Place
from fastquorum.errors import PeerProtocolError, ProtocolFatal
from fastquorum.kernels import Kernels
from fastquorum.node.metadata.folding import MetadataFolder
from fastquorum.types import UNKNOWN_OFFSET, Epoch, Offset, OffsetAndEpoch


class _Held(NamedTuple):
    """A batch that is not known to be committed."""

    data: bytes
    last_offset: Offset
    epoch: Epoch


class MetadataCopy:
    """The copy of one log. A record in the image is never taken back."""

    def __init__(self, kernels: Kernels) -> None:
        self._kernels = kernels
        self._folder = MetadataFolder(kernels)
        self._fold = Fold()
        self._folded = OffsetAndEpoch(0, 0)
        """The offset behind the last batch in the image, and that batch's epoch."""
        self._held: deque[_Held] = deque()
        self.high_watermark: Offset = UNKNOWN_OFFSET
        """The highest high watermark that any leader reported."""

    @property
    def image(self) -> Image:
        """The image of all known committed records; while a transaction is open, the one before it."""
        return self._fold.image

    @property
    def place(self) -> Place | None:
        """The image's place in the log, for a stored snapshot; None: a transaction is open, or nothing was read."""
        if self._fold.is_in_transaction or self.image.features.metadata_version is None:
            return None
        return self._fold.place

    @property
    def next_offset(self) -> Offset:
        """The offset behind the last record in the image."""
        return self._folded.offset

    @property
    def end(self) -> OffsetAndEpoch:
        """The offset to fetch from, and the epoch of the record before it."""
        if not self._held:
            return self._folded
        last = self._held[-1]
        return OffsetAndEpoch(last.last_offset + 1, last.epoch)

    def take(self, records: bytes, high_watermark: Offset) -> None:
        """Take the leader's batches from `end` on, and its high watermark.

        Raises:
            PeerProtocolError: these are not the next batches. None of them was taken.
            ImageFailed: a committed record does not fit. The copy cannot go on.
        """
        self._held.extend(self._checked(records))
        self.high_watermark = max(high_watermark, self.high_watermark)
        held = self._held
        while held and held[0].last_offset < self.high_watermark:
            batch = held.popleft()
            self._folder.take(batch.data, self._fold)
            self._folded = OffsetAndEpoch(batch.last_offset + 1, batch.epoch)

    def _checked(self, records: bytes) -> list[_Held]:
        offset, epoch = self.end
        found: list[_Held] = []
        for info in self._kernels.batch_headers(records):
            if not info.crc_valid or info.base_offset != offset or info.leader_epoch < epoch:
                raise PeerProtocolError(f"a batch at offset {info.base_offset} is damaged, or not the next one")
            data = records[info.position : info.position + info.size_bytes]
            found.append(_Held(data, info.last_offset, info.leader_epoch))
            offset, epoch = info.last_offset + 1, info.leader_epoch
        if records and not found:
            raise PeerProtocolError("the records of a Fetch do not begin with a batch")
        return found

    def cut(self) -> None:
        """Drop the uncommitted batches, since the leader's log diverges from this one; then fetch again.

        ProtocolFatal if there are none: then the controllers have lost committed records.
        """
        if not self._held:
            raise ProtocolFatal(
                f"the controllers' log no longer holds what was committed below offset {self.next_offset}: find out "
                "which of them lost their disks, and start this member anew"
            )
        self._held.clear()

    def load(self, snapshot: OffsetAndEpoch, data: bytes) -> None:
        """Load a whole snapshot in place of everything below its end. PeerProtocolError if it is damaged,
        ImageFailed."""
        size = 0
        for info in self._kernels.batch_headers(data):
            if not info.crc_valid:
                break
            size = info.position + info.size_bytes
        if size != len(data) or not data:
            raise PeerProtocolError(f"the snapshot {snapshot.offset}-{snapshot.epoch} is damaged at byte {size}")
        held = Fold()
        self._folder.take(data, held)
        self._fold = Fold(held.image, Place(snapshot.offset, snapshot.epoch))
        self._folded = snapshot
        self._held.clear()
        self.high_watermark = max(self.high_watermark, snapshot.offset)
