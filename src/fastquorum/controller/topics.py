"""Topics are created and deleted. Source: KIP-4, KIP-516, KIP-631; Kafka `ReplicationControlManager.createTopics`.

What a client is told is said in Kafka's words: its tools print them, and their users look for them.
"""

import re
from collections import Counter
from typing import Final, NamedTuple

from fastquorum.controller.assignments import TopicFault, check_assignment
from fastquorum.controller.decisions import Decision, Refused
from fastquorum.controller.ids import random_id
from fastquorum.controller.image.partition import partition_record
from fastquorum.controller.image.topics import Topic
from fastquorum.controller.placement import PlacementError, Placer, Random
from fastquorum.controller.state import ControllerState
from fastquorum.controller.topic_configs import config_fault, configs_conflict
from fastquorum.types import TOPIC_NAME, ZERO_UUID, NodeId, Uuid
from fastquorum.wire.cluster_records import ConfigRecord
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.message import Message
from fastquorum.wire.topic_records import RemoveTopicRecord, TopicRecord
from fastquorum.wire.topics import CreateTopicsRequest, CreateTopicsResponse, DeleteTopicsRequest, DeleteTopicsResponse

PARTITIONS_MAX: Final = 10_000
"""That one request may create."""
_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_TOPIC: Final = 2
_Asked = CreateTopicsRequest.CreatableTopic
_Created = CreateTopicsResponse.CreatableTopicResult
_Deleted = DeleteTopicsResponse.DeletableTopicResult


# --- creating ---------------------------------------------------------------------------------------------------------


