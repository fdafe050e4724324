"""Elections: Vote, BeginQuorumEpoch, EndQuorumEpoch.

Source: KIP-595; KIP-853 (voter keys, endpoints); KIP-996 (pre-vote).
"""

from fastquorum.types import Uuid
from fastquorum.wire.message import Message, Struct
from fastquorum.wire.types import BOOL, INT16, INT32, INT64, STRING, UINT16, UUID, array, field


class VoteRequest(Message, api_key=52, kind="request", versions="0-2", flexible="0+"):
    """Ask a voter for its vote, or whether it would give it (pre-vote)."""

    class TopicData(Struct):
        class PartitionData(Struct):
            partition_index: int = field(INT32, "0+")
            replica_epoch: int = field(INT32, "0+")
            replica_id: int = field(INT32, "0+")
            replica_directory_id: Uuid = field(UUID, "1+", ignorable=True)
            voter_directory_id: Uuid = field(UUID, "1+", ignorable=True)  # the receiver's; zero: not said
            last_offset_epoch: int = field(INT32, "0+")
            last_offset: int = field(INT64, "0+")  # the end of the log: exclusive, in spite of its name
            pre_vote: bool = field(BOOL, "2+")

        topic_name: str = field(STRING, "0+")
        partitions: list[PartitionData] = field(array(PartitionData), "0+")

    cluster_id: str | None = field(STRING, "0+", nullable="0+", default=None)
    voter_id: int = field(INT32, "1+", default=-1, ignorable=True)  # the receiver; -1: not said
    topics: list[TopicData] = field(array(TopicData), "0+")


class VoteResponse(Message, api_key=52, kind="response", versions="0-2", flexible="0+"):
    """A vote, given or refused, and the leader the voter knows."""

    class TopicData(Struct):
        class PartitionData(Struct):
            partition_index: int = field(INT32, "0+")
            error_code: int = field(INT16, "0+")
            leader_id: int = field(INT32, "0+")  # -1: none known
            leader_epoch: int = field(INT32, "0+")
            vote_granted: bool = field(BOOL, "0+")

        topic_name: str = field(STRING, "0+")
        partitions: list[PartitionData] = field(array(PartitionData), "0+")

    class NodeEndpoint(Struct):
        """The leader's endpoint on the listener the request came in by."""

        node_id: int = field(INT32, "1+")
        host: str = field(STRING, "1+")
        port: int = field(UINT16, "1+")

    error_code: int = field(INT16, "0+")
    topics: list[TopicData] = field(array(TopicData), "0+")
    node_endpoints: list[NodeEndpoint] = field(array(NodeEndpoint), "1+", tag=0)


class BeginQuorumEpochRequest(Message, api_key=53, kind="request", versions="0-1", flexible="1+"):
    """A new leader announces itself."""

    class TopicData(Struct):
        class PartitionData(Struct):
            partition_index: int = field(INT32, "0+")
            voter_directory_id: Uuid = field(UUID, "1+", ignorable=True)  # the receiver's; zero: not said
            leader_id: int = field(INT32, "0+")
            leader_epoch: int = field(INT32, "0+")

        topic_name: str = field(STRING, "0+")
        partitions: list[PartitionData] = field(array(PartitionData), "0+")

    class LeaderEndpoint(Struct):
        """One of the leader's listeners."""

        name: str = field(STRING, "1+")
        host: str = field(STRING, "1+")
        port: int = field(UINT16, "1+")

    cluster_id: str | None = field(STRING, "0+", nullable="0+", default=None)
    voter_id: int = field(INT32, "1+", default=-1, ignorable=True)  # the receiver; -1: not said
    topics: list[TopicData] = field(array(TopicData), "0+")
    leader_endpoints: list[LeaderEndpoint] = field(array(LeaderEndpoint), "1+", ignorable=True)


class BeginQuorumEpochResponse(Message, api_key=53, kind="response", versions="0-1", flexible="1+"):
    """What the voter makes of it."""

    class TopicData(Struct):
        class PartitionData(Struct):
            partition_index: int = field(INT32, "0+")
            error_code: int = field(INT16, "0+")
            leader_id: int = field(INT32, "0+")  # -1: none known
            leader_epoch: int = field(INT32, "0+")

        topic_name: str = field(STRING, "0+")
        partitions: list[PartitionData] = field(array(PartitionData), "0+")

    class NodeEndpoint(Struct):
        """The leader's endpoint on the listener the request came in by."""

        node_id: int = field(INT32, "1+")
        host: str = field(STRING, "1+")
        port: int = field(UINT16, "1+")

    error_code: int = field(INT16, "0+")
    topics: list[TopicData] = field(array(TopicData), "0+")
    node_endpoints: list[NodeEndpoint] = field(array(NodeEndpoint), "1+", tag=0)


class EndQuorumEpochRequest(Message, api_key=54, kind="request", versions="0-1", flexible="1+"):
    """A resigning leader names who should stand next, best first."""

    class TopicData(Struct):
        class PartitionData(Struct):
            class ReplicaInfo(Struct):
                candidate_id: int = field(INT32, "1+")
                candidate_directory_id: Uuid = field(UUID, "1+")

            partition_index: int = field(INT32, "0+")
            leader_id: int = field(INT32, "0+")
            leader_epoch: int = field(INT32, "0+")
            preferred_successors: list[int] = field(array(INT32), "0", ignorable=True)
            preferred_candidates: list[ReplicaInfo] = field(array(ReplicaInfo), "1+", ignorable=True)

        topic_name: str = field(STRING, "0+")
        partitions: list[PartitionData] = field(array(PartitionData), "0+")

    class LeaderEndpoint(Struct):
        """One of the leader's listeners."""

        name: str = field(STRING, "1+")
        host: str = field(STRING, "1+")
        port: int = field(UINT16, "1+")

    cluster_id: str | None = field(STRING, "0+", nullable="0+", default=None)
    topics: list[TopicData] = field(array(TopicData), "0+")
    leader_endpoints: list[LeaderEndpoint] = field(array(LeaderEndpoint), "1+", ignorable=True)


class EndQuorumEpochResponse(Message, api_key=54, kind="response", versions="0-1", flexible="1+"):
    """What the voter makes of it."""

    class TopicData(Struct):
        class PartitionData(Struct):
            partition_index: int = field(INT32, "0+")
            error_code: int = field(INT16, "0+")
            leader_id: int = field(INT32, "0+")  # -1: none known
            leader_epoch: int = field(INT32, "0+")

        topic_name: str = field(STRING, "0+")
        partitions: list[PartitionData] = field(array(PartitionData), "0+")

    class NodeEndpoint(Struct):
        """The leader's endpoint on the listener the request came in by."""

        node_id: int = field(INT32, "1+")
        host: str = field(STRING, "1+")
        port: int = field(UINT16, "1+")

    error_code: int = field(INT16, "0+")
    topics: list[TopicData] = field(array(TopicData), "0+")
    node_endpoints: list[NodeEndpoint] = field(array(NodeEndpoint), "1+", tag=0)
