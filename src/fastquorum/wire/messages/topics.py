"""Topics made, removed, extended and described.

Source: KIP-4, KIP-195 (CreatePartitions), KIP-516 (topic ids), KIP-966 (DescribeTopicPartitions).
"""

from fastquorum.types import Uuid
from fastquorum.wire.message import Message, Struct
from fastquorum.wire.types import BOOL, INT8, INT16, INT32, STRING, UUID, array, field, struct


class CreateTopicsRequest(Message, api_key=19, kind="request", versions="2-7", flexible="5+"):
    """Create topics."""

    class CreatableTopic(Struct):
        class CreatableReplicaAssignment(Struct):
            """Brokers chosen by the caller for one partition."""

            partition_index: int = field(INT32, "0+")
            broker_ids: list[int] = field(array(INT32), "0+")

        class CreatableTopicConfig(Struct):
            name: str = field(STRING, "0+")
            value: str | None = field(STRING, "0+", nullable="0+")

        name: str = field(STRING, "0+")
        num_partitions: int = field(INT32, "0+")
        replication_factor: int = field(INT16, "0+")
        assignments: list[CreatableReplicaAssignment] = field(array(CreatableReplicaAssignment), "0+")
        configs: list[CreatableTopicConfig] = field(array(CreatableTopicConfig), "0+")

    topics: list[CreatableTopic] = field(array(CreatableTopic), "0+")
    timeout_ms: int = field(INT32, "0+", default=60000)
    validate_only: bool = field(BOOL, "1+")


class CreateTopicsResponse(Message, api_key=19, kind="response", versions="2-7", flexible="5+"):
    """What became of each."""

    class CreatableTopicResult(Struct):
        class CreatableTopicConfigs(Struct):
            name: str = field(STRING, "5+")
            value: str | None = field(STRING, "5+", nullable="5+")
            read_only: bool = field(BOOL, "5+")
            config_source: int = field(INT8, "5+", default=-1, ignorable=True)
            is_sensitive: bool = field(BOOL, "5+")

        name: str = field(STRING, "0+")
        topic_id: Uuid = field(UUID, "7+", ignorable=True)
        error_code: int = field(INT16, "0+")
        error_message: str | None = field(STRING, "1+", nullable="0+", ignorable=True)
        topic_config_error_code: int = field(INT16, "5+", tag=0, ignorable=True)
        num_partitions: int = field(INT32, "5+", default=-1, ignorable=True)
        replication_factor: int = field(INT16, "5+", default=-1, ignorable=True)
        configs: list[CreatableTopicConfigs] | None = field(
            array(CreatableTopicConfigs), "5+", nullable="5+", ignorable=True
        )

    throttle_time_ms: int = field(INT32, "2+", ignorable=True)
    topics: list[CreatableTopicResult] = field(array(CreatableTopicResult), "0+")


class DeleteTopicsRequest(Message, api_key=20, kind="request", versions="1-6", flexible="4+"):
    """Delete topics, by name or id."""

    class DeleteTopicState(Struct):
        name: str | None = field(STRING, "6+", nullable="6+", default=None)
        topic_id: Uuid = field(UUID, "6+")

    topics: list[DeleteTopicState] = field(array(DeleteTopicState), "6+")
    topic_names: list[str] = field(array(STRING), "0-5", ignorable=True)
    timeout_ms: int = field(INT32, "0+")


class DeleteTopicsResponse(Message, api_key=20, kind="response", versions="1-6", flexible="4+"):
    """What became of each."""

    class DeletableTopicResult(Struct):
        name: str | None = field(STRING, "0+", nullable="6+")
        topic_id: Uuid = field(UUID, "6+", ignorable=True)
        error_code: int = field(INT16, "0+")
        error_message: str | None = field(STRING, "5+", nullable="5+", default=None, ignorable=True)

    throttle_time_ms: int = field(INT32, "1+", ignorable=True)
    responses: list[DeletableTopicResult] = field(array(DeletableTopicResult), "0+")


