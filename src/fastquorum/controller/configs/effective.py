"""The configurations of a new topic, as CreateTopics returns them.

A value is the topic's own, else the one set for the controller's node, else for all nodes, else the node's start value,
else Kafka's default; as it was written. Source: KIP-525; Kafka `KafkaConfigSchema`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from immutables import Map

from fastquorum.controller.configs.nodes import ConfigSource, NodeConfigs, StartValues, milliseconds_in
from fastquorum.controller.definitions.checks import INT_MAX, is_whole, trimmed
from fastquorum.controller.definitions.topics import INTERNAL_TOPIC_CONFIGS, TOPIC_CONFIGS
from fastquorum.kernels.messages import Alike
from fastquorum.types import NO_NODE
from fastquorum.wire.messages.topics import CreateTopicsResponse

Entry = CreateTopicsResponse.CreatableTopicResult.CreatableTopicConfigs

_KAFKA: Final = NodeConfigs(StartValues(NO_NODE, {}, {}, {}), Map())
"""A node without any value of its own."""
TOPIC_DEFAULTS: Final[Mapping[str, str | None]] = MappingProxyType(
    {name: _KAFKA.of_topics(known) for name, known in TOPIC_CONFIGS.items()}
)
"""A topic's values where nothing is set anywhere."""


class EffectiveConfigs:
    """The configurations of new topics, as long as nothing else is set for the node and for all nodes."""

    def __init__(self, own: Mapping[str, str], everybodys: Mapping[str, str], static: Mapping[str, str]) -> None:
        """Take the values that are set for the node, for all nodes, and at the node's start, each by its node name."""
        self.own: Final = own
        self.everybodys: Final = everybodys
        layers = (
            (ConfigSource.DYNAMIC_BROKER, own),
            (ConfigSource.DYNAMIC_DEFAULT_BROKER, everybodys),
            (ConfigSource.STATIC_BROKER, static),
        )
        names = sorted(TOPIC_CONFIGS.keys() - INTERNAL_TOPIC_CONFIGS)
        self._inherited: Final = Alike(_inherited(name, layers) for name in names)

    def of(self, given: Mapping[str, str]) -> list[Entry]:
        """Return the entries of a topic with these values of its own, by name. Inherited entries are shared by all
        results: no caller may change them."""
        if not given:
            return self._inherited
        own = [Entry(name=name, value=value, config_source=ConfigSource.TOPIC) for name, value in given.items()]
        others = (each for each in self._inherited if each.name not in given)
        return sorted((*others, *own), key=lambda each: each.name)


def _inherited(name: str, layers: tuple[tuple[ConfigSource, Mapping[str, str]], ...]) -> Entry:
    for source, layer in layers:
        for synonym in TOPIC_CONFIGS[name].synonyms:
            if synonym in layer:
                return Entry(name=name, value=_converted(synonym, layer[synonym]), config_source=source)
    return Entry(name=name, value=TOPIC_DEFAULTS[name], config_source=ConfigSource.DEFAULT)


def _converted(synonym: str, text: str) -> str:
    """Return the value in the topic's unit; what is not a number of hours, or of minutes, counts as 0."""
    unit_ms = milliseconds_in(synonym)
    if unit_ms == 1:
        return text
    count = int(trimmed(text)) if is_whole(text) else 0
    return str(count * unit_ms if -INT_MAX - 1 <= count <= INT_MAX else 0)
