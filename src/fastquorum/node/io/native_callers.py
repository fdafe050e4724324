"""What callers ask of the native shell, from any thread: appends, barriers, and what becomes of them.

An append that finds raft/ deciding is kept here, behind all that are kept already, and submitted again in its turn.
What the native side tells is a number: an offset, or a negative one that stands for an error. `lock` guards what is
kept here and the producers' books; the native side has its own.
"""

from __future__ import annotations

import copy
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fastquorum.config import QuorumConfig
from fastquorum.errors import (
    CorruptionError,
    FastQuorumError,
    FatalError,
    FsyncFailed,
    NotLeader,
    Overloaded,
    RecordTooLarge,
    StorageFailed,
    UsageError,
)
from fastquorum.kernels import BATCH_HEADER_BYTES, Buffer, Kernels
from fastquorum.kernels import shell as native
from fastquorum.kernels.lane import (
    AppendVerdict,
    LeaderTerms,
)
from fastquorum.kernels.producers import Producer, Stamp
from fastquorum.node.appends import RETRY_AFTER_S
from fastquorum.node.ports import AppendTicket, BarrierTicket, LaneLock
from fastquorum.node.producer_states import ProducerStates
from fastquorum.node.shell import Terms
from fastquorum.node.tallies import Tallied
from fastquorum.storage.log import Log
from fastquorum.types import Micros, Offset

if TYPE_CHECKING:
    from fastquorum.kernels.shell import Mailbox, Shell, Slot

BARRIER_FAILED: Final = -1000
"""What a barrier that will never pass is told; appends that fail are told numbers below it, each with its error."""
_ERRORS_KEPT: Final = 64
_MAX_TIMESTAMP: Final = slice(35, 43)
"""Where a batch's header has it."""


class _Queued(NamedTuple):
    """An append that waits for raft/'s decision."""

    submit: Callable[[], int]
    fail: Callable[[FastQuorumError], None]
    record_count: int
    size_bytes: int


