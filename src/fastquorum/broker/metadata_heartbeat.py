"""Translates a member's heartbeats to and from KIP-343's, for controllers that are configured to accept them.

The lifecycle is the same; only the messages differ. An inactive broker that wanted to stop may stop. Such a heartbeat
does not say how far the metadata was read: the member itself waits until it has read that it is unfenced.
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
    """Return the KIP-343 form of a heartbeat: the wanted state, and the process."""
    if heartbeat.want_shut_down:
        target = BrokerState.STOPPING
    else:
        target = BrokerState.INACTIVE if heartbeat.want_fence else BrokerState.ACTIVE
    return MetadataHeartbeatRequest(
        broker_id=heartbeat.broker_id, incarnation_id=heartbeat.broker_epoch, target_state=target
    )


def response_of(answer: MetadataHeartbeatResponse, *, wanted_to_stop: bool) -> BrokerHeartbeatResponse:
    """Return the KIP-631 form of an answer."""
    is_fenced = answer.current_state in _FENCED
    return BrokerHeartbeatResponse(
        error_code=answer.error_code,
        is_caught_up=not is_fenced,
        is_fenced=is_fenced,
        should_shut_down=wanted_to_stop and is_fenced,
    )
