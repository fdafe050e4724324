"""Replicas of partitions: ISR changes, reassignments, leader elections, log directories.

Source: KIP-497 and KIP-903 (AlterPartition); KIP-455 (reassignments); KIP-460 (elections); KIP-858 (directories).
"""

from fastquorum.types import Uuid
from fastquorum.wire.message import Message, Struct
from fastquorum.wire.types import BOOL, INT8, INT16, INT32, INT64, STRING, UUID, array, field


class AlterPartitionRequest(Message, api_key=56, kind="request", versions="2-3", flexible="0+"):
    """A partition leader proposes a new ISR."""

    class TopicData(Struct):
        class PartitionData(Struct):
            class BrokerState(Struct):
                """A member of the new ISR."""

                broker_id: int = field(INT32, "3+")
                broker_epoch: int = field(INT64, "3+", default=-1)

            partition_index: int = field(INT32, "0+")
            leader_epoch: int = field(INT32, "0+")
            new_isr: list[int] = field(array(INT32), "0-2")
            new_isr_with_epochs: list[BrokerState] = field(array(BrokerState), "3+")
            leader_recovery_state: int = field(INT8, "1+")
            partition_epoch: int = field(INT32, "0+")

        topic_id: Uuid = field(UUID, "2+", ignorable=True)
        partitions: list[PartitionData] = field(array(PartitionData), "0+")

    broker_id: int = field(INT32, "0+")
    broker_epoch: int = field(INT64, "0+", default=-1)
    topics: list[TopicData] = field(array(TopicData), "0+")


class AlterPartitionResponse(Message, api_key=56, kind="response", versions="2-3", flexible="0+"):
    """The state after it."""

    class TopicData(Struct):
        class PartitionData(Struct):
            partition_index: int = field(INT32, "0+")
            error_code: int = field(INT16, "0+")
            leader_id: int = field(INT32, "0+")
            leader_epoch: int = field(INT32, "0+")
            isr: list[int] = field(array(INT32), "0+")
            leader_recovery_state: int = field(INT8, "1+", ignorable=True)
            partition_epoch: int = field(INT32, "0+")

        topic_id: Uuid = field(UUID, "2+", ignorable=True)
        partitions: list[PartitionData] = field(array(PartitionData), "0+")

    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    topics: list[TopicData] = field(array(TopicData), "0+")


class AlterPartitionReassignmentsRequest(Message, api_key=45, kind="request", versions="0-1", flexible="0+"):
    """Move replicas, or (null) stop moving them."""

    class ReassignableTopic(Struct):
        class ReassignablePartition(Struct):
            partition_index: int = field(INT32, "0+")
            replicas: list[int] | None = field(array(INT32), "0+", nullable="0+", default=None)

        name: str = field(STRING, "0+")
        partitions: list[ReassignablePartition] = field(array(ReassignablePartition), "0+")

    timeout_ms: int = field(INT32, "0+", default=60000)
    allow_replication_factor_change: bool = field(BOOL, "1+", default=True)
    topics: list[ReassignableTopic] = field(array(ReassignableTopic), "0+")


class AlterPartitionReassignmentsResponse(Message, api_key=45, kind="response", versions="0-1", flexible="0+"):
    """What became of each."""

    class ReassignableTopicResponse(Struct):
        class ReassignablePartitionResponse(Struct):
            partition_index: int = field(INT32, "0+")
            error_code: int = field(INT16, "0+")
            error_message: str | None = field(STRING, "0+", nullable="0+")

        name: str = field(STRING, "0+")
        partitions: list[ReassignablePartitionResponse] = field(array(ReassignablePartitionResponse), "0+")

    throttle_time_ms: int = field(INT32, "0+")
    allow_replication_factor_change: bool = field(BOOL, "1+", default=True, ignorable=True)
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")
    responses: list[ReassignableTopicResponse] = field(array(ReassignableTopicResponse), "0+")


class ListPartitionReassignmentsRequest(Message, api_key=46, kind="request", versions="0", flexible="0+"):
    """Ask what is moving."""

    class ListPartitionReassignmentsTopics(Struct):
        name: str = field(STRING, "0+")
        partition_indexes: list[int] = field(array(INT32), "0+")

    timeout_ms: int = field(INT32, "0+", default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = field(
        array(ListPartitionReassignmentsTopics), "0+", nullable="0+", default=None
    )


class ListPartitionReassignmentsResponse(Message, api_key=46, kind="response", versions="0", flexible="0+"):
    """The reassignments under way."""

    class OngoingTopicReassignment(Struct):
        class OngoingPartitionReassignment(Struct):
            partition_index: int = field(INT32, "0+")
            replicas: list[int] = field(array(INT32), "0+")
            adding_replicas: list[int] = field(array(INT32), "0+")
            removing_replicas: list[int] = field(array(INT32), "0+")

        name: str = field(STRING, "0+")
        partitions: list[OngoingPartitionReassignment] = field(array(OngoingPartitionReassignment), "0+")

    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")
    topics: list[OngoingTopicReassignment] = field(array(OngoingTopicReassignment), "0+")


class ElectLeadersRequest(Message, api_key=43, kind="request", versions="0-2", flexible="2+"):
    """Elect preferred (0) or unclean (1) leaders."""

    class TopicPartitions(Struct):
        topic: str = field(STRING, "0+")
        partitions: list[int] = field(array(INT32), "0+")

    election_type: int = field(INT8, "1+")
    topic_partitions: list[TopicPartitions] | None = field(array(TopicPartitions), "0+", nullable="0+")
    timeout_ms: int = field(INT32, "0+", default=60000)


class ElectLeadersResponse(Message, api_key=43, kind="response", versions="0-2", flexible="2+"):
    """What became of each."""

    class ReplicaElectionResult(Struct):
        class PartitionResult(Struct):
            partition_id: int = field(INT32, "0+")
            error_code: int = field(INT16, "0+")
            error_message: str | None = field(STRING, "0+", nullable="0+")

        topic: str = field(STRING, "0+")
        partition_result: list[PartitionResult] = field(array(PartitionResult), "0+")

    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "1+")
    replica_election_results: list[ReplicaElectionResult] = field(array(ReplicaElectionResult), "0+")


class AssignReplicasToDirsRequest(Message, api_key=73, kind="request", versions="0", flexible="0+"):
    """A broker tells which directories hold its replicas."""

    class DirectoryData(Struct):
        class TopicData(Struct):
            class PartitionData(Struct):
                partition_index: int = field(INT32, "0+")

            topic_id: Uuid = field(UUID, "0+")
            partitions: list[PartitionData] = field(array(PartitionData), "0+")

        id: Uuid = field(UUID, "0+")
        topics: list[TopicData] = field(array(TopicData), "0+")

    broker_id: int = field(INT32, "0+")
    broker_epoch: int = field(INT64, "0+", default=-1)
    directories: list[DirectoryData] = field(array(DirectoryData), "0+")


class AssignReplicasToDirsResponse(Message, api_key=73, kind="response", versions="0", flexible="0+"):
    """What became of each."""

    class DirectoryData(Struct):
        class TopicData(Struct):
            class PartitionData(Struct):
                partition_index: int = field(INT32, "0+")
                error_code: int = field(INT16, "0+")

            topic_id: Uuid = field(UUID, "0+")
            partitions: list[PartitionData] = field(array(PartitionData), "0+")

        id: Uuid = field(UUID, "0+")
        topics: list[TopicData] = field(array(TopicData), "0+")

    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    directories: list[DirectoryData] = field(array(DirectoryData), "0+")