class NativeCallers(Tallied):
    """The callers' half of `native_shell.NativeShell`."""

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
        super().__init__()
        self.lock = lock
        self.log = log
        self.terms: Terms | None = None
        self.stopped = False
        self.error: FastQuorumError | None = None
        self.is_given_up = False
        """Of the present terms: they end as soon as the replica's thread is back from where it hangs."""
        self.not_leader: Callable[..., NotLeader] = NotLeader
        self._refusals_guard = threading.Lock()
        self._config = config
        self._kernels = kernels
        self._shell = shell
        self._mailbox = mailbox
        self._producer_states = ProducerStates(log, kernels)
        self._queued: deque[_Queued] = deque()
        self._queued_records = self._queued_bytes = 0
        self._fates: list[tuple[Callable[[FastQuorumError], None], FastQuorumError]] = []
        """Of those that waited: who is to be told what, once the lock is free."""
        self._errors: dict[int, FastQuorumError] = {}
        self._error_codes = BARRIER_FAILED
        shell.set_barrier_failure(BARRIER_FAILED)

    @property
    def high_watermark(self) -> Offset:
        return self._shell.high_watermark

    @property
    def appended_us(self) -> Micros:
        """When a leader last appended, or began to lead."""
        return self._shell.appended_us

    @property
    def is_leader(self) -> bool:
        """True while appends are accepted here."""
        return isinstance(self.terms, LeaderTerms)

    # --- callers, from any thread -------------------------------------------------------------------------------------

    def append(self, values: Sequence[Buffer], ticket: AppendTicket, now_us: Micros) -> None:
        """See `LaneShell.append`. The ticket is told on the replica's thread."""
        self._append_to(self._mailbox, values, ticket, _fail_ticket)

    def append_mail(
        self,
        values: Buffer | Sequence[Buffer],
        box: Mailbox,
        waiting: object,
        fail: Callable[[Any, FastQuorumError], None],
    ) -> None:
        """As `append`; who waits comes into its own mailbox, where its event loop looks, or to `fail`. `push` is to
        follow."""
        offset = self._shell.append_mail(values, box, waiting, is_pushed_later=True)
        if offset < 0:
            self._wait_or_raise(offset, values, partial(fail, waiting), self._shell.append_mail, box, waiting)

    def append_all(
        self, values: list[bytes], box: Mailbox, waiting: list[Any], fail: Callable[[Any, FastQuorumError], None]
    ) -> list[tuple[int, FastQuorumError]]:
        """As `append_mail`, each value by itself, and written and sent together. Raises nothing: tells which were
        refused, and why."""
        offsets, submit = self._shell.append_all(values, box, waiting), self._shell.append_mail

        def wait_or_raise(at: int) -> None:
            self._wait_or_raise(offsets[at], values[at], partial(fail, waiting[at]), submit, box, waiting[at])

        return _refused_of(offsets, wait_or_raise)

    def append_slots(self, values: list[bytes], slots: list[Slot]) -> list[tuple[int, FastQuorumError]]:
        """As `append_all`; the thread that waits in a slot is woken."""
        offsets, submit = self._shell.append_slots(values, slots), self._shell.append_slot

        def wait_or_raise(at: int) -> None:
            self._wait_or_raise(offsets[at], values[at], slots[at].fail, submit, slots[at])

        return _refused_of(offsets, wait_or_raise)

    def push(self) -> None:
        """Write and send what was appended by `append_mail`: many at once."""
        self._shell.push()

    def append_slot(self, values: Buffer | Sequence[Buffer], slot: Slot, *, is_pushed_later: bool) -> None:
        """As `append`; the thread that waits in the slot is woken. Who has more to append leaves the writing to the
        native thread."""
        offset = self._shell.append_slot(values, slot, is_pushed_later=is_pushed_later)
        if is_pushed_later and offset >= 0:
            self._shell.push_soon()
        if offset < 0:
            self._wait_or_raise(offset, values, slot.fail, self._shell.append_slot, slot)

    def _append_to(
        self,
        box: Mailbox,
        values: Buffer | Sequence[Buffer],
        waiting: object,
        fail: Callable[[Any, FastQuorumError], None],
    ) -> None:
        offset = self._shell.append_mail(values, box, waiting)
        if offset < 0:
            self._wait_or_raise(offset, values, partial(fail, waiting), self._shell.append_mail, box, waiting)

    def _wait_or_raise(
        self,
        verdict: int,
        values: Buffer | Sequence[Buffer],
        fail: Callable[[FastQuorumError], None],
        submit: Callable[..., int],
        *to: object,
    ) -> None:
        """`submit` it again, with who waits, when raft/ has decided; or raise what it is refused with."""
        kept = _copied(values)
        self._refused(verdict, partial(submit, kept, *to, has_waited=True), fail, kept)

    def append_encoded(
        self, batch: bytearray, record_count: int, ticket: AppendTicket, now_us: Micros, stamp: Stamp | None = None
    ) -> None:
        """See `LaneShell.append_encoded`."""
        timestamp_ms = int.from_bytes(batch[_MAX_TIMESTAMP], "big", signed=True)

        self._raise_if_stopped()
        with self.lock:  # from the look for doubles to the note of what was appended
            offset = self._append_stamped(batch, record_count, timestamp_ms, ticket, stamp, has_waited=False)
        if offset < 0:
            # `drain` has the lock already.
            self._refused(
                offset,
                lambda: self._append_stamped(batch, record_count, timestamp_ms, ticket, stamp, has_waited=True),
                ticket.failed,
                (batch,),
                record_count,
            )

    def _append_stamped(
        self,
        batch: bytearray,
        record_count: int,
        timestamp_ms: int,
        ticket: AppendTicket,
        stamp: Stamp | None,
        *,
        has_waited: bool,
    ) -> int:
        """Lock held. The offset, or a verdict. Raises OutOfOrderSequence, ProducerFenced, Overloaded."""
        while True:
            offset = self._shell.append_encoded(batch, record_count, timestamp_ms, self._mailbox, ticket, has_waited)
            if offset not in (native.PRODUCERS_BEHIND, native.NOT_NEXT):
                return offset
            # The native side has looked, and appends meanwhile: it looks again.
            assert stamp is not None
            self._producer_states.current().check(stamp)

    def producer(self, producer_id: int) -> Producer | None:
        """See `LaneShell.producer`."""
        with self.lock:
            self._raise_if_stopped()
            if not self.is_leader:
                raise self.not_leader()
            return self._producer_states.current().get(producer_id)

    def begin_barrier(self, ticket: BarrierTicket, now_us: Micros) -> None:
        """See `LaneShell.begin_barrier`."""
        self._barrier(self._shell.barrier_mail(self._mailbox, _Passing(ticket)))

    def barrier_mail(self, box: Mailbox, waiting: object) -> None:
        """As `begin_barrier`; who waits comes into its own mailbox."""
        self._barrier(self._shell.barrier_mail(box, waiting))

    def barrier_slot(self, slot: Slot) -> None:
        """As `begin_barrier`; the thread that waits in the slot is woken."""
        self._barrier(self._shell.barrier_slot(slot))

    def _barrier(self, number: int) -> None:
        if number < 0:
            self._raise_if_stopped()
            raise self.not_leader()

    def watch_commit(self) -> None:
        self._shell.watch_commit()

    def waiting(self) -> tuple[int, int]:
        """Records and bytes of the appends that wait: for their commit, or here for their turn. Lock held."""
        records, size_bytes = self._shell.waiting()
        return records + self._queued_records, size_bytes + self._queued_bytes

    def error_of(self, code: int) -> FastQuorumError:
        """What a negative result stands for."""
        found = self._errors.get(code) or self.error or self.not_leader()
        return copy.copy(found)  # an exception raised again and again gathers tracebacks

    def _refused(
        self,
        verdict: int,
        submit: Callable[[], int],
        fail: Callable[[FastQuorumError], None],
        values: Sequence[Buffer],
        record_count: int = 0,
    ) -> None:
        """An append that was not accepted at once: queued if raft/ is deciding, else an error."""
        count, size_bytes = record_count or len(values), sum(map(len, values))
        if verdict != AppendVerdict.FROZEN:
            raise self._counted(self._error_for(verdict, count, size_bytes))
        if self.is_given_up:
            terms = self.terms
            raise self._counted(NotLeader(epoch=terms.epoch if terms is not None else -1))
        with self.lock:
            records, waiting_bytes = self.waiting()
            if records and records + count > self._config.append_queue_records_max:
                raise self._counted(self._overloaded(by_records=True))
            if waiting_bytes and waiting_bytes + size_bytes > self._config.append_queue_bytes_max:
                raise self._counted(self._overloaded(by_records=False))
            self._queued.append(_Queued(submit, fail, count, size_bytes))
            self._queued_records += count
            self._queued_bytes += size_bytes
            # Again, now that it is where `drain` finds it: one that found nothing may have released in between.
            self._shell.hold_appends()
        self._shell.rouse()

    def _counted(self, error: FastQuorumError) -> FastQuorumError:
        """On any thread, and whether or not that holds `lock`."""
        with self._refusals_guard:
            return self.refusals.counted(error)

    def _error_for(self, verdict: int, record_count: int, size_bytes: int) -> FastQuorumError:
        """Why the native shell did not take an append."""
        match verdict:
            case native.TOO_LARGE:
                size_bytes += BATCH_HEADER_BYTES
                return RecordTooLarge(size_bytes=size_bytes, limit_bytes=self._config.batch_bytes_max)
            case native.RECORDS_OVERLOADED | native.BYTES_OVERLOADED:
                return self._overloaded(by_records=verdict == native.RECORDS_OVERLOADED)
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
        if self.error is not None:
            raise copy.copy(self.error)
        if self.stopped:
            raise self.not_leader()

    def collect_failure(self) -> None:
        """If the log cut the lane off: keep why. From any thread."""
        if self.error is None and self._shell.was_cut_off:
            self.error = self._failure()

    def _failure(self) -> FastQuorumError:
        operation, code, offset = self._shell.failure()
        path, detail = self.log.path, os.strerror(code)
        if operation == "sync":
            return FsyncFailed(detail=detail, operation="sync", path=path, errno_code=code)
        if operation == "read":
            try:
                self.log.read_stored(offset)
            except (CorruptionError, FatalError) as error:
                return error
        return StorageFailed(detail=detail, operation=operation or "use", path=path, errno_code=code)

    # --- those that wait, on the replica's thread, lock held ----------------------------------------------------------

    def _drain(self, resume: Callable[[Micros], None], now_us: Micros) -> None:
        """Appends that came while raft/ decided: in, or refused, in their order."""
        while self._queued:
            if self.is_leader and self._shell.is_roll_wanted:
                resume(now_us)
            first = self._queued[0]
            try:
                verdict = first.submit() if self.is_leader else int(AppendVerdict.NOT_LEADER)
                error = self._error_for(verdict, first.record_count, first.size_bytes) if verdict < 0 else None
            except (UsageError, Overloaded) as refused:
                error = refused  # not its producer's next: nothing was looked at before
            else:
                if verdict == AppendVerdict.FROZEN:
                    if self._shell.is_roll_wanted:
                        continue
                    return
            self._unqueue()
            if error is not None:
                self._fates.append((first.fail, error))
        self._shell.release_appends()

    def _unqueue(self) -> _Queued:
        first = self._queued.popleft()
        self._queued_records -= first.record_count
        self._queued_bytes -= first.size_bytes
        return first

    def _fail_pending(self, error: FastQuorumError) -> None:
        """Everybody who waits for a commit is told this."""
        self._error_codes -= 1
        self._errors[self._error_codes] = error
        if len(self._errors) > _ERRORS_KEPT:
            del self._errors[min(self._errors, key=lambda code: -code)]
        self._shell.fail_pending(self._error_codes)


def _fail_ticket(ticket: AppendTicket, error: FastQuorumError) -> None:
    ticket.failed(error)


class _Passing(NamedTuple):
    """A barrier's ticket, told as an append's is."""

    ticket: BarrierTicket

    def committed(self, high_watermark: Offset) -> None:
        self.ticket.passed(high_watermark)

    def failed(self, error: FastQuorumError) -> None:
        self.ticket.failed(error)


def _refused_of(offsets: list[int], wait_or_raise: Callable[[int], None]) -> list[tuple[int, FastQuorumError]]:
    """Which of many are refused, and why; those of the others that were not taken wait now."""
    refused: list[tuple[int, FastQuorumError]] = []
    if not offsets or min(offsets) >= 0:
        return refused
    for at, offset in enumerate(offsets):
        if offset < 0:
            try:
                wait_or_raise(at)
            except FastQuorumError as error:
                refused.append((at, error))
    return refused


def _copied(values: Buffer | Sequence[Buffer]) -> list[bytes]:
    """Kept where the caller may change them: they have to wait for raft/'s decision."""
    if isinstance(values, bytes | bytearray | memoryview):
        return [bytes(values)]
    return [bytes(memoryview(value)) for value in values]
