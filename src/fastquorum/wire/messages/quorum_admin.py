"""The quorum seen and changed from outside: DescribeQuorum, AddRaftVoter, RemoveRaftVoter, UpdateRaftVoter.

Source: KIP-595, KIP-836 (timestamps), KIP-853 (voter changes).
"""

from fastquorum.types import Uuid
from fastquorum.wire.message import Message, Struct
from fastquorum.wire.types import BOOL, INT16, INT32, INT64, STRING, UINT16, UUID, array, field, struct


class DescribeQuorumRequest(Message, api_key=55, kind="request", versions="0-2", flexible="0+"):
    """Ask a leader for the state of its quorum."""

    class TopicData(Struct):
        class PartitionData(Struct):
            partition_index: int = field(INT32, "0+")

        topic_name: str = field(STRING, "0+")
        partitions: list[PartitionData] = field(array(PartitionData), "0+")

    topics: list[TopicData] = field(array(TopicData), "0+")


class DescribeQuorumResponse(Message, api_key=55, kind="response", versions="0-2", flexible="0+"):
    """Voters, observers and how far each has come."""

    class TopicData(Struct):
        class PartitionData(Struct):
            class ReplicaState(Struct):
                """One replica, as the leader sees it."""

                replica_id: int = field(INT32, "0+")
                replica_directory_id: Uuid = field(UUID, "2+")
                log_end_offset: int = field(INT64, "0+")  # -1: unknown
                last_fetch_timestamp: int = field(INT64, "1+", default=-1, ignorable=True)
                last_caught_up_timestamp: int = field(INT64, "1+", default=-1, ignorable=True)

            partition_index: int = field(INT32, "0+")
            error_code: int = field(INT16, "0+")
            error_message: str | None = field(STRING, "2+", nullable="2+", ignorable=True)
            leader_id: int = field(INT32, "0+")
            leader_epoch: int = field(INT32, "0+")
            high_watermark: int = field(INT64, "0+")
            current_voters: list[ReplicaState] = field(array(ReplicaState), "0+")
            observers: list[ReplicaState] = field(array(ReplicaState), "0+")

        topic_name: str = field(STRING, "0+")
        partitions: list[PartitionData] = field(array(PartitionData), "0+")

    class Node(Struct):
        class Listener(Struct):
            name: str = field(STRING, "2+")
            host: str = field(STRING, "2+")
            port: int = field(UINT16, "2+")

        node_id: int = field(INT32, "2+")
        listeners: list[Listener] = field(array(Listener), "2+")

    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "2+", nullable="2+", ignorable=True)
    topics: list[TopicData] = field(array(TopicData), "0+")
    nodes: list[Node] = field(array(Node), "2+")


class AddRaftVoterRequest(Message, api_key=80, kind="request", versions="0-1", flexible="0+"):
    """Make an observer a voter."""

    class Listener(Struct):
        name: str = field(STRING, "0+")
        host: str = field(STRING, "0+")
        port: int = field(UINT16, "0+")

    cluster_id: str | None = field(STRING, "0+", nullable="0+")
    timeout_ms: int = field(INT32, "0+")
    voter_id: int = field(INT32, "0+")
    voter_directory_id: Uuid = field(UUID, "0+")
    listeners: list[Listener] = field(array(Listener), "0+")
    ack_when_committed: bool = field(BOOL, "1+", default=True)


class AddRaftVoterResponse(Message, api_key=80, kind="response", versions="0-1", flexible="0+"):
    """The leader's verdict."""

    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+", ignorable=True)


class RemoveRaftVoterRequest(Message, api_key=81, kind="request", versions="0", flexible="0+"):
    """Take a voter out of the quorum."""

    cluster_id: str | None = field(STRING, "0+", nullable="0+")
    voter_id: int = field(INT32, "0+")
    voter_directory_id: Uuid = field(UUID, "0+")


class RemoveRaftVoterResponse(Message, api_key=81, kind="response", versions="0", flexible="0+"):
    """The leader's verdict."""

    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+", ignorable=True)


class UpdateRaftVoterRequest(Message, api_key=82, kind="request", versions="0", flexible="0+"):
    """A voter corrects its own endpoints and version range."""

    class Listener(Struct):
        name: str = field(STRING, "0+")
        host: str = field(STRING, "0+")
        port: int = field(UINT16, "0+")

    class KRaftVersionFeature(Struct):
        min_supported_version: int = field(INT16, "0+")
        max_supported_version: int = field(INT16, "0+")

    cluster_id: str | None = field(STRING, "0+", nullable="0+")
    current_leader_epoch: int = field(INT32, "0+")
    voter_id: int = field(INT32, "0+")
    voter_directory_id: Uuid = field(UUID, "0+")
    listeners: list[Listener] = field(array(Listener), "0+")
    kraft_version_feature: KRaftVersionFeature = field(struct(KRaftVersionFeature), "0+", json="kRaftVersionFeature")


class UpdateRaftVoterResponse(Message, api_key=82, kind="response", versions="0", flexible="0+"):
    """The leader's verdict, and who leads."""

    class CurrentLeader(Struct):
        leader_id: int = field(INT32, "0+", default=-1)
        leader_epoch: int = field(INT32, "0+", default=-1)
        host: str = field(STRING, "0+")
        port: int = field(INT32, "0+")

    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    current_leader: CurrentLeader = field(struct(CurrentLeader), "0+", tag=0)
