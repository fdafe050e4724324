"""DescribeQuorum: the quorum as its leader sees it. Times are printed from the wall clock given with the request
and decide nothing.

Sources: KIP-595 (DescribeQuorum), KIP-836, KIP-853.
"""

from fastquorum.kernels.lane import PeerState
from fastquorum.raft.core import Core
from fastquorum.raft.effects import SendResponse
from fastquorum.raft.events import RequestReceived
from fastquorum.raft.roles.leader import Leader
from fastquorum.types import TOPIC_NAME, Micros, ReplicaKey
from fastquorum.wire import ErrorCode
from fastquorum.wire.messages.quorum_admin import DescribeQuorumRequest, DescribeQuorumResponse

_Topic = DescribeQuorumResponse.TopicData
_Partition = _Topic.PartitionData
_Row = _Partition.ReplicaState

_NOT_LEADER_TEXT = (
    "For requests intended only for the leader, this error indicates that the broker is not the current leader. "
    "For requests intended for any replica, this error indicates that the broker is not a replica of the topic "
    "partition."
)
_UNKNOWN_TEXT = "This server does not host this topic-partition."


def on_describe_quorum(core: Core, event: RequestReceived, request: DescribeQuorumRequest) -> None:
    if not _is_our_topic(request):
        core.emit(SendResponse(event.token, _refusal(request)))
        return
    role = core.role
    if isinstance(role, Leader):
        partition = _describe(core, role, event)
    else:
        partition = _Partition(
            error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER,
            error_message=_NOT_LEADER_TEXT,
            leader_id=core.reported_leader_id,
            leader_epoch=core.epoch,
        )
    response = DescribeQuorumResponse(error_message="", topics=[_Topic(topic_name=TOPIC_NAME, partitions=[partition])])
    if event.api_version >= 2 and isinstance(role, Leader):
        response.nodes = _nodes(core)
    core.emit(SendResponse(event.token, response))


def _is_our_topic(request: DescribeQuorumRequest) -> bool:
    if len(request.topics) != 1 or request.topics[0].topic_name != TOPIC_NAME:
        return False
    partitions = request.topics[0].partitions
    return len(partitions) == 1 and partitions[0].partition_index == 0


def _refusal(request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    """Every partition asked for, with the error."""
    topics = [
        _Topic(
            topic_name=topic.topic_name,
            partitions=[
                _Partition(
                    partition_index=each.partition_index,
                    error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    error_message=_UNKNOWN_TEXT,
                )
                for each in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return DescribeQuorumResponse(error_message="", topics=topics)


def _describe(core: Core, leader: Leader, event: RequestReceived) -> _Partition:
    observers = [
        peer
        for peer in core.peers
        if peer.key.id >= 0
        and not core.voters.is_voter(peer.key)
        and core.now_us - peer.last_contact_us < core.config.observer_expiry_us
    ]
    return _Partition(
        error_code=ErrorCode.NONE,
        error_message="",
        leader_id=core.key.id,
        leader_epoch=core.epoch,
        high_watermark=leader.high_watermark(core),
        current_voters=[_voter_row(core, voter.key, event) for voter in core.voters],
        observers=[_row(core, peer.key, peer, event) for peer in observers],
    )


def _voter_row(core: Core, key: ReplicaKey, event: RequestReceived) -> _Row:
    if key.id == core.key.id:
        now_ms = event.wall_clock_ms
        return _stamp(_Row(replica_id=key.id, log_end_offset=core.log_end), key, event, now_ms, now_ms)
    known = [peer for peer in core.peers if peer.key.id == key.id and core.voters.is_voter(peer.key)]
    latest = max(known, key=lambda peer: peer.last_contact_us, default=None)
    return _row(core, key, latest, event)


def _row(core: Core, key: ReplicaKey, peer: PeerState | None, event: RequestReceived) -> _Row:
    if peer is None:
        return _stamp(_Row(replica_id=key.id, log_end_offset=-1), key, event, -1, -1)
    return _stamp(
        _Row(replica_id=key.id, log_end_offset=peer.end_offset),
        key,
        event,
        _wall_time(core, event, peer.last_contact_us),
        _wall_time(core, event, peer.last_caught_up_us),
    )


def _stamp(row: _Row, key: ReplicaKey, event: RequestReceived, fetched_ms: int, caught_up_ms: int) -> _Row:
    row.last_fetch_timestamp = fetched_ms
    row.last_caught_up_timestamp = caught_up_ms
    if event.api_version >= 2:
        row.replica_directory_id = key.directory_id
    return row


def _wall_time(core: Core, event: RequestReceived, at_us: Micros) -> int:
    """That moment on the wall clock of now; -1 if it never was."""
    if at_us < 0 or event.wall_clock_ms < 0:
        return -1
    return event.wall_clock_ms - (core.now_us - at_us) // 1000


def _nodes(core: Core) -> list[DescribeQuorumResponse.Node]:
    node = DescribeQuorumResponse.Node
    return [
        node(
            node_id=voter.key.id,
            listeners=[node.Listener(name=each.name, host=each.host, port=each.port) for each in voter.endpoints],
        )
        for voter in core.voters
    ]
