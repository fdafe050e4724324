"""Configurations that are set for topics, brokers, the defaults of all brokers, groups, client metrics.

Source: KIP-226, KIP-631; Kafka `ConfigurationsImage`, `DefaultSupportedConfigChecker`.
"""

from collections.abc import Container, Iterator, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from immutables import Map

from fastquorum.controller.definitions.client_metrics import METRICS_CONFIGS
from fastquorum.controller.definitions.groups import GROUP_CONFIGS
from fastquorum.controller.definitions.topics import TOPIC_CONFIGS
from fastquorum.wire.records.cluster import ConfigRecord


class ResourceType(IntEnum):
    """The type of a configuration's owner, numbered as Kafka's `ConfigResource.Type`."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Resource(NamedTuple):
    """The owner of a configuration; the name "" stands for every broker's default. In an image `type` is a
    ResourceType: an unknown type has no known configuration."""

    type: int
    name: str


Configs = Map[Resource, Map[str, str]]
_KNOWN: Final[Mapping[int, Container[str]]] = MappingProxyType(
    {
        ResourceType.TOPIC: TOPIC_CONFIGS,
        ResourceType.CLIENT_METRICS: METRICS_CONFIGS,
        ResourceType.GROUP: GROUP_CONFIGS,
    }
)
"""The known configurations of each type of owner. A broker's may have any name."""


def set_config(configs: Configs, record: ConfigRecord) -> Configs:
    """Set a value, or remove it (null). A name that such a resource cannot have (any more) is passed over, as in Kafka:
    an older Kafka may have written it."""
    if record.resource_type != ResourceType.BROKER and record.name not in _KNOWN.get(record.resource_type, ()):
        return configs
    resource = Resource(record.resource_type, record.resource_name)
    values = configs.get(resource, Map())
    if record.value is not None:
        return configs.set(resource, values.set(record.name, record.value))
    if record.name not in values:
        return configs
    values = values.delete(record.name)
    return configs.set(resource, values) if values else configs.delete(resource)


def forget_topic(configs: Configs, topic_name: str) -> Configs:
    resource = Resource(ResourceType.TOPIC, topic_name)
    return configs.delete(resource) if resource in configs else configs


def config_records(configs: Configs) -> Iterator[ConfigRecord]:
    """Yield the records of a snapshot, by resource and name."""
    for resource, values in sorted(configs.items(), key=lambda item: item[0]):
        for name, value in sorted(values.items()):
            yield ConfigRecord(resource_type=resource.type, resource_name=resource.name, name=name, value=value)
