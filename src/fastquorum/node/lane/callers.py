"""What callers ask of the pure lane's shell, from any thread: appends, barriers, ids. Sans-IO.

Appends that find raft/ deciding are queued, and made in their turn. See `python_shell` for who owns what. Methods that
say "lock held" are parts of one critical section (lane rule 3).
"""

from collections.abc import Sequence

from fastquorum.config import QuorumConfig
from fastquorum.errors import CorruptionError, FastQuorumError, FatalError, Overloaded, UsageError
from fastquorum.kernels import BATCH_HEADER_BYTES, RECORD_OVERHEAD_MAX, Buffer, Kernels, SteadyBeats
from fastquorum.kernels.codes import AppendVerdict
from fastquorum.kernels.lane import (
    Advanced,
    BarrierDone,
    Connection,
    HandUp,
    Lane,
    LaneMode,
    LaneState,
    LeaderSession,
    ObserversInformed,
    Output,
    Send,
    Unparked,
)
from fastquorum.kernels.producers import ProducedBatch, Stamp, max_timestamp_ms_of
from fastquorum.node.lane.appends import AppendQueues, Queued
from fastquorum.node.lane.barriers import LaneBarriers
from fastquorum.node.lane.confirming import FINAL_REFUSALS, Confirming
from fastquorum.node.lane.port import with_answered
from fastquorum.node.lane.shell_base import ShellBase
from fastquorum.node.ports import AppendTicket, BarrierTicket, LaneLock, Transport, WallClock
from fastquorum.storage.log.log import Log
from fastquorum.types import UNKNOWN_OFFSET, Micros, Offset


