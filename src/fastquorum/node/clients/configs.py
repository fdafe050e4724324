"""DescribeConfigs. Sans-IO.

Beside a controller: what was set for topics, nodes, groups and subscriptions, as of what is committed, and what this
node runs by. Without one, and of the log that is shown as a topic: what holds for that topic and for this node, all of
it read-only. Source: KIP-133, KIP-226.
"""

from collections import Counter
from typing import Final

from fastquorum.config import MS, QuorumConfig
from fastquorum.controller.configs.describing import Described, Entry, RequestedResource, chosen, described
from fastquorum.controller.configs.nodes import ConfigSource, StartValues
from fastquorum.controller.definitions.checks import anything
from fastquorum.controller.definitions.definition import ConfigType, Definition
from fastquorum.controller.definitions.dynamic import CLUSTER_CONFIGS
from fastquorum.controller.definitions.static import STATIC_CONFIGS
from fastquorum.controller.image.configs import ResourceType
from fastquorum.controller.state.controller_state import ControllerSettings
from fastquorum.node.clients.context import ClientContext
from fastquorum.node.metadata.controller import MetadataController
from fastquorum.node.settings.settings import MEANINGS, SETTINGS, default_text, setting_text
from fastquorum.types import NodeId
from fastquorum.wire import ErrorCode
from fastquorum.wire.messages.configs import DescribeConfigsRequest, DescribeConfigsResponse

_SESSION: Final = next(each for each in SETTINGS if each.name == "session_timeout_us")
_TOPIC_NAMES: Final = (
    "num_partitions",
    "default_replication_factor",
    "min_insync_replicas",
    "unclean_leader_election",
    "remote_storage",
)
_OF_TOPICS: Final = tuple(each for each in SETTINGS if each.name in _TOPIC_NAMES)
"""Kafka's own, as it defines them."""
_NUMBERS: Final = tuple(each for each in SETTINGS if each.is_quorum)


class ConfigAnswers:
    """Responses about configurations, of one node."""

    def __init__(self, context: ClientContext, controller: MetadataController | None) -> None:
        self._context = context
        self._controller = controller

    def describe(self, message: DescribeConfigsRequest) -> DescribeConfigsResponse:
        """A resource that is asked about twice is an error: thousands of answers would keep the quorum waiting."""
        if self._controller is None:
            named = Counter((each.resource_type, each.resource_name) for each in message.resources)
            return DescribeConfigsResponse(results=[self._described(each, named) for each in message.resources])
        node_id, config = self._context.replica.raft.key.id, self._context.config
        answer = described(self._controller.replay.image, started(node_id, config, self._controller.settings), message)
        for wanted, result in zip(message.resources, answer.results, strict=True):
            is_own = wanted.resource_type == ResourceType.TOPIC and wanted.resource_name == self._context.topic_name
            if is_own and result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                result.error_code, result.configs = ErrorCode.NONE, self._of_own_topic(wanted)
        return answer

    # --- without a controller -----------------------------------------------------------------------------------------

    def _described(self, wanted: RequestedResource, named: Counter[tuple[int, str]]) -> Described:
        result = Described(error_message=None, resource_type=wanted.resource_type, resource_name=wanted.resource_name)
        if named[wanted.resource_type, wanted.resource_name] > 1:
            result.error_code = ErrorCode.INVALID_REQUEST
            result.error_message = "it is asked about more than once"
            return result
        match wanted.resource_type:
            case ResourceType.TOPIC:
                result.error_code = self._context.partition_error(
                    wanted.resource_name, self._context.topic_id, 0, False
                )
                if not result.error_code:
                    result.configs = self._of_own_topic(wanted)
            case ResourceType.BROKER:
                own = str(self._context.replica.raft.key.id)
                if wanted.resource_name in ("", own):
                    result.configs = self._of_own_node(wanted)
                else:
                    result.error_code = ErrorCode.INVALID_REQUEST
                    result.error_message = f"this is node {own}: ask node {wanted.resource_name} itself"
            case other:
                result.error_code = ErrorCode.INVALID_REQUEST
                result.error_message = f"resource type {other}: 2 asks for topics, 4 for nodes"
        return result

    def _of_own_topic(self, wanted: RequestedResource) -> list[Entry]:
        """In Kafka's words, what holds for the one topic: nothing is ever deleted, and a majority has what is
        acknowledged."""
        config = self._context.config
        values = {
            "cleanup.policy": "delete",
            "compression.type": "producer",
            "max.message.bytes": str(config.batch_bytes_max),
            "message.timestamp.type": "CreateTime",
            "min.insync.replicas": str(self._context.replica.raft.voters.majority),
            "retention.bytes": "-1",
            "retention.ms": "-1",
            "segment.bytes": str(config.segment_bytes),
        }
        return chosen(wanted, [_entry(name, value, ConfigSource.DEFAULT) for name, value in values.items()])

    def _of_own_node(self, wanted: RequestedResource) -> list[Entry]:
        values = {each.keys[0]: setting_text(each, self._context.config) for each in _NUMBERS}
        return chosen(wanted, [_entry(name, value, ConfigSource.STATIC_BROKER) for name, value in values.items()])


def _entry(name: str, value: str, source: ConfigSource) -> Entry:
    return Entry(name=name, value=value, read_only=True, config_source=source, documentation=None)


def started(node_id: NodeId, config: QuorumConfig, settings: ControllerSettings) -> StartValues:
    """What the node runs by, under Kafka's names where Kafka has one: what is not its default, it was told."""
    usual = QuorumConfig()
    values = {each.keys[0]: setting_text(each, config) for each in _NUMBERS}
    defaults = {each.keys[0]: setting_text(each, usual) for each in _NUMBERS}
    values[_SESSION.keys[0]] = str(settings.session_timeout_us // MS)
    defaults[_SESSION.keys[0]] = default_text(_SESSION)
    static = {name: value for name, value in values.items() if value != defaults[name]}
    topics = {each: str(getattr(settings, each.name)).lower() for each in _OF_TOPICS}
    static |= {each.keys[0]: value for each, value in topics.items() if value != default_text(each)}
    static |= {"node.id": str(node_id), "broker.id": str(node_id), "process.roles": "controller"}
    return StartValues(
        node_id,
        static,
        {name: Definition(_type_of(name), default, anything) for name, default in defaults.items()},
        {each.keys[0]: MEANINGS[each.name] for each in (*_NUMBERS, _SESSION)},
    )


def _type_of(name: str) -> ConfigType:
    """Kafka's, where it has one; ours are numbers."""
    known = STATIC_CONFIGS.get(name) or CLUSTER_CONFIGS.get(name)
    return ConfigType.LONG if known is None else known.type
