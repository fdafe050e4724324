"""A few replicas, a network that can be cut, a lane without detail: a Fetch that raft/ admits copies the log at once.

Virtual time only. Every Fetch goes through raft/, so that its judgement is what decides; records are epochs.
"""

import heapq
from collections.abc import Callable

from fastquorum.config import MS
from fastquorum.kernels.lane import FollowerSession, LeaderSession, PeerState
from fastquorum.raft import effects as fx
from fastquorum.raft import events as ev
from fastquorum.types import Micros, NodeId, Offset
from fastquorum.wire import Message
from fastquorum.wire.messages.fetch import FetchRequest, FetchResponse
from fastquorum.wire.messages.quorum import VoteRequest

from .promises import Promises
from .scenario import EPOCH_MS, START_US, Replica, replica
from .wire_messages import begin_request, end_request, endpoint, fetch_request, fetch_response, key, vote_request

DELAY_US = 2 * MS
FETCH_EVERY_US = 100 * MS
LANE_TOKEN = 1 << 40
STRANGERS_TOKEN = LANE_TOKEN + 1
STRANGER = 42


class Network:
    """Voters `ids`, and observers that only follow."""

    def __init__(self, *ids: NodeId, observers: tuple[NodeId, ...] = (), seed: int = 0) -> None:
        self.now_us: Micros = START_US
        self.nodes: dict[NodeId, Replica] = {}
        self.promises: dict[NodeId, Promises] = {}
        self.down: list[NodeId] = []
        self.cut: list[tuple[NodeId, NodeId]] = []
        """Directed: nothing passes from the first to the second."""
        self.without_pre_vote: list[NodeId] = []
        """Voters that speak Vote up to version 1, as Kafka's do up to 3.9."""
        self.leaders: dict[int, NodeId] = {}
        """The leader of each epoch that ever had one."""
        self.committed: list[int] = []
        """Epochs of the records that were ever committed."""
        self._queue: list[tuple[Micros, int, Callable[[], None]]] = []
        self._count = 0
        self._sent_count = 0
        """How often strangers have spoken."""
        self._tokens: dict[int, tuple[NodeId, fx.SendRequest]] = {}
        for node_id in (*ids, *observers):
            node = replica(node_id).voters(*ids).seeded(seed * 100 + node_id).starts()
            self.nodes[node_id] = node
            self.promises[node_id] = Promises(key(node_id))
            self._carry_out(node_id, node.effects, -1)
            self._later(FETCH_EVERY_US, lambda node_id=node_id: self._fetch(node_id))  # type: ignore[misc]

    # --- faults -------------------------------------------------------------------------------------------------------

    def kill(self, node_id: NodeId) -> None:
        """Its process is gone: whoever it can be heard by learns that its connections are, and is refused others."""
        for other in self.nodes:
            if self._passes(node_id, other):
                self._later(DELAY_US, lambda other=other: self._connected(other, node_id, False))  # type: ignore[misc]
        self.down.append(node_id)

    def refuse(self, node_id: NodeId, other: NodeId) -> None:
        """What was between these two is lost, and each is told that the other is not there."""
        self.cut += [(node_id, other), (other, node_id)]
        for one, another in self.cut[-2:]:
            self._later(DELAY_US, lambda one=one, another=another: self._connected(one, another, False))  # type: ignore[misc]

    def restart(self, node_id: NodeId) -> None:
        self.down.remove(node_id)
        self.promises[node_id].restarted()
        node = self.nodes[node_id]
        node._now_us = self.now_us
        node.restarts()
        self._carry_out(node_id, node.effects, -1)

    def isolate(self, node_id: NodeId) -> None:
        self.cut += [pair for other in self.nodes for pair in ((node_id, other), (other, node_id)) if other != node_id]

    def pester(self, interval_us: Micros, *, kinds: int = 3) -> None:
        """From now on a stranger asks every replica for its vote, or says that it leads or led, in this epoch or the
        next, again and again; and answers whoever follows it. `kinds`: of these three, so many of the first."""
        self._sent_count += 1
        for node_id, node in self.nodes.items():
            if node_id not in self.down:
                epoch = node.epoch + self._sent_count % 2
                endpoints = tuple(endpoint(STRANGER + each) for each in range(1 + self._sent_count % 7))
                request = (
                    vote_request(epoch, by=STRANGER, log=(epoch - 1, 1 << 40)),
                    begin_request(epoch, by=STRANGER, endpoints=endpoints),
                    end_request(epoch, by=STRANGER),
                )[self._sent_count % kinds]
                self.promises[node_id].request = request
                self._step(node_id, ev.RequestReceived(STRANGERS_TOKEN, 2, request, STRANGER, 1, EPOCH_MS))
        self._later(interval_us, lambda: self.pester(interval_us, kinds=kinds))

    def heal(self) -> None:
        self.cut = []

    # --- what goes on -------------------------------------------------------------------------------------------------

    def append(self, count: int = 1) -> None:
        """The leader's users append."""
        leader = self.leader
        assert leader is not None, "nobody leads"
        self.nodes[leader].fake_log.epochs += [self.nodes[leader].epoch] * count

    @property
    def leader(self) -> NodeId | None:
        """The leader of the highest epoch among those that are up and believe to lead."""
        leading = [(n.epoch, i) for i, n in self.nodes.items() if n.role == "leader" and i not in self.down]
        return max(leading)[1] if leading else None

    def run(self, ms: int) -> None:
        end_us = self.now_us + ms * MS
        while self._advance(end_us):
            pass
        self.now_us = end_us

    def run_until_led(self, ms: int = 30_000, *, by_other_than: NodeId | None = None) -> NodeId:
        """A leader whose own epoch's first record is committed."""
        end_us = self.now_us + ms * MS
        while self._advance(end_us):
            leader = self.leader
            if leader is not None and leader != by_other_than:
                session = self.nodes[leader].raft.lane_session()
                if isinstance(session, LeaderSession) and len(self.committed) > session.epoch_start:
                    return leader
        raise AssertionError(f"nobody leads after {ms} ms: {[str(n.role) for n in self.nodes.values()]}")

    def _advance(self, end_us: Micros) -> bool:
        due = [(n.raft.deadline_us, i) for i, n in self.nodes.items() if i not in self.down and n.raft.deadline_us >= 0]
        timer_us, node_id = min(due, default=(end_us + 1, -1))
        if self._queue and self._queue[0][0] <= min(timer_us, end_us):
            self.now_us, _, act = heapq.heappop(self._queue)
            act()
            return True
        if timer_us > end_us:
            return False
        self.now_us = max(timer_us, self.now_us)
        self._step(node_id, ev.TimerFired())
        return True

    def _later(self, delay_us: Micros, act: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._queue, (self.now_us + delay_us, self._count, act))

    def _passes(self, source: NodeId, destination: NodeId) -> bool:
        is_there = source in self.nodes and destination in self.nodes
        return (
            is_there
            and destination not in self.down
            and source not in self.down
            and (source, destination) not in self.cut
        )

    def _step(self, node_id: NodeId, event: ev.Event) -> list[fx.Effect]:
        node = self.nodes[node_id]
        node._now_us = self.now_us
        known = max(node.raft.high_watermark, node.lane.high_watermark)
        ordered = node.step(event)
        self._carry_out(node_id, ordered, known)
        return ordered

    def _carry_out(self, node_id: NodeId, ordered: list[fx.Effect], high_watermark: Offset) -> None:
        node = self.nodes[node_id]
        self.promises[node_id].watch(node, ordered, high_watermark)
        for effect in ordered:
            match effect:
                case fx.AppendControl(epoch):
                    assert self.leaders.setdefault(epoch, node_id) == node_id, f"two leaders in epoch {epoch}"
                    assert node.fake_log.epochs[: len(self.committed)] == self.committed, (
                        "a leader lacks committed records"
                    )
                case fx.SendRequest():
                    self._later(DELAY_US, lambda effect=effect: self._deliver(node_id, effect))  # type: ignore[misc]
                case fx.ConnectLeader(leader):
                    up = self._passes(node_id, leader) and self._passes(leader, node_id)
                    self._later(DELAY_US, lambda leader=leader, up=up: self._connected(node_id, leader, up))  # type: ignore[misc]
                case fx.SendResponse(token, message) if token in self._tokens:
                    self._answer(node_id, token, message)
                case fx.Halt(error):
                    raise error
                case _:
                    pass

    # --- raft's own requests ------------------------------------------------------------------------------------------

    def _deliver(self, source: NodeId, request: fx.SendRequest) -> None:
        destination = request.destination
        if not self._passes(source, destination):
            if source not in self.down:
                self._step(source, ev.RequestFailed(destination, request.correlation_id))
            return
        if destination in self.without_pre_vote and _is_pre_vote(request.message):
            self._step(source, ev.RequestFailed(destination, request.correlation_id, unsupported=True))
            return
        self._count += 1
        self._tokens[self._count] = (source, request)
        self.promises[destination].request = request.message
        version = type(request.message).__wire__.versions.last
        self._step(destination, ev.RequestReceived(self._count, version, request.message, source, 1, EPOCH_MS))

    def _answer(self, node_id: NodeId, token: int, message: Message) -> None:
        source, request = self._tokens.pop(token)

        def arrive() -> None:
            if source in self.down:
                return
            if not self._passes(node_id, source):
                self._step(source, ev.RequestFailed(node_id, request.correlation_id))
            elif isinstance(message, FetchResponse):
                self._step(source, ev.FetchResponseReceived(node_id, request.correlation_id, message, None))
            else:
                self._step(source, ev.ResponseReceived(node_id, request.correlation_id, message))

        self._later(DELAY_US, arrive)

    # --- the lane -----------------------------------------------------------------------------------------------------

    def _connected(self, node_id: NodeId, leader: NodeId, up: bool) -> None:
        if node_id not in self.down:
            self._step(node_id, ev.LeaderConnection(leader, up))

    def _fetch(self, node_id: NodeId) -> None:
        """One round of the follower's lane: ask, and take the whole log over if raft/ on the other side admits it."""
        self._later(FETCH_EVERY_US, lambda: self._fetch(node_id))
        node = self.nodes[node_id]
        session = node.raft.lane_session() if node_id not in self.down else None
        if not isinstance(session, FollowerSession):
            return
        leader_id = session.leader_id
        if leader_id >= STRANGER:
            self._step(
                node_id, ev.FetchResponseReceived(leader_id, -1, fetch_response(node.epoch, leader=leader_id), None)
            )
            return
        if not (self._passes(node_id, leader_id) and self._passes(leader_id, node_id)):
            if node.lane.fetch_sent_us < 0:
                node.lane.fetch_sent_us = self.now_us
            return
        node.lane.fetch_sent_us = -1
        log = node.fake_log
        fetch = fetch_request(session.epoch, by=node_id, at=log.end_offset, last_epoch=log.last_epoch)
        ordered = self._hand_up(leader_id, fetch, node_id)
        for effect in ordered:
            if isinstance(effect, fx.AdmitFetch) and self.nodes[leader_id].role == "leader":
                self._replicate(self.nodes[leader_id], node, effect)
            elif isinstance(effect, fx.SendResponse) and isinstance(effect.message, FetchResponse):
                self._step(node_id, ev.FetchResponseReceived(leader_id, -1, effect.message, None))

    def _hand_up(self, leader_id: NodeId, fetch: FetchRequest, node_id: NodeId) -> list[fx.Effect]:
        return self._step(leader_id, ev.RequestReceived(LANE_TOKEN, 18, fetch, node_id, 1, EPOCH_MS))

    def _replicate(self, leader: Replica, follower: Replica, admitted: fx.AdmitFetch) -> None:
        admission = admitted.admission
        leader.lane.peers[admission.peer] = PeerState(
            admission.peer, admission.is_voter, 1, admission.fetch_offset, self.now_us, self.now_us, self.now_us
        )
        self._commit(leader)
        follower.fake_log.epochs[:] = leader.fake_log.epochs
        follower.lane.leader_contact_us = self.now_us
        follower.lane.high_watermark = max(
            follower.lane.high_watermark, min(leader.lane.high_watermark, len(follower.fake_log.epochs))
        )

    def _commit(self, leader: Replica) -> None:
        """The lane's rule: a majority has it, and a record of this epoch with it."""
        session = leader.raft.lane_session()
        assert isinstance(session, LeaderSession)
        peers = leader.lane.peers
        ends = [
            leader.fake_log.end_offset if each.id == leader.id else peers[each].end_offset if each in peers else -1
            for each in session.voters
        ]
        reached = sorted(ends, reverse=True)[len(ends) // 2]
        if reached > max(session.epoch_start, leader.lane.high_watermark):
            leader.lane.high_watermark = reached
            epochs = leader.fake_log.epochs[:reached]
            shorter = min(len(epochs), len(self.committed))
            assert epochs[:shorter] == self.committed[:shorter], "committed records differ"
            if len(epochs) > len(self.committed):
                self.committed = epochs


def _is_pre_vote(message: Message) -> bool:
    return isinstance(message, VoteRequest) and message.topics[0].partitions[0].pre_vote
