"""Registered brokers and controllers. Source: KIP-631; Kafka `BrokerRegistration`, `ControllerRegistration`."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol, TypeVar

from immutables import Map

from fastquorum.controller.image.features import Level
from fastquorum.types import NodeId, Uuid
from fastquorum.wire.records.brokers import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)

T = TypeVar("T")


class Listener(NamedTuple):
    """An address of a node; security_protocol has Kafka's numbers (0 PLAINTEXT, 1 SSL, 2, 3 SASL_...)."""

    name: str
    host: str
    port: int
    security_protocol: int


class Feature(NamedTuple):
    """The levels of a feature that a node supports."""

    name: str
    level_min: int
    level_max: int


class Broker(NamedTuple):
    """A broker's registration; immutable."""

    id: NodeId
    epoch: int
    """Offset of the record that registered this incarnation."""
    incarnation_id: Uuid
    listeners: tuple[Listener, ...]
    """By name, each name once."""
    features: tuple[Feature, ...]
    """By name, each name once."""
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    is_migrating_zk_broker: bool
    directories: tuple[Uuid, ...]
    """The log directories that are online."""
    cordoned_directories: tuple[Uuid, ...] | None
    """The log directories that take no new replicas; None until the broker has reported them."""

    @property
    def is_active(self) -> bool:
        """Whether the broker may lead partitions."""
        return not self.fenced and not self.in_controlled_shutdown

    @property
    def has_uncordoned_directories(self) -> bool:
        """Whether the broker may get replicas; it may before it has reported its directories, too."""
        if not self.directories or self.cordoned_directories is None:
            return True
        return not frozenset(self.directories) <= frozenset(self.cordoned_directories)

    def listener(self, name: str) -> Listener | None:
        return next((each for each in self.listeners if each.name == name), None)


class Controller(NamedTuple):
    """A controller's registration; immutable."""

    id: NodeId
    incarnation_id: Uuid
    zk_migration_ready: bool
    listeners: tuple[Listener, ...]
    features: tuple[Feature, ...]


Brokers = Map[NodeId, Broker]
Controllers = Map[NodeId, Controller]


def register_broker(brokers: Brokers, record: RegisterBrokerRecord) -> Brokers:
    """Register a broker, or amend an incarnation's registration."""
    cordoned = record.cordoned_log_dirs
    broker = Broker(
        record.broker_id,
        record.broker_epoch,
        record.incarnation_id,
        _listeners(record.end_points),
        _features(record.features),
        record.rack,
        record.fenced,
        record.in_controlled_shutdown,
        record.is_migrating_zk_broker,
        tuple(record.log_dirs),
        None if cordoned is None else tuple(cordoned),
    )
    return brokers.set(broker.id, broker)


def unregister_broker(brokers: Brokers, record: UnregisterBrokerRecord) -> Brokers:
    return brokers.delete(record.broker_id) if record.broker_id in brokers else brokers


def change_broker(brokers: Brokers, record: BrokerRegistrationChangeRecord) -> Brokers:
    """Change a registration. ValueError if there is no such registration, or the record is invalid."""
    broker = _standing(brokers, record.broker_id, record.broker_epoch)
    if record.fenced not in (-1, 0, 1):
        raise ValueError(f"fenced is {record.fenced}, not -1, 0 or 1")
    if record.in_controlled_shutdown not in (0, 1):
        raise ValueError(f"inControlledShutdown is {record.in_controlled_shutdown}, not 0 or 1")
    if record.fenced:
        broker = broker._replace(fenced=record.fenced > 0)
    if record.in_controlled_shutdown:
        broker = broker._replace(in_controlled_shutdown=True)
    if record.log_dirs:
        broker = broker._replace(directories=tuple(record.log_dirs))
    if record.cordoned_log_dirs is not None:
        broker = broker._replace(cordoned_directories=tuple(record.cordoned_log_dirs))
    return brokers.set(broker.id, broker)


def fence_broker(brokers: Brokers, record: FenceBrokerRecord) -> Brokers:
    """Fence a broker. ValueError if there is no such registration."""
    return brokers.set(record.id, _standing(brokers, record.id, record.epoch)._replace(fenced=True))


