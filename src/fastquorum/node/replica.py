"""One replica: raft/ and the lane over one log, one quorum state and the outgoing and incoming connections. Sans-IO.

Two threads' worth of callers meet here. The replica's thread calls the `on_*` methods and `work`; any thread may call `append` and
`begin_barrier`. What they share - lane, log, pending appends, sends - is guarded by the lane lock; raft/ belongs to the replica's thread
alone and steps only while the lane is frozen or closed (lane rule 2):

    freeze -> state -> effects = raft.step(event, state) -> carry them out, in order -> open, close or resume the lane

Must not know election rules, nor what records mean. Source: architecture.md section 2; KIP-595.
"""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from fastquorum.config import QuorumConfig
from fastquorum.errors import CorruptionError, FastQuorumError, FatalError, NotLeader, WireError
from fastquorum.kernels import Buffer, Kernels
from fastquorum.kernels.lane import (
    NO_CONNECTION,
    Advanced,
    AppendVerdict,
    BarrierDone,
    Connection,
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
from fastquorum.node import control
from fastquorum.node.appends import Appends, Fate, Queued
from fastquorum.node.door import Door
from fastquorum.node.inbound import Inbound, Request
from fastquorum.node.peers import Answer, FetchFrame, FetchLink, NoAnswer, PeerEvent, Peers
from fastquorum.node.ports import AppendTicket, BarrierTicket, LaneLock, Listener, Transport, WallClock
from fastquorum.raft import effects as fx
from fastquorum.raft import events as ev
from fastquorum.raft.raft import Raft
from fastquorum.storage.log import Log
from fastquorum.storage.ports import FlushPort, StateStore
from fastquorum.types import NO_NODE, UNKNOWN_OFFSET, Micros, Offset
from fastquorum.wire import ApiKey, decode_response
from fastquorum.wire.fetch import FetchResponse

Terms = LeaderTerms | FollowerTerms


class Waiting(NamedTuple):
    """A frame that came while raft/ had something to decide: it is looked at again, in its turn."""

    connection: Connection
    frame: bytes


class Replica:
    """Interprets raft's effects and the lane's outputs. See the module for who may call what."""

    def __init__(
        self,
        *,
        config: QuorumConfig,
        kernels: Kernels,
        raft: Raft,
        lane: Lane,
        log: Log,
        states: StateStore,
        flusher: FlushPort,
        peers: Peers,
        inbound: Inbound,
        door: Door,
        transport: Transport,
        lock: LaneLock,
        listener: Listener,
        clock_ms: WallClock,
    ) -> None:
        self.config = config
        self.raft = raft
        self.log = log
        self.error: FastQuorumError | None = None
        self.stopped = False
        self._kernels = kernels
        self._lane = lane
        self._states = states
        self._flusher = flusher
        self._peers = peers
        self._inbound = inbound
        self._door = door
        self._transport = transport
        self._lock = lock
        self._listener = listener
        self._clock_ms = clock_ms
        self._terms: Terms | None = None
        self._fetch_link: FetchLink | None = None
        self._inbox: deque[ev.Event | Waiting | HandUp] = deque()
        self._spans: dict[int, control.Span] = {}
        self._unparked: list[Unparked] = []
        # Guarded by the lane lock.
        self._appends = Appends(config.append_queue_records_max, config.append_queue_bytes_max)
        self._barriers: dict[int, BarrierTicket] = {}
        self._high_watermark: Offset = UNKNOWN_OFFSET
        self._fates: list[Fate] = []
        self._passed: list[tuple[BarrierTicket, Offset]] = []
        self._told_high_watermark: Offset = UNKNOWN_OFFSET

    # --- what anybody may ask -----------------------------------------------------------------------------------------

    @property
    def high_watermark(self) -> Offset:
        """Exclusive end of the committed prefix as this replica knows it; -1 unknown."""
        return self._high_watermark

    @property
    def is_leader(self) -> bool:
        """True while appends are accepted here."""
        return isinstance(self._terms, LeaderTerms)

    def not_leader(self, *, maybe_committed: bool = False) -> NotLeader:
        """The error for a request that only the leader serves, naming the leader."""
        leader = self.raft.leader_id
        if leader == self.raft.key.id and not self.is_leader:
            leader = NO_NODE
        return NotLeader(leader, self.raft.epoch, self.raft.endpoint_of(leader), maybe_committed)

    # --- callers, from any thread -------------------------------------------------------------------------------------

    def append(self, values: Sequence[Buffer], ticket: AppendTicket, now_us: Micros) -> None:
        """Append all values atomically, in one batch; the ticket is told their fate.

        Raises, with nothing appended and the ticket untouched: NotLeader, Overloaded, RecordTooLarge, or what stopped the replica.
        """
        size = sum(map(len, values))
        self._accept(Queued(ticket, values, None, len(values), size), now_us)

    def append_encoded(self, batch: bytearray, record_count: int, ticket: AppendTicket, now_us: Micros) -> None:
        """Append a client's batch, which the caller has checked. As `append`."""
        self._accept(Queued(ticket, (), batch, record_count, len(batch)), now_us)

    def begin_barrier(self, ticket: BarrierTicket, now_us: Micros) -> None:
        """Start a linearizable read (lane rule 7). Raises NotLeader, or what stopped the replica."""
        with self._lock:
            self._raise_if_stopped()
            number, outputs = self._lane.begin_barrier(now_us)
            if number < 0:
                # Frozen or closed. A frozen leader may still lead, but a barrier is cheap to ask for again.
                raise self.not_leader()
            self._barriers[number] = ticket
            self._perform(outputs)
        self._transport.wake()

    def read(self, offset: Offset, bytes_max: int, end_offset: Offset) -> bytes:
        """Whole batches from the one containing `offset` that lie below end_offset; b"" if there are none."""
        with self._lock:
            if offset >= end_offset:
                return b""
            data = self.log.read(offset, bytes_max)
        return control.cut_at(self._kernels, data, end_offset)

    def _accept(self, queued: Queued, now_us: Micros) -> None:
        with self._lock:
            self._raise_if_stopped()
            self._appends.reserve(queued.record_count, queued.size_bytes)
            verdict = -1
            try:
                if self._appends.queued:
                    verdict = AppendVerdict.FROZEN
                else:
                    verdict = self._append_now(queued, now_us)
            finally:
                if verdict < 0 and verdict != AppendVerdict.FROZEN:
                    self._appends.release(queued.record_count, queued.size_bytes)
            if verdict == AppendVerdict.FROZEN:
                self._appends.queued.append(queued)
            elif verdict < 0:
                raise self.not_leader()

    def _append_now(self, queued: Queued, now_us: Micros) -> int:
        """One critical section with the caller's (lane rule 3): epoch check, offset, write, claim of parked Fetches, enqueue."""
        timestamp_ms = self._clock_ms()
        if queued.encoded is None:
            offset, outputs = self._lane.append(queued.values, timestamp_ms, now_us)
        else:
            offset, outputs = self._lane.append_encoded(queued.encoded, queued.record_count, timestamp_ms, now_us)
        if offset >= 0:
            self._appends.add(queued.ticket, offset, queued.record_count, queued.size_bytes)
        self._perform(outputs)
        return offset

    def _raise_if_stopped(self) -> None:
        if self.error is not None:
            raise self.error
        if self.stopped:
            raise self.not_leader()

    # --- the replica's thread -----------------------------------------------------------------------------------------

    def start(self, now_us: Micros) -> None:
        """Begin: timers start, a sole voter elects itself."""
        self._inbox.append(ev.Started())
        self.work(now_us)

    def on_connected(self, connection: Connection, now_us: Micros) -> None:
        with self._lock:
            self._peers.on_connected(connection, now_us)

    def on_disconnected(self, connection: Connection, now_us: Micros) -> None:
        with self._lock:
            if self._peers.owns(connection):
                events = self._peers.on_disconnected(connection, now_us)
            else:
                events = []
                self._inbound.forget(connection)
                self._door.forget(connection)
            self._perform(self._lane.detach(connection, now_us))
            self._on_peer_events(events, now_us)
        self.work(now_us)

    def on_frame(self, connection: Connection, frame: bytes, now_us: Micros) -> None:
        """One frame, either way. The steady state ends here; anything else is raft's, in the order of arrival."""
        if self.stopped:
            return
        with self._lock:
            if self._peers.owns(connection):
                self._on_peer_events(self._peers.on_frame(connection, frame, now_us), now_us)
            else:
                self._to_lane(connection, frame, now_us)
        self.work(now_us)

    def on_flush(self, token: int, errno_code: int, now_us: Micros) -> None:
        """The flusher's report. A failure is final (architecture decision 3)."""
        try:
            with self._lock:
                if errno_code:
                    self._lane.on_flush_failed()
                done = self.log.flush_done(token, errno_code)
                if done is not None:
                    self._perform(self._lane.on_flushed(done.generation, done.end, now_us))
        except (FatalError, CorruptionError) as error:
            self._stop(error)
        self._tell()

    def on_tick(self, now_us: Micros) -> None:
        """Timers: parked Fetches, raft's deadline, the log's upkeep, the door's waits."""
        if self.stopped:
            return
        try:
            with self._lock:
                if 0 <= self._lane.deadline_us <= now_us:
                    self._perform(self._lane.on_tick(now_us))
                self.log.maintain(now_us)
            self._door.on_tick(now_us)
        except (FatalError, CorruptionError) as error:
            self._stop(error)
        if 0 <= self.raft.deadline_us <= now_us:
            self._inbox.append(ev.TimerFired())
        self.work(now_us)

    @property
    def deadline_us(self) -> Micros:
        """When `on_tick` is next due; -1 never."""
        due = [each for each in (self._lane.deadline_us, self.raft.deadline_us, self._door.deadline_us) if each >= 0]
        return min(due, default=-1)

    def request(self, event: ev.ResignRequested | ev.ShutdownRequested | ev.DiskStalled, now_us: Micros) -> None:
        """What the embedding program asks of raft/. On the replica's thread."""
        self._inbox.append(event)
        self.work(now_us)

    def work(self, now_us: Micros) -> None:
        """Have raft/ decide everything that waits, then tell those who wait outside."""
        try:
            while self._inbox and not self.stopped:
                self._work_one(self._inbox.popleft(), now_us)
            if not self.stopped:
                self._drain_queued(now_us)
        except (FatalError, CorruptionError) as error:
            self._stop(error)
        self._tell()

    def _work_one(self, item: "ev.Event | Waiting | HandUp", now_us: Micros) -> None:
        try:
            if isinstance(item, Waiting):
                self._look_again(item, now_us)
            elif isinstance(item, HandUp):
                self._step(self._handed_up(item.connection, item.frame), now_us)
            else:
                self._step(item, now_us)
        except WireError:
            assert isinstance(item, Waiting | HandUp)
            self._hang_up(item.connection, now_us)

    def _look_again(self, item: Waiting, now_us: Micros) -> None:
        """The lane first, if it is open; clients' requests to the door; the rest to raft/."""
        connection, frame = item
        ours = self._peers.owns(connection)
        if not ours and not self._inbound.is_quorum_request(connection, frame):
            self._door.on_request(self._inbound.decode(connection, frame), now_us)
            return
        with self._lock:
            if self._lane.mode is not LaneMode.CLOSED:
                self._resume(now_us)
                self._perform(self._lane.on_frame(connection, frame, now_us))
                return
        self._step(self._handed_up(connection, frame), now_us)

    def _handed_up(self, connection: Connection, frame: bytes) -> ev.Event:
        if self._peers.owns(connection):
            return self._handed_up_response(connection, frame)
        request = self._inbound.decode(connection, frame)
        return ev.RequestReceived(
            request.token,
            request.header.request_api_version,
            request.message,
            connection,
            request.header.correlation_id,
            self._clock_ms(),
        )

    def _hang_up(self, connection: Connection, now_us: Micros) -> None:
        """The peer broke the protocol: no answer, no effect."""
        with self._lock:
            self._transport.close(connection)
            events = self._peers.on_disconnected(connection, now_us) if self._peers.owns(connection) else []
            self._inbound.forget(connection)
            self._door.forget(connection)
            outputs = self._lane.detach(connection, now_us)
            self._perform(outputs)
            self._resume(now_us)
            self._on_peer_events(events, now_us)

    # --- frames -------------------------------------------------------------------------------------------------------

    def _to_lane(self, connection: Connection, frame: bytes, now_us: Micros) -> None:
        """Lock held. Straight to the lane if it is open and nothing waits; else in turn, through `work`."""
        ready = not self._inbox and self._lane.mode is not LaneMode.CLOSED and not self._lane.is_frozen
        if ready and (self._peers.owns(connection) or self._inbound.is_replica(connection)):
            self._perform(self._lane.on_frame(connection, frame, now_us))
        else:
            self._inbox.append(Waiting(connection, frame))

    def _on_peer_events(self, events: list[PeerEvent], now_us: Micros) -> None:
        """Lock held."""
        for event in events:
            match event:
                case Answer(source, correlation_id, api_key, message):
                    if api_key == ApiKey.FETCH:
                        assert isinstance(message, FetchResponse)
                        self._inbox.append(ev.FetchResponseReceived(source, correlation_id, message, None))
                    else:
                        self._inbox.append(ev.ResponseReceived(source, correlation_id, message))
                case NoAnswer(destination, correlation_id, unsupported):
                    self._inbox.append(ev.RequestFailed(destination, correlation_id, unsupported))
                case FetchLink(node_id, connection, _):
                    self._fetch_link = event if connection != NO_CONNECTION else None
                    self._attach(now_us)
                    self._inbox.append(ev.LeaderConnection(node_id, connection != NO_CONNECTION))
                case FetchFrame(connection, frame):
                    self._to_lane(connection, frame, now_us)

    def _attach(self, now_us: Micros) -> None:
        """Lock held. Give the follower's lane its connection, if both are there."""
        link = self._fetch_link
        if link is not None and isinstance(self._terms, FollowerTerms) and link.node_id == self._terms.leader_id:
            self._perform(self._lane.attach_leader(link.connection, link.api_version, now_us))

    def _handed_up_response(self, connection: Connection, frame: bytes) -> ev.FetchResponseReceived:
        """The lane's Fetch was answered with something unusual. Its records are checked here; raft/ sees offsets and epochs only."""
        version = self._peers.fetch_version_of(connection)
        _, message = decode_response(frame, ApiKey.FETCH, version)
        assert isinstance(message, FetchResponse)
        span = None
        for topic in message.responses[:1]:
            for partition in topic.partitions[:1]:
                if partition.records and partition.error_code == 0:
                    span = self._keep_span(partition.records)
                partition.records = b""
        return ev.FetchResponseReceived(self._peers.node_of(connection), -1, message, span)

    def _keep_span(self, records: bytes) -> ev.RecordSpan | None:
        span = control.read_span(
            self._kernels, records, self.log.end_offset, epoch_min=self.log.last_epoch, epoch_max=self.raft.epoch
        )
        if span is None:
            return None
        self._spans[1] = span
        return span.as_event(1)

    # --- raft ---------------------------------------------------------------------------------------------------------

    def _step(self, event: ev.Event, now_us: Micros) -> None:
        with self._lock:
            state = self._freeze(now_us)
        for effect in self.raft.step(event, state, now_us):
            self._carry_out(effect, now_us)
        self._spans.clear()
        with self._lock:
            self._settle(now_us)
        self._answer_unparked()

    def _freeze(self, now_us: Micros) -> LaneState | None:
        return None if self._lane.mode is LaneMode.CLOSED else self._lane.freeze(now_us)

    def _resume(self, now_us: Micros) -> None:
        """Lock held."""
        if self._lane.is_frozen:
            self._perform(self._lane.resume(now_us))

    def _settle(self, now_us: Micros) -> None:
        """Lock held. The lane continues on raft's terms: unchanged, new, or none. Rule 1 holds because all effects are done."""
        terms = self.raft.lane_terms()
        if terms is not None and self._terms is not None and _same_terms(terms, self._terms):
            self._resume(now_us)
            return
        if self._terms is not None:
            self._close_lane(now_us)
        if terms is None:
            return
        self._terms = terms
        if isinstance(terms, LeaderTerms):
            self._perform(self._lane.open_leader(terms, now_us))
        else:
            self._perform(self._lane.open_follower(terms, now_us))
            self._attach(now_us)

    def _close_lane(self, now_us: Micros) -> None:
        """Lock held. After this nothing of the old terms is appended or sent; its appends' fate is open."""
        if self._terms is None:
            return
        led = isinstance(self._terms, LeaderTerms)
        self._terms = None
        _, outputs = self._lane.close(now_us)
        self._perform(outputs)
        if led:
            self._fates += self._appends.fail_pending(self.not_leader(maybe_committed=True))

    def _carry_out(self, effect: fx.Effect, now_us: Micros) -> None:
        match effect:
            case fx.PersistElection(state):
                self._states.save(state)
            case fx.CloseLane():
                with self._lock:
                    self._close_lane(now_us)
            case fx.AppendControl(epoch, records):
                self._append_control(epoch, records)
            case fx.AppendSpan(span):
                kept = self._spans[span.handle]
                with self._lock:
                    self.log.append_scanned(kept.data, kept.scan)
                    self.log.request_flush()
            case fx.TruncateLog(end_offset):
                with self._lock:
                    self.log.truncate_to(end_offset)
            case fx.SendRequest(destination, endpoint, correlation_id, message):
                with self._lock:
                    if not self._may_send():
                        return
                    events = self._peers.request(destination, endpoint, correlation_id, message, now_us)
                    self._on_peer_events(events, now_us)
            case fx.SendResponse(token, message):
                self._respond(self._inbound.take(token), message)
            case fx.AdmitFetch(token, admission):
                self._inbound.take(token)
                with self._lock:
                    self._perform(self._lane.admit(admission, now_us))
            case fx.ConnectLeader(node_id, endpoint):
                with self._lock:
                    self._on_peer_events(self._peers.connect_fetch(node_id, endpoint, now_us), now_us)
            case fx.CommitTo(high_watermark):
                with self._lock:
                    self._advance(high_watermark)
            case fx.LeadershipChanged(epoch, leader_id, endpoint, is_self):
                self._listener.on_leadership(epoch, leader_id, endpoint, is_self)
            case fx.ShutdownComplete():
                self._stop(None)
            case fx.Halt(error):
                raise error

    def _append_control(self, epoch: int, records: Sequence[control.ControlRecord]) -> None:
        with self._lock:
            base, timestamp_ms = self.log.end_offset, self._clock_ms()
            batch = control.encode_batch(self._kernels, records, base, epoch, timestamp_ms)
            self.log.append_batch(
                batch, base_offset=base, next_offset=base + len(records), epoch=epoch, timestamp_ms=timestamp_ms
            )
            self.log.request_flush()

    def _respond(self, request: Request | None, message: control.Message) -> None:
        """None: the connection went away meanwhile."""
        if request is None:
            return
        with self._lock:
            if self._may_send():
                self._transport.send(request.connection, request.answer(message))

    def _answer_unparked(self) -> None:
        """Fetches that were parked when the lead ended; answered only now, after what ended it is durable."""
        unparked, self._unparked = self._unparked, []
        for each in unparked:
            frame = self._inbound.not_leader_fetch(each, self.raft.leader_id, self.raft.epoch)
            with self._lock:
                if self._may_send():
                    self._transport.send(each.connection, frame)

    # --- the lane's outputs -------------------------------------------------------------------------------------------

    def _may_send(self) -> bool:
        """Lock held. After a failed sync nothing leaves, whoever asks (lane rule 5)."""
        return not (self.stopped or self._flusher.failed or self._lane.has_failed)

    def _perform(self, outputs: list[Output]) -> None:
        """Lock held: the same critical section as the lane call that returned these."""
        for output in outputs:
            match output:
                case Send(connection, frame):
                    if self._may_send():
                        self._transport.send(connection, frame)
                case HandUp():
                    self._inbox.appendleft(output)
                case Advanced(high_watermark):
                    self._advance(high_watermark)
                case BarrierDone(barrier, high_watermark):
                    ticket = self._barriers.pop(barrier, None)
                    if ticket is not None:
                        self._passed.append((ticket, high_watermark))
                case Unparked():
                    self._unparked.append(output)

    def _advance(self, high_watermark: Offset) -> None:
        """Lock held."""
        if high_watermark > self._high_watermark:
            self._high_watermark = high_watermark
            if isinstance(self._terms, LeaderTerms):
                self._fates += self._appends.committed(high_watermark)

    def _drain_queued(self, now_us: Micros) -> None:
        """Appends that came while raft/ decided: in, or refused, in their order."""
        with self._lock:
            queued = self._appends.queued
            while queued:
                if not self.is_leader:
                    self._fates += self._appends.fail_queued(self.not_leader())
                    return
                verdict = self._append_now(queued[0], now_us)
                if verdict == AppendVerdict.FROZEN:
                    return
                first = queued.popleft()
                if verdict < 0:
                    self._appends.release(first.record_count, first.size_bytes)
                    self._fates.append(Fate(first.ticket, -1, self.not_leader()))

    def _tell(self) -> None:
        """Without the lock: tickets and listeners may call back."""
        while True:
            with self._lock:
                fates, self._fates = self._fates, []
                passed, self._passed = self._passed, []
                high_watermark, told = self._high_watermark, self._told_high_watermark
                self._told_high_watermark = high_watermark
            if not fates and not passed and high_watermark == told:
                return
            for fate in fates:
                fate.tell()
            for ticket, passed_at in passed:
                if passed_at >= 0:
                    ticket.passed(passed_at)
                else:
                    ticket.failed(self.not_leader())
            if high_watermark != told:
                self._listener.on_committed(high_watermark)
                self._door.on_committed(high_watermark)

    # --- the end ------------------------------------------------------------------------------------------------------

    def _stop(self, error: FastQuorumError | None) -> None:
        """Nothing is sent, written or acknowledged after this. Every caller that waits is told."""
        if self.stopped:
            return
        with self._lock:
            self.stopped = True
            self.error = error
            if error is not None:
                self._lane.on_flush_failed()
            if self._lane.mode is not LaneMode.CLOSED:
                self._lane.close(0)
            self._terms = None
            reason: FastQuorumError = error or self.not_leader(maybe_committed=True)
            self._fates += self._appends.fail_pending(reason)
            self._fates += self._appends.fail_queued(error or self.not_leader())
            self._passed += [(ticket, -1) for ticket in self._barriers.values()]
            self._barriers.clear()
            self._peers.close()
        self._tell()
        self._listener.on_stopped(error)


def _same_terms(a: Terms, b: Terms) -> bool:
    """High watermarks move on inside the lane; everything else makes other terms."""
    return type(a) is type(b) and a._replace(high_watermark=0) == b._replace(high_watermark=0)


