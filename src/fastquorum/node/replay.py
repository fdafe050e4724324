"""The image of what is committed here, kept up with the high watermark, a piece a turn. Sans-IO; the replica's thread.

A record that does not fit stops the replica, leader or follower: going on without it, or a snapshot without it, would
lose it for good (KAFKA-14275, KAFKA-14203). Source: Kafka `MetadataLoader`.
"""

from typing import Final

from fastquorum.controller.image import Image
from fastquorum.controller.image.fold import Fold, Place
from fastquorum.errors import ImageFailed, WireError
from fastquorum.kernels import Kernels
from fastquorum.node.log_reader import LogReader
from fastquorum.node.shell import Shell
from fastquorum.types import Offset
from fastquorum.wire.metadata_records import decode_metadata_record

TURN_BYTES: Final = 256 * 1024
"""Most that is read of the log in one turn: what else the thread has to do must not wait for more."""


class Replay:
    """One replica's."""

    def __init__(self, kernels: Kernels, shell: Shell, reader: LogReader) -> None:
        self._kernels = kernels
        self._shell = shell
        self._reader = reader
        self._fold = Fold()

    @property
    def image(self) -> Image:
        return self._fold.image

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
        log = self._shell.log
        if log.start_offset > self.next_offset:
            self._load_snapshot()
            return
        data = self._reader.read(self.next_offset, TURN_BYTES, self._shell.high_watermark)
        self._take(data, self._fold)
        self._fold.image  # noqa: B018  # made now, piece by piece, and not all at once by whoever begins to lead

    def _load_snapshot(self) -> None:
        """What precedes the log, in one go."""
        log = self._shell.log
        with self._shell.lock:
            snapshot = log.snapshots.latest
            assert snapshot is not None, (
                f"the log begins at {log.start_offset}, and no snapshot covers what precedes it"
            )
            data = log.snapshots.read(snapshot, 0, log.snapshots.size_bytes(snapshot))
            state = log.snapshots.latest_state
        held = Fold()
        self._take(data, held)
        timestamp_ms = 0 if state is None else state.last_contained_ms
        self._fold = Fold(held.image, Place(snapshot.offset, snapshot.epoch, timestamp_ms))

    def _take(self, data: bytes, fold: Fold) -> None:
        for info in self._kernels.batch_headers(data, verify_crc=False):
            if info.is_control:
                fold.skip(info.last_offset + 1, info.leader_epoch, info.max_timestamp_ms)
                continue
            for record in self._kernels.decode_records(data, info.position, verify_crc=False):
                if record.offset < fold.next_offset:
                    continue
                try:
                    message, _ = decode_metadata_record(record.value or b"")
                except WireError as error:
                    raise ImageFailed(f"it is no metadata record: {error}", "record", record.offset) from error
                fold.add(record.offset, message, info.leader_epoch, info.max_timestamp_ms)
