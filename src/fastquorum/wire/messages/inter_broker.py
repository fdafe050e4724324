"""A ZooKeeper-age controller's control requests, and a broker's controlled shutdown, as KIP-380 left them: each carries
the broker epoch of the process it is meant for, so that one meant for its predecessor can be refused.

One version of each, the one that KIP-380 made. Kafka 4 has none of them; kafka-clients 3.9.1 was the last to define
them, and fields are named as there (the KIP's `zk_version` is `partition_epoch` in one request, `zk_version` in the
other). Source: KIP-380.
"""

from fastquorum.wire.message import Message, Struct
from fastquorum.wire.types import BOOL, INT16, INT32, INT64, STRING, array, field


class LeaderAndIsrRequest(Message, api_key=4, kind="request", versions="2", flexible="4+"):
    """Lead or follow these partitions."""

    class LeaderAndIsrTopicState(Struct):
        class LeaderAndIsrPartitionState(Struct):
            partition_index: int = field(INT32, "0+")
            controller_epoch: int = field(INT32, "0+")
            leader: int = field(INT32, "0+")
            leader_epoch: int = field(INT32, "0+")
            isr: list[int] = field(array(INT32), "0+")
            partition_epoch: int = field(INT32, "0+")
            replicas: list[int] = field(array(INT32), "0+")
            is_new: bool = field(BOOL, "1+", ignorable=True)

        topic_name: str = field(STRING, "2+")
        partition_states: list[LeaderAndIsrPartitionState] = field(array(LeaderAndIsrPartitionState), "2+")

    class LeaderAndIsrLiveLeader(Struct):
        broker_id: int = field(INT32, "0+")
        host_name: str = field(STRING, "0+")
        port: int = field(INT32, "0+")

    controller_id: int = field(INT32, "0+")
    controller_epoch: int = field(INT32, "0+")
    broker_epoch: int = field(INT64, "2+", default=-1, ignorable=True)
    topic_states: list[LeaderAndIsrTopicState] = field(array(LeaderAndIsrTopicState), "2+")
    live_leaders: list[LeaderAndIsrLiveLeader] = field(array(LeaderAndIsrLiveLeader), "0+")


class LeaderAndIsrResponse(Message, api_key=4, kind="response", versions="2", flexible="4+"):
    """What became of each; STALE_BROKER_EPOCH for all of them if they were meant for an earlier process."""

    class LeaderAndIsrPartitionError(Struct):
        topic_name: str = field(STRING, "0-4", ignorable=True)
        partition_index: int = field(INT32, "0+")
        error_code: int = field(INT16, "0+")

    error_code: int = field(INT16, "0+")
    partition_errors: list[LeaderAndIsrPartitionError] = field(array(LeaderAndIsrPartitionError), "0-4")


class StopReplicaRequest(Message, api_key=5, kind="request", versions="1", flexible="2+"):
    """Stop replicating these partitions, and perhaps delete them."""

    class StopReplicaTopicV1(Struct):
        name: str = field(STRING, "1-2")
        partition_indexes: list[int] = field(array(INT32), "1-2")

    controller_id: int = field(INT32, "0+")
    controller_epoch: int = field(INT32, "0+")
    broker_epoch: int = field(INT64, "1+", default=-1, ignorable=True)
    delete_partitions: bool = field(BOOL, "0-2")
    topics: list[StopReplicaTopicV1] = field(array(StopReplicaTopicV1), "1-2")


class StopReplicaResponse(Message, api_key=5, kind="response", versions="1", flexible="2+"):
    """What became of each."""

    class StopReplicaPartitionError(Struct):
        topic_name: str = field(STRING, "0+")
        partition_index: int = field(INT32, "0+")
        error_code: int = field(INT16, "0+")

    error_code: int = field(INT16, "0+")
    partition_errors: list[StopReplicaPartitionError] = field(array(StopReplicaPartitionError), "0+")


class UpdateMetadataRequest(Message, api_key=6, kind="request", versions="5", flexible="6+"):
    """What clients are to be told: partitions and live brokers."""

    class UpdateMetadataTopicState(Struct):
        class UpdateMetadataPartitionState(Struct):
            partition_index: int = field(INT32, "0+")
            controller_epoch: int = field(INT32, "0+")
            leader: int = field(INT32, "0+")
            leader_epoch: int = field(INT32, "0+")
            isr: list[int] = field(array(INT32), "0+")
            zk_version: int = field(INT32, "0+")
            replicas: list[int] = field(array(INT32), "0+")
            offline_replicas: list[int] = field(array(INT32), "4+", ignorable=True)

        topic_name: str = field(STRING, "5+")
        partition_states: list[UpdateMetadataPartitionState] = field(array(UpdateMetadataPartitionState), "5+")

    class UpdateMetadataBroker(Struct):
        class UpdateMetadataEndpoint(Struct):
            port: int = field(INT32, "1+")
            host: str = field(STRING, "1+")
            listener: str = field(STRING, "3+", ignorable=True)
            security_protocol: int = field(INT16, "1+")

        id: int = field(INT32, "0+")
        endpoints: list[UpdateMetadataEndpoint] = field(array(UpdateMetadataEndpoint), "1+", ignorable=True)
        rack: str | None = field(STRING, "2+", nullable="0+", ignorable=True)

    controller_id: int = field(INT32, "0+")
    controller_epoch: int = field(INT32, "0+")
    broker_epoch: int = field(INT64, "5+", default=-1, ignorable=True)
    topic_states: list[UpdateMetadataTopicState] = field(array(UpdateMetadataTopicState), "5+")
    live_brokers: list[UpdateMetadataBroker] = field(array(UpdateMetadataBroker), "0+")


class UpdateMetadataResponse(Message, api_key=6, kind="response", versions="5", flexible="6+"):
    """Taken, or why not."""

    error_code: int = field(INT16, "0+")


class ControlledShutdownRequest(Message, api_key=7, kind="request", versions="2", flexible="3+"):
    """A broker wants to go and asks the controller to move its leaderships away."""

    broker_id: int = field(INT32, "0+")
    broker_epoch: int = field(INT64, "2+", default=-1, ignorable=True)


class ControlledShutdownResponse(Message, api_key=7, kind="response", versions="2", flexible="3+"):
    """What it leads still."""

    class RemainingPartition(Struct):
        topic_name: str = field(STRING, "0+")
        partition_index: int = field(INT32, "0+")

    error_code: int = field(INT16, "0+")
    remaining_partitions: list[RemainingPartition] = field(array(RemainingPartition), "0+")
