"""Produce: a client appends record batches.

Source: the Kafka protocol guide; KIP-467 (record errors); KIP-516 (topic ids); KIP-951 (current leader).
"""

from fastquorum.types import Uuid
from fastquorum.wire.message import Message, Struct
from fastquorum.wire.types import INT16, INT32, INT64, RECORDS, STRING, UUID, array, field, struct


class ProduceRequest(Message, api_key=0, kind="request", versions="3-13", flexible="9+"):
    """Append batches to partitions; acks -1 waits for the quorum."""

    class TopicProduceData(Struct):
        class PartitionProduceData(Struct):
            index: int = field(INT32, "0+")
            records: bytes | None = field(RECORDS, "0+", nullable="0+")

        name: str = field(STRING, "0-12", ignorable=True)
        topic_id: Uuid = field(UUID, "13+", ignorable=True)
        partition_data: list[PartitionProduceData] = field(array(PartitionProduceData), "0+")

    transactional_id: str | None = field(STRING, "3+", nullable="3+", default=None)
    acks: int = field(INT16, "0+")
    timeout_ms: int = field(INT32, "0+")
    topic_data: list[TopicProduceData] = field(array(TopicProduceData), "0+")


class ProduceResponse(Message, api_key=0, kind="response", versions="3-13", flexible="9+"):
    """Where each batch begins, or why it was refused."""

    class TopicProduceResponse(Struct):
        class PartitionProduceResponse(Struct):
            class BatchIndexAndErrorMessage(Struct):
                """A record that caused the refusal of its batch."""

                batch_index: int = field(INT32, "8+")
                batch_index_error_message: str | None = field(STRING, "8+", nullable="8+", default=None)

            class LeaderIdAndEpoch(Struct):
                leader_id: int = field(INT32, "10+", default=-1)
                leader_epoch: int = field(INT32, "10+", default=-1)

            index: int = field(INT32, "0+")
            error_code: int = field(INT16, "0+")
            base_offset: int = field(INT64, "0+")
            log_append_time_ms: int = field(INT64, "2+", default=-1, ignorable=True)
            log_start_offset: int = field(INT64, "5+", default=-1, ignorable=True)
            record_errors: list[BatchIndexAndErrorMessage] = field(
                array(BatchIndexAndErrorMessage), "8+", ignorable=True
            )
            error_message: str | None = field(STRING, "8+", nullable="8+", default=None, ignorable=True)
            current_leader: LeaderIdAndEpoch = field(struct(LeaderIdAndEpoch), "10+", tag=0)

        name: str = field(STRING, "0-12", ignorable=True)
        topic_id: Uuid = field(UUID, "13+", ignorable=True)
        partition_responses: list[PartitionProduceResponse] = field(array(PartitionProduceResponse), "0+")

    class NodeEndpoint(Struct):
        node_id: int = field(INT32, "10+")
        host: str = field(STRING, "10+")
        port: int = field(INT32, "10+")
        rack: str | None = field(STRING, "10+", nullable="10+", default=None)

    responses: list[TopicProduceResponse] = field(array(TopicProduceResponse), "0+")
    throttle_time_ms: int = field(INT32, "1+", ignorable=True)
    node_endpoints: list[NodeEndpoint] = field(array(NodeEndpoint), "10+", tag=0)
