"""A heartbeat that came to nothing, as `kernels.beats` keeps it. Source: KIP-631."""

from fastquorum.kernels.beats import FIXED_BYTES, SteadyBeat
from fastquorum.types import Offset
from fastquorum.wire import ApiKey, Message, ResponseHeader, response_header_version
from fastquorum.wire.codec.codec import Codec
from fastquorum.wire.messages.brokers import BrokerHeartbeatRequest


def steady_beat(
    codec: Codec, request: BrokerHeartbeatRequest, version: int, metadata_offset_min: Offset, answer: Message
) -> SteadyBeat:
    """What says the same again, and is to be answered the same again."""
    header = codec.encode(ResponseHeader(), response_header_version(ApiKey.BROKER_HEARTBEAT, version))
    return SteadyBeat(
        request.broker_id,
        request.broker_epoch,
        version,
        codec.encode(request, version)[FIXED_BYTES:],
        metadata_offset_min,
        header + codec.encode(answer, version),
    )
