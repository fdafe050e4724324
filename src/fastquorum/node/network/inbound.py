"""Incoming requests: what they are, whose they are, and how they are answered. Sans-IO.

Must not know what raft/ or the door decide. Source: the Kafka protocol guide (headers); KIP-595 (replica ids).
"""

from collections.abc import Callable, Collection
from typing import Final, NamedTuple

from fastquorum.errors import WireError
from fastquorum.kernels.lane import Connection, Unparked
from fastquorum.raft.events import Token
from fastquorum.types import METADATA_TOPIC_ID, TOPIC_NAME, Endpoint, Epoch, NodeId, Offset
from fastquorum.wire import (
    API,
    ApiKey,
    ErrorCode,
    Frames,
    Message,
    RequestHeader,
)
from fastquorum.wire.messages.fetch import FetchRequest, FetchResponse
from fastquorum.wire.messages.handshake import ApiVersionsResponse

QUORUM_APIS: Final = frozenset(
    (
        ApiKey.VOTE,
        ApiKey.BEGIN_QUORUM_EPOCH,
        ApiKey.END_QUORUM_EPOCH,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.FETCH_SNAPSHOT,
        ApiKey.UPDATE_RAFT_VOTER,
    )
)
"""Raft's own, beside Fetch, which is raft's only when a replica sends it."""
ELEMENTS_MAX: Final = 4_096
"""Array elements and tagged fields in one request; there is one topic with one partition here. A million of them would
take seconds to be read and answered, and hundreds of megabytes, while the quorum waits: whoever sends more is hung up
on."""
CONTROLLER_ELEMENTS_MAX: Final = 200_000
"""In one request of those that a controller serves: a broker proposes the ISRs of all its partitions at once."""
ENDPOINT_VERSION_MIN: Final = 17
"""Kafka's leader names its endpoint from here on, though version 16 could."""


class Request(NamedTuple):
    """A decoded request that waits for its answer."""

    token: Token
    connection: Connection
    header: RequestHeader
    message: Message
    frames: Frames
    size_bytes: int
    """Of its frame."""

    def answer(self, message: Message) -> bytes:
        """The response frame, without its length."""
        header = self.header
        key, version = header.request_api_key, header.request_api_version
        return self.frames.encode_response(header.correlation_id, key, version, message)


def replica_id(message: FetchRequest) -> NodeId:
    """Who fetches; -1 for a consumer. The field moved in version 15."""
    return message.replica_state.replica_id if message.replica_state.replica_id >= 0 else message.replica_id


