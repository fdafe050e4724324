"""Brokers register, send heartbeats and stop. Source: KIP-631, KIP-841, KIP-858, KIP-866, KIP-966, KIP-1066; Kafka
`ClusterControlManager`, `ReplicationControlManager.processBrokerHeartbeat`.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from fastquorum.controller.brokers import fencing
from fastquorum.controller.decisions import Decision
from fastquorum.controller.image.features import METADATA_VERSION
from fastquorum.controller.image.registrations import Broker, EndPoint, end_points_of, features_of, supported
from fastquorum.controller.refusals import Refused
from fastquorum.controller.state.controller_state import ControllerState
from fastquorum.controller.state.heartbeats import BrokerState
from fastquorum.types import Micros, NodeId, Uuid
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.message import Message
from fastquorum.wire.messages.brokers import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from fastquorum.wire.records.brokers import (
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
)

_RESERVED_BELOW = 100
NO_BROKER_EPOCH = -1
_SECURITY_PROTOCOLS: Final = range(4)
"""PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL."""
DIRECTORIES_MAX: Final = 1_000
"""Most log directories of one broker: each move of a replica searches all of them."""
_NEVER = -2
"""No broker reports this as its previous epoch."""


def standing(state: ControllerState, broker_id: NodeId, epoch: int) -> Broker:
    """Return the broker's registration. Refused if it has none, or if the present one has another epoch."""
    broker = state.image.brokers.get(broker_id)
    if broker is None:
        raise Refused(ErrorCode.STALE_BROKER_EPOCH, f"broker {broker_id} is not registered")
    if broker.epoch != epoch:
        text = f"broker {broker_id} is registered with epoch {broker.epoch}, not {epoch}"
        raise Refused(ErrorCode.STALE_BROKER_EPOCH, text)
    return broker


# --- registration -----------------------------------------------------------------------------------------------------


def register(state: ControllerState, request: BrokerRegistrationRequest, version: int, now_us: Micros) -> Decision:
    """Decide a BrokerRegistration. A new incarnation is fenced, under a new epoch: the offset of its first record.

    Raises:
        Refused: INCONSISTENT_CLUSTER_ID, DUPLICATE_BROKER_REGISTRATION, BROKER_ID_NOT_REGISTERED, INVALID_REGISTRATION,
            UNKNOWN_SERVER_ERROR for a security protocol that nobody knows, UNSUPPORTED_VERSION.
    """
    if request.cluster_id != state.settings.cluster_id:
        text = f"this is cluster {state.settings.cluster_id}, not {request.cluster_id}"
        raise Refused(ErrorCode.INCONSISTENT_CLUSTER_ID, text)
    broker_id = request.broker_id
    if broker_id < 0:  # who nobody is, to every partition without a leader
        raise Refused(ErrorCode.INVALID_REGISTRATION, f"{broker_id} is not a broker's id")
    existing = state.image.brokers.get(broker_id)
    is_same = existing is not None and existing.incarnation_id == request.incarnation_id
    former_epoch = _NEVER if existing is None else existing.epoch
    is_clean = version >= 3 and request.previous_broker_epoch == former_epoch
    is_taken = existing is not None and not is_same
    if is_taken and state.heartbeats.has_session(broker_id, now_us, is_clean=is_clean):
        text = f"another broker {broker_id} is alive; if it was restarted, its session will end soon"
        raise Refused(ErrorCode.DUPLICATE_BROKER_REGISTRATION, text)
    if request.is_migrating_zk_broker:
        raise Refused(ErrorCode.BROKER_ID_NOT_REGISTERED, "brokers of ZooKeeper are not accepted")
    if state.level.has_directories:
        _check_directories(state, request)
    _check_protocols(request.listeners)
    if not all(each.name for each in request.listeners):
        raise Refused(ErrorCode.INVALID_REGISTRATION, "a listener has no name")
    _check_features(state, request)
    record = _registration(state, request)
    if existing is not None and is_same:
        record.broker_epoch = existing.epoch
        record.fenced, record.in_controlled_shutdown = existing.fenced, existing.in_controlled_shutdown
        return Decision(BrokerRegistrationResponse(broker_epoch=existing.epoch), [record])
    record.broker_epoch = state.next_offset
    records = [*fencing.clean_up(state, broker_id, is_clean=is_clean), record]
    return Decision(BrokerRegistrationResponse(broker_epoch=state.next_offset), records, is_atomic=False)