class CreatePartitionsRequest(Message, api_key=37, kind="request", versions="0-3", flexible="2+"):
    """Raise the number of partitions."""

    class CreatePartitionsTopic(Struct):
        class CreatePartitionsAssignment(Struct):
            broker_ids: list[int] = field(array(INT32), "0+")

        name: str = field(STRING, "0+")
        count: int = field(INT32, "0+")
        assignments: list[CreatePartitionsAssignment] | None = field(
            array(CreatePartitionsAssignment), "0+", nullable="0+"
        )

    topics: list[CreatePartitionsTopic] = field(array(CreatePartitionsTopic), "0+")
    timeout_ms: int = field(INT32, "0+")
    validate_only: bool = field(BOOL, "0+")


class CreatePartitionsResponse(Message, api_key=37, kind="response", versions="0-3", flexible="2+"):
    """What became of each."""

    class CreatePartitionsTopicResult(Struct):
        name: str = field(STRING, "0+")
        error_code: int = field(INT16, "0+")
        error_message: str | None = field(STRING, "0+", nullable="0+", default=None)

    throttle_time_ms: int = field(INT32, "0+")
    results: list[CreatePartitionsTopicResult] = field(array(CreatePartitionsTopicResult), "0+")


class DescribeTopicPartitionsRequest(Message, api_key=75, kind="request", versions="0", flexible="0+"):
    """Ask for the partitions of topics, page by page."""

    class TopicRequest(Struct):
        name: str = field(STRING, "0+")

    class Cursor(Struct):
        """Where the next page begins."""

        topic_name: str = field(STRING, "0+")
        partition_index: int = field(INT32, "0+")

    topics: list[TopicRequest] = field(array(TopicRequest), "0+")
    response_partition_limit: int = field(INT32, "0+", default=2000)
    cursor: Cursor | None = field(struct(Cursor), "0+", nullable="0+", default=None)


class DescribeTopicPartitionsResponse(Message, api_key=75, kind="response", versions="0", flexible="0+"):
    """A page; a cursor if more follow."""

    class DescribeTopicPartitionsResponseTopic(Struct):
        class DescribeTopicPartitionsResponsePartition(Struct):
            error_code: int = field(INT16, "0+")
            partition_index: int = field(INT32, "0+")
            leader_id: int = field(INT32, "0+")
            leader_epoch: int = field(INT32, "0+", default=-1, ignorable=True)
            replica_nodes: list[int] = field(array(INT32), "0+")
            isr_nodes: list[int] = field(array(INT32), "0+")
            eligible_leader_replicas: list[int] | None = field(array(INT32), "0+", nullable="0+", default=None)
            last_known_elr: list[int] | None = field(array(INT32), "0+", nullable="0+", default=None)
            offline_replicas: list[int] = field(array(INT32), "0+", ignorable=True)

        error_code: int = field(INT16, "0+")
        name: str | None = field(STRING, "0+", nullable="0+")
        topic_id: Uuid = field(UUID, "0+", ignorable=True)
        is_internal: bool = field(BOOL, "0+", ignorable=True)
        partitions: list[DescribeTopicPartitionsResponsePartition] = field(
            array(DescribeTopicPartitionsResponsePartition), "0+"
        )
        topic_authorized_operations: int = field(INT32, "0+", default=-2147483648)

    class Cursor(Struct):
        """Where the next page begins."""

        topic_name: str = field(STRING, "0+")
        partition_index: int = field(INT32, "0+")

    throttle_time_ms: int = field(INT32, "0+", ignorable=True)
    topics: list[DescribeTopicPartitionsResponseTopic] = field(array(DescribeTopicPartitionsResponseTopic), "0+")
    next_cursor: Cursor | None = field(struct(Cursor), "0+", nullable="0+", default=None)