class Inbound:
    """Requests by token, and which connections are replicas'. Belongs to the replica's thread."""

    def __init__(self, frames: Frames, controller_apis: Collection[int] = ()) -> None:
        """`controller_apis`: those of which more may be asked in one request."""
        self._frames = frames
        self._controller_apis: Final = frozenset(controller_apis)
        self._next_token: Token = 1
        self._waiting: dict[Token, Request] = {}
        self._tokens: dict[Connection, set[Token]] = {}
        """Of those that wait, by connection."""
        self._replicas: dict[Connection, None] = {}
        self._consumers: set[Connection] = set()

    def is_replica(self, connection: Connection) -> bool:
        """True once a replica's quorum request came on it: its frames go to the lane first."""
        return connection in self._replicas

    def is_consumer(self, connection: Connection) -> bool:
        """True once a consumer's Fetch came on it, and no replica's."""
        return connection in self._consumers and connection not in self._replicas

    def clients_request(self, connection: Connection, frame: bytes, passes_on: Callable[[int], bool]) -> Request | None:
        """The request, remembered, if a client sent it; None if it is raft's, by its API key (but for one that the door
        passes on to the leader), and for Fetch by the replica id. Raises WireError (UnsupportedVersion included)."""
        api_key = int.from_bytes(frame[:2], "big", signed=True)
        if api_key in QUORUM_APIS and not passes_on(api_key):
            return None
        header, message = self._read(frame)
        if isinstance(message, FetchRequest) and replica_id(message) >= 0:
            self._replicas[connection] = None
            return None
        if isinstance(message, FetchRequest):
            self._consumers.add(connection)
        return self._remember(connection, header, message, len(frame))

    def decode(self, connection: Connection, frame: bytes) -> Request:
        """The request, remembered until it is taken. Raises WireError (UnsupportedVersion included)."""
        header, message = self._read(frame)
        return self._remember(connection, header, message, len(frame))

    def _read(self, frame: bytes) -> tuple[RequestHeader, Message]:
        api_key = int.from_bytes(frame[:2], "big", signed=True)
        most = CONTROLLER_ELEMENTS_MAX if api_key in self._controller_apis else ELEMENTS_MAX
        try:
            return self._frames.decode_request(frame, most)
        except MemoryError:
            raise WireError(f"there is no memory to read a request of {len(frame)} bytes") from None

    def _remember(self, connection: Connection, header: RequestHeader, message: Message, size_bytes: int) -> Request:
        request = Request(self._next_token, connection, header, message, self._frames, size_bytes)
        self._next_token += 1
        self._waiting[request.token] = request
        self._tokens.setdefault(connection, set()).add(request.token)
        return request

    def take(self, token: Token) -> Request | None:
        """The request, which is answered now; None if its connection is gone."""
        request = self._waiting.pop(token, None)
        if request is not None:
            tokens = self._tokens[request.connection]
            tokens.discard(token)
            if not tokens:
                del self._tokens[request.connection]
        return request

    def forget(self, connection: Connection) -> None:
        """The connection is gone, and with it every answer owed on it."""
        self._replicas.pop(connection, None)
        self._consumers.discard(connection)
        for token in self._tokens.pop(connection, ()):
            del self._waiting[token]

    def handshake_again(self, frame: bytes) -> bytes | None:
        """The answer to ApiVersions of a version that is not known here: version 0's, naming those that are, so that a
        newer client asks again. None if the frame is nothing of the kind."""
        try:
            header, _ = self._frames.decode_request_header(frame, ELEMENTS_MAX)
        except WireError:
            return None
        known = API[ApiKey.API_VERSIONS].advertised
        if header.request_api_key != ApiKey.API_VERSIONS or known.has(header.request_api_version):
            return None
        ours = ApiVersionsResponse.ApiVersion(
            api_key=ApiKey.API_VERSIONS, min_version=known.first, max_version=known.last
        )
        body = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[ours])
        return self._frames.encode_response(header.correlation_id, ApiKey.API_VERSIONS, 0, body)

    def unparked_fetch(
        self, parked: Unparked, high_watermark: Offset, leader_id: NodeId, epoch: Epoch, endpoint: Endpoint | None
    ) -> bytes:
        """The answer to a Fetch that was parked when the lead ended, or another connection took its place:
        NOT_LEADER_OR_FOLLOWER and who leads, if anybody does, and where: a Kafka process stops over a new leader that
        it cannot reach. Only one that goes on to lead tells its high watermark."""
        topic = FetchResponse.FetchableTopicResponse
        partition = topic.PartitionData(
            error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER,
            high_watermark=high_watermark,
            log_start_offset=-1,
            current_leader=topic.PartitionData.LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=epoch),
            aborted_transactions=[],
            records=b"",
        )
        body = FetchResponse(responses=[topic(topic=TOPIC_NAME, topic_id=METADATA_TOPIC_ID, partitions=[partition])])
        if endpoint is not None and parked.api_version >= ENDPOINT_VERSION_MIN:
            body.node_endpoints = [
                FetchResponse.NodeEndpoint(node_id=leader_id, host=endpoint.host, port=endpoint.port)
            ]
        return self._frames.encode_response(parked.correlation_id, ApiKey.FETCH, parked.api_version, body)
