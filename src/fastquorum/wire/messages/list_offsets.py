"""ListOffsets: first, last and timestamped offsets. Timestamps below zero are questions: -1 latest, -2 earliest and
more.

Source: KIP-79; KIP-734 (max timestamp); KIP-405 (local, tiered).
"""

from fastquorum.wire.message import Message, Struct
from fastquorum.wire.types import INT8, INT16, INT32, INT64, STRING, array, field


class ListOffsetsRequest(Message, api_key=2, kind="request", versions="1-11", flexible="6+"):
    """Ask for offsets by timestamp."""

    class ListOffsetsTopic(Struct):
        class ListOffsetsPartition(Struct):
            partition_index: int = field(INT32, "0+")
            current_leader_epoch: int = field(INT32, "4+", default=-1, ignorable=True)
            timestamp: int = field(INT64, "0+")

        name: str = field(STRING, "0+")
        partitions: list[ListOffsetsPartition] = field(array(ListOffsetsPartition), "0+")

    replica_id: int = field(INT32, "0+")
    isolation_level: int = field(INT8, "2+")
    topics: list[ListOffsetsTopic] = field(array(ListOffsetsTopic), "0+")
    timeout_ms: int = field(INT32, "10+", ignorable=True)


class ListOffsetsResponse(Message, api_key=2, kind="response", versions="1-11", flexible="6+"):
    """The offsets found."""

    class ListOffsetsTopicResponse(Struct):
        class ListOffsetsPartitionResponse(Struct):
            partition_index: int = field(INT32, "0+")
            error_code: int = field(INT16, "0+")
            timestamp: int = field(INT64, "1+", default=-1)
            offset: int = field(INT64, "1+", default=-1)
            leader_epoch: int = field(INT32, "4+", default=-1)

        name: str = field(STRING, "0+")
        partitions: list[ListOffsetsPartitionResponse] = field(array(ListOffsetsPartitionResponse), "0+")

    throttle_time_ms: int = field(INT32, "2+", ignorable=True)
    topics: list[ListOffsetsTopicResponse] = field(array(ListOffsetsTopicResponse), "0+")