class LaneCallers(ShellBase):
    """The callers' half of `python_shell.LaneShell`, and what both halves do with the lane."""

    high_watermark: Offset = UNKNOWN_OFFSET

    def __init__(
        self,
        *,
        config: QuorumConfig,
        kernels: Kernels,
        lane: Lane,
        log: Log,
        transport: Transport,
        lock: LaneLock,
        clock_ms: WallClock,
    ) -> None:
        super().__init__(log, lock, kernels, clock_ms)
        self.appended_us: Micros = 0
        """When a leader last appended, or began to lead."""
        self._batch_bytes_max = config.batch_bytes_max
        self._refuses_appends = False
        self._lane = lane
        self._transport = transport
        self._clock_ms = clock_ms
        self._appends = AppendQueues(config.append_queue_records_max, config.append_queue_bytes_max, self.refusals)
        self._barriers = LaneBarriers()
        self.are_observers_awaited = False
        self._beats: SteadyBeats | None = None
        self._beats_confirmed_us_max: Micros = 0
        self._confirming = Confirming[tuple[Queued, Micros]](
            lock, self._begin_confirming, self._judge_again, self._fail_refused, lambda: self.not_leader()
        )
        self._refused_at_us: Micros = 0
        """When the last append came that is to be refused."""

    # --- callers, from any thread -------------------------------------------------------------------------------------

    def append(
        self, values: Sequence[Buffer], ticket: AppendTicket, now_us: Micros, *, is_pushed_later: bool = False
    ) -> None:
        """Append all values atomically, in one batch, at once; the ticket is told their fate.

        Raises, with nothing appended and the ticket untouched: NotLeader, Overloaded, RecordTooLarge, or what stopped
        the replica.
        """
        # Copied where the caller may change them: they may have to wait for raft/'s decision.
        kept = [value if value.__class__ is bytes else bytes(memoryview(value)) for value in values]
        self._accept(Queued(ticket, kept, None, len(kept), sum(map(len, kept))), now_us)

    def push(self) -> None:
        """Nothing waits for it."""

    def append_encoded(
        self, batch: bytearray, record_count: int, ticket: AppendTicket, now_us: Micros, stamp: Stamp | None = None
    ) -> None:
        """Append a client's batch, which the caller has checked. As `append`.

        `stamp` is what a producer says of it, and stands in its header. A batch that the log holds already is not
        appended again: the ticket is told that one's fate. The ticket also hears OutOfOrderSequence, ProducerFenced and
        UnknownProducer, once it is known that this node leads still.
        """
        self._accept(Queued(ticket, (), batch, record_count, len(batch), stamp), now_us)

    def begin_barrier(self, ticket: BarrierTicket, now_us: Micros) -> None:
        """Start a linearizable read (lane rule 7). Raises NotLeader, or what stopped the replica.

        A leader whose raft/ is deciding refuses too: a barrier is cheap to ask for again.
        """
        with self.lock:
            self._raise_if_stopped()
            if not self._begin_barrier(ticket, now_us):
                raise self.not_leader()
        self._transport.wake()

    def _has_undecided(self) -> bool:
        return bool(self._appends.queued) or self._confirming.is_waited_for

    def _begin_barrier(self, ticket: BarrierTicket, now_us: Micros) -> bool:
        """Lock held. False: raft/ is deciding, or this node does not lead."""
        try:
            number, outputs = self._lane.begin_barrier(now_us)
            if number >= 0:
                self._barriers.begin(number, ticket)
                self.perform(outputs)
        except BaseException as error:
            self.cut_off(error)
            raise
        return number >= 0

    def watch_commit(self) -> Offset:
        """There is nothing to do: every commit is a turn's, and `tell` looks after each."""
        return self.high_watermark

    def _accept(self, queued: Queued, now_us: Micros) -> None:
        with self.lock:
            self._raise_if_stopped()
            self._appends.reserve(queued.record_count, queued.size_bytes)
            accepted = False
            try:
                accepted = self._append_or_queue(queued, now_us)
            except FINAL_REFUSALS:
                accepted = True  # or refused, as its ticket will be told
                self._refuse_unless_deposed(queued, now_us)
                self._transport.wake()
            except (UsageError, Overloaded) as error:
                self.refusals.counted(error)
                raise  # refused, with nothing changed
            except BaseException as error:
                self.cut_off(error)
                raise
            finally:
                if not accepted:
                    self._appends.release(queued.record_count, queued.size_bytes)
            if not accepted:
                raise self.refusals.counted(self.not_leader())

    def cut_off(self, error: BaseException) -> None:
        """Lock held, on any thread: the critical section did not come to its end.

        Be it the disk, Ctrl-C or a lack of memory: log and lane may be half-changed, and nothing may be built on that.
        Latched here, before others get the lock; carried out by the replica's thread.
        """
        self._lane.on_flush_failed()
        self.log.abandon()
        reason: FastQuorumError
        if isinstance(error, FatalError | CorruptionError):
            reason = error
        else:
            reason = FatalError(
                f"an append or a barrier was cut off by {error!r}: what of it is in the log is not known; start the "
                "process anew"
            )
        self.error = self.error or reason
        self._transport.wake()

    def _append_or_queue(self, queued: Queued, now_us: Micros) -> bool:
        """Lock held. Behind appends that wait for raft/'s decision everything waits its turn."""
        verdict = AppendVerdict.FROZEN if self._appends.queued else self._append_now(queued, now_us)
        if verdict == AppendVerdict.FROZEN:
            self._appends.queued.append(queued)
            self._transport.wake()
            return True
        return verdict >= 0

    def _append_now(self, queued: Queued, now_us: Micros) -> int:
        """Lock held. Epoch check, offset, write, claim of parked Fetches and enqueue (lane rule 3)."""
        if self.is_leader and self._lane.is_frozen and not self._lane.has_failed:
            return AppendVerdict.FROZEN  # judged when its turn comes: what is decided may be that another node leads
        if queued.stamp is not None and isinstance(self.session, LeaderSession):
            assert queued.encoded is not None
            batch = self._producer_states.judge(queued.stamp, queued.encoded, self.session.epoch, now_us)
            if batch is not None:
                self._join(queued, batch)
                return batch.base_offset
        if self.is_leader:
            if self._refuses_appends:
                return AppendVerdict.NOT_LEADER
            if not self._make_room_for(queued, now_us):
                return AppendVerdict.FROZEN  # raft/ gives up the lead, which is what it will be told
        if queued.encoded is None:
            offset, outputs = self._lane.append(queued.values, self._clock_ms(), now_us)
        else:
            # What its producer wrote is what a reader looks for, not when it came here.
            timestamp_ms = max_timestamp_ms_of(queued.encoded)
            offset, outputs = self._lane.append_encoded(queued.encoded, queued.record_count, timestamp_ms, now_us)
        if offset >= 0:
            self.appended_us = now_us
            self._appends.add(queued.ticket, offset, queued.record_count, queued.size_bytes)
            self.log.producers.appended(queued.stamp, offset, offset + queued.record_count)
        self.perform(outputs)
        return offset

    def _join(self, queued: Queued, batch: ProducedBatch) -> None:
        """Lock held. It is in the log: nothing is appended, and the room it took is free again."""
        self._appends.release(queued.record_count, queued.size_bytes)
        self._appends.join(queued.ticket, batch)
        self._appends.committed(self.high_watermark)
        self._transport.wake()

    # --- appends that their producer's state forbids, lock held -------------------------------------------------------

    def _refuse_unless_deposed(self, queued: Queued, now_us: Micros) -> None:
        self._refused_at_us = now_us
        self._confirming.add((queued, now_us))

    def _begin_confirming(self, ticket: BarrierTicket) -> bool:
        return self._begin_barrier(ticket, self._refused_at_us)

    def _judge_again(self, append: tuple[Queued, Micros]) -> None:
        """This node led after it had come: what is refused now, is refused for good."""
        queued, now_us = append
        if not self.is_leader:
            self._appends.fail(queued, self.not_leader())
            return
        try:
            verdict = AppendVerdict.FROZEN if self._appends.queued else self._append_now(queued, now_us)
        except (UsageError, Overloaded) as error:
            self._appends.fail(queued, self.refusals.counted(error))
            return
        except BaseException as error:
            self.cut_off(error)
            raise
        if verdict == AppendVerdict.FROZEN:
            self._appends.queued.append(queued)
            self._transport.wake()
        elif verdict < 0:
            self._appends.fail(queued, self.not_leader())

    def _fail_refused(self, appends: list[tuple[Queued, Micros]], error: FastQuorumError) -> None:
        for queued, _ in appends:
            self._appends.fail(queued, error)

    # --- the lane, on the replica's thread, lock held -----------------------------------------------------------------

    def drain(self, now_us: Micros) -> None:
        """Appends that came while raft/ decided: in, or refused, in their order."""
        queued = self._appends.queued
        while queued:
            if not self.is_leader:
                self._appends.fail_queued(self.not_leader())
                return
            try:
                verdict = self._append_now(queued[0], now_us)
            except FINAL_REFUSALS:
                self._refuse_unless_deposed(queued.popleft(), now_us)
                continue
            except (UsageError, Overloaded) as error:
                # Too large, which only encoding tells: nothing was looked at before.
                self._appends.fail_first(error)
                continue
            if verdict == AppendVerdict.FROZEN:
                return
            if verdict < 0:
                self._appends.fail_first(self.not_leader())
            else:
                queued.popleft()

    def refuse_appends(self, refuse: bool) -> None:
        self._refuses_appends = refuse

    def _make_room_for(self, queued: Queued, now_us: Micros) -> bool:
        """Make room in the batch that gathers; the lane refuses what is too large for any batch. No record that
        gathered is smaller than a byte; those of a compressed batch may be."""
        if queued.size_bytes > self._batch_bytes_max:
            return True
        size_bytes = queued.size_bytes
        if queued.encoded is None:
            size_bytes += BATCH_HEADER_BYTES + RECORD_OVERHEAD_MAX * queued.record_count
        size_bytes = min(size_bytes, self._batch_bytes_max)
        gathered_bytes = self._lane.gathered_bytes
        behind = gathered_bytes + size_bytes, gathered_bytes + queued.record_count
        if not gathered_bytes or self.log.fits(*behind):
            return self._make_room(*behind)
        self.freeze(now_us)  # what gathered has its room in this segment, and is written there
        self.resume(now_us)
        return self._make_room(size_bytes, queued.record_count)

    def _make_room(self, size_bytes: int, record_count: int) -> bool:
        # Once the log has failed it is over, and whoever stops the replica says why.
        return not self.log.may_claim or self.log.make_room(size_bytes, record_count)

    def freeze(self, now_us: Micros) -> LaneState | None:
        """None while the lane is closed."""
        if self._lane.mode is LaneMode.CLOSED:
            return None
        return with_answered(self._lane.freeze(now_us), self._fetch_answered)

    def resume(self, now_us: Micros) -> None:
        if self._lane.is_frozen:
            self.perform(self._lane.resume(now_us))

    def perform(self, outputs: list[Output]) -> None:
        """Carry out what a lane call returned, in the critical section of that call."""
        for output in outputs:
            match output:
                case Send(connection, frame):
                    self.send(connection, frame)
                case HandUp():
                    self.handed_up.append(output)
                case Advanced(high_watermark):
                    self.advance(high_watermark)
                case BarrierDone(barrier, high_watermark):
                    self._barriers.end(barrier, high_watermark)
                case Unparked():
                    self.unparked.append(output)
                case ObserversInformed():  # on the replica's thread, whose turn goes on
                    self.are_observers_awaited = False

    def advance(self, high_watermark: Offset) -> None:
        if high_watermark > self.high_watermark:
            self.high_watermark = high_watermark
            if self.is_leader:
                self._appends.committed(high_watermark)

    def may_send(self) -> bool:
        """After the disk has failed nothing leaves, whoever asks (lane rule 5)."""
        return not self.stopped and self.log.may_claim and not self._lane.has_failed

    def send(self, connection: Connection, frame: Buffer) -> None:
        if self.may_send():
            self._transport.send(connection, frame)
