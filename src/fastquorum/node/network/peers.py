"""Outgoing connections: handshake, version negotiation, requests in flight. Sans-IO, over the Transport port.

A peer has up to two links: one for raft's requests, and one for the lane's Fetches, so that a parked Fetch never holds
up a vote; a broker that is told something has one of its own. Every connection begins with ApiVersions, as Kafka's do.
Must not know what the messages mean. Every method that may send is called with the lane lock held; frames leave through
the gate it is given, which holds them back after a failed sync (lane rule 5). Source: KIP-511; Kafka
`KafkaNetworkChannel`.
"""

from collections.abc import Callable

from fastquorum.config import MS, QuorumConfig
from fastquorum.errors import UnsupportedVersion, WireError
from fastquorum.kernels import Buffer
from fastquorum.kernels.lane import NO_CONNECTION, Connection
from fastquorum.node.lane.peer_events import FetchFrame, FetchLink, PeerAnswer, PeerEvent, UnansweredRequest
from fastquorum.node.network.links import LinkState, PeerLink, Purpose, RequestInFlight
from fastquorum.node.ports import Transport, Unreachable
from fastquorum.types import Endpoint, Micros, NodeId
from fastquorum.wire import ApiKey, ErrorCode, Frames, Message, request_header
from fastquorum.wire.error_codes import error_name
from fastquorum.wire.messages.fetch import FetchRequest, FetchResponse
from fastquorum.wire.messages.handshake import ApiVersionsRequest, ApiVersionsResponse

HANDSHAKE_CORRELATION_ID = 0x3FFF_FFFF
HANDSHAKE_VERSIONS = (4, 3, 0)
FETCH_VERSION_MIN = 12
"""The lane's oldest: the first that carries the last fetched epoch."""
RECONNECT_BACKOFF_US = 50 * MS
RECONNECT_BACKOFF_US_MAX = 500 * MS
SOFTWARE_NAME = "fastquorum"
_ENDED = "the connection ended"
_NOT_KAFKA = "what it answers is not Kafka's protocol"


