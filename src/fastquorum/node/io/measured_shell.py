"""The pure machine's shell with a clock in its hand: the twin of what the native shell measures. See `kernels.stages`.

It looks at the log after each call of the lane: what the lane has written, and had synced, since the last look. Stamps
are thus later than the native ones by what the call did after it.
"""

from typing import Any, NamedTuple

from fastquorum.errors import FastQuorumError
from fastquorum.kernels.lane import Connection, LaneSession, LaneState, LeaderSession, Output, Send, same_session
from fastquorum.kernels.producers import ProducedBatch
from fastquorum.kernels.stages import Nanos, StageHistogram, TraceRead, load_stages
from fastquorum.node.io.clock import now_ns
from fastquorum.node.lane.appends import Queued
from fastquorum.node.lane.python_shell import LaneShell
from fastquorum.node.ports import AppendTicket
from fastquorum.types import Micros, Offset

_NS_PER_US = 1_000


class _Timed(NamedTuple):
    """A ticket whose wait is measured. Told on the replica's thread."""

    ticket: AppendTicket
    shell: "MeasuredLaneShell"
    appended_us: Micros

    def committed(self, base_offset: Offset) -> None:
        self.shell.announced(base_offset, self.appended_us)
        self.ticket.committed(base_offset)

    def failed(self, error: FastQuorumError) -> None:
        self.ticket.failed(error)


class MeasuredLaneShell(LaneShell):
    """See `LaneShell`; the replica's thread and callers find no difference."""

    def __init__(self, **parts: Any) -> None:
        super().__init__(**parts)
        self._stages = load_stages("pure")()
        self._seen_end: Offset = self.log.end_offset
        self._sync_began: Nanos = 0
        """When the sync under way was asked for; 0: none is."""
        self._sync_ended: Nanos = 0
        self._received: Nanos = 0
        """When the frame that the lane looks at was heard; 0: it looks at none."""
        self._committed_us: Micros = 0

    # --- looking at it, from any thread -------------------------------------------------------------------------------

    def stage_histograms(self) -> dict[str, StageHistogram]:
        with self.lock:
            return self._stages.histograms()

    def trace_start(self, capacity: int) -> None:
        with self.lock:
            self._stages.trace_start(capacity)

    def trace_stop(self) -> None:
        with self.lock:
            self._stages.trace_stop()

    def trace_read(self) -> TraceRead:
        with self.lock:
            return self._stages.trace_read()

    # --- what happens -------------------------------------------------------------------------------------------------

    def announced(self, base_offset: Offset, appended_us: Micros) -> None:
        """An append's ticket hears of its commit."""
        self._stages.announced(base_offset, appended_us, self._committed_us, now_ns())

    def advance(self, high_watermark: Offset) -> None:
        if high_watermark > self.high_watermark:
            now = now_ns()
            if self._received and self.is_leader:
                self._stages.acked(high_watermark, self._received)
            self._committed_us = now // _NS_PER_US
            self._stages.committed(high_watermark, now)
        super().advance(high_watermark)

    def perform(self, outputs: list[Output]) -> None:
        self._look()
        super().perform(outputs)
        if any(isinstance(output, Send) for output in outputs):
            self._stages.sent(self.log.end_offset if self.is_leader else self.log.flushed_end, now_ns())

    def on_flush(self, token: int, errno_code: int, now_us: Micros) -> None:
        began, self._sync_began = self._sync_began, 0
        self._sync_ended = now_ns()
        if began and not errno_code:
            self._stages.synced(began, self._sync_ended)
        super().on_flush(token, errno_code, now_us)

    def offer(self, connection: Connection, frame: bytes, now_us: Micros) -> bool:
        self._received = now_ns()
        self._stages.begin(self._received)
        taken = super().offer(connection, frame, now_us)
        self._received = 0
        return taken

    def freeze(self, now_us: Micros) -> LaneState | None:
        state = super().freeze(now_us)
        self._look()
        return state

    def resume(self, now_us: Micros) -> None:
        self._look_away()
        super().resume(now_us)

    def settle(self, session: LaneSession | None, now_us: Micros) -> None:
        self._look_away()
        if session is not None and (self.session is None or not same_session(session, self.session)):
            self._stages.opened(isinstance(session, LeaderSession))
        super().settle(session, now_us)

    def _accept(self, queued: Queued, now_us: Micros) -> None:
        super()._accept(queued._replace(ticket=_Timed(queued.ticket, self, now_us)), now_us)

    def _append_now(self, queued: Queued, now_us: Micros) -> int:
        self._stages.begin(now_us * _NS_PER_US)
        offset = super()._append_now(queued, now_us)
        if offset >= self.log.end_offset:
            self._stages.gathers()
        return offset

    def _join(self, queued: Queued, batch: ProducedBatch) -> None:
        """It is in the log already: what it waits for is no append of its own."""
        ticket = queued.ticket.ticket if isinstance(queued.ticket, _Timed) else queued.ticket
        super()._join(queued._replace(ticket=ticket), batch)

    def _look(self) -> None:
        """Lock held. What of the log is new since the last look is the lane's."""
        log, now = self.log, now_ns()
        if log.end_offset > self._seen_end:
            self._stages.written(self._seen_end, log.end_offset, log.last_epoch, now)
            self._seen_end = log.end_offset
        self._stages.flushed(log.flushed_end, self._sync_ended or now)
        if log.is_flushing and not self._sync_began:
            self._sync_began = now

    def _look_away(self) -> None:
        """Lock held. What of the log is new since the last look is raft/'s: control records, or an end cut off."""
        if self.log.end_offset < self._seen_end:
            self._stages.forget()
        self._seen_end = self.log.end_offset
