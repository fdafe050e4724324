"""An image as plain values for people and programs: names as in Kafka's JSON, without secrets."""

from collections.abc import Iterator
from typing import Any, Final

from fastquorum.controller.image.access import Acl, DelegationToken, ScramCredential
from fastquorum.controller.image.configs import Resource, ResourceType
from fastquorum.controller.image.image import NO_PRODUCER_ID, Image
from fastquorum.controller.image.partition import Partition, Recovery
from fastquorum.controller.image.quotas import Entity
from fastquorum.controller.image.registrations import Broker, Controller, Feature, Listener
from fastquorum.controller.image.topics import Topic
from fastquorum.wire.message import camel_case

View = dict[str, Any]
SCRAM_MECHANISMS: Final = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}


def image_view(image: Image) -> View:
    """Return the whole image: a section for each kind of thing, sorted."""
    sections: dict[str, Any] = {name: dict(things) for name, things in sections_view(image)}
    sections["nextProducerId"] = sections["nextProducerId"].get("")
    return sections


def sections_view(image: Image) -> Iterator[tuple[str, Iterator[tuple[str, Any]]]]:
    """Yield section by section its things by name, each made when it is read. A thing without a name has ""."""
    yield "features", iter(image.features.by_name().items())
    yield "brokers", ((str(key), broker_view(each)) for key, each in sorted(image.brokers.items()))
    yield "controllers", ((str(key), controller_view(each)) for key, each in sorted(image.controllers.items()))
    yield "topics", ((topic.name, topic_view(topic)) for topic in image.topics.sorted())
    yield "configs", ((resource_name(key), configs_view(image, key)) for key in sorted(image.configs))
    quotas = sorted(image.quotas.items(), key=lambda item: entity_name(item[0]))
    yield "clientQuotas", ((entity_name(key), dict(sorted(each.items()))) for key, each in quotas)
    yield "nextProducerId", (("", each) for each in (image.next_producer_id,) if each != NO_PRODUCER_ID)
    yield "acls", ((str(key), acl_view(each)) for key, each in sorted(image.acls.items()))
    yield "scram", ((scram_name(key), scram_view(each)) for key, each in sorted(image.scram.items()))
    yield "delegationTokens", ((key, token_view(each)) for key, each in sorted(image.tokens.items()))


def broker_view(broker: Broker) -> View:
    cordoned = broker.cordoned_directories
    return {
        "epoch": broker.epoch,
        "incarnationId": str(broker.incarnation_id),
        "fenced": broker.fenced,
        "inControlledShutdown": broker.in_controlled_shutdown,
        "rack": broker.rack,
        "listeners": _listeners(broker.listeners),
        "features": _features(broker.features),
        "logDirs": [str(each) for each in broker.directories],
        "cordonedLogDirs": None if cordoned is None else [str(each) for each in cordoned],
    }


def controller_view(controller: Controller) -> View:
    return {
        "incarnationId": str(controller.incarnation_id),
        "listeners": _listeners(controller.listeners),
        "features": _features(controller.features),
    }


def topic_view(topic: Topic) -> View:
    return {
        "id": str(topic.id),
        "partitions": {str(number): partition_view(each) for number, each in topic.partitions.items()},
    }


def partition_view(partition: Partition) -> View:
    return {
        "leader": partition.leader,
        "replicas": list(partition.replicas),
        "isr": list(partition.isr),
        "elr": list(partition.elr),
        "lastKnownElr": list(partition.last_known_elr),
        "leaderEpoch": partition.leader_epoch,
        "partitionEpoch": partition.partition_epoch,
        "leaderRecoveryState": Recovery(partition.recovery).name,
        "addingReplicas": list(partition.adding),
        "removingReplicas": list(partition.removing),
        "directories": [str(each) for each in partition.directories],
    }


def configs_view(image: Image, resource: Resource) -> dict[str, str]:
    """Return the values that are set for a resource itself, sorted; without defaults."""
    return dict(sorted(image.configs.get(resource, {}).items()))


def acl_view(acl: Acl) -> View:
    return _fields(acl)


def scram_view(credential: ScramCredential) -> View:
    """Return that there is a credential, and its strength: the rest is secret."""
    return {"iterations": credential.iterations}


def token_view(token: DelegationToken) -> View:
    return _fields(token)


def _fields(thing: Acl | DelegationToken) -> View:
    fields = thing._asdict().items()
    return {camel_case(name): list(value) if isinstance(value, tuple) else value for name, value in fields}


def resource_name(resource: Resource) -> str:
    """`topic t`, `broker 1`, `broker default`."""
    return f"{resource_kind(resource)} {resource.name or 'default'}"


def resource_kind(resource: Resource) -> str:
    """`topic`, `client-metrics`."""
    return ResourceType(resource.type).name.lower().replace("_", "-")


def entity_name(entity: Entity) -> str:
    """`client-id default, user u`."""
    return ", ".join(f"{kind} {'default' if name is None else name}" for kind, name in entity)


def scram_name(key: tuple[int, str]) -> str:
    """`SCRAM-SHA-256 u`."""
    mechanism, user = key
    return f"{SCRAM_MECHANISMS.get(mechanism, mechanism)} {user}"


def _listeners(listeners: tuple[Listener, ...]) -> View:
    return {
        each.name: {"host": each.host, "port": each.port, "securityProtocol": each.security_protocol}
        for each in listeners
    }


def _features(features: tuple[Feature, ...]) -> View:
    return {each.name: [each.level_min, each.level_max] for each in features}
