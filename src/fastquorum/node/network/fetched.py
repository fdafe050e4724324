"""The lane's Fetch, answered with something unusual: raft/ decides about it by offsets and epochs only.

The record bytes wait here until it has. Belongs to the replica's thread. Must not know what is decided.
"""

from typing import Final

from fastquorum.kernels import Kernels
from fastquorum.node.ports import LaneLock
from fastquorum.node.records import control_batches as control
from fastquorum.raft import events as ev
from fastquorum.storage.log.log import Log
from fastquorum.storage.log.segments import SEGMENT_RECORDS_MAX
from fastquorum.types import Epoch, NodeId
from fastquorum.wire.messages.fetch import FetchResponse

_HANDLE: Final = 1
"""An answer has one span, and one answer is decided at a time."""


class Fetched:
    """The records of the answer that is being decided. What the log has no room for is as good as not there."""

    def __init__(self, kernels: Kernels, log: Log, lock: LaneLock) -> None:
        self._kernels = kernels
        self._log = log
        self._lock = lock
        self._spans: dict[int, control.FetchedRecords] = {}

    def read(self, source: NodeId, message: FetchResponse, epoch_max: Epoch) -> ev.FetchResponseReceived:
        """What raft/ may see of the answer. Records are checked here."""
        span = None
        for topic in message.responses[:1]:
            for partition in topic.partitions[:1]:
                if partition.records and partition.error_code == 0:
                    span = self._keep(partition.records, epoch_max)
                partition.records = b""
        return ev.FetchResponseReceived(source, -1, message, span)

    def _keep(self, records: bytes, epoch_max: Epoch) -> ev.RecordSpan | None:
        log = self._log
        span = self._read_span(records, epoch_max)
        if span is None:
            return None
        record_count = span.scan.next_offset - span.scan.first_offset
        with self._lock:
            if not log.make_room(len(span.data), record_count):
                return None
        self._spans[_HANDLE] = span
        return span.as_event(_HANDLE)

    def _read_span(self, records: bytes, epoch_max: Epoch) -> control.FetchedRecords | None:
        """No more than one segment takes: the rest is fetched again."""
        kernels, log = self._kernels, self._log
        end_max = log.end_offset + SEGMENT_RECORDS_MAX
        span = control.read_span(kernels, records, log.end_offset, epoch_min=log.last_epoch, epoch_max=epoch_max)
        if span is not None and span.scan.next_offset > end_max:
            first = control.cut_at(kernels, span.data, end_max)
            return control.read_span(kernels, first, log.end_offset, epoch_min=log.last_epoch, epoch_max=epoch_max)
        return span

    def span(self, handle: int) -> control.FetchedRecords:
        """The records that raft/ speaks of."""
        return self._spans[handle]

    def forget(self) -> None:
        """It is decided."""
        self._spans.clear()
