"""Creates and deletes topics. Source: KIP-4, KIP-516, KIP-631; Kafka `ReplicationControlManager.createTopics`.

Error texts are Kafka's: its tools print them, and their users search for them.
"""

import re
from collections import Counter
from typing import Final

from fastquorum.controller.configs.remote_storage import remote_storage_fault
from fastquorum.controller.decisions import Decision
from fastquorum.controller.definitions.checks import TOO_LONG, VALUE_MAX
from fastquorum.controller.definitions.topics import config_fault, configs_conflict
from fastquorum.controller.ids import random_id
from fastquorum.controller.image.partition import partition_record
from fastquorum.controller.image.topics import Topic
from fastquorum.controller.partitions.assignments import check_assignment
from fastquorum.controller.refusals import Refused, TopicFault
from fastquorum.controller.state.controller_state import ControllerState
from fastquorum.controller.state.placement import PlacementError, PlacementRandom, Placer
from fastquorum.types import TOPIC_NAME, ZERO_UUID, NodeId, Uuid
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.message import Message
from fastquorum.wire.messages.topics import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from fastquorum.wire.records.cluster import ConfigRecord
from fastquorum.wire.records.topics import RemoveTopicRecord, TopicRecord

PARTITIONS_MAX: Final = 10_000
"""Most partitions that one request may create."""
RECORDS_MAX: Final = 10_000
"""Most records of one request: a topic's, those of its configurations, and one for each partition."""
_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_TOPIC: Final = 2
_DELETION_DISABLED_SINCE: Final = 3
"""The version of DeleteTopics that first has its own error for it."""
_Requested = CreateTopicsRequest.CreatableTopic
_Created = CreateTopicsResponse.CreatableTopicResult
_Deleted = DeleteTopicsResponse.DeletableTopicResult


# --- creating ---------------------------------------------------------------------------------------------------------


