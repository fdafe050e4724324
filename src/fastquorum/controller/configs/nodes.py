"""The configurations of one node: those set for it, those set for all nodes, its start values, and the defaults.

A node itself uses its start values; the set ones are described, since brokers use them. Source: KIP-226; Kafka
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
"""The configurations that can be set while a node runs."""
_BY_LISTENER: Final = re.compile(r"listener\.name\.[^.]*\.(.*)")
_BY_MECHANISM: Final = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)
"""The configurations that a listener may have for each mechanism."""
_OF_ALL_LISTENERS: Final = frozenset(("max.connections", "max.connection.creation.rate", "num.network.threads"))
"""The listener configurations that can be set for all nodes."""
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
"""The configurations that can be set while a node runs only for a named listener."""
_ALIKE: Final = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
"""Names of one configuration; the first that is set decides."""
_SYNONYMS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {name: names for names in _ALIKE for name in names}
    | {"log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")}
)
_IN_MS: Final = (("minutes", 60_000), ("hours", 3_600_000))
_CHECKS: Final = {known.synonyms[0]: known.check for known in TOPIC_CONFIGS.values() if known.synonyms}


class ConfigSource(IntEnum):
    """The source of a value, numbered as in DescribeConfigs."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    CLIENT_METRICS = 7
    GROUP = 8


class StartValues(NamedTuple):
    """The start values of one node."""

    node_id: NodeId
    static: Mapping[str, str]
    """The values that were given, by name."""
    definitions: Mapping[str, Definition]
    """The configurations that Kafka's nodes do not have, or that have another default here."""
    documentation: Mapping[str, str]


class Synonym(NamedTuple):
    """One value and its source."""

    name: str
    value: str
    source: ConfigSource


class NodeConfigs:
    """The configurations of one node in one image."""

    def __init__(self, started: StartValues, configs: Configs) -> None:
        self.started: Final = started
        self._definitions = {**STATIC_CONFIGS, **CLUSTER_CONFIGS, **NODE_CONFIGS, **started.definitions}
        own: Mapping[str, str] = configs.get(Resource(ResourceType.BROKER, str(started.node_id)), {})
        everybodys: Mapping[str, str] = configs.get(Resource(ResourceType.BROKER, ""), {})
        self.set_for_all: Final = {name: text for name, text in self._usable(everybodys) if _is_for_all(name)}
        defaults = {name: each.default for name, each in self._definitions.items() if each.default is not None}
        self._layers: tuple[tuple[ConfigSource, Mapping[str, str]], ...] = (
            (ConfigSource.DYNAMIC_BROKER, dict(self._usable(own))),
            (ConfigSource.DYNAMIC_DEFAULT_BROKER, self.set_for_all),
            (ConfigSource.STATIC_BROKER, started.static),
            (ConfigSource.DEFAULT, defaults),
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
        """Return the value for topics, or groups, without a value of their own."""
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
        """Yield the set values that a node would accept. Those that the controller does not check may be anything."""
        for name, text in values.items():
            is_static = (name in self._definitions or name in INTERNAL_CONFIGS) and name not in DYNAMIC_CONFIGS
            if not is_static and name not in _BY_LISTENER_ONLY and _is_valid(name, text):
                yield name, text


def milliseconds_in(name: str) -> int:
    """Return the milliseconds in one unit of a node's configuration that topics have in milliseconds; else 1."""
    return next((ms for unit, ms in _IN_MS if name.endswith(f".{unit}")), 1)


def is_secret(kind: ConfigType) -> bool:
    """Return whether values of this type are hidden; an unknown type may be a password, too."""
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
    """Return the name without the listener's prefix."""
    found = _BY_LISTENER.fullmatch(name)
    return name if found is None else found[1]


def _is_for_all(name: str) -> bool:
    """Return whether it can be set for all nodes."""
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
