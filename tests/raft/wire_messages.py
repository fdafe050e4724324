"""The replicas in the tests of raft/, and short builders for the messages they exchange."""

from typing import Any

from fastquorum.types import (
    METADATA_TOPIC_ID,
    TOPIC_NAME,
    ZERO_UUID,
    Endpoint,
    Epoch,
    NodeId,
    Offset,
    ReplicaKey,
    Uuid,
    Voter,
    VoterSet,
)
from fastquorum.wire import Message
from fastquorum.wire.messages.fetch import FetchRequest, FetchResponse
from fastquorum.wire.messages.quorum import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    VoteRequest,
    VoteResponse,
)

CLUSTER = "nR4bhG2JR8mYNL7GDwOfYA"


def directory(node_id: NodeId) -> Uuid:
    return Uuid(bytes([0x40] * 15 + [node_id]))


def key(node_id: NodeId) -> ReplicaKey:
    return ReplicaKey(node_id, directory(node_id))


def endpoint(node_id: NodeId) -> Endpoint:
    return Endpoint("CONTROLLER", f"host{node_id}", 9000 + node_id)


def voter_set(*ids: NodeId, with_directories: bool = True) -> VoterSet:
    return VoterSet([Voter(key(i) if with_directories else ReplicaKey(i), (endpoint(i),)) for i in ids])


def vote_request(
    epoch: Epoch,
    *,
    by: NodeId = 2,
    log: tuple[Epoch, Offset] = (0, 0),
    pre_vote: bool = False,
    to: ReplicaKey | None = None,
    cluster: str | None = CLUSTER,
    topic: str = TOPIC_NAME,
    directory_id: Uuid | None = None,
) -> VoteRequest:
    """`log` is the candidate's last epoch and end offset."""
    data = VoteRequest.TopicData
    partition = data.PartitionData(
        replica_epoch=epoch,
        replica_id=by,
        replica_directory_id=directory(by & 0xFF) if directory_id is None else directory_id,
        voter_directory_id=to.directory_id if to else ZERO_UUID,
        last_offset_epoch=log[0],
        last_offset=log[1],
        pre_vote=pre_vote,
    )
    return VoteRequest(
        cluster_id=cluster, voter_id=to.id if to else -1, topics=[data(topic_name=topic, partitions=[partition])]
    )


def vote_response(epoch: Epoch, *, granted: bool, leader: NodeId = -1, error: int = 0) -> VoteResponse:
    data = VoteResponse.TopicData
    partition = data.PartitionData(leader_epoch=epoch, leader_id=leader, vote_granted=granted, error_code=error)
    return VoteResponse(topics=[data(topic_name=TOPIC_NAME, partitions=[partition])])


def begin_request(
    epoch: Epoch,
    *,
    by: NodeId = 2,
    to: ReplicaKey | None = None,
    cluster: str | None = CLUSTER,
    topic: str = TOPIC_NAME,
    endpoints: tuple[Endpoint, ...] = (),
) -> BeginQuorumEpochRequest:
    data = BeginQuorumEpochRequest.TopicData
    partition = data.PartitionData(
        voter_directory_id=to.directory_id if to else ZERO_UUID, leader_id=by, leader_epoch=epoch
    )
    return BeginQuorumEpochRequest(
        cluster_id=cluster,
        voter_id=to.id if to else -1,
        topics=[data(topic_name=topic, partitions=[partition])],
        leader_endpoints=[
            BeginQuorumEpochRequest.LeaderEndpoint(name=each.name, host=each.host, port=each.port) for each in endpoints
        ],
    )


def begin_response(epoch: Epoch, *, leader: NodeId = -1, error: int = 0) -> BeginQuorumEpochResponse:
    data = BeginQuorumEpochResponse.TopicData
    partition = data.PartitionData(leader_epoch=epoch, leader_id=leader, error_code=error)
    return BeginQuorumEpochResponse(topics=[data(topic_name=TOPIC_NAME, partitions=[partition])])


def end_request(
    epoch: Epoch,
    *,
    by: NodeId = 2,
    candidates: tuple[NodeId, ...] = (),
    cluster: str | None = CLUSTER,
    topic: str = TOPIC_NAME,
) -> EndQuorumEpochRequest:
    data = EndQuorumEpochRequest.TopicData
    info = data.PartitionData.ReplicaInfo
    partition = data.PartitionData(
        leader_id=by,
        leader_epoch=epoch,
        preferred_successors=list(candidates),
        preferred_candidates=[info(candidate_id=i, candidate_directory_id=directory(i)) for i in candidates],
    )
    return EndQuorumEpochRequest(cluster_id=cluster, topics=[data(topic_name=topic, partitions=[partition])])


def end_response(epoch: Epoch, *, leader: NodeId = -1, error: int = 0) -> EndQuorumEpochResponse:
    data = EndQuorumEpochResponse.TopicData
    partition = data.PartitionData(leader_epoch=epoch, leader_id=leader, error_code=error)
    return EndQuorumEpochResponse(topics=[data(topic_name=TOPIC_NAME, partitions=[partition])])


def fetch_request(
    epoch: Epoch,
    *,
    by: NodeId = 2,
    at: Offset = 0,
    last_epoch: Epoch = 0,
    wait_ms: int = 500,
    cluster: str | None = CLUSTER,
    topic_id: Uuid = METADATA_TOPIC_ID,
    topic: str = TOPIC_NAME,
    directory_id: Uuid | None = None,
) -> FetchRequest:
    partition = FetchRequest.FetchTopic.FetchPartition(
        current_leader_epoch=epoch,
        fetch_offset=at,
        last_fetched_epoch=last_epoch,
        replica_directory_id=directory(by & 0xFF) if directory_id is None else directory_id,
        high_watermark=-1,
    )
    return FetchRequest(
        cluster_id=cluster,
        replica_id=by,
        replica_state=FetchRequest.ReplicaState(replica_id=by),
        max_wait_ms=wait_ms,
        max_bytes=1024,
        topics=[FetchRequest.FetchTopic(topic=topic, topic_id=topic_id, partitions=[partition])],
    )


def fetch_response(
    epoch: Epoch,
    *,
    leader: NodeId = -1,
    error: int = 0,
    high_watermark: Offset = -1,
    diverging: tuple[Epoch, Offset] | None = None,
    at: Endpoint | None = None,
) -> FetchResponse:
    data = FetchResponse.FetchableTopicResponse
    partition = data.PartitionData(
        error_code=error,
        high_watermark=high_watermark,
        current_leader=data.PartitionData.LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch),
        records=b"",
    )
    if diverging is not None:
        partition.diverging_epoch = data.PartitionData.EpochEndOffset(epoch=diverging[0], end_offset=diverging[1])
    nodes = [FetchResponse.NodeEndpoint(node_id=leader, host=at.host, port=at.port)] if at is not None else []
    return FetchResponse(
        responses=[data(topic=TOPIC_NAME, topic_id=METADATA_TOPIC_ID, partitions=[partition])], node_endpoints=nodes
    )


def error_of(message: Any) -> int:
    """The partition's error, or the top-level one."""
    if message.error_code:
        return int(message.error_code)
    topics = message.responses if isinstance(message, FetchResponse) else message.topics
    return int(topics[0].partitions[0].error_code)


def is_granted(message: Message) -> bool:
    assert isinstance(message, VoteResponse)
    return message.topics[0].partitions[0].vote_granted
