"""A replica's connections: what comes on them is sorted, what goes out on them is handed to the lane's lock. Sans-IO.

A frame goes straight to the lane if nothing waits before it, else into the inbox; a connection's end is told to
everybody who keeps something of it. Belongs to the replica's thread. Must not know what is decided about a frame.
"""

from collections import deque
from collections.abc import Mapping, Sized
from typing import Protocol

from fastquorum.errors import WireError
from fastquorum.kernels.lane import NO_CONNECTION, Connection, FetchAdmission
from fastquorum.node.lane.peer_events import FetchFrame, FetchLink, PeerEvent
from fastquorum.node.lane.port import Shell
from fastquorum.node.network.answer_order import AnswerOrder
from fastquorum.node.network.fetched import Fetched
from fastquorum.node.network.inbound import Inbound, Request
from fastquorum.node.network.inbox import Inbox, Waiting
from fastquorum.node.network.links import Purpose
from fastquorum.node.network.peers import Peers
from fastquorum.node.ports import Transport, Unreachable, WallClock
from fastquorum.raft import events as ev
from fastquorum.types import Endpoint, Epoch, Micros, NodeId
from fastquorum.wire import Message


class _Owed:
    """How many frames came on each accepted connection, and how many of them are answered."""

    def __init__(self) -> None:
        self._counts: dict[Connection, tuple[int, int]] = {}

    def received(self, connection: Connection) -> None:
        received, answered = self._counts.get(connection, (0, 0))
        self._counts[connection] = received + 1, answered

    def answered(self, connection: Connection) -> int:
        """How many came, if all of them are answered now; else 0."""
        received, answered = self._counts.get(connection, (0, -1))
        if answered < 0:
            return 0
        self._counts[connection] = received, answered + 1
        return received if answered + 1 == received else 0

    def owes(self, connection: Connection) -> bool:
        """A frame that came on it is not answered yet."""
        received, answered = self._counts.get(connection, (0, 0))
        return received != answered

    def __contains__(self, connection: Connection) -> bool:
        """A frame came on it, and it is not forgotten."""
        return connection in self._counts

    def forget(self, connection: Connection) -> None:
        self._counts.pop(connection, None)


class Clients(Protocol):
    """Who answers clients' requests, and hears what becomes of their connections."""

    def answer(self, request: Request, message: Message | None) -> None:
        """Answer in the order of the connection's requests; None where none is wanted."""

    def on_drained(self, connection: Connection) -> None:
        """More may be made for it."""

    def forget(self, connection: Connection) -> None:
        """It is gone."""


