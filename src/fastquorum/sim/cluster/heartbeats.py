"""Translates frames and messages of heartbeats to KIP-631's request, for the checks."""

from fastquorum.wire import ApiKey, Message, decode_request
from fastquorum.wire.messages.brokers import BrokerHeartbeatRequest
from fastquorum.wire.messages.controller_heartbeat import BrokerState, MetadataHeartbeatRequest


def heartbeat_in(frame: bytes) -> BrokerHeartbeatRequest | None:
    """Return the heartbeat that a frame holds; None if it is not one."""
    if int.from_bytes(frame[:2], "big") not in (ApiKey.BROKER_HEARTBEAT, ApiKey.METADATA_HEARTBEAT):
        return None
    return heartbeat_of(decode_request(frame)[1])


def heartbeat_of(message: Message) -> BrokerHeartbeatRequest | None:
    """Return a heartbeat as KIP-631's. One of KIP-343 does not state its metadata offset: it counts as having read
    all."""
    if isinstance(message, MetadataHeartbeatRequest):
        return BrokerHeartbeatRequest(
            broker_id=message.broker_id,
            broker_epoch=message.incarnation_id,
            current_metadata_offset=1 << 62,
            want_fence=message.target_state == BrokerState.INACTIVE,
            want_shut_down=message.target_state == BrokerState.STOPPING,
        )
    return message if isinstance(message, BrokerHeartbeatRequest) else None
