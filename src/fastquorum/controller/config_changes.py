"""Changes configurations of topics, brokers, groups and client metrics.

Source: KIP-133, KIP-226, KIP-339, KIP-412, KIP-714, KIP-966, KIP-1066; Kafka `ConfigurationControlManager`,
`ControllerConfigurationValidator`, which has the same error texts.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from fastquorum.controller.configs.remote_storage import remote_storage_fault
from fastquorum.controller.decisions import Decision
from fastquorum.controller.definitions.checks import NODE_ID, TOO_LONG, VALUE_MAX
from fastquorum.controller.definitions.client_metrics import client_metrics_fault
from fastquorum.controller.definitions.groups import group_config_fault
from fastquorum.controller.definitions.topics import config_fault, configs_conflict
from fastquorum.controller.image.configs import Resource, ResourceType
from fastquorum.controller.refusals import TopicFault
from fastquorum.controller.state.controller_state import MIN_INSYNC_REPLICAS, ControllerState
from fastquorum.types import NodeId
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.message import Message
from fastquorum.wire.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from fastquorum.wire.records.cluster import ConfigRecord
from fastquorum.wire.records.topics import ClearElrRecord

PATTERN_CHARS_MAX: Final = 1024
"""Most characters of all patterns in one request: compiling them takes up to 3 ms a character."""
CORDONED_LOG_DIRS: Final = "cordoned.log.dirs"
LISTS: Final[Mapping[tuple[int, str], str]] = MappingProxyType(
    {
        (ResourceType.TOPIC, "cleanup.policy"): "delete",
        (ResourceType.TOPIC, "follower.replication.throttled.replicas"): "",
        (ResourceType.TOPIC, "leader.replication.throttled.replicas"): "",
        (ResourceType.BROKER, "log.cleanup.policy"): "delete",
        (ResourceType.BROKER, "metric.reporters"): "org.apache.kafka.common.metrics.JmxReporter",
        (ResourceType.BROKER, "sasl.enabled.mechanisms"): "GSSAPI",
        (ResourceType.BROKER, "sasl.kerberos.principal.to.local.rules"): "DEFAULT",
        (ResourceType.BROKER, "ssl.cipher.suites"): "",
        (ResourceType.BROKER, "ssl.enabled.protocols"): "TLSv1.2,TLSv1.3",
        (ResourceType.BROKER, CORDONED_LOG_DIRS): "",
    }
)
"""The list configurations that APPEND and SUBTRACT take, by owner type and name, with their defaults."""

_TYPES: Final = frozenset(each.value for each in ResourceType if each is not ResourceType.UNKNOWN)
_BROKER_ID: Final = re.compile(r"[0-9]{1,10}")


class Operation(IntEnum):
    """What IncrementalAlterConfigs does to one value (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


def incremental_alter_configs(
    state: ControllerState, request: IncrementalAlterConfigsRequest, *, is_forwarded: bool = False
) -> Decision:
    """Decide an IncrementalAlterConfigs; each resource is answered for itself. A broker has checked what it
    forwards."""
    return _altered(state, request, IncrementalAlterConfigsResponse(), _Change(_operated, is_forwarded))


def alter_configs(state: ControllerState, request: AlterConfigsRequest, *, is_forwarded: bool = False) -> Decision:
    """Decide an AlterConfigs, which unsets each value that it does not name; each resource is answered for itself. A
    broker has checked what it forwards."""
    return _altered(state, request, AlterConfigsResponse(), _Change(_replaced, is_forwarded))


class _Change(NamedTuple):
    """How a request changes configurations."""

    wanted: Callable[[Resource, Any, Mapping[str, str]], dict[str, str | None]]
    is_forwarded: bool


def _altered(
    state: ControllerState,
    request: IncrementalAlterConfigsRequest | AlterConfigsRequest,
    answer: IncrementalAlterConfigsResponse | AlterConfigsResponse,
    change: _Change,
) -> Decision:
    """Decide the request, and add a response for each resource; a resource that is named twice gets one."""
    resources: list[Any] = list(request.resources)
    times = Counter(_resource(each) for each in resources if not _may_repeat(each, change))
    answered = set[Resource]()
    has_much = _pattern_chars(resources) > PATTERN_CHARS_MAX
    records: list[Message] = []
    for each in resources:
        resource = _resource(each)
        if times[resource] > 1 and resource in answered:
            continue
        answered.add(resource)
        response = _added(answer, each)
        try:
            if times[resource] > 1:
                raise TopicFault(ErrorCode.INVALID_REQUEST, "Duplicate resource.")
            if has_much and resource.type == ResourceType.CLIENT_METRICS:
                text = f"One request sets patterns (match) of {PATTERN_CHARS_MAX} characters at most."
                raise TopicFault(ErrorCode.INVALID_REQUEST, text)
            records += _of_one(state, resource, each, change)
        except TopicFault as fault:
            response.error_code, response.error_message = fault.code, str(fault)
    return Decision(answer, [] if request.validate_only else [*records, *_cleared(state, records)])


def not_altered(
    request: IncrementalAlterConfigsRequest | AlterConfigsRequest, code: ErrorCode, text: str
) -> IncrementalAlterConfigsResponse | AlterConfigsResponse:
    """Return the error for each resource."""
    is_incremental = isinstance(request, IncrementalAlterConfigsRequest)
    answer = IncrementalAlterConfigsResponse() if is_incremental else AlterConfigsResponse()
    for each in request.resources:
        response = _added(answer, each)
        response.error_code, response.error_message = code, text or None
    return answer


def _added(answer: IncrementalAlterConfigsResponse | AlterConfigsResponse, requested: Any) -> Any:
    """Add an answer for a resource, without an error; return it."""
    kind, name = requested.resource_type, requested.resource_name
    response = answer.AlterConfigsResourceResponse(resource_type=kind, resource_name=name, error_message=None)
    answer.responses.append(response)  # type: ignore[arg-type]  # of its own kind
    return response


def _resource(requested: Any) -> Resource:
    return Resource(requested.resource_type, requested.resource_name)


def _may_repeat(requested: Any, change: _Change) -> bool:
    """Return whether a resource may be named twice: levels of loggers, which no record holds, and unknown types."""
    if requested.resource_type == ResourceType.BROKER_LOGGER:
        return change.wanted is _operated
    return requested.resource_type not in _TYPES


def _pattern_chars(resources: Iterable[Any]) -> int:
    metrics = (each for each in resources if each.resource_type == ResourceType.CLIENT_METRICS)
    return sum(len(config.value or "") for each in metrics for config in each.configs if config.name == "match")


def _of_one(state: ControllerState, resource: Resource, requested: Any, change: _Change) -> list[Message]:
    if resource.type == ResourceType.BROKER_LOGGER and change.wanted is _operated:
        _check_levels(state.node_id, resource.name, requested.configs)
        return []
    _check_resource(state, resource)
    present: Mapping[str, str] = state.image.configs.get(resource, {})
    records: list[Message] = []
    wanted = change.wanted(resource, requested, present)
    for name, value in wanted.items():
        # A broker looks at its files again when its configuration is set anew, be it to the same.
        if value != present.get(name) or resource.type == ResourceType.BROKER:
            _check_value(state, resource, name, value)
            if name == CORDONED_LOG_DIRS and resource.type == ResourceType.BROKER and not change.is_forwarded:
                _check_cordoned(present.get(name, ""), value or "")
            record = ConfigRecord(resource_type=resource.type, resource_name=resource.name, name=name, value=value)
            records.append(record)
    if resource.type == ResourceType.TOPIC:
        _check_together(state, {**present, **wanted}, present)
    return records


# --- what is wanted ---------------------------------------------------------------------------------------------------


def _operated(resource: Resource, requested: Any, present: Mapping[str, str]) -> dict[str, str | None]:
    """Return the new values by name; None: no longer set. The last operation on a name counts, as on Kafka's
    controllers."""
    wanted: dict[str, str | None] = {}
    for each in {each.name: each for each in requested.configs}.values():
        match each.config_operation:
            case Operation.SET:
                wanted[each.name] = _given(each)
            case Operation.DELETE:
                wanted[each.name] = None
            case Operation.APPEND | Operation.SUBTRACT as operation:
                default = LISTS.get((resource.type, each.name))
                if default is None:
                    text = f"Can't {Operation(operation).name} to key {each.name} because its type is not LIST."
                    raise TopicFault(ErrorCode.INVALID_CONFIG, text)
                parts = [part for part in present.get(each.name, default).split(",") if part]
                wanted[each.name] = ",".join(_combined(parts, Operation(operation), _given(each).split(",")))
            case unknown:
                raise TopicFault(ErrorCode.INVALID_REQUEST, f"Unknown operation {unknown} on {each.name}.")
    return wanted


def _combined(parts: list[str], operation: Operation, given: list[str]) -> list[str]:
    if operation is Operation.APPEND:
        return list(dict.fromkeys((*parts, *given)))
    gone = frozenset(given)  # there may be as many as a request has room for
    return [part for part in parts if part not in gone]


def _given(requested: Any) -> str:
    if requested.value is None:
        raise TopicFault(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {requested.name}")
    return str(requested.value)


def _replaced(resource: Resource, requested: Any, present: Mapping[str, str]) -> dict[str, str | None]:
    wanted: dict[str, str | None] = {each.name: _given(each) for each in requested.configs}
    return wanted | {name: None for name in sorted(present) if name not in wanted}


# --- what may be ------------------------------------------------------------------------------------------------------


def _check_resource(state: ControllerState, resource: Resource) -> None:
    match resource.type:
        case ResourceType.TOPIC:
            if state.image.topics.named(resource.name) is None:
                text = f"The topic '{resource.name}' does not exist."
                raise TopicFault(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
        case ResourceType.BROKER:
            if resource.name and _BROKER_ID.fullmatch(resource.name) is None:
                text = "Unable to parse broker name as a base 10 number."
                raise TopicFault(ErrorCode.INVALID_REQUEST, text)
            nodes = (state.image.brokers, state.image.controllers)
            if resource.name and not any(int(resource.name) in each for each in nodes):
                text = f"No node with id {resource.name} found."
                raise TopicFault(ErrorCode.BROKER_ID_NOT_REGISTERED, text)
        case ResourceType.GROUP:
            if not resource.name:
                raise TopicFault(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
        case ResourceType.CLIENT_METRICS:
            if not resource.name:
                raise TopicFault(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
        case ResourceType.BROKER_LOGGER:
            raise TopicFault(ErrorCode.INVALID_REQUEST, "Levels of loggers are changed one by one.")
        case _:
            raise TopicFault(ErrorCode.UNSUPPORTED_VERSION, f"Unknown resource type {resource.type}.")


def _check_levels(node_id: NodeId, name: str, changes: Iterable[Any]) -> None:
    """Refuse each change of a level of node `name`'s loggers. Our nodes have none, so it gets the answer of a Kafka
    controller for an unknown logger."""
    if NODE_ID.fullmatch(name) is None:
        raise TopicFault(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name[:100]}")
    if int(name) != node_id:
        raise TopicFault(ErrorCode.INVALID_REQUEST, f"Unexpected node id: this is node {node_id}, ask {name} itself")
    for each in changes:
        if each.config_operation not in (Operation.SET, Operation.DELETE):
            text = f"Operation {each.config_operation} is not supported for loggers: a level is set, or unset."
            raise TopicFault(ErrorCode.INVALID_REQUEST, text)
        raise TopicFault(ErrorCode.INVALID_CONFIG, f"Logger {each.name} does not exist!")


def _check_value(state: ControllerState, resource: Resource, name: str, value: str | None) -> None:
    code = ErrorCode.INVALID_CONFIG
    if resource.type == ResourceType.BROKER:
        if name == MIN_INSYNC_REPLICAS and state.image.features.is_elr_enabled:
            if resource.name:
                raise TopicFault(code, f"Broker-level {name} cannot be altered while ELR is enabled.")
            if value is None:
                raise TopicFault(code, f"Cluster-level {name} cannot be removed while ELR is enabled.")
        if name == CORDONED_LOG_DIRS and not state.level.has_cordoned_directories:
            raise TopicFault(code, f"The {name} configuration value cannot be set at this metadata.version")
    if value is None:
        return
    if len(value) > VALUE_MAX:
        raise TopicFault(code, TOO_LONG)
    code, fault = _fault(resource.type, name, value)
    if fault:
        raise TopicFault(code, fault)


def _fault(resource_type: int, name: str, value: str) -> tuple[ErrorCode, str]:
    """Return the error and the reason why a resource cannot have a value; no error if it can, or if only brokers
    know."""
    match resource_type:
        case ResourceType.TOPIC:
            return ErrorCode.INVALID_CONFIG, config_fault(name, value)
        case ResourceType.GROUP:
            return ErrorCode.INVALID_CONFIG, group_config_fault(name, value)
        case ResourceType.CLIENT_METRICS:
            return client_metrics_fault(name, value)
    return ErrorCode.NONE, ""


def _check_together(state: ControllerState, wanted: Mapping[str, str | None], present: Mapping[str, str]) -> None:
    values = {name: value for name, value in wanted.items() if value is not None}
    is_there = state.settings.remote_storage
    if conflict := configs_conflict(values) or remote_storage_fault(values, present, is_there=is_there):
        raise TopicFault(ErrorCode.INVALID_CONFIG, conflict)


def _check_cordoned(present: str, wanted: str) -> None:
    """Refuse to cordon more directories: only the broker knows its directories, so others can only free some."""
    cordoned = {each.strip() for each in present.split(",")} if present.strip() else set()
    if wanted.strip() and not {each.strip() for each in wanted.split(",")} <= cordoned:
        text = f"Only the broker itself can tell whether {CORDONED_LOG_DIRS} may have more: ask it."
        raise TopicFault(ErrorCode.INVALID_CONFIG, text)


def _cleared(state: ControllerState, records: Iterable[Message]) -> list[Message]:
    """Clear the eligible replicas of topics whose least ISR changes: they were eligible by another one (KIP-966)."""
    if not state.image.features.is_elr_enabled:
        return []
    changed = [each for each in records if isinstance(each, ConfigRecord) and each.name == MIN_INSYNC_REPLICAS]
    return [
        ClearElrRecord(topic_name=each.resource_name if each.resource_type == ResourceType.TOPIC else "")
        for each in changed
    ]
