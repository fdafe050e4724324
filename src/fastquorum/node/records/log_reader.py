"""Reads of a replica's log, from any thread: each takes the lane lock for itself. Must not know what is committed."""

from fastquorum.kernels import Kernels
from fastquorum.node.ports import LaneLock
from fastquorum.node.records import control_batches as control
from fastquorum.storage.log.log import Log
from fastquorum.storage.log.reading import TimestampOffset
from fastquorum.storage.log.segments import Stretch
from fastquorum.types import Offset


class LogReader:
    """Raises what `Log` raises: OffsetOutOfRange, CorruptionError."""

    def __init__(self, log: Log, lock: LaneLock, kernels: Kernels) -> None:
        self._log = log
        self._lock = lock
        self._kernels = kernels

    def read(self, offset: Offset, bytes_max: int, end_offset: Offset) -> bytes:
        """Whole batches from the one containing `offset` that lie below end_offset; b"" if there are none."""
        if offset >= end_offset:
            return b""
        with self._lock:
            data = self._log.read(offset, bytes_max)
        return control.cut_at(self._kernels, data, end_offset)

    def stretch(self, offset: Offset, end_offset: Offset) -> Stretch:
        """How much `read` could bring from there, by positions: no batch is read."""
        with self._lock:
            return self._log.stretch(offset, end_offset)

    def offset_for_timestamp(self, timestamp_ms: int) -> TimestampOffset | None:
        """First record at or after it, committed or not."""
        with self._lock:
            return self._log.offset_for_timestamp(timestamp_ms)

    def offset_of_max_timestamp(self, end_offset: Offset) -> TimestampOffset | None:
        """First of the records below end_offset that have the largest timestamp among them."""
        with self._lock:
            timestamp_ms = self._log.max_timestamp_below(end_offset)
            return self._log.offset_for_timestamp(timestamp_ms) if timestamp_ms >= 0 else None
