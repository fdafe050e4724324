"""The shell around a replica's lane: the lock, the callers' appends, and the lane's outputs carried out. Sans-IO.

Two threads meet here. Callers may use `append`, `append_encoded`, `producer` and `begin_barrier` from any thread;
everything else is the replica's thread's. Methods that say "lock held" are parts of one critical section (lane rule 3):

    who        owns                                                    under
    lane lock  lane, log, pending and queued appends, barriers, sends   `self.lock`
    replica    raft, connections' meaning, the inbox, `unparked`        its thread

Must not know election rules, nor what records mean. Source: `kernels/lane.py` (the seven rules).
"""

import copy
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from fastquorum.config import QuorumConfig
from fastquorum.errors import CorruptionError, FastQuorumError, FatalError, NotLeader, Overloaded, UsageError
from fastquorum.kernels import BATCH_HEADER_BYTES, RECORD_OVERHEAD_MAX, Buffer, Kernels, SteadyBeats
from fastquorum.kernels.lane import (
    NO_CONNECTION,
    Advanced,
    AppendVerdict,
    BarrierDone,
    Connection,
    FetchAdmission,
    FollowerTerms,
    HandUp,
    Lane,
    LaneMode,
    LaneState,
    LeaderTerms,
    Output,
    Send,
    Unparked,
)
from fastquorum.kernels.producers import ProducedBatch, Producer, Stamp
from fastquorum.node.appends import Appends, Queued
from fastquorum.node.barriers import Barriers
from fastquorum.node.peers import FetchLink
from fastquorum.node.ports import AppendTicket, BarrierTicket, LaneLock, Transport, WallClock
from fastquorum.node.producer_states import ProducerStates
from fastquorum.node.shell import Terms, same_terms
from fastquorum.node.tallies import Tallied
from fastquorum.storage.log import Log
from fastquorum.types import UNKNOWN_OFFSET, Micros, Offset, Uuid

_MAX_TIMESTAMP: Final = slice(35, 43)
"""Where a batch's header has it."""