def _check_directories(state: ControllerState, request: BrokerRegistrationRequest) -> None:
    directories = request.log_dirs
    if not directories:
        raise Refused(ErrorCode.INVALID_REGISTRATION, "no log directory is named")
    if len(directories) > DIRECTORIES_MAX:
        text = f"{len(directories)} log directories are named, and a broker may have {DIRECTORIES_MAX}"
        raise Refused(ErrorCode.INVALID_REGISTRATION, text)
    for directory in directories:
        if int.from_bytes(directory, "big") < _RESERVED_BELOW:
            raise Refused(ErrorCode.INVALID_REGISTRATION, f"directory id {directory} is reserved")
    named = frozenset(directories)
    if len(named) < len(directories):
        raise Refused(ErrorCode.INVALID_REGISTRATION, "a directory id is named twice")
    for broker_id, broker in sorted(state.image.brokers.items()):
        shared = next((each for each in broker.directories if each in named), None)
        if shared is not None and broker_id != request.broker_id:
            text = f"broker {broker_id} is registered with directory {shared}"
            raise Refused(ErrorCode.INVALID_REGISTRATION, text)


def _check_protocols(listeners: Iterable[EndPoint]) -> None:
    """Refuse an unknown protocol: no Kafka could read the record, and each would end with an error."""
    for each in listeners:
        if each.security_protocol not in _SECURITY_PROTOCOLS:
            text = f"security protocol {each.security_protocol} of listener {each.name} is unknown"
            raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, text)


def _check_features(state: ControllerState, request: BrokerRegistrationRequest) -> None:
    """Check that the broker supports each finalized level; it supports level 0 of a feature that it does not name."""
    finalized: Mapping[str, int] = state.finalized_features
    named = {each.name: (each.min_supported_version, each.max_supported_version) for each in request.features}
    for name, (level_min, level_max) in named.items():
        level = finalized.get(name, 0)
        if not level_min <= level <= level_max:
            text = f"{name} is finalized at {level}, and the broker supports {level_min} to {level_max}"
            raise Refused(ErrorCode.UNSUPPORTED_VERSION, text)
    if METADATA_VERSION not in named:
        raise Refused(ErrorCode.INVALID_REGISTRATION, f"the broker does not say which {METADATA_VERSION} it supports")
    for name, level in finalized.items():
        if level > 0 and name not in named:
            text = f"{name} is finalized at {level}, and the broker does not know it"
            raise Refused(ErrorCode.UNSUPPORTED_VERSION, text)


def _registration(state: ControllerState, request: BrokerRegistrationRequest) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        rack=request.rack,
        end_points=end_points_of(RegisterBrokerRecord.BrokerEndpoint, request.listeners),
        features=features_of(RegisterBrokerRecord.BrokerFeature, supported(request.features)),
        log_dirs=list(request.log_dirs) if state.level.has_directories else [],
    )


def register_controller(state: ControllerState, request: ControllerRegistrationRequest) -> Decision:
    """Decide a ControllerRegistration. Refused: UNSUPPORTED_VERSION below the level that has it; UNKNOWN_SERVER_ERROR
    for an unknown security protocol."""
    if not state.level.has_controller_registration:
        text = f"metadata.version {state.level} has no registrations of controllers"
        raise Refused(ErrorCode.UNSUPPORTED_VERSION, text)
    _check_protocols(request.listeners)
    record = RegisterControllerRecord(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        end_points=end_points_of(RegisterControllerRecord.ControllerEndpoint, request.listeners),
        features=features_of(RegisterControllerRecord.ControllerFeature, supported(request.features)),
    )
    return Decision(ControllerRegistrationResponse(error_message=""), [record])


