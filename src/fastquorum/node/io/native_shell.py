"""The driver of the native shell: what the replica's thread and callers ask of it, in the words of `node.shell`.

Who owns what: everything of the lane, the sockets and the pending appends is native, under the native lock, which is
never held while Python runs. The log's end is the native side's while the lane goes on (`Log.lend`), and this side's
while it is frozen or closed: so raft's effects find the log they know. `lock` guards what is Python's alone: the log's
and the producers' books, and the appends that wait for raft/'s decision. Source: `kernels/lane.py` (the seven rules).
"""

from __future__ import annotations

import copy
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
from fastquorum.kernels import BATCH_HEADER_BYTES, Buffer, Kernels, OffsetIndex, SegmentFile
from fastquorum.kernels import shell as native
from fastquorum.kernels.lane import (
    NO_CONNECTION,
    AppendVerdict,
    Connection,
    FetchAdmission,
    FollowerTerms,
    HandUp,
    LaneMode,
    LaneState,
    LeaderTerms,
    Unparked,
)
from fastquorum.kernels.loan import LoanState
from fastquorum.node.appends import RETRY_AFTER_S
from fastquorum.node.peers import FetchLink
from fastquorum.node.ports import AppendTicket, BarrierTicket, LaneLock
from fastquorum.node.producer_states import ProducerStates
from fastquorum.node.shell import Terms, same_terms
from fastquorum.storage.log import Log
from fastquorum.storage.producers import ProducedBatch, Producer, Stamp
from fastquorum.types import UNKNOWN_OFFSET, Micros, Offset

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


class Borrowing:
    """`storage.ports.Borrower` over the native shell: files as it knows them."""

    def __init__(self, shell: Shell, unwrapped: Callable[[SegmentFile], SegmentFile]) -> None:
        self._shell = shell
        self._unwrapped = unwrapped
        self.take_back = shell.take_back
        self.look = shell.look
        self.read_recent = shell.read_recent
        self.prepare = shell.prepare

    @property
    def end_offset(self) -> Offset:
        return self._shell.end_offset

    @property
    def flushed_end(self) -> Offset:
        return self._shell.flushed_end

    @property
    def is_flushing(self) -> bool:
        return self._shell.is_flushing

    def lend(
        self, state: LoanState, segments: Sequence[tuple[Offset, SegmentFile, OffsetIndex, int]], segment_bytes: int
    ) -> None:
        unwrapped = [(base, self._unwrapped(file), index, size) for base, file, index, size in segments]
        self._shell.lend(state, unwrapped, segment_bytes)


