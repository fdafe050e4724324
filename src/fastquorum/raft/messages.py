"""How raft's requests and answers look: from what a replica knows to wire messages. Decides nothing.

Sources: KIP-595, KIP-630, KIP-853, KIP-996.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from fastquorum.config import MS
from fastquorum.raft.core import Core, ForVoter
from fastquorum.types import (
    METADATA_TOPIC_ID,
    TOPIC_NAME,
    Endpoint,
    NodeId,
    Offset,
    OffsetAndEpoch,
    ReplicaKey,
    Voter,
    VoterSet,
)
from fastquorum.wire import ErrorCode, Message
from fastquorum.wire.messages.fetch import FetchRequest, FetchResponse
from fastquorum.wire.messages.quorum import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    VoteRequest,
    VoteResponse,
)
from fastquorum.wire.messages.quorum_admin import UpdateRaftVoterRequest
from fastquorum.wire.messages.snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from fastquorum.wire.records.control_values import KRaftVersionRecord, LeaderChangeMessage, VotersRecord

Node = TypeVar("Node")
Announced = TypeVar("Announced", BeginQuorumEpochResponse, EndQuorumEpochResponse)

# --- requests ---------------------------------------------------------------------------------------------------------


def vote_request(core: Core, *, pre_vote: bool) -> ForVoter:
    """Ask for the vote, or whether it would be given, in the current epoch."""

    def build(voter: ReplicaKey) -> Message:
        topic = VoteRequest.TopicData
        partition = topic.PartitionData(
            replica_epoch=core.epoch,
            replica_id=core.key.id,
            replica_directory_id=core.key.directory_id,
            voter_directory_id=voter.directory_id,
            last_offset_epoch=core.log.last_epoch,
            last_offset=core.log_end,
            pre_vote=pre_vote,
        )
        return VoteRequest(
            cluster_id=core.cluster_id,
            voter_id=voter.id,
            topics=[topic(topic_name=TOPIC_NAME, partitions=[partition])],
        )

    return build


def begin_quorum_epoch_request(core: Core) -> ForVoter:
    """This replica leads."""

    def build(voter: ReplicaKey) -> Message:
        topic = BeginQuorumEpochRequest.TopicData
        partition = topic.PartitionData(
            voter_directory_id=voter.directory_id, leader_id=core.key.id, leader_epoch=core.epoch
        )
        return BeginQuorumEpochRequest(
            cluster_id=core.cluster_id,
            voter_id=voter.id,
            topics=[topic(topic_name=TOPIC_NAME, partitions=[partition])],
            leader_endpoints=[
                BeginQuorumEpochRequest.LeaderEndpoint(name=each.name, host=each.host, port=each.port)
                for each in core.listeners
            ],
        )

    return build


def end_quorum_epoch_request(core: Core, candidates: Sequence[ReplicaKey]) -> ForVoter:
    """This replica led and does no more; who should stand next, best first."""

    def build(_: ReplicaKey) -> Message:
        topic = EndQuorumEpochRequest.TopicData
        partition = topic.PartitionData(
            leader_id=core.key.id,
            leader_epoch=core.epoch,
            preferred_successors=[candidate.id for candidate in candidates],
            preferred_candidates=[
                topic.PartitionData.ReplicaInfo(
                    candidate_id=candidate.id, candidate_directory_id=candidate.directory_id
                )
                for candidate in candidates
            ],
        )
        return EndQuorumEpochRequest(
            cluster_id=core.cluster_id, topics=[topic(topic_name=TOPIC_NAME, partitions=[partition])]
        )

    return build


def update_raft_voter_request(core: Core) -> UpdateRaftVoterRequest:
    """What this static voter is."""
    own = Voter(core.key, core.listeners)
    request = UpdateRaftVoterRequest
    return request(
        cluster_id=core.cluster_id,
        current_leader_epoch=core.epoch,
        voter_id=own.key.id,
        voter_directory_id=own.key.directory_id,
        listeners=[request.Listener(name=each.name, host=each.host, port=each.port) for each in own.endpoints],
        kraft_version_feature=request.KRaftVersionFeature(
            min_supported_version=own.kraft_version_min, max_supported_version=own.kraft_version_max
        ),
    )


def snapshot_fetch(core: Core, snapshot: OffsetAndEpoch, position: int) -> FetchSnapshotRequest:
    """Ask the leader for the next piece of a snapshot."""
    topic = FetchSnapshotRequest.TopicSnapshot
    partition = topic.PartitionSnapshot(
        current_leader_epoch=core.epoch,
        snapshot_id=topic.PartitionSnapshot.SnapshotId(end_offset=snapshot.offset, epoch=snapshot.epoch),
        position=position,
        replica_directory_id=core.key.directory_id,
    )
    return FetchSnapshotRequest(
        cluster_id=core.cluster_id,
        replica_id=core.key.id,
        max_bytes=core.config.fetch_snapshot_bytes_max,
        topics=[topic(name=TOPIC_NAME, partitions=[partition])],
    )


# --- answers ----------------------------------------------------------------------------------------------------------


def leader_endpoint(core: Core) -> Endpoint | None:
    return core.endpoint_of(core.leader_id) if core.reported_leader_id >= 0 else None


def _node_endpoints(core: Core, node: Callable[..., Node]) -> list[Node]:
    """Where the leader listens, for receivers whose voter set may be old."""
    at = leader_endpoint(core)
    return [] if at is None else [node(node_id=core.leader_id, host=at.host, port=at.port)]


def vote_response(core: Core, version: int, error: ErrorCode, *, granted: bool = False) -> VoteResponse:
    topic = VoteResponse.TopicData
    partition = topic.PartitionData(
        error_code=error, leader_id=core.reported_leader_id, leader_epoch=core.epoch, vote_granted=granted
    )
    response = VoteResponse(topics=[topic(topic_name=TOPIC_NAME, partitions=[partition])])
    if version >= 1:
        response.node_endpoints = _node_endpoints(core, VoteResponse.NodeEndpoint)
    return response


def epoch_response(cls: type[Announced], core: Core, version: int, error: ErrorCode) -> Announced:
    """The answer to BeginQuorumEpoch or EndQuorumEpoch."""
    topic = cls.TopicData
    partition = topic.PartitionData(error_code=error, leader_id=core.reported_leader_id, leader_epoch=core.epoch)
    response = cls(topics=[topic(topic_name=TOPIC_NAME, partitions=[partition])])
    if version >= 1:
        response.node_endpoints = _node_endpoints(core, cls.NodeEndpoint)
    return response


def fetch_response(
    core: Core,
    version: int,
    error: ErrorCode,
    *,
    high_watermark: Offset = -1,
    diverging: OffsetAndEpoch | None = None,
    snapshot: OffsetAndEpoch | None = None,
) -> FetchResponse:
    """An answer without records: an error, where the logs diverge, or the snapshot to begin with. Always names the
    leader."""
    topic = FetchResponse.FetchableTopicResponse
    partition = topic.PartitionData(
        error_code=error,
        high_watermark=high_watermark,
        log_start_offset=core.log.start_offset,
        aborted_transactions=[],
        records=b"",
    )
    if version >= 12:
        partition.current_leader = topic.PartitionData.LeaderIdAndEpoch(
            leader_id=core.reported_leader_id, leader_epoch=core.epoch
        )
    if diverging is not None:
        partition.diverging_epoch = topic.PartitionData.EpochEndOffset(
            epoch=diverging.epoch, end_offset=diverging.offset
        )
    if snapshot is not None:
        partition.snapshot_id = topic.PartitionData.SnapshotId(epoch=snapshot.epoch, end_offset=snapshot.offset)
    response = FetchResponse(responses=[topic(topic=TOPIC_NAME, topic_id=METADATA_TOPIC_ID, partitions=[partition])])
    if version >= 17:
        response.node_endpoints = _node_endpoints(core, FetchResponse.NodeEndpoint)
    return response


def fetch_snapshot_response(
    core: Core,
    topic_name: str,
    request: FetchSnapshotRequest.TopicSnapshot.PartitionSnapshot,
    version: int,
    error: ErrorCode,
    *,
    size_bytes: int = 0,
) -> FetchSnapshotResponse:
    """Without records, which are the replica's to fill in. A refusal has empty ones: Kafka 4.3.0's null ones cannot be
    encoded (`UnalignedRecords` is not nullable)."""
    topic = FetchSnapshotResponse.TopicSnapshot
    partition = topic.PartitionSnapshot(
        index=request.partition,
        error_code=error,
        snapshot_id=topic.PartitionSnapshot.SnapshotId(
            end_offset=request.snapshot_id.end_offset, epoch=request.snapshot_id.epoch
        ),
        size=size_bytes,
        position=request.position,
    )
    if error != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        partition.current_leader = topic.PartitionSnapshot.LeaderIdAndEpoch(
            leader_id=core.reported_leader_id, leader_epoch=core.epoch
        )
    response = FetchSnapshotResponse(topics=[topic(name=topic_name, partitions=[partition])])
    if version >= 1:
        response.node_endpoints = _node_endpoints(core, FetchSnapshotResponse.NodeEndpoint)
    return response


# --- control records --------------------------------------------------------------------------------------------------


def leader_change(leader_id: NodeId, voters: VoterSet, granting: Sequence[NodeId]) -> LeaderChangeMessage:
    voter = LeaderChangeMessage.Voter
    return LeaderChangeMessage(
        leader_id=leader_id,
        voters=[voter(voter_id=node_id) for node_id in voters.ids],
        granting_voters=[voter(voter_id=node_id) for node_id in granting],
    )


def kraft_version_record(kraft_version: int) -> KRaftVersionRecord:
    return KRaftVersionRecord(kraft_version=kraft_version)


def voters_record(voters: VoterSet) -> VotersRecord:
    entry = VotersRecord.Voter
    return VotersRecord(
        voters=[
            entry(
                voter_id=voter.key.id,
                voter_directory_id=voter.key.directory_id,
                endpoints=[entry.Endpoint(name=each.name, host=each.host, port=each.port) for each in voter.endpoints],
                kraft_version_feature=entry.KRaftVersionFeature(
                    min_supported_version=voter.kraft_version_min, max_supported_version=voter.kraft_version_max
                ),
            )
            for voter in voters
        ]
    )


# --- reading ----------------------------------------------------------------------------------------------------------


def wait_us(fetch: FetchRequest) -> int:
    return fetch.max_wait_ms * MS
