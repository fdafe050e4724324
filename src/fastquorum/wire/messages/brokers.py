"""Brokers and controllers make themselves known: registration, heartbeat, unregistration.

Source: KIP-631; KIP-841 (controlled shutdown), KIP-858 (log directories), KIP-919 (controller registration), KIP-1066
(cordoning).
"""

from fastquorum.types import Uuid
from fastquorum.wire.message import Message, Struct
from fastquorum.wire.types import BOOL, INT16, INT32, INT64, STRING, UINT16, UUID, array, field


class BrokerRegistrationRequest(Message, api_key=62, kind="request", versions="0-4", flexible="0+"):
    """A broker process announces itself."""

    class Listener(Struct):
        name: str = field(STRING, "0+")
        host: str = field(STRING, "0+")
        port: int = field(UINT16, "0+")
        security_protocol: int = field(INT16, "0+")

    class Feature(Struct):
        name: str = field(STRING, "0+")
        min_supported_version: int = field(INT16, "0+")
        max_supported_version: int = field(INT16, "0+")

    broker_id: int = field(INT32, "0+")
    cluster_id: str = field(STRING, "0+")
    incarnation_id: Uuid = field(UUID, "0+")
    listeners: list[Listener] = field(array(Listener), "0+")
    features: list[Feature] = field(array(Feature), "0+")
    rack: str | None = field(STRING, "0+", nullable="0+")
    is_migrating_zk_broker: bool = field(BOOL, "1+")
    log_dirs: list[Uuid] = field(array(UUID), "2+", ignorable=True)
    previous_broker_epoch: int = field(INT64, "3+", default=-1, ignorable=True)


class BrokerRegistrationResponse(Message, api_key=62, kind="response", versions="0-4", flexible="0+"):
    """The broker epoch: the offset of its registration."""

    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    broker_epoch: int = field(INT64, "0+", default=-1)


class BrokerHeartbeatRequest(Message, api_key=63, kind="request", versions="0-2", flexible="0+"):
    """A broker keeps its session, and says what it wants."""

    broker_id: int = field(INT32, "0+")
    broker_epoch: int = field(INT64, "0+", default=-1)
    current_metadata_offset: int = field(INT64, "0+")
    want_fence: bool = field(BOOL, "0+")
    want_shut_down: bool = field(BOOL, "0+")
    offline_log_dirs: list[Uuid] = field(array(UUID), "1+", tag=0)
    cordoned_log_dirs: list[Uuid] | None = field(array(UUID), "2+", nullable="2+", default=None, tag=1)


class BrokerHeartbeatResponse(Message, api_key=63, kind="response", versions="0-2", flexible="0+"):
    """What the controller grants."""

    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    is_caught_up: bool = field(BOOL, "0+")
    is_fenced: bool = field(BOOL, "0+", default=True)
    should_shut_down: bool = field(BOOL, "0+")


class UnregisterBrokerRequest(Message, api_key=64, kind="request", versions="0", flexible="0+"):
    """Forget a broker."""

    broker_id: int = field(INT32, "0+")


class UnregisterBrokerResponse(Message, api_key=64, kind="response", versions="0", flexible="0+"):
    """What became of it."""

    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")


class ControllerRegistrationRequest(Message, api_key=70, kind="request", versions="0", flexible="0+"):
    """A controller process announces itself."""

    class Listener(Struct):
        name: str = field(STRING, "0+")
        host: str = field(STRING, "0+")
        port: int = field(UINT16, "0+")
        security_protocol: int = field(INT16, "0+")

    class Feature(Struct):
        name: str = field(STRING, "0+")
        min_supported_version: int = field(INT16, "0+")
        max_supported_version: int = field(INT16, "0+")

    controller_id: int = field(INT32, "0+")
    incarnation_id: Uuid = field(UUID, "0+")
    zk_migration_ready: bool = field(BOOL, "0+")
    listeners: list[Listener] = field(array(Listener), "0+")
    features: list[Feature] = field(array(Feature), "0+")


class ControllerRegistrationResponse(Message, api_key=70, kind="response", versions="0", flexible="0+"):
    """What became of it."""

    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")
