"""What holds for one node: what was set for it, what for all nodes, what it was started with, and the defaults.

A node goes by what it was started with; what was set is shown, as brokers take it over. Source: KIP-226; Kafka
`DynamicBrokerConfig`, `KafkaConfig`.
"""

import re
from collections.abc import Iterable, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from fastquorum.controller.definitions.definition import ConfigType, Definition, is_of
from fastquorum.controller.definitions.dynamic import CLUSTER_CONFIGS, NODE_CONFIGS, QUOTA_CONFIGS
from fastquorum.controller.definitions.static import INTERNAL_CONFIGS, STATIC_CONFIGS
from fastquorum.controller.definitions.topics import TOPIC_CONFIGS
from fastquorum.controller.image.configs import Configs, Resource, ResourceType
from fastquorum.types import NodeId

DYNAMIC_CONFIGS: Final[Mapping[str, Definition]] = MappingProxyType(
    {**CLUSTER_CONFIGS, **NODE_CONFIGS, **QUOTA_CONFIGS}
)
"""What can be set while a node runs."""
_BY_LISTENER: Final = re.compile(r"listener\.name\.[^.]*\.(.*)")
_BY_MECHANISM: Final = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)
"""What a listener may have once for each mechanism."""
_OF_ALL_LISTENERS: Final = frozenset(("max.connections", "max.connection.creation.rate", "num.network.threads"))
"""What can be set for all nodes though it is a listener's."""
_BY_LISTENER_ONLY: Final = frozenset(
    (
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    )
)
"""What can be set while a node runs only for a listener by name."""
_ALIKE: Final = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
"""Names for one thing; the first that is set decides."""
_SYNONYMS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {name: names for names in _ALIKE for name in names}
    | {"log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")}
)
_IN_MS: Final = (("minutes", 60_000), ("hours", 3_600_000))
_CHECKS: Final = {known.synonyms[0]: known.check for known in TOPIC_CONFIGS.values() if known.synonyms}


class Source(IntEnum):
    """Where a value comes from, as DescribeConfigs numbers it."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    CLIENT_METRICS = 7
    GROUP = 8


class Started(NamedTuple):
    """One node, as it was started."""

    node_id: NodeId
    static: Mapping[str, str]
    """What it was told, by name."""
    definitions: Mapping[str, Definition]
    """What it knows beyond Kafka's nodes, or has another default for."""
    documentation: Mapping[str, str]


class Synonym(NamedTuple):
    """One value, and where it comes from."""

    name: str
    value: str
    source: Source


class NodeConfigs:
    """The configurations of one node in one image."""

    def __init__(self, started: Started, configs: Configs) -> None:
        self.started: Final = started
        self._definitions = {**STATIC_CONFIGS, **CLUSTER_CONFIGS, **NODE_CONFIGS, **started.definitions}
        own: Mapping[str, str] = configs.get(Resource(ResourceType.BROKER, str(started.node_id)), {})
        everybodys: Mapping[str, str] = configs.get(Resource(ResourceType.BROKER, ""), {})
        self.set_for_all: Final = {name: text for name, text in self._usable(everybodys) if _is_for_all(name)}
        defaults = {name: each.default for name, each in self._definitions.items() if each.default is not None}
        self._layers: tuple[tuple[Source, Mapping[str, str]], ...] = (
            (Source.DYNAMIC_BROKER, dict(self._usable(own))),
            (Source.DYNAMIC_DEFAULT_BROKER, self.set_for_all),
            (Source.STATIC_BROKER, started.static),
            (Source.DEFAULT, defaults),
        )

    @property
    def names(self) -> list[str]:
        """The names that a description of the node lists: all known ones, and what else is set."""
        return sorted({*self._definitions, *(name for _, layer in self._layers for name in layer)})

    def value(self, name: str) -> str | None:
        """Return the value of exactly this name, in canonical form; None if there is none."""
        found = next((layer[name] for _, layer in self._layers if name in layer), None)
        known = self._definitions.get(name)
        return found if known is None or found is None else known.canonical(found)

    def of_topics(self, known: Definition) -> str | None:
        """What topics have, or groups, that nothing was set for."""
        for name in known.synonyms:
            value = self.value(name)
            if value is not None:
                unit_ms = milliseconds_in(name)
                value = str(int(value) * unit_ms) if unit_ms > 1 else value
                return "-1" if known.synonyms[0] == "log.retention.ms" and value.startswith("-") else value
        return known.default

    def synonyms(self, name: str) -> list[Synonym]:
        """Return all values that are set by any of its names, the one that holds first; only from this name's own
        value on."""
        names = _names(name)
        found = [
            Synonym(each, layer[each], source) for source, layer in self._layers for each in names if each in layer
        ]
        first = next((place for place, synonym in enumerate(found) if synonym.name == name), len(found))
        return found[first:]

    def type(self, name: str) -> ConfigType:
        """Return the type; UNKNOWN if the name is not defined."""
        known = (self._definitions.get(each) or QUOTA_CONFIGS.get(each) for each in (name, *_names(name)))
        return next((each.type for each in known if each is not None), ConfigType.UNKNOWN)

    def _usable(self, values: Mapping[str, str]) -> Iterable[tuple[str, str]]:
        """What a node takes over of what was set. What the controller does not look at may be anything."""
        for name, text in values.items():
            is_static = (name in self._definitions or name in INTERNAL_CONFIGS) and name not in DYNAMIC_CONFIGS
            if not is_static and name not in _BY_LISTENER_ONLY and _is_valid(name, text):
                yield name, text


def milliseconds_in(name: str) -> int:
    """In what such a configuration of a node counts, where topics count in milliseconds; else 1."""
    return next((ms for unit, ms in _IN_MS if name.endswith(f".{unit}")), 1)


def is_secret(kind: ConfigType) -> bool:
    """What nobody has defined may be a password too."""
    return kind in (ConfigType.PASSWORD, ConfigType.UNKNOWN)


def _names(name: str) -> tuple[str, ...]:
    if name in _SYNONYMS:
        return _SYNONYMS[name]
    found = _BY_LISTENER.fullmatch(name)
    if found is None:
        return (name,)
    base = found[1]
    return name, next((each for each in _BY_MECHANISM if base.endswith(each)), base)


def _base(name: str) -> str:
    """Without the listener's name."""
    found = _BY_LISTENER.fullmatch(name)
    return name if found is None else found[1]


def _is_for_all(name: str) -> bool:
    """Can it be set for all nodes?"""
    if _BY_LISTENER.fullmatch(name) is not None:
        return _base(name) in _OF_ALL_LISTENERS
    return name not in NODE_CONFIGS


def _is_valid(name: str, text: str) -> bool:
    base = _base(name)
    known = DYNAMIC_CONFIGS.get(base)
    if known is None:
        return True
    check = _CHECKS.get(base)
    return is_of(known.type, text) and (check is None or check(text))
