"""One replica: raft/ over one log, one quorum state, its connections and its lane. Sans-IO.

The replica's thread calls the `on_*` methods, `work` and `request`; callers on any thread use `shell` (append, barrier)
and `reader`. raft/ steps only while the lane is frozen or closed (lane rule 2):

    freeze -> state -> effects = raft.step(event, state) -> carry them out, in order -> open, close or resume the lane

Must not know election rules, nor what records mean. Source: `kernels/lane.py` (the seven rules); KIP-595.
"""

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from fastquorum.config import MS
from fastquorum.errors import CorruptionError, FastQuorumError, NotLeader, WireError
from fastquorum.kernels import Kernels
from fastquorum.kernels.lane import Connection
from fastquorum.node.causes import leadership_cause, reason_of
from fastquorum.node.clients.server import ClientApis
from fastquorum.node.explaining import explain
from fastquorum.node.lane.port import Shell
from fastquorum.node.lane.sections import Critical, FailureStops
from fastquorum.node.metadata.controller import MetadataController
from fastquorum.node.metadata.gc_pause import CollectorAtRest
from fastquorum.node.network.connections import Connections
from fastquorum.node.network.fetched import Fetched
from fastquorum.node.network.inbox import Forwarded, Inbox, WaitingFrame
from fastquorum.node.network.peers import Peers
from fastquorum.node.network.reachability import Reachability
from fastquorum.node.network.request_reader import RequestReader
from fastquorum.node.notices import Notices
from fastquorum.node.ports import ReplicaListener, Transport, WallClock
from fastquorum.node.records.control_appends import ControlAppends
from fastquorum.node.records.log_reader import LogReader
from fastquorum.node.records.no_ops import NoOps
from fastquorum.node.view import ReplicaView
from fastquorum.raft import effects as fx
from fastquorum.raft import events as ev
from fastquorum.raft.raft import Raft
from fastquorum.storage.ports import StateStore
from fastquorum.types import NO_NODE, UNKNOWN_OFFSET, Micros, NodeId, Offset, OffsetAndEpoch
from fastquorum.wire import Message
from fastquorum.wire.messages.quorum_admin import DescribeQuorumResponse

ROOM_LOOK_US: Final = 250 * MS
"""A log that is full does its upkeep, in which it looks for room, at least as often."""


class Services(NamedTuple):
    """What serves others over one replica."""

    clients: ClientApis
    controller: MetadataController | None
    """The controller of a metadata log; None if none writes this log."""