def unregister(state: ControllerState, request: UnregisterBrokerRequest) -> Decision:
    """Decide an UnregisterBroker. Refused: BROKER_ID_NOT_REGISTERED."""
    broker = state.image.brokers.get(request.broker_id)
    if broker is None:
        raise Refused(ErrorCode.BROKER_ID_NOT_REGISTERED, f"broker {request.broker_id} is not registered")
    return Decision(UnregisterBrokerResponse(error_message=None), fencing.unregister(state, broker), is_atomic=False)


# --- heartbeats -------------------------------------------------------------------------------------------------------


def heartbeat(state: ControllerState, request: BrokerHeartbeatRequest) -> Decision:
    """Decide a BrokerHeartbeat: the broker reports the state that it wants, and the answer states the one that it gets.

    The caller has called `state.heartbeats.touch` when the heartbeat arrived, and calls `heartbeat_done` once the
    records are in the log.

    Raises:
        Refused: STALE_BROKER_EPOCH.
    """
    broker = standing(state, request.broker_id, request.broker_epoch)
    heartbeats, index = state.heartbeats, state.index
    present, wanted = heartbeats.state(broker.id), heartbeats.next_state(request, index.leads)
    records = become(state, broker, wanted) if wanted is not present else []
    if state.level.has_directories:
        records += fencing.lose_directories(state, broker, request.offline_log_dirs)
    if state.level.has_cordoned_directories and request.cordoned_log_dirs is not None:
        records += _cordon(broker, request.cordoned_log_dirs)
    answer = BrokerHeartbeatResponse(
        is_caught_up=heartbeats.is_caught_up(broker.id, request.current_metadata_offset),
        is_fenced=wanted.is_fenced,
        should_shut_down=wanted is BrokerState.SHUTDOWN_NOW,
    )
    return Decision(answer, records, is_atomic=False)


def become(state: ControllerState, broker: Broker, wanted: BrokerState) -> list[Message]:
    """Return the records that bring a broker into the wanted state."""
    match wanted:
        case BrokerState.FENCED | BrokerState.SHUTDOWN_NOW if not broker.fenced:
            return fencing.fence(state, broker)
        case BrokerState.UNFENCED:
            return fencing.unfence(state, broker)
        case BrokerState.CONTROLLED_SHUTDOWN:
            return fencing.begin_shutdown(state, broker)
        case _:
            return []  # fenced already


def heartbeat_done(state: ControllerState, request: BrokerHeartbeatRequest) -> None:
    """Finish a heartbeat whose records, if any, are in the log and in the image."""
    broker = state.image.brokers.get(request.broker_id)
    if broker is None or broker.epoch != request.broker_epoch:
        return
    state.heartbeats.set_metadata_offset(broker.id, request.current_metadata_offset)
    goes_on(state, broker.id)


def goes_on(state: ControllerState, broker_id: NodeId) -> None:
    """Count all records so far as part of the broker's controlled shutdown, if one has begun."""
    broker = state.image.brokers[broker_id]
    if broker.in_controlled_shutdown and not broker.fenced:
        state.heartbeats.shutting_down(broker.id, state.next_offset - 1)


def _cordon(broker: Broker, directories: list[Uuid]) -> list[Message]:
    if broker.cordoned_directories is not None and set(broker.cordoned_directories) == set(directories):
        return []
    if len(directories) > DIRECTORIES_MAX:
        text = f"{len(directories)} cordoned log directories are named, and a broker may have {DIRECTORIES_MAX}"
        raise Refused(ErrorCode.INVALID_REQUEST, text)
    change = BrokerRegistrationChangeRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, cordoned_log_dirs=list(directories)
    )
    return [change]


def fence_expired(state: ControllerState, now_us: Micros) -> list[Message]:
    """Fence the broker that was silent longest, if its session is over; the next one depends on the state after that.
    No records: no session is over."""
    broker_id = state.heartbeats.next_expired(now_us)
    return [] if broker_id is None else fencing.fence(state, state.image.brokers[broker_id])


def unfence_exempt(state: ControllerState) -> list[Message]:
    """Unfence one broker that counts as active without heartbeats. No records: none is fenced."""
    for _, broker in sorted(state.image.brokers.items()):
        if broker.fenced and state.is_exempt(broker):
            return fencing.unfence(state, broker)
    return []