def create_topics(state: ControllerState, request: CreateTopicsRequest, chance: Random) -> Decision:
    """CreateTopics: each topic is answered for itself; all that can be made are one batch.

    Raises:
        Refused: POLICY_VIOLATION for more partitions than one request may create.
    """
    if sum(_partition_count(state, each) for each in request.topics) > PARTITIONS_MAX:
        raise Refused(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
    named = Counter([each.name for each in request.topics])
    creation = _Creation(state, chance)
    answer, records = CreateTopicsResponse(), list[Message]()
    for asked in request.topics:
        try:
            if named[asked.name] > 1:
                raise TopicFault(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            _check_name(state, asked.name)
            made, result = creation.create(asked)
        except TopicFault as fault:
            answer.topics.append(_Created(name=asked.name, error_code=fault.code, error_message=str(fault)))
            continue
        records += made
        answer.topics.append(result)
    return Decision(answer, [] if request.validate_only else records)


def _partition_count(state: ControllerState, asked: _Asked) -> int:
    if asked.assignments:
        return len(asked.assignments)
    return state.settings.num_partitions if asked.num_partitions == -1 else max(asked.num_partitions, 0)


def _check_name(state: ControllerState, name: str) -> None:
    if not name:
        raise TopicFault(ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic name is invalid: the empty string is not allowed")
    if name in (".", ".."):
        raise TopicFault(ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic name is invalid: '.' or '..' is not allowed")
    if _LEGAL.fullmatch(name) is None:
        raise TopicFault(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic name is invalid: '{name}' is longer than 249 characters or contains one or more characters other "
            "than ASCII alphanumerics, '.', '_' and '-'",
        )
    if name == TOPIC_NAME:
        raise TopicFault(ErrorCode.INVALID_REQUEST, f"Creation of internal topic {name} is prohibited.")
    if state.image.topics.named(name) is not None:
        raise TopicFault(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    other = state.alike.taken(name)
    if other is not None:
        raise TopicFault(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}")


class _Creation:
    """What the topics of one request have in common is looked up once."""

    def __init__(self, state: ControllerState, chance: Random) -> None:
        self._state = state
        self._chance = chance
        self._level = state.level
        self._with_elr = state.image.features.is_elr_enabled
        self._homes = state.homes
        self._placer = Placer(self._homes.candidates, chance)

    def create(self, asked: _Asked) -> tuple[list[Message], _Created]:
        """Its records, and the answer. TopicFault."""
        configs = _configs(asked)
        assignments = _assigned(self._state, asked) if asked.assignments else self._placed(asked)
        topic_id = new_topic_id(self._state, self._chance)
        records: list[Message] = [TopicRecord(name=asked.name, topic_id=topic_id), *configs]
        for number, replicas in enumerate(assignments):
            partition = self._homes.new_partition(replicas)
            records.append(partition_record(topic_id, number, partition, self._level, with_elr=self._with_elr))
        result = _Created(
            name=asked.name,
            topic_id=topic_id,
            error_message=None,
            num_partitions=len(assignments),
            replication_factor=len(assignments[0]),
            configs=[
                _Created.CreatableTopicConfigs(name=each.name, value=each.value, config_source=1)
                for each in sorted(configs, key=lambda each: each.name)
            ],
        )
        return records, result

    def _placed(self, asked: _Asked) -> list[tuple[NodeId, ...]]:
        if asked.replication_factor < -1 or asked.replication_factor == 0:
            text = "Replication factor must be larger than 0, or -1 to use the default value."
            raise TopicFault(ErrorCode.INVALID_REPLICATION_FACTOR, text)
        if asked.num_partitions < -1 or asked.num_partitions == 0:
            text = "Number of partitions was set to an invalid non-positive value."
            raise TopicFault(ErrorCode.INVALID_PARTITIONS, text)
        default, factor = self._state.settings.default_replication_factor, asked.replication_factor
        factor = default if factor == -1 else factor
        try:
            return self._placer.place(_partition_count(self._state, asked), factor)
        except PlacementError as error:
            text = f"Unable to replicate the partition {factor} time(s): {error}"
            raise TopicFault(ErrorCode.INVALID_REPLICATION_FACTOR, text) from error


def _configs(asked: _Asked) -> list[ConfigRecord]:
    if not asked.configs:
        return []
    without = [each.name for each in asked.configs if each.value is None]
    if without:
        raise TopicFault(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(without)}")
    records = []
    values = {each.name: each.value or "" for each in asked.configs}
    for name, value in values.items():
        fault = config_fault(name, value)
        if fault:
            raise TopicFault(ErrorCode.INVALID_CONFIG, fault)
        records.append(ConfigRecord(resource_type=_TOPIC, resource_name=asked.name, name=name, value=value))
    if conflict := configs_conflict(values):
        raise TopicFault(ErrorCode.INVALID_CONFIG, conflict)
    return records


def _assigned(state: ControllerState, asked: _Asked) -> list[tuple[NodeId, ...]]:
    """As the caller chose."""
    if asked.replication_factor != -1:
        text = "A manual partition assignment was specified, but replication factor was not set to -1."
        raise TopicFault(ErrorCode.INVALID_REQUEST, text)
    if asked.num_partitions != -1:
        text = "A manual partition assignment was specified, but numPartitions was not set to -1."
        raise TopicFault(ErrorCode.INVALID_REQUEST, text)
    found: dict[int, tuple[NodeId, ...]] = {}
    for each in asked.assignments:
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


def new_topic_id(state: ControllerState, chance: Random) -> Uuid:
    """None that is taken."""
    while True:
        found = random_id(chance)
        if found not in state.image.topics.by_id:
            return found


# --- deleting ---------------------------------------------------------------------------------------------------------


class _Named(NamedTuple):
    """How a topic was asked for."""

    name: str | None
    id: Uuid


def delete_topics(state: ControllerState, request: DeleteTopicsRequest, version: int) -> Decision:
    """DeleteTopics: each topic is answered for itself."""
    asked = [_Named(each.name, each.topic_id) for each in request.topics]
    if version < 6:
        asked = [_Named(name, ZERO_UUID) for name in request.topic_names]
    found = [_find(state, each) for each in asked]
    times = Counter(each.id for each in found if isinstance(each, Topic))
    answer, records = DeleteTopicsResponse(), list[Message]()
    for each, topic in zip(asked, found, strict=True):
        if isinstance(topic, TopicFault):
            answer.responses.append(
                _Deleted(name=each.name, topic_id=each.id, error_code=topic.code, error_message=str(topic))
            )
        elif times[topic.id] > 1:
            text = "The provided topic is named more than once."
            answer.responses.append(
                _Deleted(name=topic.name, topic_id=topic.id, error_code=ErrorCode.INVALID_REQUEST, error_message=text)
            )
        else:
            records.append(RemoveTopicRecord(topic_id=topic.id))
            answer.responses.append(_Deleted(name=topic.name, topic_id=topic.id))
    return Decision(answer, records)


def _find(state: ControllerState, asked: _Named) -> Topic | TopicFault:
    topics = state.image.topics
    if asked.name is not None and asked.id != ZERO_UUID:
        return TopicFault(ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")
    if asked.name is None and asked.id == ZERO_UUID:
        return TopicFault(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    if asked.name is None:
        return topics.by_id.get(asked.id) or TopicFault(
            ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID."
        )
    return topics.named(asked.name) or TopicFault(
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
    )
