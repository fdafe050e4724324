"""Blocks of producer ids. Source: KIP-730; Kafka `ProducerIdControlManager`."""

from typing import Final

from fastquorum.controller.brokers.lifecycle import standing
from fastquorum.controller.decisions import Decision
from fastquorum.controller.refusals import Refused
from fastquorum.controller.state.controller_state import ControllerState
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.messages.producers import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from fastquorum.wire.records.cluster import ProducerIdsRecord

BLOCK: Final = 1000


def allocate(state: ControllerState, request: AllocateProducerIdsRequest) -> Decision:
    """Decide an AllocateProducerIds: give the next block to the broker. Refused: STALE_BROKER_EPOCH,
    UNKNOWN_SERVER_ERROR when no ids are left."""
    broker = standing(state, request.broker_id, request.broker_epoch)
    start = max(state.image.next_producer_id, 0)
    if start > 2**63 - 1 - BLOCK:
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, "there are no producer ids left")
    record = ProducerIdsRecord(broker_id=broker.id, broker_epoch=broker.epoch, next_producer_id=start + BLOCK)
    return Decision(AllocateProducerIdsResponse(producer_id_start=start, producer_id_len=BLOCK), [record])
