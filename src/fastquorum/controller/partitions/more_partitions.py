"""Topics are given more partitions. Source: KIP-195; Kafka `ReplicationControlManager.createPartitions`, whose words
clients are told."""

from collections import Counter

from fastquorum.controller.decisions import Decision
from fastquorum.controller.image.partition import partition_record
from fastquorum.controller.partitions.assignments import check_assignment
from fastquorum.controller.partitions.topics import RECORDS_MAX
from fastquorum.controller.refusals import TopicFault
from fastquorum.controller.state.controller_state import ControllerState
from fastquorum.controller.state.placement import PlacementError, Random
from fastquorum.types import NodeId
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.message import Message
from fastquorum.wire.messages.topics import CreatePartitionsRequest, CreatePartitionsResponse

_Asked = CreatePartitionsRequest.CreatePartitionsTopic
_Made = CreatePartitionsResponse.CreatePartitionsTopicResult


def create_partitions(state: ControllerState, request: CreatePartitionsRequest, chance: Random) -> Decision:
    """CreatePartitions: each topic is answered for itself, once; all that can be made are one batch."""
    times = Counter(each.name for each in request.topics)
    twice = [name for name, count in times.items() if count > 1]
    told = [
        _Made(name=name, error_code=ErrorCode.INVALID_REQUEST, error_message="Duplicate topic name.") for name in twice
    ]
    answer, records = CreatePartitionsResponse(results=told), list[Message]()
    for asked in request.topics:
        if times[asked.name] > 1:
            continue
        try:
            made = _create(state, asked, chance, RECORDS_MAX - len(records))
        except TopicFault as fault:
            answer.results.append(_Made(name=asked.name, error_code=fault.code, error_message=str(fault) or None))
            continue
        records += made
        answer.results.append(_Made(name=asked.name))
    return Decision(answer, [] if request.validate_only else records)


def _create(state: ControllerState, asked: _Asked, chance: Random, most: int) -> list[Message]:
    topic = state.image.topics.named(asked.name)
    if topic is None:
        raise TopicFault(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
    present = len(topic.partitions)
    if asked.count == present:
        raise TopicFault(ErrorCode.INVALID_PARTITIONS, f"Topic already has {present} partition(s).")
    if asked.count < present:
        raise TopicFault(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {present} partition(s); {asked.count} would not be an increase.",
        )
    if asked.count - present > most:
        raise TopicFault(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
    first = topic.partitions.get(0)
    if first is None:
        raise TopicFault(ErrorCode.UNKNOWN_SERVER_ERROR, f"The topic {topic.name} has no partition 0 to go by.")
    added = _assignments(state, asked, present, len(first.replicas), chance)
    level, elr = state.level, state.image.features.is_elr_enabled
    return [
        partition_record(topic.id, number, state.homes.new_partition(replicas), level, with_elr=elr)
        for number, replicas in enumerate(added, present)
    ]


def _assignments(
    state: ControllerState, asked: _Asked, present: int, factor: int, chance: Random
) -> list[tuple[NodeId, ...]]:
    count = asked.count - present
    if asked.assignments is None:
        try:
            return state.homes.candidates.place(count, factor, chance)
        except PlacementError as error:
            raise TopicFault(ErrorCode.INVALID_REPLICATION_FACTOR, str(error)) from error
    if len(asked.assignments) != count:
        raise TopicFault(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {count} additional partition(s), but only {len(asked.assignments)} assignment(s) were "
            "specified.",
        )
    for number, each in enumerate(asked.assignments, present):
        check_assignment(state, number, each.broker_ids, factor)
    return [tuple(each.broker_ids) for each in asked.assignments]
