"""Configurations: what was set for topics, brokers, the defaults of all brokers, groups, client metrics.

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
    """Whose configuration it is, as Kafka's `ConfigResource.Type` numbers them."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Resource(NamedTuple):
    """Whose configuration it is; the name "" stands for every broker's default. In an image `type` is a ResourceType:
    a type that is not known has no configuration that is."""

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
"""Of whom it is known which configurations there are. A broker's may have any name."""


def set_config(configs: Configs, record: ConfigRecord) -> Configs:
    """A value was set, or, null, removed. What no such resource can have (any more) is passed over, as in Kafka, an
    older one of which may have written it."""
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
    """A topic was removed, and its configuration with it."""
    resource = Resource(ResourceType.TOPIC, topic_name)
    return configs.delete(resource) if resource in configs else configs


def config_records(configs: Configs) -> Iterator[ConfigRecord]:
    """Of a snapshot."""
    for resource, values in sorted(configs.items(), key=lambda item: item[0]):
        for name, value in sorted(values.items()):
            yield ConfigRecord(resource_type=resource.type, resource_name=resource.name, name=name, value=value)