def unfence_broker(brokers: Brokers, record: UnfenceBrokerRecord) -> Brokers:
    """Unfence a broker. ValueError if there is no such registration."""
    return brokers.set(record.id, _standing(brokers, record.id, record.epoch)._replace(fenced=False))


def register_controller(controllers: Controllers, record: RegisterControllerRecord) -> Controllers:
    controller = Controller(
        record.controller_id,
        record.incarnation_id,
        record.zk_migration_ready,
        _listeners(record.end_points),
        _features(record.features),
    )
    return controllers.set(controller.id, controller)


def broker_record(broker: Broker, level: Level) -> RegisterBrokerRecord:
    """Return the RegisterBrokerRecord of a snapshot. ValueError if the level cannot express the registration."""
    held = (
        (level.has_migration, broker.is_migrating_zk_broker, "that it migrates from ZooKeeper"),
        (level.has_directories, bool(broker.directories), "which directories it has"),
        (level.has_cordoned_directories, broker.cordoned_directories is not None, "which directories are cordoned"),
    )
    for can_say, has, what in held:
        if has and not can_say:
            raise ValueError(f"metadata.version {level} cannot say of broker {broker.id} {what}")
    cordoned = broker.cordoned_directories
    return RegisterBrokerRecord(
        broker_id=broker.id,
        is_migrating_zk_broker=broker.is_migrating_zk_broker,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=end_points_of(RegisterBrokerRecord.BrokerEndpoint, broker.listeners),
        features=features_of(RegisterBrokerRecord.BrokerFeature, broker.features),
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=list(broker.directories),
        cordoned_log_dirs=None if cordoned is None else list(cordoned),
    )


def controller_record(controller: Controller) -> RegisterControllerRecord:
    return RegisterControllerRecord(
        controller_id=controller.id,
        incarnation_id=controller.incarnation_id,
        zk_migration_ready=controller.zk_migration_ready,
        end_points=end_points_of(RegisterControllerRecord.ControllerEndpoint, controller.listeners),
        features=features_of(RegisterControllerRecord.ControllerFeature, controller.features),
    )


class EndPoint(Protocol):
    """A listener of a request, a record or an image."""

    @property
    def name(self) -> str: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def security_protocol(self) -> int: ...


class SupportedFeature(Protocol):
    """A feature's levels in a request or a record."""

    name: str
    min_supported_version: int
    max_supported_version: int


def end_points_of(kind: Callable[..., T], listeners: Iterable[EndPoint]) -> list[T]:
    """Return the listeners as end points of this record type, in their order."""
    return [
        kind(name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol)
        for each in listeners
    ]


def features_of(kind: Callable[..., T], features: Iterable[Feature]) -> list[T]:
    """Return the features as this record type holds them, in their order."""
    return [
        kind(name=each.name, min_supported_version=each.level_min, max_supported_version=each.level_max)
        for each in features
    ]


def supported(features: Iterable[SupportedFeature]) -> Iterator[Feature]:
    return (Feature(each.name, each.min_supported_version, each.max_supported_version) for each in features)


def _listeners(end_points: Iterable[EndPoint]) -> tuple[Listener, ...]:
    return _by_name(Listener(each.name, each.host, each.port, each.security_protocol) for each in end_points)


def _features(features: Iterable[SupportedFeature]) -> tuple[Feature, ...]:
    return _by_name(supported(features))


def _by_name(named: Iterable[Any]) -> tuple[Any, ...]:
    """Return them sorted by name; of two with one name the later counts, as in Kafka's maps."""
    return tuple(each for _, each in sorted({each.name: each for each in named}.items()))


def _standing(brokers: Brokers, broker_id: NodeId, epoch: int) -> Broker:
    broker = brokers.get(broker_id)
    if broker is None:
        raise ValueError(f"broker {broker_id} is not registered")
    if broker.epoch != epoch:
        raise ValueError(f"broker {broker_id} is registered with epoch {broker.epoch}, not {epoch}")
    return broker
