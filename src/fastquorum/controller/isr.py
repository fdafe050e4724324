"""AlterPartition: a leader proposes who is in sync. Source: KIP-497, KIP-704, KIP-841, KIP-903; Kafka
`ReplicationControlManager.alterPartition`.
"""

from fastquorum.controller.brokers import NO_BROKER_EPOCH, standing
from fastquorum.controller.decisions import Decision
from fastquorum.controller.image.partition import LEADER_UNCHANGED, Partition, Recovery, changed
from fastquorum.controller.index import PartitionKey
from fastquorum.controller.state import ControllerState
from fastquorum.types import NodeId
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.message import Message
from fastquorum.wire.partitions import AlterPartitionRequest, AlterPartitionResponse

_Asked = AlterPartitionRequest.TopicData.PartitionData
_Answered = AlterPartitionResponse.TopicData.PartitionData


def alter_partition(state: ControllerState, request: AlterPartitionRequest, version: int) -> Decision:
    """AlterPartition: each partition is answered for itself.

    Raises:
        Refused: STALE_BROKER_EPOCH.
    """
    standing(state, request.broker_id, request.broker_epoch)
    answer = AlterPartitionResponse()
    records: list[Message] = []
    decided = set[PartitionKey]()
    for topic_asked in request.topics:
        answered = AlterPartitionResponse.TopicData(topic_id=topic_asked.topic_id)
        answer.topics.append(answered)
        for asked in topic_asked.partitions:
            key = PartitionKey(topic_asked.topic_id, asked.partition_index)
            if key in decided:  # on what was decided before, which this state does not show yet
                answered.partitions.append(
                    _Answered(partition_index=key.partition_id, error_code=ErrorCode.INVALID_REQUEST)
                )
                continue
            decided.add(key)
            answered.partitions.append(alter(state, request.broker_id, key, asked, version, records))
    return Decision(answer, records)


def alter(
    state: ControllerState, broker_id: NodeId, key: PartitionKey, asked: _Asked, version: int, records: list[Message]
) -> _Answered:
    """What is proposed for one partition, as in this version of AlterPartition; a record more if that changes it."""
    members = _members(asked, version)
    code = _error(state, broker_id, key, asked, members)
    if code is not ErrorCode.NONE:
        return _Answered(partition_index=asked.partition_index, error_code=code)
    change = state.change(key)
    change.isr = tuple(members)
    change.recovery = asked.leader_recovery_state
    partition = change.before
    record = change.record()
    if record is not None:
        records.append(record)
        partition = changed(partition, record)
        if record.leader not in (LEADER_UNCHANGED, broker_id):
            # The change has completed a reassignment, which took the leader along: it must look again.
            return _Answered(partition_index=asked.partition_index, error_code=ErrorCode.NEW_LEADER_ELECTED)
    return _Answered(
        partition_index=asked.partition_index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=list(partition.isr),
        leader_recovery_state=partition.recovery,
        partition_epoch=partition.partition_epoch,
    )


def _members(asked: _Asked, version: int) -> dict[NodeId, int]:
    """The proposed ISR, with the broker epoch of each; -1: it was not said. Duplicates are told by `_error`."""
    if version < 3:
        return dict.fromkeys(asked.new_isr, NO_BROKER_EPOCH)
    return {each.broker_id: each.broker_epoch for each in asked.new_isr_with_epochs}


def _error(
    state: ControllerState, broker_id: NodeId, key: PartitionKey, asked: _Asked, members: dict[NodeId, int]
) -> ErrorCode:
    """Why the proposal is not taken. What is ahead of us was decided by somebody else: this is not the controller any
    more (KAFKA-14154)."""
    topic = state.image.topics.by_id.get(key.topic_id)
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    partition = topic.partitions.get(key.partition_id)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if asked.leader_epoch > partition.leader_epoch or asked.partition_epoch > partition.partition_epoch:
        return ErrorCode.NOT_CONTROLLER
    if asked.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if broker_id != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if asked.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    if not _is_valid(partition, asked, members):
        return ErrorCode.INVALID_REQUEST
    for member, epoch in members.items():
        if not _is_eligible(state, member, epoch):
            return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE


def _is_valid(partition: Partition, asked: _Asked, members: dict[NodeId, int]) -> bool:
    count = max(len(asked.new_isr), len(asked.new_isr_with_epochs))
    if len(members) < count or partition.leader not in members:
        return False
    if not members.keys() <= set(partition.replicas):
        return False
    if asked.leader_recovery_state not in (Recovery.RECOVERED, Recovery.RECOVERING):
        return False
    if asked.leader_recovery_state == Recovery.RECOVERING:
        return len(members) == 1 and partition.recovery == Recovery.RECOVERING
    return True


def _is_eligible(state: ControllerState, broker_id: NodeId, epoch: int) -> bool:
    """Registered, unfenced, not shutting down, and the very incarnation that is in sync (KIP-903)."""
    broker = state.image.brokers.get(broker_id)
    return broker is not None and broker.is_active and epoch in (NO_BROKER_EPOCH, broker.epoch)
