"""Responses to requests that nobody decides: a handshake too new to be read, a Fetch whose lead is over. Sans-IO.

Source: KIP-35 (ApiVersions), KIP-595 (NOT_LEADER_OR_FOLLOWER), KIP-853 (endpoints).
"""

from typing import Final

from fastquorum.errors import WireError
from fastquorum.kernels.lane import Unparked
from fastquorum.node.network.request_reader import ELEMENTS_MAX
from fastquorum.types import METADATA_TOPIC_ID, TOPIC_NAME, Endpoint, Epoch, NodeId, Offset
from fastquorum.wire import API, ApiKey, ErrorCode, Frames
from fastquorum.wire.messages.fetch import FetchResponse
from fastquorum.wire.messages.handshake import ApiVersionsResponse

ENDPOINT_VERSION_MIN: Final = 17
"""Kafka's leader names its endpoint from here on, though version 16 could."""


def handshake_again(frames: Frames, frame: bytes) -> bytes | None:
    """Return the answer to ApiVersions of a version that is not known here: version 0's, naming those that are, so that
    a newer client asks again. None if the frame is nothing of the kind."""
    try:
        header, _ = frames.decode_request_header(frame, ELEMENTS_MAX)
    except WireError:
        return None
    known = API[ApiKey.API_VERSIONS].advertised
    if header.request_api_key != ApiKey.API_VERSIONS or known.has(header.request_api_version):
        return None
    ours = ApiVersionsResponse.ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=known.first, max_version=known.last)
    body = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[ours])
    return frames.encode_response(header.correlation_id, ApiKey.API_VERSIONS, 0, body)


def unparked_fetch(
    frames: Frames, parked: Unparked, high_watermark: Offset, leader_id: NodeId, epoch: Epoch, endpoint: Endpoint | None
) -> bytes:
    """Return the answer to a Fetch that was parked when the lead ended, or another connection took its place:
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
        body.node_endpoints = [FetchResponse.NodeEndpoint(node_id=leader_id, host=endpoint.host, port=endpoint.port)]
    return frames.encode_response(parked.correlation_id, ApiKey.FETCH, parked.api_version, body)
