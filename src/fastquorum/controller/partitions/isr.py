"""AlterPartition: a leader proposes who is in sync. Source: KIP-497, KIP-704, KIP-841, KIP-903; Kafka
`ReplicationControlManager.alterPartition`.
"""

from typing import Final

from fastquorum.controller.brokers.lifecycle import NO_BROKER_EPOCH, standing
from fastquorum.controller.decisions import Decision
from fastquorum.controller.image.partition import LEADER_UNCHANGED, Partition, Recovery, changed
from fastquorum.controller.image.topics import Topic
from fastquorum.controller.state.controller_state import ControllerState
from fastquorum.types import NodeId, Uuid
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.message import Message
from fastquorum.wire.messages.partitions import AlterPartitionRequest, AlterPartitionResponse

_Asked = AlterPartitionRequest.TopicData.PartitionData
_Answered = AlterPartitionResponse.TopicData.PartitionData
_RECOVERED: Final = Recovery.RECOVERED.value
_RECOVERING: Final = Recovery.RECOVERING.value


def alter_partition(state: ControllerState, request: AlterPartitionRequest, version: int) -> Decision:
    """AlterPartition: each partition is answered for itself.

    Raises:
        Refused: STALE_BROKER_EPOCH.
    """
    standing(state, request.broker_id, request.broker_epoch)
    answer = AlterPartitionResponse()
    proposals = Proposals(state, request.broker_id, version)
    decided: dict[Uuid, set[int]] = {}
    for topic_asked in request.topics:
        topic_id = topic_asked.topic_id
        numbers = decided.setdefault(topic_id, set())
        topic = state.image.topics.by_id.get(topic_id)
        partitions: list[_Answered] = []
        answer.topics.append(AlterPartitionResponse.TopicData(topic_id=topic_id, partitions=partitions))
        for asked in topic_asked.partitions:
            number = asked.partition_index
            if number in numbers:  # on what was decided before, which this state does not show yet
                partitions.append(_refused(asked, ErrorCode.INVALID_REQUEST))
                continue
            numbers.add(number)
            partitions.append(proposals.take(topic, asked))
    return Decision(answer, proposals.records)


class Proposals:
    """Of one leader, in one request: what many partitions have in common is looked up once."""

    def __init__(self, state: ControllerState, broker_id: NodeId, version: int) -> None:
        """As in this version of AlterPartition."""
        self.records: list[Message] = []
        """What changes."""
        self._state = state
        self._broker_id = broker_id
        self._version = version
        self._eligible: dict[tuple[NodeId, int], bool] = {}
        """The brokers, each with its epoch, that were asked for."""

    def take(self, topic: Topic | None, asked: _Asked) -> _Answered:
        """What is proposed for one partition; a record more if that changes it."""
        if topic is None:
            return _refused(asked, ErrorCode.UNKNOWN_TOPIC_ID)
        partition = topic.partitions.get(asked.partition_index)
        if partition is None:
            return _refused(asked, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        members = _members(asked, self._version)
        code = self._error(partition, asked, members)
        if code is not ErrorCode.NONE:
            return _refused(asked, code)
        change = self._state.change_of(topic, asked.partition_index, partition)
        change.isr = tuple(members)
        change.recovery = asked.leader_recovery_state
        record = change.record()
        if record is not None:
            self.records.append(record)
            partition = changed(partition, record)
            if record.leader not in (LEADER_UNCHANGED, self._broker_id):
                # The change has completed a reassignment, which took the leader along: it must look again.
                return _refused(asked, ErrorCode.NEW_LEADER_ELECTED)
        return _Answered(
            partition_index=asked.partition_index,
            leader_id=partition.leader,
            leader_epoch=partition.leader_epoch,
            isr=list(partition.isr),
            leader_recovery_state=partition.recovery,
            partition_epoch=partition.partition_epoch,
        )

    def _error(self, partition: Partition, asked: _Asked, members: dict[NodeId, int]) -> ErrorCode:
        """Why the proposal is not taken. What is ahead of us was decided by somebody else: this is not the controller
        any more (KAFKA-14154)."""
        leader_epoch, partition_epoch = asked.leader_epoch, asked.partition_epoch
        if leader_epoch > partition.leader_epoch or partition_epoch > partition.partition_epoch:
            return ErrorCode.NOT_CONTROLLER
        if leader_epoch < partition.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if self._broker_id != partition.leader:
            return ErrorCode.INVALID_REQUEST
        if partition_epoch < partition.partition_epoch:
            return ErrorCode.INVALID_UPDATE_VERSION
        if not _is_valid(partition, asked, members):
            return ErrorCode.INVALID_REQUEST
        eligible = self._eligible
        for member in members.items():
            if member not in eligible:
                eligible[member] = _is_eligible(self._state, *member)
            if not eligible[member]:
                return ErrorCode.INELIGIBLE_REPLICA
        return ErrorCode.NONE


def _refused(asked: _Asked, code: ErrorCode) -> _Answered:
    return _Answered(partition_index=asked.partition_index, error_code=code)


def _members(asked: _Asked, version: int) -> dict[NodeId, int]:
    """The proposed ISR, with the broker epoch of each; -1: it was not said. Who is named twice counts once."""
    if version < 3:
        return dict.fromkeys(asked.new_isr, NO_BROKER_EPOCH)
    return {each.broker_id: each.broker_epoch for each in asked.new_isr_with_epochs}


def _is_valid(partition: Partition, asked: _Asked, members: dict[NodeId, int]) -> bool:
    if len(members) < max(len(asked.new_isr), len(asked.new_isr_with_epochs)) or partition.leader not in members:
        return False
    replicas = partition.replicas
    for member in members:
        if member not in replicas:
            return False
    recovery = asked.leader_recovery_state
    if recovery == _RECOVERED:
        return True
    return recovery == _RECOVERING and len(members) == 1 and partition.recovery == _RECOVERING


def _is_eligible(state: ControllerState, broker_id: NodeId, epoch: int) -> bool:
    """Registered, unfenced, not shutting down, and the very incarnation that is in sync (KIP-903)."""
    broker = state.image.brokers.get(broker_id)
    return broker is not None and broker.is_active and epoch in (NO_BROKER_EPOCH, broker.epoch)