class Connections:
    """Those that this replica made, which `peers` has, and those that others made to it, which `inbound` has."""

    def __init__(
        self,
        *,
        shell: Shell,
        peers: Peers,
        inbound: Inbound,
        inbox: Inbox,
        fetched: Fetched,
        order: AnswerOrder,
        clients: Clients,
        transport: Transport,
        clock_ms: WallClock,
    ) -> None:
        self._shell = shell
        self._lock = shell.lock
        self._peers = peers
        self._inbound = inbound
        self._inbox = inbox
        self._fetched = fetched
        self._order = order
        self._clients = clients
        self._transport = transport
        self._clock_ms = clock_ms
        self._owed = _Owed()
        self._voters: set[Connection] = set()
        self._held_back: set[Connection] = set()
        """Those for which nothing more is made until their clients read, or are answered what came first."""
        self._set_aside: dict[Connection, deque[Waiting]] = {}
        """What came on them meanwhile, in its order."""

    def is_outgoing(self, connection: Connection) -> bool:
        """This replica made it."""
        return self._peers.owns(connection)

    def is_for_fetches(self, connection: Connection) -> bool:
        """This replica made it for its lane's Fetches."""
        return self._peers.owns(connection) and self._peers.purpose_of(connection) is Purpose.FETCH

    def node_of(self, connection: Connection) -> NodeId:
        """Whom an outgoing one leads to."""
        return self._peers.node_of(connection)

    def owes(self, connection: Connection) -> bool:
        """A request that came on it has no answer yet."""
        return self._owed.owes(connection)

    def is_gone(self, item: Waiting) -> bool:
        """The connection of a frame that waited was given up meanwhile: nobody would hear an answer."""
        outgoing = self._peers.owns(item.connection)
        return not outgoing if item.is_outgoing else outgoing or item.connection not in self._owed

    def unreachable(self) -> list[Unreachable]:
        """Nodes of the quorum that nothing can be asked of, and why."""
        with self._lock:
            return self._peers.unreachable()

    # --- what comes ---------------------------------------------------------------------------------------------------

    def on_connected(self, connection: Connection, now_us: Micros) -> None:
        with self._lock:
            self._peers.on_connected(connection, now_us)

    def on_disconnected(self, connection: Connection, now_us: Micros) -> None:
        with self._lock:
            self._forget(connection, now_us)

    def on_frame(self, connection: Connection, frame: bytes, now_us: Micros) -> None:
        """Lock held. One frame, either way."""
        if self._peers.owns(connection):
            self._on_peer_events(self._peers.on_frame(connection, frame, now_us), now_us)
        elif self._owed.owes(connection) or not self._shell.answer_beat(connection, frame, now_us):
            self._owed.received(connection)
            self._offer(connection, frame, is_outgoing=False, now_us=now_us)

    def _offer(self, connection: Connection, frame: bytes, *, is_outgoing: bool, now_us: Micros) -> None:
        """Lock held. Straight to the lane if nothing waits before it; else in turn, through the inbox."""
        nothing_waits = not self._inbox and not self._shell.handed_up and connection not in self._set_aside
        may_offer = nothing_waits and self._shell.is_open and (is_outgoing or self._inbound.is_replica(connection))
        if not may_offer or not self._shell.offer(connection, frame, now_us):
            if is_outgoing:
                self._shell.fetch_answered(frame)
            self._inbox.append(Waiting(connection, frame, is_outgoing))

    def _on_peer_events(self, events: list[PeerEvent], now_us: Micros) -> None:
        """Lock held."""
        for event in events:
            match event:
                case FetchLink(node_id, connection, _):
                    self._shell.set_fetch_link(event, now_us)
                    self._inbox.append(ev.LeaderConnection(node_id, connection != NO_CONNECTION))
                case FetchFrame(connection, frame):
                    self._offer(connection, frame, is_outgoing=True, now_us=now_us)
                case _:
                    self._inbox.add_answer(event)

    def read(self, connection: Connection, frame: bytes, epoch: Epoch) -> ev.RequestReceived | ev.FetchResponseReceived:
        """A frame as raft/ may see it, in raft's epoch. Raises WireError, CorruptionError: what is wrong is the
        frame."""
        if self._peers.owns(connection):
            # The lane's Fetch was answered with something unusual.
            answer = self._peers.fetch_answer(connection, frame)
            return self._fetched.read(self._peers.node_of(connection), answer, epoch)
        request = self._inbound.decode(connection, frame)
        if not self._order.add(request):
            raise WireError("more requests than one connection may have under way")
        header = request.header
        return ev.RequestReceived(
            request.token,
            header.request_api_version,
            request.message,
            connection,
            header.correlation_id,
            self._clock_ms(),
        )

    def unwrapped(self, token: int, message: Message, version: int) -> ev.RequestReceived:
        """A request that came inside another one, as raft/ may see it."""
        return ev.RequestReceived(token, version, message, NO_CONNECTION, 0, self._clock_ms())

    def admitted(self, admission: FetchAdmission) -> None:
        """Lock held. raft/ knows who fetches on it."""
        if admission.is_voter:
            self._voters.add(admission.connection)
            self._transport.favour(admission.connection)

    def is_voters(self, connection: Connection) -> bool:
        """A voter fetches on it, or this replica made it."""
        return connection in self._voters or self._peers.owns(connection)

    def is_consumers(self, connection: Connection) -> bool:
        """A consumer's Fetch came on it, and no replica's."""
        return self._inbound.is_consumer(connection)

    # --- those whose clients do not read ------------------------------------------------------------------------------

    def must_wait(self, connection: Connection, *, is_next: bool) -> bool:
        """Is so much kept for it that nothing more may be made? If so `Clients.on_drained` follows. `is_next`: it is
        the answer for which all others wait."""
        with self._lock:
            must_wait = self._transport.needs_drain(connection)
        if must_wait or (not is_next and self._order.holds_too_much(connection)):
            self._held_back.add(connection)
            return True
        return False

    def is_crowded(self) -> bool:
        """Is much kept for all of them? Then answers are short."""
        with self._lock:
            return self._transport.is_crowded()

    def set_aside(self, item: Waiting) -> bool:
        """A frame that came: True if it has to wait, for this or behind others of its connection."""
        waiting = self._set_aside.get(item.connection)
        if waiting is not None:
            waiting.append(item)
        elif item.is_outgoing or not self.must_wait(item.connection, is_next=False):
            return False
        else:
            self._set_aside[item.connection] = deque([item])
        return True

    @property
    def frames_set_aside(self) -> Mapping[Connection, Sized]:
        """By connection: the last that came on each."""
        return self._set_aside

    def on_drained(self, connection: Connection) -> None:
        """More may be made for it. What was set aside is looked at after what waits now of others."""
        if connection in self._held_back:
            self._held_back.discard(connection)
            self._inbox.put_back(self._set_aside.pop(connection, ()))
            self._clients.on_drained(connection)

    # --- what goes out ------------------------------------------------------------------------------------------------

    def request(
        self,
        node_id: NodeId,
        endpoint: Endpoint,
        correlation_id: int,
        message: Message,
        now_us: Micros,
        purpose: Purpose = Purpose.REQUEST,
    ) -> None:
        """Ask another node; its answer, or that there will be none, comes into the inbox."""
        with self._lock:
            events = self._peers.request(node_id, endpoint, correlation_id, message, now_us, purpose)
            self._on_peer_events(events, now_us)

    def hang_up_all(self, purpose: Purpose) -> None:
        """Those that this replica made for this are not needed any more."""
        with self._lock:
            self._peers.hang_up(purpose)

    def connect_leader(self, node_id: NodeId, endpoint: Endpoint, now_us: Micros) -> None:
        """Have the lane's link lead there."""
        with self._lock:
            events = self._peers.connect_fetch(node_id, endpoint, now_us, self._shell.may_fetch_on)
            if not events:
                self._shell.set_fetch_link(FetchLink(node_id, NO_CONNECTION, -1), now_us)
            self._on_peer_events(events, now_us)

    def respond(self, token: int, message: Message) -> None:
        """Answer a request, unless its connection is gone, in the order of the connection's requests."""
        request = self._inbound.take(token)
        if request is not None:
            self._clients.answer(request, message)

    def leave_to_lane(self, token: int) -> bool:
        """The lane answers this Fetch. False if its connection is gone."""
        request = self._inbound.take(token)
        if request is not None:
            self._order.withdraw(request)
        return request is not None

    def answered(self, connection: Connection) -> None:
        """A request on it has been answered, or wanted no answer. Once all are, the shell may answer by itself."""
        frames = self._owed.answered(connection)
        if frames:
            self._shell.settled(connection, frames)
        if connection in self._held_back and not self.must_wait(connection, is_next=False):
            self.on_drained(connection)
            self._transport.wake()

    def forget_request(self, token: int) -> None:
        """The door has answered it itself."""
        self._inbound.take(token)

    def send(self, connection: Connection, frame: bytes) -> None:
        """Send a frame that claims nothing but what is durable."""
        with self._lock:
            self._shell.send(connection, frame)

    # --- their end ----------------------------------------------------------------------------------------------------

    def hang_up(self, connection: Connection, now_us: Micros) -> None:
        """The other side broke the protocol: no answer, no effect."""
        with self._lock:
            self._transport.close(connection)
            self._forget(connection, now_us)
            self._shell.resume(now_us)

    def close(self) -> None:
        """Lock held. Those that this replica made are given up."""
        self._peers.close()

    def _forget(self, connection: Connection, now_us: Micros) -> None:
        """Lock held. The connection is gone."""
        events: list[PeerEvent] = []
        if self._peers.owns(connection):
            events = self._peers.on_disconnected(connection, now_us)
        else:
            self._inbound.forget(connection)
            self._owed.forget(connection)
            self._clients.forget(connection)
        self._voters.discard(connection)
        self._held_back.discard(connection)
        self._set_aside.pop(connection, None)
        self._shell.detach(connection, now_us)
        self._on_peer_events(events, now_us)
