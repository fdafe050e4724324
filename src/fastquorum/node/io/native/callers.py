"""What callers ask of the native shell, from any thread: appends, barriers, and what becomes of them.

Appends that find raft/ deciding are kept here, behind all that are kept already, and submitted again in their turn;
where none is kept they try once more before.
What the native side tells is a number: an offset, or a negative one that stands for an error. `lock` guards what is
kept here and the producers' books; the native side has its own.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fastquorum.config import QuorumConfig
from fastquorum.errors import FastQuorumError, Overloaded, RecordTooLarge
from fastquorum.kernels import BATCH_HEADER_BYTES, Buffer, Kernels
from fastquorum.kernels.codes import AppendVerdict
from fastquorum.node.io.clock import wall_clock_ms
from fastquorum.node.io.native.appends import AppendQueue, CallAppends, Refused, one_append
from fastquorum.node.io.native.errors import BARRIER_FAILED, ErrorNumbers, failure_of
from fastquorum.node.lane.appends import RETRY_AFTER_S
from fastquorum.node.lane.shell_base import ShellBase
from fastquorum.node.ports import AppendTicket, BarrierTicket, LaneLock
from fastquorum.storage.log.log import Log
from fastquorum.types import Micros, Offset

if TYPE_CHECKING:
    from fastquorum.kernels.shell import Mailbox, Shell


class NativeCallers(ShellBase):
    """The callers' half of `native.shell.NativeShell`."""

    def __init__(
        self,
        *,
        config: QuorumConfig,
        kernels: Kernels,
        log: Log,
        lock: LaneLock,
        shell: Shell,
        mailbox: Mailbox,
    ) -> None:
        """`mailbox` is collected by the replica's thread."""
        super().__init__(log, lock, kernels, wall_clock_ms)
        self._refusals_guard = threading.Lock()
        self._config = config
        self._kernels = kernels
        self._shell = shell
        self._mailbox = mailbox
        self._queue = AppendQueue()
        self._fates: list[tuple[Callable[[Any, FastQuorumError], None], Any, FastQuorumError]] = []
        """Failures to report once the lock is free: the function to call, the waiter, and its error."""
        self._numbers = ErrorNumbers()
        shell.set_barrier_failure(BARRIER_FAILED)

    @property
    def high_watermark(self) -> Offset:
        return self._shell.high_watermark

    @property
    def appended_us(self) -> Micros:
        """When a leader last appended, or began to lead."""
        return self._shell.appended_us

    # --- callers, from any thread -------------------------------------------------------------------------------------

    def append(
        self, values: Sequence[Buffer], ticket: AppendTicket, now_us: Micros, *, is_pushed_later: bool = False
    ) -> None:
        """See `LaneShell.append`. The ticket is told on the replica's thread."""
        verdict = self._shell.append_mail(values, self._mailbox, ticket, is_pushed_later=is_pushed_later)
        if verdict < 0:
            self.raise_refused(verdict, one_append(self._append_again, fail_ticket, values, ticket))

    def _append_again(self, values: list[list[bytes]], tickets: list[AppendTicket]) -> Sequence[int]:
        return (self._shell.append_mail(values[0], self._mailbox, tickets[0], has_waited=True),)

    def push(self) -> None:
        """Write and send what was appended to be pushed later: many at once."""
        self._shell.push()

    def begin_barrier(self, ticket: BarrierTicket, now_us: Micros) -> None:
        self.check_begun(self._shell.barrier_mail(self._mailbox, Passing(ticket)))

    def check_begun(self, number: int) -> None:
        """Raise why a barrier could not be begun, if its number says so."""
        if number < 0:
            self._raise_if_stopped()
            raise self.not_leader()

    def watch_commit(self) -> Offset:
        return self._shell.watch_commit()

    def waiting(self) -> tuple[int, int]:
        """Records and bytes of the appends that wait: for their commit, or here for their turn. Lock held."""
        records, size_bytes = self._shell.waiting()
        return records + self._queue.records, size_bytes + self._queue.bytes

    def error_of(self, code: int) -> FastQuorumError:
        """What a negative result stands for."""
        found = self._numbers.error(code) or self.error or self.not_leader()
        return copy.copy(found)  # an exception raised again and again gathers tracebacks

    def raise_refused(self, verdict: int, appends: CallAppends) -> None:
        """An append that was not taken at once: queued if raft/ is deciding, else raises why not."""
        for _, error in self.not_taken((verdict,), lambda: appends):
            raise error

    def not_taken(self, offsets: Sequence[int], appends_of: Callable[[], CallAppends]) -> list[Refused]:
        """Which of many are refused, and why; the others that were not taken at once wait for raft/'s decision."""
        if not offsets or min(offsets) >= 0:
            return []
        appends = appends_of()
        refused, frozen = self._judged(offsets, appends)
        if frozen:
            self._wait_for_raft(appends, frozen, refused)
        for _, error in refused:
            self._count_refused(error)
        return refused

    def _wait_for_raft(self, appends: CallAppends, frozen: list[int], refused: list[Refused]) -> None:
        """Unless it has decided meanwhile, or there is no room; `refused` is added to."""
        with self.lock:
            if not self._queue:
                frozen = self._tried_again(appends, frozen, refused)
            must_wait = self._keep(appends, frozen, refused)
        if must_wait:
            self._shell.rouse()

    def _judged(self, offsets: Sequence[int], appends: CallAppends) -> tuple[list[Refused], list[int]]:
        """Return the appends that are refused, and the positions of those that must wait."""
        refused: list[Refused] = []
        frozen: list[int] = []
        for at, offset in enumerate(offsets):
            if offset == AppendVerdict.FROZEN:
                frozen.append(at)
            elif offset < 0:
                refused.append((at, self._error_for(offset, *appends.sizes[at])))
        return refused, frozen

    def _tried_again(self, appends: CallAppends, frozen: list[int], refused: list[Refused]) -> list[int]:
        """Lock held. None waits; if raft/ has decided meanwhile, these need not. Else whoever comes a moment later
        would have to wait behind these for the replica's thread, and those after it again. Those that must wait."""
        again = appends.only(frozen)
        more, still = self._judged(again.submit(again.values, again.waiting), again)
        refused += [(frozen[at], error) for at, error in more]
        return [frozen[at] for at in still]

    def _keep(self, appends: CallAppends, frozen: list[int], refused: list[Refused]) -> bool:
        """Lock held. Those that must wait do so, where `drain` finds them, as long as there is room. False: none."""
        records, waiting_bytes = self.waiting()
        kept: list[int] = []
        for at in frozen:
            count, size_bytes = appends.sizes[at]
            overloaded = self._has_no_room(records, waiting_bytes, count, size_bytes)
            if overloaded is not None:
                refused.append((at, overloaded))
            else:
                kept.append(at)
                records, waiting_bytes = records + count, waiting_bytes + size_bytes
        if kept:
            self._queue.append(appends.only(kept))
            # Now that they are where `drain` finds them: one that found nothing may have released in between.
            self._shell.hold_appends()
        return bool(kept)

    def _has_no_room(self, records: int, waiting_bytes: int, count: int, size_bytes: int) -> Overloaded | None:
        """Beside so many records and bytes that wait."""
        if records and records + count > self._config.append_queue_records_max:
            return self._overloaded(by_records=True)
        if waiting_bytes and waiting_bytes + size_bytes > self._config.append_queue_bytes_max:
            return self._overloaded(by_records=False)
        return None

    def _count_refused(self, error: FastQuorumError) -> None:
        """On any thread, and whether or not that holds `lock`."""
        with self._refusals_guard:
            self.refusals.counted(error)

    def _error_for(self, verdict: int, record_count: int, size_bytes: int) -> FastQuorumError:
        """Why the native shell did not take an append."""
        match verdict:
            case AppendVerdict.TOO_LARGE:
                size_bytes += BATCH_HEADER_BYTES
                return RecordTooLarge(size_bytes=size_bytes, limit_bytes=self._config.batch_bytes_max)
            case AppendVerdict.RECORDS_OVERLOADED | AppendVerdict.BYTES_OVERLOADED:
                return self._overloaded(by_records=verdict == AppendVerdict.RECORDS_OVERLOADED)
        self.collect_failure()
        return copy.copy(self.error) if self.error is not None else self.not_leader()

    def _overloaded(self, *, by_records: bool) -> Overloaded:
        records, size_bytes = self._shell.waiting()
        if by_records:
            limit = self._config.append_queue_records_max
            return Overloaded(f"{records} records wait for their commit (at most {limit})", RETRY_AFTER_S)
        limit = self._config.append_queue_bytes_max
        return Overloaded(f"{size_bytes} bytes wait for their commit (at most {limit})", RETRY_AFTER_S)

    def _raise_if_stopped(self) -> None:
        self.collect_failure()
        super()._raise_if_stopped()

    def collect_failure(self) -> None:
        """If the log cut the lane off: keep why. From any thread."""
        if self.error is None and self._shell.was_cut_off:
            self.error = failure_of(self._shell, self.log)

    # --- those that wait, on the replica's thread, lock held ----------------------------------------------------------

    def _drain(self, resume: Callable[[Micros], None], now_us: Micros) -> None:
        """Appends that came while raft/ decided: in, or refused, in their order."""
        while self._queue:
            if self.is_leader and self._shell.room_wanted:
                resume(now_us)
                if self.log.is_full:
                    return  # raft/ has to know before they are refused
            first = self._queue.first
            refused, frozen = self._submitted(first)
            self._fates += [(first.fail, first.waiting[at], error) for at, error in refused]
            self._queue.keep_of_first(frozen)
            if frozen and not self._shell.room_wanted:
                return
        self._shell.release_appends()

    def _submitted(self, appends: CallAppends) -> tuple[list[Refused], list[int]]:
        """See `_judged`."""
        if not self.is_leader:
            return self._judged([AppendVerdict.NOT_LEADER] * len(appends.values), appends)
        return self._judged(appends.submit(appends.values, appends.waiting), appends)

    def _fail_queued(self, error: FastQuorumError) -> None:
        """Everybody who waits for raft/'s decision is told this."""
        while self._queue:
            first = self._queue.first
            self._fates += [(first.fail, waiting, copy.copy(error)) for waiting in first.waiting]
            self._queue.keep_of_first([])

    def _fail_pending(self, error: FastQuorumError) -> None:
        """Everybody who waits for a commit is told this."""
        self._shell.fail_pending(self._numbers.number(error))


def fail_ticket(ticket: AppendTicket, error: FastQuorumError) -> None:
    ticket.failed(error)


class Passing(NamedTuple):
    """A barrier's ticket, told as an append's is."""

    ticket: BarrierTicket

    def committed(self, high_watermark: Offset) -> None:
        self.ticket.passed(high_watermark)

    def failed(self, error: FastQuorumError) -> None:
        self.ticket.failed(error)
