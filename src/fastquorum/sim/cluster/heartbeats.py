"""What a frame or a message says of a heartbeat, in KIP-631's words, for the checks."""

from fastquorum.wire import ApiKey, Message, decode_request
from fastquorum.wire.messages.brokers import BrokerHeartbeatRequest
from fastquorum.wire.messages.controller_heartbeat import BrokerState, MetadataHeartbeatRequest


def heartbeat_in(frame: bytes) -> BrokerHeartbeatRequest | None:
    """Return what a request says, if it is a heartbeat."""
    if int.from_bytes(frame[:2], "big") not in (ApiKey.BROKER_HEARTBEAT, ApiKey.METADATA_HEARTBEAT):
        return None
    return heartbeat_of(decode_request(frame)[1])


def heartbeat_of(message: Message) -> BrokerHeartbeatRequest | None:
    """One of KIP-343 does not say how far its member has read: it counts as having read everything."""
    if isinstance(message, MetadataHeartbeatRequest):
        return BrokerHeartbeatRequest(
            broker_id=message.broker_id,
            broker_epoch=message.incarnation_id,
            current_metadata_offset=1 << 62,
            want_fence=message.target_state == BrokerState.INACTIVE,
            want_shut_down=message.target_state == BrokerState.STOPPING,
        )
    return message if isinstance(message, BrokerHeartbeatRequest) else None
