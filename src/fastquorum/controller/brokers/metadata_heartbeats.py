"""MetadataHeartbeat: KIP-343's heartbeat, decided as a BrokerHeartbeat is, and written in the same records.

| KIP-343 | here |
|---|---|
| incarnation id | the broker epoch; a later one that a heartbeat names is believed, in memory |
| Initial | not registered |
| Inactive | fenced |
| Active | unfenced |
| Stopping | unfenced, in controlled shutdown |

Such a heartbeat does not say how far its broker has read the metadata: the broker is sent what it needs, and so counts
as having read everything. No record takes a controlled shutdown back: a stopping broker that wants to be active stays
stopping until it is another incarnation. Source: KIP-343.
"""

from typing import Final

from fastquorum.controller.brokers import fencing
from fastquorum.controller.brokers import lifecycle as brokers
from fastquorum.controller.decisions import Decision
from fastquorum.controller.image.registrations import Broker, broker_record
from fastquorum.controller.refusals import Refused
from fastquorum.controller.state.broker_info import is_legacy
from fastquorum.controller.state.controller_state import ControllerState
from fastquorum.controller.state.heartbeats import BrokerState as Becomes
from fastquorum.types import Micros, NodeId
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.message import Message
from fastquorum.wire.messages.brokers import BrokerHeartbeatRequest
from fastquorum.wire.messages.controller_heartbeat import (
    BrokerState,
    MetadataHeartbeatRequest,
    MetadataHeartbeatResponse,
)

TARGETS: Final = (BrokerState.INACTIVE, BrokerState.ACTIVE, BrokerState.STOPPING)
"""The states that a broker can ask for."""
_STATES: Final = {
    Becomes.FENCED: BrokerState.INACTIVE,
    Becomes.UNFENCED: BrokerState.ACTIVE,
    Becomes.CONTROLLED_SHUTDOWN: BrokerState.STOPPING,
    Becomes.SHUTDOWN_NOW: BrokerState.INACTIVE,
}


def registered(state: ControllerState, broker_id: NodeId, incarnation_id: int) -> Broker:
    """Return the registration of a broker of this dialect; the incarnation may be a later one.

    Raises:
        Refused: STALE_BROKER_EPOCH, in place of the KIP's INVALID_INCARNATION_ID, which Kafka never gave a number;
            INVALID_REQUEST for an id that is none, or a broker that has registered as one without heartbeats.
    """
    if broker_id < 0:
        raise Refused(ErrorCode.INVALID_REQUEST, f"{broker_id} is not a broker's id")
    broker = state.image.brokers.get(broker_id)
    if broker is None:
        raise Refused(ErrorCode.STALE_BROKER_EPOCH, f"broker {broker_id} is not registered")
    latest = state.heartbeats.incarnation_id(broker_id)
    if incarnation_id < latest:
        text = f"the incarnation of broker {broker_id} is {latest}, not {incarnation_id}"
        raise Refused(ErrorCode.STALE_BROKER_EPOCH, text)
    if is_legacy(broker):
        raise Refused(ErrorCode.INVALID_REQUEST, f"broker {broker_id} has registered as one without heartbeats")
    return broker


def metadata_heartbeat(state: ControllerState, request: MetadataHeartbeatRequest, now_us: Micros) -> Decision:
    """Decide a MetadataHeartbeat: the broker reports the state that it wants, and the answer states the one that it
    gets.

    A later incarnation than the known one is only noted: the replicas of its predecessor are out of sync, and it is
    inactive until its next heartbeat. Once the records are in the log the caller calls `metadata_heartbeat_done`.

    Raises:
        Refused: STALE_BROKER_EPOCH, INVALID_REQUEST.
    """
    broker = registered(state, request.broker_id, request.incarnation_id)
    if request.target_state not in TARGETS:
        raise Refused(ErrorCode.INVALID_REQUEST, f"{request.target_state} is not a state that a broker can ask for")
    heartbeats = state.heartbeats
    heartbeats.touch(broker.id, broker.epoch, now_us)
    if request.incarnation_id > heartbeats.incarnation_id(broker.id):
        return Decision(_answer(Becomes.FENCED), _bounce(state, broker), is_atomic=False)
    present, wanted = heartbeats.state(broker.id), _wanted(state, broker, request.target_state)
    records = brokers.become(state, broker, wanted) if wanted is not present else []
    return Decision(_answer(wanted), records, is_atomic=False)


def metadata_heartbeat_done(state: ControllerState, request: MetadataHeartbeatRequest) -> None:
    """Finish a heartbeat whose records, if any, are in the log and in the image."""
    heartbeats = state.heartbeats
    if request.incarnation_id > heartbeats.incarnation_id(request.broker_id):
        heartbeats.believe(request.broker_id, request.incarnation_id)
    heartbeats.set_metadata_offset(request.broker_id, state.next_offset - 1)
    brokers.goes_on(state, request.broker_id)


def _wanted(state: ControllerState, broker: Broker, target: int) -> Becomes:
    """Return the next state. A broker that wants to stop is first stopping, even if it leads nothing; it may go when it
    asks again."""
    heartbeats = state.heartbeats
    if target == BrokerState.STOPPING and heartbeats.state(broker.id) is Becomes.UNFENCED:
        return Becomes.CONTROLLED_SHUTDOWN
    request = BrokerHeartbeatRequest(
        broker_id=broker.id,
        broker_epoch=broker.epoch,
        current_metadata_offset=state.next_offset - 1,
        want_fence=target == BrokerState.INACTIVE,
        want_shut_down=target == BrokerState.STOPPING,
    )
    return heartbeats.next_state(request, state.index.leads)


def _bounce(state: ControllerState, broker: Broker) -> list[Message]:
    """Return the records that register a restarted broker anew, under the same epoch."""
    anew = broker._replace(fenced=True, in_controlled_shutdown=False)
    return [*fencing.clean_up(state, broker.id, is_clean=False), broker_record(anew, state.level)]


def _answer(becomes: Becomes) -> MetadataHeartbeatResponse:
    return MetadataHeartbeatResponse(current_state=_STATES[becomes])