def create_topics(state: ControllerState, request: CreateTopicsRequest, chance: PlacementRandom) -> Decision:
    """Decide a CreateTopics; each topic is answered for itself, once; all that can be created are one batch.

    Raises:
        Refused: POLICY_VIOLATION for more partitions than one request may create, or more records than it may write.
    """
    times = Counter([each.name for each in request.topics])
    topics = [each for each in request.topics if times[each.name] == 1 and each.name != TOPIC_NAME]
    if sum(_partition_count(state, each) for each in topics) > PARTITIONS_MAX:
        raise Refused(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
    creation = _Creation(state, chance)
    answer, records = CreateTopicsResponse(), list[Message]()
    for requested in topics:
        try:
            _check_name(state, requested.name)
            made, result = creation.create(requested)
        except TopicFault as fault:
            answer.topics.append(_not_created(requested.name, fault.code, str(fault)))
            continue
        records += made
        if len(records) > RECORDS_MAX:
            raise Refused(ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
        answer.topics.append(result)
    for name, count in times.items():
        if count > 1:
            answer.topics.append(_not_created(name, ErrorCode.INVALID_REQUEST, "Duplicate topic name."))
        elif name == TOPIC_NAME:
            text = f"Creation of internal topic {name} is prohibited."
            answer.topics.append(_not_created(name, ErrorCode.INVALID_REQUEST, text))
    return Decision(answer, [] if request.validate_only else records)


def _not_created(name: str, code: ErrorCode, text: str) -> _Created:
    return _Created(name=name, error_code=code, error_message=text)


def _partition_count(state: ControllerState, requested: _Requested) -> int:
    if requested.assignments:
        return len(requested.assignments)
    return state.settings.num_partitions if requested.num_partitions == -1 else max(requested.num_partitions, 0)


def _check_name(state: ControllerState, name: str) -> None:
    if _LEGAL.fullmatch(name) is None or name in (".", ".."):
        raise TopicFault(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {_name_fault(name)}")
    if name in state.image.topics.ids:
        raise TopicFault(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    other = state.name_collisions.taken(name)
    if other is not None:
        raise TopicFault(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}")


def _name_fault(name: str) -> str:
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return "'.' or '..' is not allowed"
    return (
        f"'{name}' is longer than 249 characters or contains one or more characters other than ASCII alphanumerics, "
        "'.', '_' and '-'"
    )


class _Creation:
    """Creates the topics of one request; facts that they share are looked up once."""

    def __init__(self, state: ControllerState, chance: PlacementRandom) -> None:
        self._state = state
        self._chance = chance
        self._level = state.level
        self._with_elr = state.image.features.is_elr_enabled
        self._replica_candidates = state.replica_candidates
        self._effective = state.effective_configs
        self._placer = Placer(self._replica_candidates.by_rack, chance)

    def create(self, requested: _Requested) -> tuple[list[Message], _Created]:
        """Return the topic's records and its result. TopicFault."""
        configs = _checked_configs(self._state, requested)
        assignments = _assigned(self._state, requested) if requested.assignments else self._placed(requested)
        topic_id = new_topic_id(self._state, self._chance)
        records: list[Message] = [TopicRecord(name=requested.name, topic_id=topic_id)]
        for name, value in configs.items():
            records.append(ConfigRecord(resource_type=_TOPIC, resource_name=requested.name, name=name, value=value))
        for number, replicas in enumerate(assignments):
            partition = self._replica_candidates.new_partition(replicas)
            records.append(partition_record(topic_id, number, partition, self._level, with_elr=self._with_elr))
        result = _Created(
            name=requested.name,
            topic_id=topic_id,
            error_message=None,
            num_partitions=len(assignments),
            replication_factor=len(assignments[0]),
            configs=self._effective.of(configs),
        )
        return records, result

    def _placed(self, requested: _Requested) -> list[tuple[NodeId, ...]]:
        if requested.replication_factor < -1 or requested.replication_factor == 0:
            text = "Replication factor must be larger than 0, or -1 to use the default value."
            raise TopicFault(ErrorCode.INVALID_REPLICATION_FACTOR, text)
        if requested.num_partitions < -1 or requested.num_partitions == 0:
            text = "Number of partitions was set to an invalid non-positive value."
            raise TopicFault(ErrorCode.INVALID_PARTITIONS, text)
        default, factor = self._state.settings.default_replication_factor, requested.replication_factor
        factor = default if factor == -1 else factor
        try:
            return self._placer.place(_partition_count(self._state, requested), factor)
        except PlacementError as error:
            text = f"Unable to replicate the partition {factor} time(s): {error}"
            raise TopicFault(ErrorCode.INVALID_REPLICATION_FACTOR, text) from error


def _checked_configs(state: ControllerState, requested: _Requested) -> dict[str, str]:
    """Return the topic's configurations by name. TopicFault."""
    if not requested.configs:
        return {}
    without = [each.name for each in requested.configs if each.value is None]
    if without:
        raise TopicFault(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(without)}")
    values = {each.name: each.value or "" for each in requested.configs}
    for name, value in values.items():
        fault = TOO_LONG if len(value) > VALUE_MAX else config_fault(name, value)
        if fault:
            raise TopicFault(ErrorCode.INVALID_CONFIG, fault)
    is_there = state.settings.remote_storage
    if conflict := configs_conflict(values) or remote_storage_fault(values, {}, is_there=is_there):
        raise TopicFault(ErrorCode.INVALID_CONFIG, conflict)
    return values


def _assigned(state: ControllerState, requested: _Requested) -> list[tuple[NodeId, ...]]:
    """Return the replicas of each partition as the request assigns them. TopicFault."""
    if requested.replication_factor != -1:
        text = "A manual partition assignment was specified, but replication factor was not set to -1."
        raise TopicFault(ErrorCode.INVALID_REQUEST, text)
    if requested.num_partitions != -1:
        text = "A manual partition assignment was specified, but numPartitions was not set to -1."
        raise TopicFault(ErrorCode.INVALID_REQUEST, text)
    found: dict[int, tuple[NodeId, ...]] = {}
    for each in requested.assignments:
        if each.partition_index in found:
            text = f"Found multiple manual partition assignments for partition {each.partition_index}"
            raise TopicFault(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
        factor = len(next(iter(found.values()))) if found else len(each.broker_ids)
        check_assignment(state, each.partition_index, each.broker_ids, factor)
        found[each.partition_index] = tuple(each.broker_ids)
    if sorted(found) != list(range(len(found))):
        text = "partitions should be a consecutive 0-based integer sequence"
        raise TopicFault(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
    return [found[number] for number in range(len(found))]


def new_topic_id(state: ControllerState, chance: PlacementRandom) -> Uuid:
    """Return a random id that is not taken."""
    while True:
        found = random_id(chance)
        if found not in state.image.topics.by_id:
            return found


# --- deleting ---------------------------------------------------------------------------------------------------------


def delete_topics(state: ControllerState, request: DeleteTopicsRequest, version: int) -> Decision:
    """Decide a DeleteTopics; each topic is answered for itself. One that is named twice is answered once, and stays."""
    if not state.settings.delete_topics:
        return Decision(_all_stay(request, version))
    topics, responses = state.image.topics, list[_Deleted]()
    names = Counter(request.topic_names if version < 6 else [])
    ids = Counter[Uuid]()
    for each in request.topics if version >= 6 else ():
        if each.name is not None and each.topic_id != ZERO_UUID:
            text = "You may not specify both topic name and topic id."
            responses.append(_not_deleted(each.name, each.topic_id, ErrorCode.INVALID_REQUEST, text))
        elif each.name is not None:
            names[each.name] += 1
        elif each.topic_id != ZERO_UUID:
            ids[each.topic_id] += 1
        else:
            text = "Neither topic name nor id were specified."
            responses.append(_not_deleted(None, ZERO_UUID, ErrorCode.INVALID_REQUEST, text))
    found: dict[Uuid, Topic] = {}
    for topic_id, count in ids.items():
        topic = topics.by_id.get(topic_id)
        if count > 1:
            responses.append(_not_deleted(None, topic_id, ErrorCode.INVALID_REQUEST, "Duplicate topic id."))
        elif topic is None:
            text = "This server does not host this topic ID."
            responses.append(_not_deleted(None, topic_id, ErrorCode.UNKNOWN_TOPIC_ID, text))
        else:
            found[topic_id] = topic
    for name, count in names.items():
        topic = topics.named(name)
        if count > 1:
            responses.append(_not_deleted(name, ZERO_UUID, ErrorCode.INVALID_REQUEST, "Duplicate topic name."))
        elif topic is None:
            text = "This server does not host this topic-partition."
            responses.append(_not_deleted(name, ZERO_UUID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text))
        elif topic.id in ids:
            found.pop(topic.id, None)
            text = "The provided topic name maps to an ID that was already supplied."
            responses.append(_not_deleted(name, topic.id, ErrorCode.INVALID_REQUEST, text))
        else:
            found[topic.id] = topic
    responses += [_Deleted(name=topic.name, topic_id=topic.id) for topic in found.values()]
    answer = DeleteTopicsResponse(responses=responses)
    return Decision(answer, [RemoveTopicRecord(topic_id=topic_id) for topic_id in found])


def _all_stay(request: DeleteTopicsRequest, version: int) -> DeleteTopicsResponse:
    """Refuse every topic where `delete.topic.enable` is false, before anything is looked at."""
    is_known = version >= _DELETION_DISABLED_SINCE
    code = ErrorCode.TOPIC_DELETION_DISABLED if is_known else ErrorCode.INVALID_REQUEST
    if version < 6:
        return DeleteTopicsResponse(responses=[_Deleted(name=name, error_code=code) for name in request.topic_names])
    return DeleteTopicsResponse(
        responses=[_Deleted(name=each.name, topic_id=each.topic_id, error_code=code) for each in request.topics]
    )


def _not_deleted(name: str | None, topic_id: Uuid, code: ErrorCode, text: str) -> _Deleted:
    return _Deleted(name=name, topic_id=topic_id, error_code=code, error_message=text)
