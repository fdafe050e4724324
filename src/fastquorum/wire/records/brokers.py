"""Metadata records of brokers and controllers. Keys and versions as in Kafka 4.3.

Source: KIP-631; KIP-841, KIP-858, KIP-919, KIP-1066.
"""

from fastquorum.types import Uuid
from fastquorum.wire.message import Message, Struct
from fastquorum.wire.types import BOOL, INT8, INT16, INT32, INT64, STRING, UINT16, UUID, array, field


class RegisterBrokerRecord(Message, api_key=0, kind="metadata", versions="0-4", flexible="0+"):
    """A broker process registered; it is fenced until a change says otherwise."""

    class BrokerEndpoint(Struct):
        name: str = field(STRING, "0+")
        host: str = field(STRING, "0+")
        port: int = field(UINT16, "0+")
        security_protocol: int = field(INT16, "0+")

    class BrokerFeature(Struct):
        name: str = field(STRING, "0+")
        min_supported_version: int = field(INT16, "0+")
        max_supported_version: int = field(INT16, "0+")

    broker_id: int = field(INT32, "0+")
    is_migrating_zk_broker: bool = field(BOOL, "2+")
    incarnation_id: Uuid = field(UUID, "0+")
    broker_epoch: int = field(INT64, "0+")
    end_points: list[BrokerEndpoint] = field(array(BrokerEndpoint), "0+")
    features: list[BrokerFeature] = field(array(BrokerFeature), "0+")
    rack: str | None = field(STRING, "0+", nullable="0+")
    fenced: bool = field(BOOL, "0+", default=True)
    in_controlled_shutdown: bool = field(BOOL, "1+")
    log_dirs: list[Uuid] = field(array(UUID), "3+", tag=0)
    cordoned_log_dirs: list[Uuid] | None = field(array(UUID), "4+", nullable="4+", default=None, tag=1)


class UnregisterBrokerRecord(Message, api_key=1, kind="metadata", versions="0", flexible="0+"):
    """A broker is gone for good."""

    broker_id: int = field(INT32, "0+")
    broker_epoch: int = field(INT64, "0+")


class FenceBrokerRecord(Message, api_key=7, kind="metadata", versions="0", flexible="0+"):
    """A broker was fenced. No longer written; BrokerRegistrationChangeRecord took its place."""

    id: int = field(INT32, "0+")
    epoch: int = field(INT64, "0+")


class UnfenceBrokerRecord(Message, api_key=8, kind="metadata", versions="0", flexible="0+"):
    """A broker was unfenced. No longer written."""

    id: int = field(INT32, "0+")
    epoch: int = field(INT64, "0+")


class BrokerRegistrationChangeRecord(Message, api_key=17, kind="metadata", versions="0-3", flexible="0+"):
    """What changed in a registration. fenced: -1 unfenced, 0 unchanged, 1 fenced."""

    broker_id: int = field(INT32, "0+")
    broker_epoch: int = field(INT64, "0+")
    fenced: int = field(INT8, "0+", tag=0)
    in_controlled_shutdown: int = field(INT8, "1+", tag=1)
    log_dirs: list[Uuid] = field(array(UUID), "2+", tag=2)
    cordoned_log_dirs: list[Uuid] | None = field(array(UUID), "3+", nullable="3+", default=None, tag=3)


class RegisterControllerRecord(Message, api_key=27, kind="metadata", versions="0", flexible="0+"):
    """A controller process registered."""

    class ControllerEndpoint(Struct):
        name: str = field(STRING, "0+")
        host: str = field(STRING, "0+")
        port: int = field(UINT16, "0+")
        security_protocol: int = field(INT16, "0+")

    class ControllerFeature(Struct):
        name: str = field(STRING, "0+")
        min_supported_version: int = field(INT16, "0+")
        max_supported_version: int = field(INT16, "0+")

    controller_id: int = field(INT32, "0+")
    incarnation_id: Uuid = field(UUID, "0+")
    zk_migration_ready: bool = field(BOOL, "0+")
    end_points: list[ControllerEndpoint] = field(array(ControllerEndpoint), "0+")
    features: list[ControllerFeature] = field(array(ControllerFeature), "0+")