class NativeShell:
    """Implements `node.shell.Shell`. See the module for who owns what."""

    def __init__(
        self,
        *,
        config: QuorumConfig,
        kernels: Kernels,
        log: Log,
        lock: LaneLock,
        shell: Shell,
        mailbox: Mailbox,
        unwrapped: Callable[[SegmentFile], SegmentFile],
    ) -> None:
        """`mailbox` is collected by the replica's thread; `unwrapped` makes a file one of the native kernels'."""
        self.lock = lock
        self.log = log
        self.terms: Terms | None = None
        self.stopped = False
        self.error: FastQuorumError | None = None
        self.handed_up: deque[HandUp] = deque()
        self.unparked: list[Unparked] = []
        self.events: deque[tuple[int, Connection, bytes, int, int]] = deque()
        """For the replica's loop: kind, connection, frame, a sync's token and errno (see `kernels.shell`)."""
        self.not_leader: Callable[..., NotLeader] = NotLeader
        self.watches_commits: Callable[[], bool] = bool
        self._config = config
        self._shell = shell
        self._mailbox = mailbox
        self._borrowing = Borrowing(shell, unwrapped)
        self._producer_states = ProducerStates(log, kernels)
        self._fetch_link: FetchLink | None = None
        self._queued: deque[_Queued] = deque()
        self._queued_records = self._queued_bytes = 0
        self._fates: list[tuple[Callable[[FastQuorumError], None], FastQuorumError]] = []
        """Of those that waited: who is to be told what, once the lock is free."""
        self._errors: dict[int, FastQuorumError] = {}
        self._error_codes = BARRIER_FAILED
        self._told_high_watermark: Offset = UNKNOWN_OFFSET
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

    @property
    def is_open(self) -> bool:
        return self.terms is not None

    @property
    def deadline_us(self) -> Micros:
        """Parked Fetches are the native thread's business."""
        return -1

    # --- callers, from any thread -------------------------------------------------------------------------------------

    def append(self, values: Sequence[Buffer], ticket: AppendTicket, now_us: Micros) -> None:
        """See `LaneShell.append`. The ticket is told on the replica's thread."""
        self._append_to(self._mailbox, values, ticket, _fail_ticket)

    def append_future(
        self,
        values: Buffer | Sequence[Buffer],
        box: Mailbox,
        future: object,
        fail: Callable[[Any, FastQuorumError], None],
    ) -> None:
        """As `append`; the future comes into its own mailbox, where its event loop looks, or to `fail`. `push` is to
        follow."""
        offset = self._shell.append_mail(values, box, future, is_pushed_later=True)
        if offset < 0:
            self._wait_or_raise(offset, box, values, future, fail)

    def push(self) -> None:
        """Write and send what was appended by `append_future`: many at once."""
        self._shell.push()

    def append_slot(
        self,
        values: Buffer | Sequence[Buffer],
        slot: Slot,
        fail: Callable[[Any, FastQuorumError], None],
        *,
        is_pushed_later: bool,
    ) -> None:
        """As `append`; the thread that waits in the slot is woken, or `fail` is called with the slot and an error. Who
        has more to append leaves the writing to the native thread."""
        offset = self._shell.append_slot(values, slot, is_pushed_later=is_pushed_later)
        if is_pushed_later and offset >= 0:
            self._shell.push_soon()
        if offset < 0:
            kept = _copied(values)
            again = partial(self._shell.append_slot, kept, slot, has_waited=True)
            self._refused(offset, again, partial(fail, slot), kept)

    def _append_to(
        self,
        box: Mailbox,
        values: Buffer | Sequence[Buffer],
        waiting: object,
        fail: Callable[[Any, FastQuorumError], None],
    ) -> None:
        offset = self._shell.append_mail(values, box, waiting)
        if offset < 0:
            self._wait_or_raise(offset, box, values, waiting, fail)

    def _wait_or_raise(
        self,
        verdict: int,
        box: Mailbox,
        values: Buffer | Sequence[Buffer],
        waiting: object,
        fail: Callable[[Any, FastQuorumError], None],
    ) -> None:
        kept = _copied(values)
        again = partial(self._shell.append_mail, kept, box, waiting, has_waited=True)
        self._refused(verdict, again, partial(fail, waiting), kept)

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
        """Lock held. The offset, or a verdict."""
        if stamp is not None and self.is_leader:
            found = self._producer_states.current().check(stamp)
            if found is not None:
                self._join(ticket, found)
                return found.base_offset
        offset = self._shell.append_encoded(batch, record_count, timestamp_ms, self._mailbox, ticket, has_waited)
        if offset >= 0:
            self.log.producers.appended(stamp, offset, offset + record_count)
        return offset

    def _join(self, ticket: AppendTicket, found: ProducedBatch) -> None:
        """It is in the log: nothing is appended."""
        self._shell.join(found.base_offset, found.end_offset, self._mailbox, ticket)

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

    def barrier_future(self, box: Mailbox, future: object) -> None:
        """As `begin_barrier`; the future comes into its own mailbox."""
        self._barrier(self._shell.barrier_mail(box, future))

    def barrier_slot(self, slot: Slot) -> None:
        """As `begin_barrier`; the thread that waits in the slot is woken."""
        self._barrier(self._shell.barrier_slot(slot))

    def _barrier(self, number: int) -> None:
        if number < 0:
            self._raise_if_stopped()
            raise self.not_leader()

    def watch_commit(self) -> None:
        self._shell.watch_commit()

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
            raise self._error_for(verdict, count, size_bytes)
        with self.lock:
            records, waiting_bytes = self._shell.waiting()
            records, waiting_bytes = records + self._queued_records, waiting_bytes + self._queued_bytes
            if records and records + count > self._config.append_queue_records_max:
                raise self._overloaded(by_records=True)
            if waiting_bytes and waiting_bytes + size_bytes > self._config.append_queue_bytes_max:
                raise self._overloaded(by_records=False)
            self._queued.append(_Queued(submit, fail, count, size_bytes))
            self._queued_records += count
            self._queued_bytes += size_bytes
        self._shell.rouse()

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
        path = self.log.path
        if operation == "sync":
            return FsyncFailed(detail=f"errno {code}", operation="sync", path=path, errno_code=code)
        if operation == "read":
            try:
                self.log.read_stored(offset)
            except (CorruptionError, FatalError) as error:
                return error
        return StorageFailed(detail=f"errno {code}", operation=operation or "use", path=path, errno_code=code)

    # --- the lane, on the replica's thread, lock held -----------------------------------------------------------------

    def offer(self, connection: Connection, frame: bytes, now_us: Micros) -> None:
        """A frame, after whatever raft/ has decided."""
        self.resume(now_us)
        while not self._shell.offer(connection, frame, now_us):
            self._roll()
            self.resume(now_us)
        self.collect()

    def admit(self, admission: FetchAdmission, now_us: Micros) -> None:
        self._shell.admit(admission, now_us)
        self.collect()

    def detach(self, connection: Connection, now_us: Micros) -> None:
        self._shell.detach(connection)

    def set_fetch_link(self, link: FetchLink, now_us: Micros) -> None:
        """The connection to the leader came up or went away."""
        self._fetch_link = link if link.connection != NO_CONNECTION else None
        self._attach(now_us)

    def on_flush(self, token: int, errno_code: int, now_us: Micros) -> None:
        """A sync that nobody counted when it ended, as the log was not lent."""
        if errno_code:
            self._shell.latch()
        if self.log.is_lent:
            self._shell.synced(token, errno_code, now_us)
        else:
            self.log.flush_done(token, errno_code)

    def maintain(self, now_us: Micros) -> None:
        """Upkeep between commits: the log's, and what producers have in it."""
        self.log.maintain(now_us)
        self._producer_states.maintain()

    def on_tick(self, now_us: Micros) -> None:
        """Nothing: see `deadline_us`."""

    def freeze(self, now_us: Micros) -> LaneState | None:
        """None while the lane is closed."""
        if self.terms is None:
            return None
        state = self._shell.freeze()
        self.log.take_back()
        self.collect()
        self._raise_cut_off()
        return state

    def resume(self, now_us: Micros) -> None:
        if self._shell.is_roll_wanted:
            self._roll()
        if self.terms is not None and not self.log.is_lent:
            self.log.lend(self._borrowing)
        self._shell.resume(now_us)
        self._raise_cut_off()

    def _roll(self) -> None:
        """The active segment is full; the lane is frozen until there is another."""
        self._shell.freeze()
        self.log.take_back()
        self._raise_cut_off()
        self._shell.rolled()
        self.log.roll()

    def settle(self, terms: Terms | None, now_us: Micros) -> None:
        """See `LaneShell.settle`."""
        if terms is not None and self.terms is not None and same_terms(terms, self.terms):
            self.resume(now_us)
            return
        self.close(now_us)
        if terms is None:
            return
        self.log.lend(self._borrowing)
        if isinstance(terms, LeaderTerms):
            self._shell.open_leader(terms, now_us)
            self.terms = terms
        else:
            self._shell.open_follower(terms, now_us)
            self.terms = terms
            self._attach(now_us)
        self._raise_cut_off()

    def close(self, now_us: Micros) -> None:
        """After this nothing of the old terms is appended or sent; its appends' fate is open."""
        if self.terms is None:
            return
        led = self.is_leader
        self.terms = None
        self._shell.close()
        self.log.take_back()
        self.collect()
        if led:
            self._fail_pending(self.not_leader(maybe_committed=True))
        self._raise_cut_off()

    def drain(self, now_us: Micros) -> None:
        """Appends that came while raft/ decided: in, or refused, in their order."""
        while self._queued:
            if self.is_leader and self._shell.is_roll_wanted:
                self.resume(now_us)
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

    def stop(self, error: FastQuorumError | None, now_us: Micros) -> None:
        """Nothing is sent, written or acknowledged after this; everybody who waits is told so."""
        self.stopped = True
        self.collect_failure()
        self.error = error = self.error or error
        if error is not None:
            self._shell.latch()
        self._shell.stop()
        if self._shell.mode is not LaneMode.CLOSED:
            self._shell.close()
        self.log.take_back()
        self.terms = None
        self._fail_pending(error or self.not_leader(maybe_committed=True))
        while self._queued:
            self._fates.append((self._unqueue().fail, error or self.not_leader()))

    def cut_off(self, error: BaseException) -> None:
        """See `LaneShell.cut_off`."""
        self._shell.latch()
        self.log.abandon()
        reason: FastQuorumError
        if isinstance(error, FatalError | CorruptionError):
            reason = error
        else:
            reason = FatalError(f"a critical section was cut off by {error!r}: start the process anew")
        self.error = self.error or reason
        self._shell.rouse()

    def send(self, connection: Connection, frame: Buffer) -> None:
        """Behind the native gate: after the disk has failed nothing leaves (lane rule 5)."""
        if self.log.may_claim and not self.stopped:
            self._shell.send(connection, frame)

    def advance(self, high_watermark: Offset) -> None:
        self._shell.advance(high_watermark)

    def collect(self) -> None:
        """What the native side has for this thread; `events` are for its loop."""
        handed_up, events, unparked = self._shell.take_news()
        self.handed_up += [HandUp(*each) for each in handed_up]
        self.events += events
        self.unparked += [Unparked(*each) for each in unparked]

    def _attach(self, now_us: Micros) -> None:
        link = self._fetch_link
        if link is not None and isinstance(self.terms, FollowerTerms) and link.node_id == self.terms.leader_id:
            self._shell.attach_leader(link.connection, link.api_version, now_us)

    def _raise_cut_off(self) -> None:
        """What cut the lane off ends the replica."""
        self.collect_failure()
        if self.error is not None and not self.stopped:
            raise self.error

    def _fail_pending(self, error: FastQuorumError) -> None:
        """Everybody who waits for a commit is told this."""
        self._error_codes -= 1
        self._errors[self._error_codes] = error
        if len(self._errors) > _ERRORS_KEPT:
            del self._errors[min(self._errors, key=lambda code: -code)]
        self._shell.fail_pending(self._error_codes)

    # --- telling, on the replica's thread, without the lock -----------------------------------------------------------

    def tell(self, on_committed: Callable[[Offset], None]) -> None:
        """See `LaneShell.tell`."""
        while True:
            letters = self._mailbox.collect()
            fates, self._fates = self._fates, []
            high_watermark, told = self.high_watermark, self._told_high_watermark
            self._told_high_watermark = high_watermark
            for fail, error in fates:
                fail(error)
            for ticket, result in letters:
                if result >= 0:
                    ticket.committed(result)
                else:
                    ticket.failed(self.error_of(result))
            if high_watermark != told:
                on_committed(high_watermark)
            elif not letters and not fates:
                break
        if self.watches_commits():
            self._shell.watch_commit()


def _fail_ticket(ticket: AppendTicket, error: FastQuorumError) -> None:
    ticket.failed(error)


class _Passing(NamedTuple):
    """A barrier's ticket, told as an append's is."""

    ticket: BarrierTicket

    def committed(self, high_watermark: Offset) -> None:
        self.ticket.passed(high_watermark)

    def failed(self, error: FastQuorumError) -> None:
        self.ticket.failed(error)


def _copied(values: Buffer | Sequence[Buffer]) -> list[bytes]:
    """Kept where the caller may change them: they have to wait for raft/'s decision."""
    if isinstance(values, bytes | bytearray | memoryview):
        return [bytes(values)]
    return [bytes(memoryview(value)) for value in values]
