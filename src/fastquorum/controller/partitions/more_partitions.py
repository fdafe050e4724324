"""Adds partitions to topics. Source: KIP-195; Kafka `ReplicationControlManager.createPartitions`, which has the same
error texts."""

from collections import Counter

from fastquorum.controller.decisions import Decision
from fastquorum.controller.image.partition import partition_record
from fastquorum.controller.partitions.assignments import check_assignment
from fastquorum.controller.partitions.topics import RECORDS_MAX
from fastquorum.controller.refusals import TopicFault
from fastquorum.controller.state.controller_state import ControllerState
from fastquorum.controller.state.placement import PlacementError, PlacementRandom
from fastquorum.types import NodeId
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.message import Message
from fastquorum.wire.messages.topics import CreatePartitionsRequest, CreatePartitionsResponse

_Wanted = CreatePartitionsRequest.CreatePartitionsTopic
_Made = CreatePartitionsResponse.CreatePartitionsTopicResult


def create_partitions(state: ControllerState, request: CreatePartitionsRequest, chance: PlacementRandom) -> Decision:
    """Decide a CreatePartitions; each topic is answered for itself, once; all possible changes are one batch."""
    times = Counter(each.name for each in request.topics)
    twice = [name for name, count in times.items() if count > 1]
    results = [
        _Made(name=name, error_code=ErrorCode.INVALID_REQUEST, error_message="Duplicate topic name.") for name in twice
    ]
    answer, records = CreatePartitionsResponse(results=results), list[Message]()
    for wanted in request.topics:
        if times[wanted.name] > 1:
            continue
        try:
            made = _create(state, wanted, chance, RECORDS_MAX - len(records))
        except TopicFault as fault:
            answer.results.append(_Made(name=wanted.name, error_code=fault.code, error_message=str(fault) or None))
            continue
        records += made
        answer.results.append(_Made(name=wanted.name))
    return Decision(answer, [] if request.validate_only else records)


def _create(state: ControllerState, wanted: _Wanted, chance: PlacementRandom, most: int) -> list[Message]:
    topic = state.image.topics.named(wanted.name)
    if topic is None:
        raise TopicFault(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
    present = len(topic.partitions)
    if wanted.count == present:
        raise TopicFault(ErrorCode.INVALID_PARTITIONS, f"Topic already has {present} partition(s).")
    if wanted.count < present:
        raise TopicFault(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {present} partition(s); {wanted.count} would not be an increase.",
        )
    if wanted.count - present > most:
        raise TopicFault(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
    first = topic.partitions.get(0)
    if first is None:
        raise TopicFault(ErrorCode.UNKNOWN_SERVER_ERROR, f"The topic {topic.name} has no partition 0 to go by.")
    added = _assignments(state, wanted, present, len(first.replicas), chance)
    level, elr = state.level, state.image.features.is_elr_enabled
    return [
        partition_record(topic.id, number, state.replica_candidates.new_partition(replicas), level, with_elr=elr)
        for number, replicas in enumerate(added, present)
    ]


def _assignments(
    state: ControllerState, wanted: _Wanted, present: int, factor: int, chance: PlacementRandom
) -> list[tuple[NodeId, ...]]:
    count = wanted.count - present
    if wanted.assignments is None:
        try:
            return state.replica_candidates.by_rack.place(count, factor, chance)
        except PlacementError as error:
            raise TopicFault(ErrorCode.INVALID_REPLICATION_FACTOR, str(error)) from error
    if len(wanted.assignments) != count:
        raise TopicFault(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {count} additional partition(s), but only {len(wanted.assignments)} assignment(s) were "
            "specified.",
        )
    for number, each in enumerate(wanted.assignments, present):
        check_assignment(state, number, each.broker_ids, factor)
    return [tuple(each.broker_ids) for each in wanted.assignments]
