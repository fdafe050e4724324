"""How requests are read, and what is answered to those that cannot be decided any more. Sans-IO.

Must not know what raft/ or the door decide. Source: the Kafka protocol guide (headers); KIP-595 (replica ids).
"""

from collections.abc import Collection
from typing import Final

from fastquorum.errors import WireError
from fastquorum.kernels.lane import Unparked
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


def api_key_of(frame: bytes) -> int:
    return int.from_bytes(frame[:2], "big", signed=True)


def replica_id(message: FetchRequest) -> NodeId:
    """Who fetches; -1 for a consumer. The field moved in version 15."""
    return message.replica_state.replica_id if message.replica_state.replica_id >= 0 else message.replica_id


class RequestReader:
    """Decodes requests of one replica's accepted connections."""

    def __init__(self, frames: Frames, controller_apis: Collection[int] = ()) -> None:
        """`controller_apis`: those of which more may be asked in one request."""
        self.frames: Final = frames
        self._controller_apis: Final = frozenset(controller_apis)

    def read(self, frame: bytes) -> tuple[RequestHeader, Message]:
        """Raises WireError (UnsupportedVersion included)."""
        most = CONTROLLER_ELEMENTS_MAX if api_key_of(frame) in self._controller_apis else ELEMENTS_MAX
        try:
            return self.frames.decode_request(frame, most)
        except MemoryError:
            raise WireError(f"there is no memory to read a request of {len(frame)} bytes") from None

    def handshake_again(self, frame: bytes) -> bytes | None:
        """The answer to ApiVersions of a version that is not known here: version 0's, naming those that are, so that a
        newer client asks again. None if the frame is nothing of the kind."""
        try:
            header, _ = self.frames.decode_request_header(frame, ELEMENTS_MAX)
        except WireError:
            return None
        known = API[ApiKey.API_VERSIONS].advertised
        if header.request_api_key != ApiKey.API_VERSIONS or known.has(header.request_api_version):
            return None
        ours = ApiVersionsResponse.ApiVersion(
            api_key=ApiKey.API_VERSIONS, min_version=known.first, max_version=known.last
        )
        body = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[ours])
        return self.frames.encode_response(header.correlation_id, ApiKey.API_VERSIONS, 0, body)

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
        return self.frames.encode_response(parked.correlation_id, ApiKey.FETCH, parked.api_version, body)
