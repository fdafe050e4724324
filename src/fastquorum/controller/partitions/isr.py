"""AlterPartition: a leader proposes an ISR. Source: KIP-497, KIP-704, KIP-841, KIP-903; Kafka
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

_Proposed = AlterPartitionRequest.TopicData.PartitionData
_Answered = AlterPartitionResponse.TopicData.PartitionData
_RECOVERED: Final = Recovery.RECOVERED.value
_RECOVERING: Final = Recovery.RECOVERING.value


def alter_partition(state: ControllerState, request: AlterPartitionRequest, version: int) -> Decision:
    """Decide an AlterPartition; each partition is answered for itself.

    Raises:
        Refused: STALE_BROKER_EPOCH.
    """
    standing(state, request.broker_id, request.broker_epoch)
    answer = AlterPartitionResponse()
    proposals = Proposals(state, request.broker_id, version)
    decided: dict[Uuid, set[int]] = {}
    for topic_request in request.topics:
        topic_id = topic_request.topic_id
        numbers = decided.setdefault(topic_id, set())
        topic = state.image.topics.by_id.get(topic_id)
        partitions: list[_Answered] = []
        answer.topics.append(AlterPartitionResponse.TopicData(topic_id=topic_id, partitions=partitions))
        for proposed in topic_request.partitions:
            number = proposed.partition_index
            if number in numbers:  # on what was decided before, which this state does not show yet
                partitions.append(_refused(proposed, ErrorCode.INVALID_REQUEST))
                continue
            numbers.add(number)
            partitions.append(proposals.take(topic, proposed))
    return Decision(answer, proposals.records)


class Proposals:
    """The proposals of one leader in one request; facts that many partitions share are looked up once."""

    def __init__(self, state: ControllerState, broker_id: NodeId, version: int) -> None:
        """Take the version of AlterPartition, which decides what the proposals hold."""
        self.records: list[Message] = []
        """The records of the accepted changes."""
        self._state = state
        self._broker_id = broker_id
        self._version = version
        self._eligible: dict[tuple[NodeId, int], bool] = {}
        """Whether a broker of this epoch may be in an ISR, for each that was looked up."""

    def take(self, topic: Topic | None, proposed: _Proposed) -> _Answered:
        """Decide the proposal for one partition; add a record if that changes it."""
        if topic is None:
            return _refused(proposed, ErrorCode.UNKNOWN_TOPIC_ID)
        partition = topic.partitions.get(proposed.partition_index)
        if partition is None:
            return _refused(proposed, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        members = _members(proposed, self._version)
        code = self._error(partition, proposed, members)
        if code is not ErrorCode.NONE:
            return _refused(proposed, code)
        change = self._state.change_of(topic, proposed.partition_index, partition)
        change.isr = tuple(members)
        change.recovery = proposed.leader_recovery_state
        record = change.record()
        if record is not None:
            self.records.append(record)
            partition = changed(partition, record)
            if record.leader not in (LEADER_UNCHANGED, self._broker_id):
                # The change has completed a reassignment, which took the leader along: it must look again.
                return _refused(proposed, ErrorCode.NEW_LEADER_ELECTED)
        return _Answered(
            partition_index=proposed.partition_index,
            leader_id=partition.leader,
            leader_epoch=partition.leader_epoch,
            isr=list(partition.isr),
            leader_recovery_state=partition.recovery,
            partition_epoch=partition.partition_epoch,
        )

    def _error(self, partition: Partition, proposed: _Proposed, members: dict[NodeId, int]) -> ErrorCode:
        """Return why the proposal is refused, or NONE. An epoch above ours was decided by another controller: this one
        is not active any more (KAFKA-14154)."""
        leader_epoch, partition_epoch = proposed.leader_epoch, proposed.partition_epoch
        if leader_epoch > partition.leader_epoch or partition_epoch > partition.partition_epoch:
            return ErrorCode.NOT_CONTROLLER
        if leader_epoch < partition.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if self._broker_id != partition.leader:
            return ErrorCode.INVALID_REQUEST
        if partition_epoch < partition.partition_epoch:
            return ErrorCode.INVALID_UPDATE_VERSION
        if not _is_valid(partition, proposed, members):
            return ErrorCode.INVALID_REQUEST
        eligible = self._eligible
        for member in members.items():
            if member not in eligible:
                eligible[member] = _is_eligible(self._state, *member)
            if not eligible[member]:
                return ErrorCode.INELIGIBLE_REPLICA
        return ErrorCode.NONE


def _refused(proposed: _Proposed, code: ErrorCode) -> _Answered:
    return _Answered(partition_index=proposed.partition_index, error_code=code)


def _members(proposed: _Proposed, version: int) -> dict[NodeId, int]:
    """Return the proposed ISR, with the broker epoch of each; -1: not stated. A broker that is named twice counts
    once."""
    if version < 3:
        return dict.fromkeys(proposed.new_isr, NO_BROKER_EPOCH)
    return {each.broker_id: each.broker_epoch for each in proposed.new_isr_with_epochs}


def _is_valid(partition: Partition, proposed: _Proposed, members: dict[NodeId, int]) -> bool:
    if len(members) < max(len(proposed.new_isr), len(proposed.new_isr_with_epochs)) or partition.leader not in members:
        return False
    replicas = partition.replicas
    for member in members:
        if member not in replicas:
            return False
    recovery = proposed.leader_recovery_state
    if recovery == _RECOVERED:
        return True
    return recovery == _RECOVERING and len(members) == 1 and partition.recovery == _RECOVERING


def _is_eligible(state: ControllerState, broker_id: NodeId, epoch: int) -> bool:
    """Return whether a broker is registered, unfenced, not shutting down, and of the proposed incarnation (KIP-903)."""
    broker = state.image.brokers.get(broker_id)
    return broker is not None and broker.is_active and epoch in (NO_BROKER_EPOCH, broker.epoch)