class Peers:
    """All outgoing connections of one replica."""

    def __init__(
        self,
        transport: Transport,
        send_frame: Callable[[Connection, Buffer], None],
        frames: Frames,
        config: QuorumConfig,
        client_id: str,
        software_version: str,
    ) -> None:
        self._transport = transport
        self._send_frame = send_frame
        self._frames = frames
        self._config = config
        self._client_id = client_id
        self._software_version = software_version
        self._links: dict[tuple[NodeId, Purpose], PeerLink] = {}
        self._by_connection: dict[Connection, PeerLink] = {}

    def owns(self, connection: Connection) -> bool:
        """True for a connection that was made from here."""
        return connection in self._by_connection

    def node_of(self, connection: Connection) -> NodeId:
        return self._by_connection[connection].node_id

    def last_error(self, node_id: NodeId, purpose: Purpose = Purpose.REQUEST) -> str:
        """Why the link to a node went down, or did not come up; empty if it did neither."""
        link = self._links.get((node_id, purpose))
        return "" if link is None else link.last_error

    def unreachable(self) -> list[Unreachable]:
        """Other voters, or bootstrap servers, of which no link is up, and why the last one was lost."""
        of_quorum = [link for link in self._links.values() if link.purpose is not Purpose.CONTROL]
        reached = {link.node_id for link in of_quorum if link.state is LinkState.READY}
        lost = {
            link.node_id: Unreachable(
                link.node_id, link.endpoint, link.last_error, link.failing_since_us, link.failed_us
            )
            for link in of_quorum
            if link.failing_since_us >= 0 and link.node_id not in reached
        }
        return [lost[node_id] for node_id in sorted(lost)]

    def purpose_of(self, connection: Connection) -> Purpose:
        return self._by_connection[connection].purpose

    def fetch_answer(self, connection: Connection, frame: bytes) -> FetchResponse:
        """The answer to a Fetch of the lane's, in the version that its link speaks. Raises WireError."""
        version = self._by_connection[connection].fetch_version()
        _, message = self._frames.decode_response(frame, ApiKey.FETCH, version)
        assert isinstance(message, FetchResponse)
        return message

    def request(
        self,
        destination: NodeId,
        endpoint: Endpoint,
        correlation_id: int,
        message: Message,
        now_us: Micros,
        purpose: Purpose = Purpose.REQUEST,
    ) -> list[PeerEvent]:
        """Send, or connect and send then. NoAnswer at once while a lost connection is not to be retried yet, or, to a
        Fetch, while another one is under way."""
        link = self._link(destination, purpose, endpoint)
        events: list[PeerEvent] = []
        if self._is_stuck(link, now_us):
            events += self._drop(link, now_us, self._no_answer())
        # A second Fetch behind one that raft/ has given up would seem to answer the answer to it, and confirm a read
        # barrier that it was sent before (lane rule 7). Its answer could not come before that one's.
        is_second = link.has_fetch and isinstance(message, FetchRequest)
        if is_second or (link.state is LinkState.DOWN and now_us < link.retry_at_us):
            return [*events, UnansweredRequest(destination, correlation_id, unsupported=False)]
        if link.state is LinkState.DOWN:
            self._connect(link, now_us)
        if link.state is LinkState.READY:
            return events + self._send(link, correlation_id, message, now_us)
        link.waiting.append((correlation_id, message))
        return events

    def connect_fetch(
        self, node_id: NodeId, endpoint: Endpoint, now_us: Micros, may_fetch_on: Callable[[Connection], bool]
    ) -> list[PeerEvent]:
        """Have a link to the leader for the lane; links to former leaders are closed, and one that the lane may not
        fetch on any more is replaced. raft/ says how often this is tried: every failure that it is told of is a
        connection that was lost, or an attempt that ended by itself."""
        for other in [
            link for link in self._links.values() if link.purpose is Purpose.FETCH and link.node_id != node_id
        ]:
            self._discard(other)
        link = self._link(node_id, Purpose.FETCH, endpoint)
        if self._is_stuck(link, now_us):
            # raft/ gave it up, and has ordered another one.
            self._drop(link, now_us, self._no_answer())
        elif link.state is LinkState.READY and not may_fetch_on(link.connection):
            self._discard(link)
            link = self._link(node_id, Purpose.FETCH, endpoint)
        if link.state is LinkState.READY:
            return [FetchLink(node_id, link.connection, link.fetch_version())]
        if link.state is LinkState.DOWN:
            self._connect(link, now_us)
        return []

    def on_connected(self, connection: Connection, now_us: Micros) -> None:
        link = self._by_connection.get(connection)
        if link is not None:
            link.state = LinkState.HANDSHAKE
            link.handshake = 0
            link.contact_us = now_us
            self._send_handshake(link)

    def on_disconnected(self, connection: Connection, now_us: Micros) -> list[PeerEvent]:
        link = self._by_connection.get(connection)
        return [] if link is None else self._lost(link, now_us, _ENDED)

    def on_frame(self, connection: Connection, frame: bytes, now_us: Micros) -> list[PeerEvent]:
        """A response. One that does not decode, or answers nothing, closes the connection."""
        link = self._by_connection[connection]
        link.contact_us = now_us
        if link.state is LinkState.HANDSHAKE:
            return self._on_handshake(link, frame, now_us)
        if link.purpose is Purpose.FETCH:
            return [FetchFrame(connection, frame)]
        request = link.in_flight.pop(int.from_bytes(frame[:4], "big", signed=True), None)
        if request is None:
            return self._drop(link, now_us, _NOT_KAFKA)
        try:
            correlation_id, message = self._frames.decode_response(frame, request.api_key, request.version)
        except WireError:
            link.in_flight[int.from_bytes(frame[:4], "big", signed=True)] = request
            return self._drop(link, now_us, _NOT_KAFKA)
        return [PeerAnswer(link.node_id, correlation_id, request.api_key, message)]

    def hang_up(self, purpose: Purpose) -> None:
        """Give up every connection that was for this, without a word to whoever waits for an answer on it."""
        for link in [link for link in self._links.values() if link.purpose is purpose]:
            self._discard(link)

    def close(self) -> None:
        for link in list(self._links.values()):
            self._discard(link)

    # --- links --------------------------------------------------------------------------------------------------------

    def _link(self, node_id: NodeId, purpose: Purpose, endpoint: Endpoint) -> PeerLink:
        link = self._links.get((node_id, purpose))
        if link is not None and link.endpoint != endpoint:
            self._discard(link)
            link = None
        if link is None:
            link = self._links[node_id, purpose] = PeerLink(node_id, purpose, endpoint)
        return link

    def _connect(self, link: PeerLink, now_us: Micros) -> None:
        link.connection = self._transport.connect(link.endpoint)
        link.state = LinkState.CONNECTING
        link.contact_us = now_us
        self._by_connection[link.connection] = link

    def _is_stuck(self, link: PeerLink, now_us: Micros) -> bool:
        """The other side owes an answer for too long: TCP alone may take a quarter of an hour to say that it is gone.

        What the lane's link has in flight is not known here; but it is only asked for again when it is of no use as it
        is, or when nothing was heard of it for long.
        """
        limit = now_us - self._config.request_timeout_us
        if link.state is LinkState.DOWN:
            return False
        if link.state is not LinkState.READY or link.purpose is Purpose.FETCH:
            return link.contact_us <= limit
        return any(request.sent_us <= limit for request in link.in_flight.values())

    def _discard(self, link: PeerLink) -> None:
        """Forget a link without a word: nobody waits for it any more."""
        if link.connection != NO_CONNECTION:
            self._by_connection.pop(link.connection, None)
            self._transport.close(link.connection)
        self._links.pop((link.node_id, link.purpose), None)

    def _no_answer(self) -> str:
        return f"no answer within {self._config.request_timeout_us / 1e6:g} s"

    def _drop(self, link: PeerLink, now_us: Micros, reason: str) -> list[PeerEvent]:
        if link.connection != NO_CONNECTION:
            self._transport.close(link.connection)
        return self._lost(link, now_us, reason)

    def _lost(self, link: PeerLink, now_us: Micros, reason: str) -> list[PeerEvent]:
        link.last_error = self._transport.last_error(link.endpoint) or reason
        if not (link.state is LinkState.READY and reason == _ENDED):  # which says nothing of the next attempt
            link.failed_us = now_us
            if link.failing_since_us < 0:
                link.failing_since_us = now_us
        if link.state is LinkState.HANDSHAKE:  # it has connected, and come no further
            self._transport.try_elsewhere(link.endpoint)
        self._by_connection.pop(link.connection, None)
        link.backoff_us = min(max(link.backoff_us * 2, RECONNECT_BACKOFF_US), RECONNECT_BACKOFF_US_MAX)
        link.retry_at_us = now_us + link.backoff_us
        link.connection = NO_CONNECTION
        link.state = LinkState.DOWN
        unanswered = [*link.in_flight, *(correlation_id for correlation_id, _ in link.waiting)]
        link.in_flight.clear()
        link.waiting.clear()
        if link.purpose is Purpose.FETCH:
            return [FetchLink(link.node_id, NO_CONNECTION, -1)]
        return [UnansweredRequest(link.node_id, correlation_id, unsupported=False) for correlation_id in unanswered]

    # --- handshake ----------------------------------------------------------------------------------------------------

    def _send_handshake(self, link: PeerLink) -> None:
        version = HANDSHAKE_VERSIONS[link.handshake]
        body = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=self._software_version)
        if version < 3:
            body = ApiVersionsRequest()
        header = request_header(body, version, HANDSHAKE_CORRELATION_ID, self._client_id)
        self._send_frame(link.connection, self._frames.encode_request(header, body))

    def _on_handshake(self, link: PeerLink, frame: bytes, now_us: Micros) -> list[PeerEvent]:
        try:
            answer = self._handshake_answer(frame, HANDSHAKE_VERSIONS[link.handshake])
        except WireError:
            return self._drop(link, now_us, _NOT_KAFKA)
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION and link.handshake + 1 < len(HANDSHAKE_VERSIONS):
            link.handshake += 1
            self._send_handshake(link)
            return []
        if answer.error_code != ErrorCode.NONE:
            return self._drop(link, now_us, f"it refuses to talk: {error_name(answer.error_code)}")
        link.versions = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
        if link.purpose is Purpose.FETCH and link.fetch_version() < FETCH_VERSION_MIN:
            return self._drop(link, now_us, f"it serves no Fetch of version {FETCH_VERSION_MIN} or later")
        link.state = LinkState.READY
        link.last_error = ""
        link.failing_since_us = -1
        link.backoff_us = 0
        if link.purpose is Purpose.FETCH:
            return [FetchLink(link.node_id, link.connection, link.fetch_version())]
        waiting, link.waiting = link.waiting, []
        events: list[PeerEvent] = []
        for correlation_id, message in waiting:
            events += self._send(link, correlation_id, message, now_us)
        return events

    def _handshake_answer(self, frame: bytes, version: int) -> ApiVersionsResponse:
        """An unknown version is answered in v0's form (KIP-511), recognised by its error code."""
        if int.from_bytes(frame[4:6], "big") == ErrorCode.UNSUPPORTED_VERSION:
            version = 0
        _, answer = self._frames.decode_response(frame, ApiKey.API_VERSIONS, version)
        assert isinstance(answer, ApiVersionsResponse)
        return answer

    # --- requests -----------------------------------------------------------------------------------------------------

    def _send(self, link: PeerLink, correlation_id: int, message: Message, now_us: Micros) -> list[PeerEvent]:
        api_key = type(message).__wire__.api_key
        version = link.common_version(api_key)
        if version < 0:
            return [UnansweredRequest(link.node_id, correlation_id, unsupported=True, api_key=api_key)]
        try:
            header = request_header(message, version, correlation_id, self._client_id)
            frame = self._frames.encode_request(header, message)
        except UnsupportedVersion:
            raise
        except WireError:
            # The peer's version lacks a field that must not be lost (a pre-vote, before Vote 2).
            return [UnansweredRequest(link.node_id, correlation_id, unsupported=True, api_key=api_key)]
        link.in_flight[correlation_id] = RequestInFlight(api_key, version, now_us)
        self._send_frame(link.connection, frame)
        return []
