"""A replica's connections: what comes on them is sorted, what goes out on them is handed to the lane's lock. Sans-IO.

A frame goes straight to the lane if nothing waits before it, else into the inbox; a connection's end is told to
everybody who keeps something of it. Belongs to the replica's thread. Must not know what is decided about a frame.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sized
from typing import Final

from fastquorum.errors import WireError
from fastquorum.kernels.lane import NO_CONNECTION, Connection, FetchAdmission, Unparked
from fastquorum.node.lane.peer_events import FetchFrame, FetchLink, PeerEvent
from fastquorum.node.lane.port import Shell
from fastquorum.node.network.fetched import Fetched
from fastquorum.node.network.inbox import Inbox, OnResponse, WaitingFrame
from fastquorum.node.network.links import Purpose
from fastquorum.node.network.peers import Peers
from fastquorum.node.network.request_reader import QUORUM_APIS, RequestReader, api_key_of, replica_id
from fastquorum.node.network.requests import Request, Requests
from fastquorum.node.network.undecided import handshake_again, unparked_fetch
from fastquorum.node.ports import Transport, Unreachable, WallClock
from fastquorum.raft import events as ev
from fastquorum.raft.events import Token
from fastquorum.types import Endpoint, Epoch, Micros, NodeId, Offset
from fastquorum.wire import Message, RequestHeader
from fastquorum.wire.messages.fetch import FetchRequest


class Connections:
    """A replica's connections: those that it made, which `peers` has, and those that others made to it, whose requests
    are in the ledger."""

    def __init__(
        self,
        *,
        shell: Shell,
        peers: Peers,
        reader: RequestReader,
        inbox: Inbox,
        fetched: Fetched,
        transport: Transport,
        clock_ms: WallClock,
        on_drained: Callable[[Connection], None],
        on_gone: Callable[[Connection], None],
    ) -> None:
        """`on_drained`: more may be made for a connection. `on_gone`: one is gone that had a request open."""
        self._shell = shell
        self._fast_path = shell.fast_path
        self._answer_beat = shell.answer_beat
        self._lock = shell.lock
        self._peers = peers
        self.requests: Final = Requests()
        self._redirected: dict[Token, Callable[[Message], None]] = {}
        """By token: the receiver of raft/'s response to a request that came inside another one."""
        self._reader = reader
        self._inbox = inbox
        self._fetched = fetched
        self._transport = transport
        self._clock_ms = clock_ms
        self._on_drained = on_drained
        self._on_gone = on_gone
        self._voters: set[Connection] = set()
        self._held_back: set[Connection] = set()
        """Connections for which no response is made until their clients read, or are answered what came first."""
        self._set_aside: dict[Connection, deque[WaitingFrame]] = {}
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
        return self.requests.owes(connection)

    def is_gone(self, item: WaitingFrame) -> bool:
        """The connection of a frame that waited was given up meanwhile: nobody would hear an answer."""
        outgoing = self._peers.owns(item.connection)
        return not outgoing if item.is_outgoing else outgoing or item.connection not in self.requests

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
        elif (
            self.requests.owes(connection)
            or self._answer_beat is None
            or not self._answer_beat(connection, frame, now_us)
        ):
            self.requests.received(connection)
            self._offer(connection, frame, is_outgoing=False, now_us=now_us)

    def _offer(self, connection: Connection, frame: bytes, *, is_outgoing: bool, now_us: Micros) -> None:
        """Lock held. Straight to the lane if nothing waits before it; else in turn, through the inbox."""
        nothing_waits = not self._inbox and not self._shell.handed_up and connection not in self._set_aside
        may_offer = nothing_waits and self._shell.is_open and (is_outgoing or self.requests.is_replica(connection))
        if not may_offer or not self._shell.offer(connection, frame, now_us):
            if is_outgoing:
                self._shell.fetch_answered(frame)
            self._inbox.append(WaitingFrame(connection, frame, is_outgoing))

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
        header, message = self._reader.read(frame)
        request = self._admit(connection, header, message, len(frame))
        return ev.RequestReceived(
            request.token,
            header.request_api_version,
            message,
            connection,
            header.correlation_id,
            self._clock_ms(),
        )

    def clients_request(self, connection: Connection, frame: bytes, passes_on: Callable[[int], bool]) -> Request | None:
        """The request, if a client sent it; None if it is raft's, by its API key (but for one that is passed on to the
        leader), and for Fetch by the replica id. Raises WireError (UnsupportedVersion included)."""
        api_key = api_key_of(frame)
        if api_key in QUORUM_APIS and not passes_on(api_key):
            return None
        header, message = self._reader.read(frame)
        if isinstance(message, FetchRequest):
            if replica_id(message) >= 0:
                self.requests.note_replica(connection)
                return None
            self.requests.note_consumer(connection)
        return self._admit(connection, header, message, len(frame))

    def _admit(self, connection: Connection, header: RequestHeader, message: Message, size_bytes: int) -> Request:
        """Raises WireError where the connection has too many open."""
        request = self.requests.add(connection, header, message, size_bytes, self._reader.frames, self)
        if request is None:
            raise WireError("more requests than one connection may have under way")
        return request

    def unwrapped(
        self, token: Token, message: Message, version: int, on_response: Callable[[Message], None]
    ) -> ev.RequestReceived:
        """A request that came inside the one with this token, as raft/ may see it; `on_response` takes raft/'s
        response."""
        self._redirected[token] = on_response
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
        return self.requests.is_consumer(connection)

    # --- those whose clients do not read ------------------------------------------------------------------------------

    def must_wait(self, connection: Connection, *, is_next: bool) -> bool:
        """Is so much kept for it that nothing more may be made? If so `on_drained` follows. `is_next`: it is
        the answer for which all others wait."""
        with self._lock:
            must_wait = self._transport.needs_drain(connection)
        if must_wait or (not is_next and self.requests.holds_too_much(connection)):
            self._held_back.add(connection)
            return True
        return False

    def is_crowded(self) -> bool:
        """Is much kept for all of them? Then answers are short."""
        with self._lock:
            return self._transport.is_crowded()

    def set_aside(self, item: WaitingFrame) -> bool:
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
            self._on_drained(connection)

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

    def send_request(
        self,
        node_id: NodeId,
        endpoint: Endpoint,
        message: Message,
        on_response: OnResponse,
        now_us: Micros,
        purpose: Purpose,
    ) -> int:
        """Ask another node what is none of raft's; `on_response` is called later, on the replica's thread, and at most
        once. The number, for `expect_no_more`."""
        number = self._inbox.expect(on_response)
        self.request(node_id, endpoint, number, message, now_us, purpose)
        return number

    def expect_no_more(self, number: int) -> None:
        """Nobody wants the response to that request any more."""
        self._inbox.expect_no_more(number)

    def hang_up_all(self, purpose: Purpose) -> None:
        """Close the connections that this replica made for this purpose."""
        with self._lock:
            self._peers.hang_up(purpose)

    def connect_leader(self, node_id: NodeId, endpoint: Endpoint, now_us: Micros) -> None:
        """Have the lane's link lead there."""
        with self._lock:
            events = self._peers.connect_fetch(node_id, endpoint, now_us, self._shell.may_fetch_on)
            if not events:
                self._shell.set_fetch_link(FetchLink(node_id, NO_CONNECTION, -1), now_us)
            self._on_peer_events(events, now_us)

    def reply(self, request: Request, message: Message | None) -> None:
        """Answer a request in the order of its connection's; None where the client wants no response. Implements
        `Replier`."""
        if not request.is_waiting:
            return
        for frame in self.requests.answer(request, b"" if message is None else request.encoded(message)):
            if frame:
                self.send(request.connection, frame)
            self.answered(request.connection)

    def respond(self, token: Token, message: Message) -> None:
        """Raft/'s response to a request, unless its connection is gone."""
        on_response = self._redirected.pop(token, None)
        if on_response is not None:
            on_response(message)
            return
        request = self.requests.find(token)
        if request is not None:
            request.reply(message)

    def leave_to_lane(self, token: Token) -> bool:
        """The lane answers this Fetch. False if its connection is gone."""
        request = self.requests.find(token)
        if request is not None:
            self.requests.withdraw(request)
        return request is not None

    def reply_to_handshake(self, connection: Connection, frame: bytes) -> bool:
        """Answer ApiVersions of a version that is not known here. False if the frame is nothing of the kind."""
        response = handshake_again(self._reader.frames, frame)
        if response is not None:
            self.send(connection, response)
            self.answered(connection)
        return response is not None

    def reply_to_unparked(
        self, parked: Unparked, high_watermark: Offset, leader_id: NodeId, epoch: Epoch, endpoint: Endpoint | None
    ) -> None:
        """Answer a Fetch that the lane gave back: not the leader, or not any more."""
        frame = unparked_fetch(self._reader.frames, parked, high_watermark, leader_id, epoch, endpoint)
        self.send(parked.connection, frame)

    def answered(self, connection: Connection) -> None:
        """A request on it has been answered, or wanted no answer. Once all are, the fast path may answer by itself."""
        frames = self.requests.answered(connection)
        if frames and self._fast_path is not None:
            self._fast_path.settled(connection, frames)
        if connection in self._held_back and not self.must_wait(connection, is_next=False):
            self.on_drained(connection)
            self._transport.wake()

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
            if self.requests.forget(connection):
                self._on_gone(connection)
        self._voters.discard(connection)
        self._held_back.discard(connection)
        self._set_aside.pop(connection, None)
        self._shell.detach(connection, now_us)
        self._on_peer_events(events, now_us)
