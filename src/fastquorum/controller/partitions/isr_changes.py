"""IsrChange: KIP-343's proposal of ISRs, decided as AlterPartition is, with the errors that the KIP has.

Source: KIP-343.
"""

from typing import Final

from fastquorum.controller.brokers.metadata_heartbeats import registered
from fastquorum.controller.decisions import Decision
from fastquorum.controller.image.topics import Topic
from fastquorum.controller.partitions import isr
from fastquorum.controller.refusals import Refused
from fastquorum.controller.state.controller_state import ControllerState
from fastquorum.controller.state.index import PartitionKey
from fastquorum.types import NodeId
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.messages.controller_heartbeat import IsrChangeRequest, IsrChangeResponse
from fastquorum.wire.messages.partitions import AlterPartitionRequest

_Requested = IsrChangeRequest.Topic.Partition
_Result = IsrChangeResponse.Result
_Proposal = AlterPartitionRequest.TopicData.PartitionData
_BY_ID: Final = 2
"""The version of AlterPartition in which an ISR is a list of ids, as here."""


def change_isr(state: ControllerState, request: IsrChangeRequest) -> Decision:
    """Decide an IsrChange; each partition is answered for itself, in the order of the request.

    Raises:
        Refused: STALE_BROKER_EPOCH, in place of the KIP's INVALID_INCARNATION_ID, if another incarnation is known;
            INVALID_REQUEST as for a heartbeat; NOT_CONTROLLER if a partition's leader epoch is not known here: then
            another controller is active by now.
    """
    broker = registered(state, request.broker_id, request.incarnation_id)
    if request.incarnation_id != state.heartbeats.incarnation_id(broker.id):
        text = f"incarnation {request.incarnation_id} of broker {broker.id} is not known"
        raise Refused(ErrorCode.STALE_BROKER_EPOCH, text)
    answer = IsrChangeResponse()
    proposals = isr.Proposals(state, broker.id, _BY_ID)
    decided = set[PartitionKey]()
    for topic_request in request.topics:
        topic = state.image.topics.named(topic_request.topic_name)
        for requested in topic_request.partitions:
            answer.results.append(_change(proposals, broker.id, topic, requested, decided))
    return Decision(answer, proposals.records)


def _change(
    proposals: isr.Proposals, broker_id: NodeId, topic: Topic | None, requested: _Requested, decided: set[PartitionKey]
) -> _Result:
    partition = None if topic is None else topic.partitions.get(requested.partition_index)
    if topic is None or partition is None:
        return _result(ErrorCode.NOT_LEADER_OR_FOLLOWER, "there is no such partition")
    key = PartitionKey(topic.id, requested.partition_index)
    if key in decided:  # on what was decided before, which this state does not show yet
        return _result(ErrorCode.INVALID_REQUEST, "the partition is named twice")
    decided.add(key)
    if requested.leader_epoch > partition.leader_epoch:
        text = f"{topic.name}-{requested.partition_index} is not known in leader epoch {requested.leader_epoch} here"
        raise Refused(ErrorCode.NOT_CONTROLLER, text)
    if requested.leader_epoch < partition.leader_epoch or broker_id != partition.leader:
        text = f"broker {partition.leader} leads in epoch {partition.leader_epoch}"
        return _result(ErrorCode.NOT_LEADER_OR_FOLLOWER, text)
    proposal = _Proposal(
        partition_index=requested.partition_index,
        leader_epoch=requested.leader_epoch,
        partition_epoch=partition.partition_epoch,
        new_isr=list(requested.isr_nodes),
    )
    code = proposals.take(topic, proposal).error_code
    if code in (ErrorCode.NONE, ErrorCode.NEW_LEADER_ELECTED):  # a reassignment was completed by it
        return _result(ErrorCode.NONE)
    return _result(ErrorCode.INVALID_REQUEST, f"{list(requested.isr_nodes)} cannot be in sync")


def _result(code: ErrorCode, text: str | None = None) -> _Result:
    return _Result(error_code=code, error_message=text)
