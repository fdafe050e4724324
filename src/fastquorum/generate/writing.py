"""Writes one log: batches at its end, snapshots beside it, and a tail that not every replica gets.

It uses the product's own log over a disk that syncs nothing. It knows no controller: values and control records in,
files out.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from fastquorum.config import QuorumConfig
from fastquorum.controller.image import Image
from fastquorum.generate.drafts import DraftDisk, NoFlush
from fastquorum.kernels import Kernels
from fastquorum.node.records import control_batches as control
from fastquorum.storage.log.checkpoint import CheckpointTimes, checkpoint_batches
from fastquorum.storage.log.log import Log
from fastquorum.storage.log.snapshots import write_snapshot
from fastquorum.storage.names import LOG_DIRECTORY
from fastquorum.types import Epoch, Offset, OffsetAndEpoch, VoterSet
from fastquorum.wire.codec.codec import Codec, codec_of
from fastquorum.wire.message import Message
from fastquorum.wire.records.metadata import encode_metadata_record


class DraftBatch(NamedTuple):
    """A batch as `Log.append_batch` takes it."""

    data: bytes
    base_offset: Offset
    next_offset: Offset
    epoch: Epoch
    timestamp_ms: int


class LogWriter:
    """The writer of the first replica's formatted directory; the others are copies."""

    def __init__(self, disk: DraftDisk, kernels: Kernels, config: QuorumConfig) -> None:
        self._disk = disk
        self._kernels = kernels
        self._log = Log.open(disk, kernels, config, NoFlush())
        self._codec: Final[Codec] = codec_of(kernels)
        self._last = DraftBatch(b"", 0, self._log.end_offset, 0, 0)
        self._tail: list[DraftBatch] | None = None

    @property
    def end_offset(self) -> Offset:
        """The offset of the next record."""
        return self._last.next_offset

    def append(self, values: Sequence[bytes], epoch: Epoch, timestamp_ms: int) -> None:
        """Append one batch of metadata records."""
        base = self.end_offset
        data = self._kernels.encode_values(values, base_offset=base, leader_epoch=epoch, timestamp_ms=timestamp_ms)
        self._add(DraftBatch(data, base, base + len(values), epoch, timestamp_ms))

    def append_control(self, messages: Sequence[Message], epoch: Epoch, timestamp_ms: int) -> None:
        base = self.end_offset
        data = control.encode_batch(self._kernels, messages, base, epoch, timestamp_ms)
        self._add(DraftBatch(data, base, base + len(messages), epoch, timestamp_ms))

    def _add(self, batch: DraftBatch) -> None:
        self._last = batch
        if self._tail is not None:
            self._tail.append(batch)
        else:
            append(self._log, batch)

    def begin_tail(self) -> None:
        """Begin the tail: batches that are not in this log, and never committed (see `tail`)."""
        self._tail = []

    @property
    def tail(self) -> Sequence[DraftBatch]:
        """Return the batches after `begin_tail`; empty without it."""
        return self._tail or ()

    def roll(self) -> None:
        """Go on in a new segment."""
        self._log.roll()

    # --- snapshots ----------------------------------------------------------------------------------------------------

    def snapshot(self, image: Image, kraft_version: int, voters: VoterSet, now_ms: int) -> OffsetAndEpoch:
        """Write a snapshot of the image, which holds the whole log; return its id."""
        place = OffsetAndEpoch(self.end_offset, self._last.epoch)
        times = CheckpointTimes.at(now_ms)._replace(last_contained_ms=self._last.timestamp_ms)
        batches = checkpoint_batches(
            self._kernels,
            times,
            epoch=place.epoch,
            kraft_version=kraft_version,
            voters=voters if kraft_version else None,
            values=self._values(image),
        )
        state = write_snapshot(self._disk, self._kernels, LOG_DIRECTORY, place, batches)
        self._log.snapshots.add(place, state)
        return place

    def _values(self, image: Image) -> Iterator[bytes]:
        for record, version in image.records():
            yield encode_metadata_record(record, version, self._codec)

    # --- the end ------------------------------------------------------------------------------------------------------

    def close(self, keep_from: Offset | None) -> Offset:
        """Close the log as a node does; return its start offset. First remove the segments that lie wholly below
        keep_from, where a snapshot ends; None: remove nothing."""
        if keep_from is not None:
            self._log.remove_before(keep_from)
        start = self._log.start_offset
        self._log.close()
        return start

    def abandon(self) -> None:
        """Give the log up: it will not be whole."""
        self._log.abandon()
        self._log.close()


def append(log: Log, batch: DraftBatch) -> None:
    log.append_batch(
        batch.data,
        base_offset=batch.base_offset,
        next_offset=batch.next_offset,
        epoch=batch.epoch,
        timestamp_ms=batch.timestamp_ms,
    )
