"""Moves replicas to other brokers: a partition has the old and the new ones until all the new are in sync.

Source: KIP-455; Kafka `ReplicationControlManager.alterPartitionReassignments`, `PartitionReassignmentReplicas`,
`PartitionReassignmentRevert`.
"""

from collections.abc import Iterable
from typing import NamedTuple

from fastquorum.controller.decisions import Decision
from fastquorum.controller.image.partition import Partition
from fastquorum.controller.image.topics import Topic
from fastquorum.controller.partitions.assignments import check_replicas
from fastquorum.controller.refusals import TopicFault
from fastquorum.controller.state.controller_state import ControllerState
from fastquorum.controller.state.index import PartitionKey
from fastquorum.controller.state.partition_change import ElectionKind, Nodes, PartitionChange
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.message import Message
from fastquorum.wire.messages.partitions import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

_Listed = ListPartitionReassignmentsResponse.OngoingTopicReassignment
_Requested = AlterPartitionReassignmentsRequest.ReassignableTopic.ReassignablePartition
_Answered = AlterPartitionReassignmentsResponse.ReassignableTopicResponse
_PartitionAnswer = _Answered.ReassignablePartitionResponse


# --- moving -----------------------------------------------------------------------------------------------------------


def alter_reassignments(state: ControllerState, request: AlterPartitionReassignmentsRequest) -> Decision:
    """Decide an AlterPartitionReassignments; each partition is answered for itself; null replicas end a reassignment
    that is under way."""
    may_resize = request.allow_replication_factor_change
    answer = AlterPartitionReassignmentsResponse(allow_replication_factor_change=may_resize, error_message=None)
    records = dict[PartitionKey, Message | None]()
    for topic in request.topics:
        answered = _Answered(name=topic.name)
        answer.responses.append(answered)
        for requested in topic.partitions:
            result = _PartitionAnswer(partition_index=requested.partition_index, error_message=None)
            answered.partitions.append(result)
            try:
                _alter(state, topic.name, requested, records, may_resize=may_resize)
            except TopicFault as fault:
                result.error_code, result.error_message = fault.code, str(fault)
    return Decision(answer, [record for record in records.values() if record is not None])


def _alter(
    state: ControllerState,
    name: str,
    requested: _Requested,
    records: dict[PartitionKey, Message | None],
    *,
    may_resize: bool,
) -> None:
    topic = state.image.topics.named(name)
    if topic is None or topic.partitions.get(requested.partition_index) is None:
        missing = f"a topic named {name}" if topic is None else f"partition {name}:{requested.partition_index}"
        raise TopicFault(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find {missing}.")
    key = PartitionKey(topic.id, requested.partition_index)
    if key in records:
        raise TopicFault(ErrorCode.INVALID_REQUEST, f"{name}:{requested.partition_index} is named more than once.")
    change = (
        _cancelled(state, topic, key)
        if requested.replicas is None
        else _begun(state, key, requested.replicas, may_resize)
    )
    records[key] = change.record()


class Moving(NamedTuple):
    """The replicas of a partition during its reassignment."""

    replicas: Nodes
    """The target replicas in their order; behind them those that are removed once the target is in sync."""
    adding: Nodes
    removing: Nodes


def towards(partition: Partition, target: Nodes) -> Moving:
    """Return the replicas during a reassignment to the target.

    A reassignment that overrides another begins at that one's present state: the replicas that it has added exist, in
    sync or not, and stay if this one is cancelled. If this one adds no further replica, it still waits for those that
    the other was adding and that are still wanted. (Kafka leaves adding and removing as they were where they would be
    empty, so that a replica that is back in the target is removed all the same, or one that is to go is waited for.)
    """
    removing = tuple(sorted(each for each in partition.replicas if each not in target))
    adding = tuple(sorted(each for each in target if each not in partition.replicas))
    return Moving((*target, *removing), adding or tuple(each for each in partition.adding if each in target), removing)


def _begun(state: ControllerState, key: PartitionKey, target: Iterable[int], may_resize: bool) -> PartitionChange:
    target = tuple(target)
    check_replicas(state, target)
    change = state.change(key, election=ElectionKind.ONLINE)
    before = change.before
    present = len([each for each in before.replicas if each not in before.removing])
    if not may_resize and present != len(target):
        text = f"The replication factor is changed from {present} to {len(target)}"
        raise TopicFault(ErrorCode.INVALID_REPLICATION_FACTOR, text)
    change.replicas, change.adding, change.removing = towards(before, target)
    return change


def _cancelled(state: ControllerState, topic: Topic, key: PartitionKey) -> PartitionChange:
    change = state.change(key)
    before = change.before
    if not before.is_reassigning:
        raise TopicFault(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress.")
    change.replicas = tuple(each for each in before.replicas if each not in before.adding)
    change.adding, change.removing = (), ()
    change.isr = tuple(each for each in before.isr if each not in before.adding)
    if not change.replicas:
        text = "Invalid replica assignment: addingReplicas contains all replicas."
        raise TopicFault(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
    if not change.isr:
        if not state.allows_unclean_election(topic):
            raise TopicFault(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Unable to revert partition assignment for {topic.name}:{key.partition_id} because it would require "
                "an unclean leader election.",
            )
        change.isr = change.replicas[:1]
    return change


# --- listing ----------------------------------------------------------------------------------------------------------


def list_reassignments(state: ControllerState, request: ListPartitionReassignmentsRequest) -> Decision:
    """Answer a ListPartitionReassignments for the named partitions, or for all; others than moving ones are left
    out."""
    topics = state.image.topics
    answer = ListPartitionReassignmentsResponse(error_message=None)
    if request.topics is None:
        numbers: dict[str, list[int]] = {}
        for key in state.index.moving():
            numbers.setdefault(topics.by_id[key.topic_id].name, []).append(key.partition_id)
    else:
        numbers = {each.name: each.partition_indexes for each in request.topics}
    for name, wanted in sorted(numbers.items()):
        topic = topics.named(name)
        listed = None if topic is None else _listed(topic, wanted)
        if listed is not None and listed.partitions:
            answer.topics.append(listed)
    return Decision(answer)


def _listed(topic: Topic, wanted: Iterable[int]) -> _Listed:
    listed = _Listed(name=topic.name)
    for number in sorted(set(wanted)):
        partition = topic.partitions.get(number)
        if partition is not None and partition.is_reassigning:
            listed.partitions.append(
                _Listed.OngoingPartitionReassignment(
                    partition_index=number,
                    replicas=list(partition.replicas),
                    adding_replicas=list(partition.adding),
                    removing_replicas=list(partition.removing),
                )
            )
    return listed
