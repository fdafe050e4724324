"""ControlledShutdown: a broker without heartbeats asks to stop; the answer names the partitions for which no other
leader was found.

Source: KIP-380; Kafka 3.9 `KafkaController.doControlledShutdown`.
"""

from fastquorum.controller.brokers import fencing
from fastquorum.controller.decisions import Decision
from fastquorum.controller.refusals import Refused
from fastquorum.controller.state.controller_state import ControllerState
from fastquorum.controller.state.index import PartitionKey
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.messages.inter_broker import ControlledShutdownRequest, ControlledShutdownResponse
from fastquorum.wire.records.topics import PartitionChangeRecord


def controlled_shutdown(state: ControllerState, request: ControlledShutdownRequest) -> Decision:
    """Decide a ControlledShutdown: leaders move to other replicas in sync. The remaining partitions have none, and so
    no leader from now on, as in every controlled shutdown since KIP-631.

    Once the records are in the log the caller calls `lifecycle.goes_on`.

    Raises:
        Refused: BROKER_NOT_AVAILABLE if the broker is not registered, or fenced; STALE_BROKER_EPOCH if a later
            generation of it is known.
    """
    broker = state.image.brokers.get(request.broker_id)
    if broker is None:
        raise Refused(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {request.broker_id} is not registered")
    if request.broker_epoch < state.heartbeats.incarnation_id(broker.id):
        text = f"the epoch of broker {broker.id} is {broker.epoch}, not {request.broker_epoch}"
        raise Refused(ErrorCode.STALE_BROKER_EPOCH, text)
    if broker.fenced:
        raise Refused(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {broker.id} is fenced")
    records = fencing.begin_shutdown(state, broker)
    changes = (each for each in records if isinstance(each, PartitionChangeRecord))
    moved = {PartitionKey(each.topic_id, each.partition_id) for each in changes if each.leader >= 0}
    topics = state.image.topics.by_id
    remaining = [
        ControlledShutdownResponse.RemainingPartition(topic_name=topics[key.topic_id].name, partition_index=key[1])
        for key in state.index.led(broker.id)
        if key not in moved
    ]
    return Decision(ControlledShutdownResponse(remaining_partitions=remaining), records, is_atomic=False)
