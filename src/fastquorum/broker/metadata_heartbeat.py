"""A member's heartbeats as KIP-343 lays them out, for controllers that are told to hear them.

The life of a member is one; only the words differ. An inactive broker that asked to stop is free to go. Such a
heartbeat does not say how far the metadata was read: the member itself waits until it has read that it is unfenced.
Pure. Source: KIP-343.
"""

from fastquorum.wire.messages.brokers import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from fastquorum.wire.messages.controller_heartbeat import (
    BrokerState,
    MetadataHeartbeatRequest,
    MetadataHeartbeatResponse,
)

_FENCED = (BrokerState.INITIAL, BrokerState.INACTIVE)


def request_of(heartbeat: BrokerHeartbeatRequest) -> MetadataHeartbeatRequest:
    """What it wishes, and which process it is."""
    if heartbeat.want_shut_down:
        target = BrokerState.STOPPING
    else:
        target = BrokerState.INACTIVE if heartbeat.want_fence else BrokerState.ACTIVE
    return MetadataHeartbeatRequest(
        broker_id=heartbeat.broker_id, incarnation_id=heartbeat.broker_epoch, target_state=target
    )


def response_of(answer: MetadataHeartbeatResponse, *, asked_to_stop: bool) -> BrokerHeartbeatResponse:
    """What it is to be."""
    is_fenced = answer.current_state in _FENCED
    return BrokerHeartbeatResponse(
        error_code=answer.error_code,
        is_caught_up=not is_fenced,
        is_fenced=is_fenced,
        should_shut_down=asked_to_stop and is_fenced,
    )
