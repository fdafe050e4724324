"""DescribeConfigs of one image, at one node. Every controller answers for itself, the active one or not.

Source: KIP-133, KIP-226, KIP-524, KIP-569; Kafka `ConfigHelper`. Answers do not include Kafka's documentation of its
configurations, only that of our own.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from fastquorum.controller.configs.nodes import (
    DYNAMIC_CONFIGS,
    ConfigSource,
    NodeConfigs,
    StartValues,
    Synonym,
    is_secret,
)
from fastquorum.controller.definitions.checks import NODE_ID
from fastquorum.controller.definitions.client_metrics import METRICS_CONFIGS
from fastquorum.controller.definitions.definition import ConfigType, Definition
from fastquorum.controller.definitions.groups import GROUP_CONFIGS
from fastquorum.controller.definitions.topics import INTERNAL_TOPIC_CONFIGS, TOPIC_CONFIGS
from fastquorum.controller.image.configs import Resource, ResourceType
from fastquorum.controller.image.image import Image
from fastquorum.controller.refusals import TopicFault
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.messages.configs import DescribeConfigsRequest, DescribeConfigsResponse

RequestedResource = DescribeConfigsRequest.DescribeConfigsResource
Described = DescribeConfigsResponse.DescribeConfigsResult
Entry = Described.DescribeConfigsResourceResult

_TYPES: Final = frozenset(each.value for each in ResourceType if each is not ResourceType.UNKNOWN)
LEGAL_NAME: Final = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")
"""Legal names of topics."""


def described(image: Image, started: StartValues, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """Return the response. If one resource has an unknown type, all are refused. Naming a resource twice is an error:
    thousands of answers would keep the quorum waiting."""
    if any(each.resource_type not in _TYPES for each in request.resources):
        code, text = ErrorCode.INVALID_REQUEST, "A resource has an unknown type."
        return DescribeConfigsResponse(results=[_refused(each, code, text) for each in request.resources])
    describing = _Describing(image, started, request)
    times = Counter((each.resource_type, each.resource_name) for each in request.resources)
    results = []
    for each in request.resources:
        try:
            if times[each.resource_type, each.resource_name] > 1:
                raise TopicFault(ErrorCode.INVALID_REQUEST, "It is named more than once.")
            result = Described(resource_type=each.resource_type, resource_name=each.resource_name)
            result.configs = chosen(each, describing.entries(each))
        except TopicFault as fault:
            result = _refused(each, fault.code, str(fault))
        results.append(result)
    return DescribeConfigsResponse(results=results)


def chosen(resource: RequestedResource, entries: Iterable[Entry]) -> list[Entry]:
    """Return the entries that the request names; all, if it names none."""
    wanted = frozenset(resource.configuration_keys or ())
    return [each for each in entries if not wanted or each.name in wanted]


def _refused(resource: RequestedResource, code: ErrorCode, text: str) -> Described:
    return Described(
        error_code=code, error_message=text, resource_type=resource.resource_type, resource_name=resource.resource_name
    )


class _Describing:
    """Describes the resources of one request."""

    def __init__(self, image: Image, started: StartValues, request: DescribeConfigsRequest) -> None:
        self._image = image
        self._node = NodeConfigs(started, image.configs)
        self._has_synonyms = request.include_synonyms
        self._has_documentation = request.include_documentation
        self._inherited: dict[ConfigSource, dict[str, Entry]] = {}
        """The entries of topics, or of groups, where nothing is set: the same for all."""

    def entries(self, resource: RequestedResource) -> list[Entry]:
        """Return a resource's entries, sorted by name."""
        name = resource.resource_name
        match resource.resource_type:
            case ResourceType.TOPIC:
                return self._of_topic(name)
            case ResourceType.BROKER:
                return self._of_node(name)
            case ResourceType.BROKER_LOGGER:
                if not name:
                    raise TopicFault(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
                self._check_own(name)
                return []  # there are no loggers whose levels could be set
            case ResourceType.CLIENT_METRICS:
                if not name:
                    raise TopicFault(ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty")
                return self._of_subscription(name)
        if not name:
            raise TopicFault(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
        return self._of_all_and_own(GROUP_CONFIGS, self._set(ResourceType.GROUP, name), ConfigSource.GROUP)

    def _set(self, kind: ResourceType, name: str) -> Mapping[str, str]:
        return self._image.configs.get(Resource(kind, name), {})

    # --- topics and groups --------------------------------------------------------------------------------------------

    def _of_topic(self, name: str) -> list[Entry]:
        if LEGAL_NAME.fullmatch(name) is None:
            raise TopicFault(ErrorCode.INVALID_TOPIC_EXCEPTION, f"There is no topic of the name {name[:249]!r}.")
        if self._image.topics.named(name) is None:
            raise TopicFault(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
        return self._of_all_and_own(TOPIC_CONFIGS, self._set(ResourceType.TOPIC, name), ConfigSource.TOPIC)

    def _of_all_and_own(
        self, definitions: Mapping[str, Definition], values: Mapping[str, str], own: ConfigSource
    ) -> list[Entry]:
        inherited = self._inherited.get(own)
        if inherited is None:
            names = definitions.keys() - INTERNAL_TOPIC_CONFIGS
            inherited = self._inherited[own] = {each: self._entry(each, definitions, {}, own) for each in names}
        changed = {each: self._entry(each, definitions, values, own) for each in values}
        return [entry for _, entry in sorted({**inherited, **changed}.items())]

    def _entry(
        self, name: str, definitions: Mapping[str, Definition], values: Mapping[str, str], own: ConfigSource
    ) -> Entry:
        """Return an entry: its own value, else this node's, else the fixed default."""
        known = definitions.get(name, Definition(ConfigType.UNKNOWN))
        is_hidden = is_secret(known.type)
        synonyms = self._node.synonyms(known.synonyms[0]) if known.synonyms else self._fixed(name, known, own)
        value = self._node.of_topics(known)
        if name in values:
            value = known.canonical(values[name])
            synonyms = [Synonym(name, value, own), *synonyms]
        return self._described_entry(name, value, known.type, synonyms, is_hidden=is_hidden)

    def _fixed(self, name: str, known: Definition, own: ConfigSource) -> list[Synonym]:
        """Return the synonym of a default that no node sets: only groups list it as one."""
        return (
            [Synonym(name, known.default, ConfigSource.DEFAULT)]
            if own is ConfigSource.GROUP and known.default is not None
            else []
        )

    # --- nodes and subscriptions --------------------------------------------------------------------------------------

    def _of_node(self, name: str) -> list[Entry]:
        """Return this node's entries; without a name, those that are set for all nodes."""
        if not name:
            return [self._of_all(each, value) for each, value in sorted(self._node.set_for_all.items())]
        self._check_own(name)
        return [self._node_entry(each, self._node.value(each), self._node.synonyms(each)) for each in self._node.names]

    def _check_own(self, name: str) -> None:
        own = self._node.started.node_id
        if NODE_ID.fullmatch(name) is None:
            raise TopicFault(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name[:100]}")
        if int(name) != own:
            raise TopicFault(ErrorCode.INVALID_REQUEST, f"Unexpected broker id: this is node {own}, ask {name} itself")

    def _of_all(self, name: str, value: str) -> Entry:
        synonyms = [each for each in self._node.synonyms(name) if each.source is ConfigSource.DYNAMIC_DEFAULT_BROKER]
        return self._node_entry(name, value, synonyms)

    def _node_entry(self, name: str, value: str | None, synonyms: Sequence[Synonym]) -> Entry:
        kind = self._node.type(name)
        entry = self._described_entry(name, value, kind, synonyms, is_hidden=is_secret(kind))
        entry.read_only = name not in DYNAMIC_CONFIGS
        if self._has_documentation:
            entry.documentation = self._node.started.documentation.get(name)
        return entry

    def _of_subscription(self, name: str) -> list[Entry]:
        values = self._set(ResourceType.CLIENT_METRICS, name)
        entries = []
        for each in sorted({*METRICS_CONFIGS, *values}):
            known = METRICS_CONFIGS.get(each, Definition(ConfigType.UNKNOWN))
            value = known.canonical(values[each]) if each in values else known.default
            synonyms = [Synonym(each, value or "", ConfigSource.CLIENT_METRICS)] if each in values else []
            entries.append(self._described_entry(each, value, known.type, synonyms, is_hidden=False))
        return entries

    def _described_entry(
        self, name: str, value: str | None, kind: ConfigType, synonyms: Sequence[Synonym], *, is_hidden: bool
    ) -> Entry:
        return Entry(
            name=name,
            value=None if is_hidden else value,
            config_source=synonyms[0].source if synonyms else ConfigSource.DEFAULT,
            is_sensitive=is_hidden,
            synonyms=[
                Entry.DescribeConfigsSynonym(
                    name=each.name, value=None if is_hidden else each.value, source=each.source
                )
                for each in synonyms
            ]
            if self._has_synonyms
            else [],
            config_type=kind,
            documentation=None,
        )
