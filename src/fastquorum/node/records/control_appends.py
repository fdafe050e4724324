"""What raft/ has appended to the log: its control records, and behind the first of them a log's first records.

Must not know why raft/ appends. Source: KIP-595 (LeaderChange), KIP-853 (voters).
"""

from collections.abc import Sequence

from fastquorum.kernels import Kernels
from fastquorum.node.ports import WallClock
from fastquorum.node.records import control_batches as control
from fastquorum.node.records.bootstrap_records import is_without_records
from fastquorum.storage.log.log import Log
from fastquorum.types import Epoch, Offset
from fastquorum.wire import Message


class ControlAppends:
    """Appends at the log's end, while the lane is closed or frozen."""

    def __init__(self, kernels: Kernels, log: Log, clock_ms: WallClock, first_values: tuple[bytes, ...]) -> None:
        """`first_values`: a log without records begins with these, in one batch."""
        self._kernels = kernels
        self._log = log
        self._clock_ms = clock_ms
        self._first_values = first_values

    def make_room(self, records: Sequence[Message], epoch: Epoch) -> bool:
        """Lock held. Is there room for these, in one control batch? False: the file system has none."""
        batch = control.encode_batch(self._kernels, records, self._log.end_offset, epoch, self._clock_ms())
        return self._log.make_room(len(batch), len(records))

    def append(self, records: Sequence[Message], epoch: Epoch) -> None:
        """Lock held. One control batch; a flush of it is requested."""
        log, timestamp_ms = self._log, self._clock_ms()
        batch = control.encode_batch(self._kernels, records, log.end_offset, epoch, timestamp_ms)
        is_first = bool(self._first_values) and is_without_records(self._kernels, log)
        self._append(batch, len(records), epoch, timestamp_ms)
        if is_first:
            # Before the lane opens, so that nobody's record can come before them.
            values, base = self._first_values, log.end_offset
            batch = self._kernels.encode_values(values, base_offset=base, leader_epoch=epoch, timestamp_ms=timestamp_ms)
            self._append(batch, len(values), epoch, timestamp_ms)
        log.request_flush()

    def _append(self, batch: bytes, record_count: int, epoch: Epoch, timestamp_ms: int) -> None:
        base: Offset = self._log.end_offset
        self._log.append_batch(
            batch, base_offset=base, next_offset=base + record_count, epoch=epoch, timestamp_ms=timestamp_ms
        )