class Replica:
    """Interprets raft's effects. See the module for who may call what."""

    def __init__(
        self,
        *,
        raft: Raft,
        shell: Shell,
        kernels: Kernels,
        states: StateStore,
        peers: Peers,
        reader: RequestReader,
        serve: Callable[[ReplicaView], Services],
        transport: Transport,
        listener: ReplicaListener,
        clock_ms: WallClock,
        first_values: tuple[bytes, ...] = (),
        no_ops: NoOps | None = None,
    ) -> None:
        """`serve` makes what serves others over this replica. `first_values`: a log without records begins with these,
        in one batch. `no_ops`: of a metadata log that no controller writes."""
        self.raft = raft
        self.shell = shell
        self.log = shell.log
        self.reader = LogReader(shell.log, shell.lock, kernels)
        self._lock = shell.lock
        self._critical = Critical(shell)
        self._states = states
        self._listener = listener
        self._notices = Notices(listener)
        self._control_appends = ControlAppends(kernels, shell.log, clock_ms, first_values)
        self._fetched = Fetched(kernels, shell.log, shell.lock)
        self._inbox = Inbox()
        self.connections = Connections(
            shell=shell,
            peers=peers,
            reader=reader,
            inbox=self._inbox,
            fetched=self._fetched,
            transport=transport,
            clock_ms=clock_ms,
            on_drained=lambda connection: self._clients.on_drained(connection),
            on_gone=lambda connection: self._clients.forget(connection),
        )
        self._no_ops = no_ops
        self._leaderships: list[fx.LeadershipChanged] = []
        self._stopped = False
        self.reachability = Reachability(self.connections, listener, raft.endpoint_of)
        self._is_full = False
        """The log's file system, as raft/ and the listener know."""
        self._room_at_us: Micros = -1
        """When to look whether it has room again."""
        shell.not_leader = self.not_leader
        self._clients, self._controller = serve(self)

    # --- where things stand -------------------------------------------------------------------------------------------

    @property
    def high_watermark(self) -> Offset:
        """Exclusive end of the committed prefix as this replica knows it; -1 unknown."""
        return self.shell.high_watermark

    @property
    def is_leader(self) -> bool:
        """True while appends are accepted here."""
        return self.shell.is_leader

    @property
    def controller(self) -> MetadataController | None:
        """Its part in the controller, if the log has one."""
        return self._controller

    @property
    def stopped(self) -> bool:
        return self._stopped

    @property
    def error(self) -> FastQuorumError | None:
        """What stopped it; None while it runs and after a graceful stop."""
        return self.shell.error

    def not_leader(self, *, maybe_committed: bool = False) -> NotLeader:
        """The error for a request that only the leader serves, naming the leader."""
        leader = self.raft.leader_id
        if leader == self.raft.key.id and (self._is_full or not self.is_leader):
            leader = NO_NODE
        hindrance = ""
        if self._is_full:
            hindrance = self.log.hindrance
        elif leader == NO_NODE:
            hindrance = self.reachability.text()
        return NotLeader(leader, self.raft.epoch, self.raft.endpoint_of(leader), maybe_committed, hindrance)

    @property
    def deadline_us(self) -> Micros:
        """When `on_tick` is next due; -1 never."""
        due = [each for each in (self.shell.deadline_us, self.raft.deadline_us, self._clients.deadline_us) if each >= 0]
        if self._no_ops is not None and self._no_ops.deadline_us >= 0:
            due.append(self._no_ops.deadline_us)
        if self._controller is not None and self._controller.deadline_us >= 0:
            due.append(self._controller.deadline_us)
        if self._room_at_us >= 0:
            due.append(self._room_at_us)
        return min(due, default=-1)

    # --- what happens to it -------------------------------------------------------------------------------------------

    def start(self, now_us: Micros) -> None:
        """Begin: timers start, a sole voter elects itself."""
        if self.log.is_full:
            self._note_room(now_us)
        self.request(ev.Started(), now_us)

    def request(self, event: ev.Event, now_us: Micros) -> None:
        """Have raft/ decide about it: also what the embedding program asks for (resign, shut down, a stalled disk)."""
        self._inbox.append(event)
        self.work(now_us)

    def on_connected(self, connection: Connection, now_us: Micros) -> None:
        self.connections.on_connected(connection, now_us)

    def on_disconnected(self, connection: Connection, now_us: Micros) -> None:
        self.connections.on_disconnected(connection, now_us)
        self.reachability.look(now_us)
        self.work(now_us)

    def on_drained(self, connection: Connection, now_us: Micros) -> None:
        """Go on with a connection whose outbox is empty, after `Transport.needs_drain`."""
        self.connections.on_drained(connection)
        self.work(now_us)

    def on_frame(self, connection: Connection, frame: bytes, now_us: Micros) -> None:
        """One frame, either way. The steady state ends here; anything else is decided in the order of arrival."""
        self.on_frames(((connection, frame),), now_us)

    def on_frames(self, frames: Iterable[tuple[Connection, bytes]], now_us: Micros) -> None:
        """Frames that came together, in their order."""
        if self._stopped:
            return
        with FailureStops(self._stop, now_us), self._critical:
            for connection, frame in frames:
                self.connections.on_frame(connection, frame, now_us)
        self.work(now_us)

    def on_flush(self, token: int, errno_code: int, now_us: Micros) -> None:
        """The flusher's report. A failure is final (README, decision 3)."""
        if self._stopped:
            return
        with FailureStops(self._stop, now_us), self._critical:
            self.shell.on_flush(token, errno_code, now_us)
        self._tell(now_us)

    def on_tick(self, now_us: Micros) -> None:
        """Timers: parked Fetches, raft's deadline, the log's upkeep, the waits of client APIs."""
        if self._stopped:
            return
        with FailureStops(self._stop, now_us):
            with self._critical:
                self.shell.on_tick(now_us)
                self.shell.maintain(now_us)
            if 0 <= self._room_at_us <= now_us:
                self._room_at_us = now_us + ROOM_LOOK_US
            self.reachability.look(now_us)
            self._clients.on_tick(now_us)
            if self._no_ops is not None:
                self._no_ops.on_tick(now_us)
            if self._controller is not None:
                self._controller.on_tick(now_us)
            self._tell_left_out(now_us)
            if 0 <= self.raft.deadline_us <= now_us and not self._is_renewed(now_us):
                self._inbox.append(ev.TimerFired())
        self.work(now_us)

    def work(self, now_us: Micros) -> None:
        """Have everything that waits decided, then tell those who wait outside."""
        with FailureStops(self._stop, now_us):
            if self.shell.error is not None and not self._stopped:
                self._stop(self.shell.error, now_us)
            while not self._stopped:
                if self.shell.handed_up:
                    self._work_one(now_us)  # the lane stands until it is decided
                elif self.log.is_full != self._is_full:
                    self._note_room(now_us)
                    self._step(ev.RoomChanged(), now_us)
                elif self._inbox:
                    self._work_one(now_us)
                else:
                    with self._lock:
                        self.shell.drain(now_us)
                    if self.log.is_full == self._is_full:
                        break
            if not self._stopped and not self.is_leader:
                self._clients.not_leading()
            if not self._stopped and self._controller is not None:
                self._controller.on_turn(now_us)
        self._tell(now_us)

    def _note_room(self, now_us: Micros) -> None:
        """The log can take no more, or it can again."""
        self._is_full = self.log.is_full
        self._room_at_us = now_us + ROOM_LOOK_US if self._is_full else -1
        with self._lock:
            self.shell.refuse_appends(self._is_full)
        self._listener.on_disk_full(self.log.hindrance)

    def _is_renewed(self, now_us: Micros) -> bool:
        """Has raft/ only set its next deadline? Then the lane need not stop for it, nor for this thread, which may be
        kept from its interpreter. What waits to be decided comes first, and a lane that stands is to go on after it."""
        if not self.is_leader or self.shell.handed_up or self._inbox or self.shell.is_standing:
            return False
        with self._lock:
            state = self.shell.look(now_us)
        return state is not None and self.raft.renew(state, now_us)

    # --- one thing after another --------------------------------------------------------------------------------------

    def _work_one(self, now_us: Micros) -> None:
        if self.shell.handed_up:
            connection, frame = self.shell.handed_up.popleft()
            if self.connections.set_aside(WaitingFrame(connection, frame, is_outgoing=False)):
                with self._lock:
                    self.shell.resume(now_us)
            elif not self._offer_to_clients(connection, frame, now_us):
                self._step_frame(connection, frame, now_us)
            return
        item = self._inbox.take()
        if isinstance(item, Forwarded):
            self._inbox.deliver(item)
            return
        if not isinstance(item, WaitingFrame):
            self.reachability.on_event(item, now_us)
            self._step(item, now_us)
            return
        if self.connections.is_gone(item) or self.connections.set_aside(item):
            return
        if self._offer_to_clients(item.connection, item.frame, now_us):
            return
        if self.shell.is_open:
            with self._lock:
                taken = self.shell.offer(item.connection, item.frame, now_us)
            if taken:
                return
        self._step_frame(item.connection, item.frame, now_us)

    def _offer_to_clients(self, connection: Connection, frame: bytes, now_us: Micros) -> bool:
        """False if the frame is raft's. A client's request may come on a replica's connection, too: then the lane
        handed it up."""
        try:
            if self.connections.is_outgoing(connection):
                return False
            with CollectorAtRest():  # what many things are asked of is made, and gone again, all together
                request = self.connections.clients_request(connection, frame, self._clients.passes_on)
                if request is None:
                    return False
                self._clients.on_request(request, now_us)
        except WireError:
            if not self.connections.reply_to_handshake(connection, frame):
                self.connections.hang_up(connection, now_us)
                return True
        with self._lock:
            self.shell.resume(now_us)
        return True

    def _step_frame(self, connection: Connection, frame: bytes, now_us: Micros) -> None:
        """A frame that is raft's. One that breaks the protocol ends its connection and has no other effect."""
        try:
            event = self.connections.read(connection, frame, self.raft.epoch)
        except (WireError, CorruptionError) as error:  # of the frame: nothing was read from the disk
            if self.connections.is_outgoing(connection):
                self._notices.on_refused_answer(self.connections.node_of(connection), error, now_us)
            self.connections.hang_up(connection, now_us)
            return
        self._decide(event, now_us)

    def _decide(self, event: ev.RequestReceived | ev.FetchResponseReceived, now_us: Micros) -> None:
        """Answer what raft/ need not decide, while the lane goes on: however much clients ask, voters' Fetches do not
        wait for it. Else step."""
        effects: list[fx.Effect] = []
        if isinstance(event, ev.RequestReceived) and self.is_leader:
            with self._lock:
                state = self.shell.look(now_us)
            effects = self.raft.answer(event, state, now_us) if state is not None else []
        if not effects:
            self._step(event, now_us)
            return
        for effect in effects:
            self._carry_out(effect, now_us)
        with self._lock:
            self.shell.resume(now_us)

    def ask_raft(
        self, token: ev.Token, message: Message, version: int, on_response: Callable[[Message], None], now_us: Micros
    ) -> None:
        """Have raft/ answer a request that came inside the one with this token."""
        self._decide(self.connections.unwrapped(token, message, version, on_response), now_us)

    def raise_kraft_version(self, kraft_version: int, end_offset: Offset, now_us: Micros) -> Offset:
        """The controller's wish, on the replica's thread: where the log ends behind what raises it; -1 if it cannot be
        raised now, or the log does not end at `end_offset` with all that the controller has appended."""
        raft = self.raft
        with self._lock:
            self.shell.resume(now_us)
            self.shell.drain(now_us)
            self.shell.freeze(now_us)
            records = raft.raising_records(kraft_version)
            has_room = bool(records) and self._control_appends.make_room(records, raft.epoch)
            if not has_room:
                self.shell.resume(now_us)
        if has_room:
            self._step(ev.KRaftVersionRaised(kraft_version, raft.epoch, end_offset), now_us)
        is_raised = has_room and raft.describe().kraft_version == kraft_version
        return end_offset + len(records) if is_raised else UNKNOWN_OFFSET

    def _step(self, event: ev.Event, now_us: Micros) -> None:
        with self._lock:
            state = self.shell.freeze(now_us)
        for effect in self.raft.step(event, state, now_us):
            self._carry_out(effect, now_us)
            if self._stopped:
                return
        self._fetched.forget()
        with self._lock:
            self.shell.settle(self.raft.lane_session(), now_us)
        # Fetches that were parked when a lead ended: answered only now, after what ended it is durable. While it lasts
        # somebody else has come in the same name.
        high_watermark = self.high_watermark if self.is_leader else UNKNOWN_OFFSET
        unparked, self.shell.unparked = self.shell.unparked, []
        for each in unparked:
            leader_id = self.raft.leader_id
            self.connections.reply_to_unparked(
                each, high_watermark, leader_id, self.raft.epoch, self.raft.endpoint_of(leader_id)
            )
        # Only now does a new leader's lane take appends, which is what its users will try next.
        leaderships, self._leaderships = self._leaderships, []
        for now in leaderships:
            reason = reason_of(now.causes)
            self._listener.on_leadership(now.epoch, now.leader_id, now.endpoint, now.is_self, reason)

    def _carry_out(self, effect: fx.Effect, now_us: Micros) -> None:
        match effect:
            case fx.PersistElection(state):
                self._states.save(state)
            case fx.CloseLane():
                with self._lock:
                    self.shell.close(now_us)
            case fx.AppendControl(epoch, records):
                with self._lock:
                    self._control_appends.append(records, epoch)
            case fx.AppendSpan(span):
                kept = self._fetched.span(span.handle)
                with self._lock:
                    self.log.append_scanned(kept.data, kept.scan)
                    self.log.request_flush()
                    if not self.shell.is_open:
                        self.shell.progress.fetched_without_session(kept.scan.next_offset - kept.scan.first_offset)
            case fx.TruncateLog(end_offset):
                with self._lock:
                    self.log.truncate_to(end_offset)
            case fx.WriteSnapshotPart(snapshot, position, data):
                self.log.snapshots.write_part(snapshot, position, data)
            case fx.DropSnapshotPart():
                self.log.snapshots.drop_part()
            case fx.InstallSnapshot(snapshot):
                # Next of all: until raft/ knows, nothing else may be decided.
                self._inbox.put_first(self._install(snapshot))
            case fx.SendSnapshotPart(token, snapshot, position, bytes_max, response):
                part = response.topics[0].partitions[0]
                part.unaligned_records = self.log.snapshots.read(snapshot, position, bytes_max)
                self.connections.respond(token, response)
            case fx.SendRequest(destination, endpoint, correlation_id, message):
                self.connections.request(destination, endpoint, correlation_id, message, now_us)
            case fx.SendResponse(token, message):
                if isinstance(message, DescribeQuorumResponse):
                    explain(message, self.reachability.text(), leadership_cause(self.raft.latest_causes))
                self.connections.respond(token, message)
            case fx.AdmitFetch(token, admission):
                # None: the connection went away while raft/ decided.
                if self.connections.leave_to_lane(token):
                    with self._lock:
                        self.shell.admit(admission, now_us)
                        self.connections.admitted(admission)
            case fx.ConnectLeader(node_id, endpoint):
                self.connections.connect_leader(node_id, endpoint, now_us)
            case fx.CommitTo(high_watermark):
                with self._lock:
                    self.shell.advance(high_watermark)
            case fx.LeadershipChanged():
                self._leaderships.append(effect)
            case fx.Notice(event, about, sentence):
                self._notices.give(event, about, sentence, now_us)
            case fx.ShutdownComplete():
                self._stop(None, now_us)
            case fx.Halt(error):
                raise error

    def _install(self, snapshot: OffsetAndEpoch) -> ev.SnapshotInstalled:
        """The log begins anew behind it, unless it is damaged."""
        try:
            state = self.log.snapshots.finish_part(snapshot)
        except CorruptionError:
            return ev.SnapshotInstalled(snapshot, is_good=False)
        with self._lock:
            self.log.install_snapshot(snapshot)
        return ev.SnapshotInstalled(snapshot, True, state.voters, state.kraft_version)

    # --- the end ------------------------------------------------------------------------------------------------------

    def _tell(self, now_us: Micros) -> None:
        def on_committed(high_watermark: Offset) -> None:
            self._listener.on_committed(high_watermark)
            self._clients.on_committed(now_us)
            if self._controller is not None and not self._stopped:
                self._controller.on_committed(now_us)

        with FailureStops(self._stop, now_us):
            self.shell.tell(on_committed, self._watches_commits)

    def _watches_commits(self) -> bool:
        return self._controller is not None or self._clients.watches_commits or self._listener.watches_commits

    def _tell_left_out(self, now_us: Micros) -> None:
        left_out = self.log.snapshots.take_left_out()
        if left_out:
            why = "; ".join(str(each) for each in left_out)
            what = "a snapshot cannot be read, and is neither counted nor served: this node goes on with the others"
            sentence = f"{what}; move it away, or leave it to retention ({why})"
            self.notice("snapshot_left_out", self.raft.key.id, sentence, now_us)

    def notice(self, event: str, about: NodeId, sentence: str, now_us: Micros) -> None:
        """Have whoever runs this node told, once a minute at most."""
        self._notices.give(event, about, sentence, now_us)

    def halt(self, error: FastQuorumError | None, now_us: Micros) -> None:
        """End at once, without a word to the peers: the embedding program waited long enough, or something broke."""
        self._stop(error, now_us)

    def _stop(self, error: FastQuorumError | None, now_us: Micros) -> None:
        """Nothing is sent, written or acknowledged after this. Every caller that waits is told."""
        if self._stopped:
            return
        self._stopped = True
        with self._lock:
            self.log.note_committed(self.high_watermark)
            self.shell.stop(error, now_us)
            self.connections.close()
        self._tell(now_us)
        self._listener.on_stopped(self.error)