class LaneShell(Tallied):
    """See the module for who may call what."""

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
        super().__init__()
        self.lock = lock
        self.log = log
        self.terms: Terms | None = None
        self.high_watermark: Offset = UNKNOWN_OFFSET
        self.appended_us: Micros = 0
        """When a leader last appended, or began to lead."""
        self.stopped = False
        self.error: FastQuorumError | None = None
        self.handed_up: deque[HandUp] = deque()
        """Frames the lane refused, for raft/; at most one, as the lane is frozen by it."""
        self.unparked: list[Unparked] = []
        self.not_leader: Callable[..., NotLeader] = NotLeader
        """Names the leader; set by the replica, which knows."""
        self.watches_commits: Callable[[], bool] = bool
        self._batch_bytes_max = config.batch_bytes_max
        self._refuses_appends = False
        self._lane = lane
        self._transport = transport
        self._clock_ms = clock_ms
        self._fetch_link: FetchLink | None = None
        self._appends = Appends(config.append_queue_records_max, config.append_queue_bytes_max, self.refusals)
        self._barriers = Barriers()
        self._beats: SteadyBeats | None = None
        self._producer_states = ProducerStates(log, kernels)
        self._told_high_watermark: Offset = UNKNOWN_OFFSET

    @property
    def is_leader(self) -> bool:
        """True while appends are accepted here."""
        return isinstance(self.terms, LeaderTerms)

    @property
    def is_standing(self) -> bool:
        return self._lane.is_frozen

    @property
    def is_open(self) -> bool:
        return self.terms is not None

    @property
    def deadline_us(self) -> Micros:
        return self._lane.deadline_us

    # --- callers, from any thread -------------------------------------------------------------------------------------

    def append(self, values: Sequence[Buffer], ticket: AppendTicket, now_us: Micros) -> None:
        """Append all values atomically, in one batch; the ticket is told their fate.

        Raises, with nothing appended and the ticket untouched: NotLeader, Overloaded, RecordTooLarge, or what stopped
        the replica.
        """
        # Copied where the caller may change them: they may have to wait for raft/'s decision.
        kept = [value if value.__class__ is bytes else bytes(memoryview(value)) for value in values]
        self._accept(Queued(ticket, kept, None, len(kept), sum(map(len, kept))), now_us)

    def append_soon(self, values: Sequence[Buffer], ticket: AppendTicket, now_us: Micros) -> None:
        """At once."""
        self.append(values, ticket, now_us)

    def push(self) -> None:
        """Nothing waits for it."""

    def append_encoded(
        self, batch: bytearray, record_count: int, ticket: AppendTicket, now_us: Micros, stamp: Stamp | None = None
    ) -> None:
        """Append a client's batch, which the caller has checked. As `append`.

        `stamp` is what a producer says of it, and stands in its header. A batch that the log holds already is not
        appended again: the ticket is told that one's fate. Raises OutOfOrderSequence and ProducerFenced as well.
        """
        self._accept(Queued(ticket, (), batch, record_count, len(batch), stamp), now_us)

    def producer(self, producer_id: int) -> Producer | None:
        """What it has in this leader's log, committed or not; None if nothing is known of it.

        Raises NotLeader; Overloaded while the log is still being read; what stopped the replica.
        """
        with self.lock:
            self._raise_if_stopped()
            if not self.is_leader:
                raise self.not_leader()
            return self._producer_states.current().get(producer_id)

    def begin_barrier(self, ticket: BarrierTicket, now_us: Micros) -> None:
        """Start a linearizable read (lane rule 7). Raises NotLeader, or what stopped the replica.

        A leader whose raft/ is deciding refuses too: a barrier is cheap to ask for again.
        """
        with self.lock:
            self._raise_if_stopped()
            try:
                number, outputs = self._lane.begin_barrier(now_us)
                if number >= 0:
                    self._barriers.begin(number, ticket)
                    self.perform(outputs)
            except BaseException as error:
                self.cut_off(error)
                raise
            if number < 0:
                raise self.not_leader()
        self._transport.wake()

    def watch_commit(self) -> None:
        """Nothing: `tell` looks after every turn."""

    def _accept(self, queued: Queued, now_us: Micros) -> None:
        with self.lock:
            self._raise_if_stopped()
            self._appends.reserve(queued.record_count, queued.size_bytes)
            accepted = False
            try:
                accepted = self._append_or_queue(queued, now_us)
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
        if queued.stamp is not None and self.is_leader:
            batch = self._producer_states.current().check(queued.stamp)
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
            timestamp_ms = int.from_bytes(queued.encoded[_MAX_TIMESTAMP], "big", signed=True)
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

    def _raise_if_stopped(self) -> None:
        if self.error is not None:
            raise copy.copy(self.error)  # an exception raised again and again gathers tracebacks
        if self.stopped:
            raise self.not_leader()

    # --- the lane, on the replica's thread, lock held -----------------------------------------------------------------

    def offer(self, connection: Connection, frame: bytes, now_us: Micros) -> bool:
        """Lock held, lane open. A frame, after whatever raft/ has decided. False: there is no room for it."""
        self.resume(now_us)
        if not self.make_room_for_frame(frame):
            return False
        self.perform(self._lane.on_frame(connection, frame, now_us))
        return True

    def make_room_for_frame(self, frame: bytes) -> bool:
        """Lock held. A leader writes nothing of what comes: what gathered has its room."""
        return self.is_leader or self._make_room(len(frame))

    def refuse_appends(self, refuse: bool) -> None:
        self._refuses_appends = refuse

    def _make_room_for(self, queued: Queued, now_us: Micros) -> bool:
        """What is too large for a batch is the lane's to refuse."""
        if queued.size_bytes > self._batch_bytes_max:
            return True
        size_bytes = queued.size_bytes
        if queued.encoded is None:
            size_bytes += BATCH_HEADER_BYTES + RECORD_OVERHEAD_MAX * queued.record_count
        size_bytes = min(size_bytes, self._batch_bytes_max)
        behind_bytes = self._lane.gathered_bytes + size_bytes
        if not self._lane.gathered_bytes or self.log.fits(behind_bytes, behind_bytes):
            return self._make_room(behind_bytes)
        self.freeze(now_us)  # what gathered has its room in this segment, and is written there
        self.resume(now_us)
        return self._make_room(size_bytes)

    def _make_room(self, size_bytes: int) -> bool:
        """No record is smaller than a byte."""
        # Once the log has failed it is over, and whoever stops the replica says why.
        return not self.log.may_claim or self.log.make_room(size_bytes, size_bytes)

    def admit(self, admission: FetchAdmission, now_us: Micros) -> None:
        self.perform(self._lane.admit(admission, now_us))

    def detach(self, connection: Connection, now_us: Micros) -> None:
        self.perform(self._lane.detach(connection, now_us))

    def set_fetch_link(self, link: FetchLink, now_us: Micros) -> None:
        """The connection to the leader came up or went away."""
        self._fetch_link = link if link.connection != NO_CONNECTION else None
        self._attach(now_us)

    def on_flush(self, token: int, errno_code: int, now_us: Micros) -> None:
        """The flusher's report; a failure raises FsyncFailed, with the latch set first (lane rule 5)."""
        if errno_code:
            self._lane.on_flush_failed()
        done = self.log.flush_done(token, errno_code)
        if done is not None:
            self.perform(self._lane.on_flushed(done.generation, done.end, now_us))

    def maintain(self, now_us: Micros) -> None:
        """Lock held. Upkeep between commits: the log's, and what producers have in it."""
        self.log.maintain(now_us)
        self._producer_states.maintain()

    def on_tick(self, now_us: Micros) -> None:
        if 0 <= self._lane.deadline_us <= now_us:
            self.perform(self._lane.on_tick(now_us))

    def freeze(self, now_us: Micros) -> LaneState | None:
        """None while the lane is closed."""
        return None if self._lane.mode is LaneMode.CLOSED else self._lane.freeze(now_us)

    def resume(self, now_us: Micros) -> None:
        if self._lane.is_frozen:
            self.perform(self._lane.resume(now_us))

    def settle(self, terms: Terms | None, now_us: Micros) -> None:
        """raft/'s effects are all done: the lane goes on, on these terms (lane rule 1)."""
        if terms is not None and self.terms is not None and same_terms(terms, self.terms):
            self.resume(now_us)
            return
        self.close(now_us)
        if terms is None:
            return
        self.terms = terms
        self.progress.opened(leads=isinstance(terms, LeaderTerms), end_offset=self.log.end_offset)
        if isinstance(terms, LeaderTerms):
            self.appended_us = now_us
            self.perform(self._lane.open_leader(terms, now_us))
        else:
            self.perform(self._lane.open_follower(terms, now_us))
            self._attach(now_us)

    def close(self, now_us: Micros) -> None:
        """After this nothing of the old terms is appended or sent; its appends' fate is open."""
        if self.terms is None:
            return
        led = self.is_leader
        self.terms = None
        _, outputs = self._lane.close(now_us)
        self.perform(outputs)
        self.progress.closed(self.log.end_offset)
        if led:
            self._appends.fail_pending(self.not_leader(maybe_committed=True))

    def drain(self, now_us: Micros) -> None:
        """Appends that came while raft/ decided: in, or refused, in their order."""
        queued = self._appends.queued
        while queued:
            if not self.is_leader:
                self._appends.fail_queued(self.not_leader())
                return
            try:
                verdict = self._append_now(queued[0], now_us)
            except (UsageError, Overloaded) as error:
                # Too large, which only encoding tells, or not its producer's next: nothing was looked at before.
                self._appends.fail_first(error)
                continue
            if verdict == AppendVerdict.FROZEN:
                return
            if verdict < 0:
                self._appends.fail_first(self.not_leader())
            else:
                queued.popleft()

    def stop(self, error: FastQuorumError | None, now_us: Micros) -> None:
        """Nothing is sent, written or acknowledged after this; everybody who waits is told so."""
        self.stopped = True
        self.error = error = self.error or error
        if error is not None:
            self._lane.on_flush_failed()
        if self._lane.mode is not LaneMode.CLOSED:
            self._lane.close(now_us)
        self.terms = None
        self._appends.fail_pending(error or self.not_leader(maybe_committed=True))
        self._appends.fail_queued(error or self.not_leader())
        self._barriers.fail_all()

    def may_send(self) -> bool:
        """After the disk has failed nothing leaves, whoever asks (lane rule 5)."""
        return not self.stopped and self.log.may_claim and not self._lane.has_failed

    def send(self, connection: Connection, frame: Buffer) -> None:
        if self.may_send():
            self._transport.send(connection, frame)

    def serve_produce(self, topic_name: str, topic_id: Uuid, unanswered_max: int) -> None:
        """Nothing: it cannot."""

    def serve_beats(self, beats: SteadyBeats) -> None:
        self._beats = beats

    def answer_beat(self, connection: Connection, frame: bytes, now_us: Micros) -> bool:
        terms = self.terms
        if self._beats is None or not isinstance(terms, LeaderTerms) or self._lane.is_frozen or not self.may_send():
            return False
        answer = self._beats.answer(frame, terms.epoch, now_us)
        if answer is not None:
            self.send(connection, answer)
        return answer is not None

    def settled(self, connection: Connection, frames: int) -> None:
        """Nothing: every client is answered by the door."""

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

    def advance(self, high_watermark: Offset) -> None:
        if high_watermark > self.high_watermark:
            self.high_watermark = high_watermark
            if self.is_leader:
                self._appends.committed(high_watermark)

    def look(self, now_us: Micros) -> LaneState | None:
        """A lane that waits for raft/ goes on waiting; another one is held for the moment that it takes."""
        was_frozen, state = self._lane.is_frozen, self.freeze(now_us)
        if not was_frozen:
            self.resume(now_us)
        return state

    def waiting(self) -> tuple[int, int]:
        return self._appends.records, self._appends.size_bytes

    def _attach(self, now_us: Micros) -> None:
        """Give the follower's lane its connection, if both are there."""
        link = self._fetch_link
        if link is not None and isinstance(self.terms, FollowerTerms) and link.node_id == self.terms.leader_id:
            self.perform(self._lane.attach_leader(link.connection, link.api_version, now_us))

    # --- telling, on the replica's thread, without the lock -----------------------------------------------------------

    def tell(self, on_committed: Callable[[Offset], None]) -> None:
        """Tell tickets their fate, and `on_committed` the high watermark, until nobody waits for news. They may call
        back."""
        while True:
            with self.lock:
                fates, barriers = self._appends.take_fates(), self._barriers.take_ended()
                high_watermark, told = self.high_watermark, self._told_high_watermark
                self._told_high_watermark = high_watermark
            if not fates and not barriers and high_watermark == told:
                return
            for fate in fates:
                fate.tell()
            for barrier in barriers:
                barrier.tell(lambda: self.error or self.not_leader())
            if high_watermark != told:
                on_committed(high_watermark)
