"""Fetch and FetchSnapshot as they come in: is this replica's log the asker's own up to where it asks from?

A Fetch that is in order is admitted to the lane, which answers it and serves its peer from then on. Sources: KIP-595
"Fetch", KIP-630 (FetchSnapshot); Kafka `RaftLog.validateOffsetAndEpoch`.
"""

from fastquorum.kernels.lane import NO_CONNECTION, Connection, FetchAdmission
from fastquorum.raft import doubles, messages
from fastquorum.raft.core import Core
from fastquorum.raft.effects import AdmitFetch, SendResponse, SendSnapshotPart
from fastquorum.raft.events import RequestReceived
from fastquorum.raft.roles.leader import Leader
from fastquorum.raft.voter_epochs import GONE_US_MIN
from fastquorum.types import METADATA_TOPIC_ID, TOPIC_NAME, Epoch, Offset, OffsetAndEpoch, ReplicaKey
from fastquorum.wire import ErrorCode
from fastquorum.wire.messages.fetch import FetchRequest, FetchResponse
from fastquorum.wire.messages.snapshot import FetchSnapshotRequest, FetchSnapshotResponse

VERSION_MIN = 12
"""The first that carries the last fetched epoch, without which logs cannot be compared."""
_FetchPartition = FetchRequest.FetchTopic.FetchPartition


def on_fetch(core: Core, event: RequestReceived, request: FetchRequest) -> None:
    error = _request_error(core, event.api_version, request)
    if error is not ErrorCode.NONE:
        core.emit(SendResponse(event.token, FetchResponse(error_code=error)))
        return
    partition = request.topics[0].partitions[0]
    peer = _peer_of(event.api_version, request)
    doubles.note_epoch(core, peer, partition.current_leader_epoch)
    error = _partition_error(core, request, partition, peer)
    role = core.role
    if error is not ErrorCode.NONE:
        core.emit(SendResponse(event.token, messages.fetch_response(core, event.api_version, error)))
        return
    assert isinstance(role, Leader)
    _note_doubles(core, role, peer, event.connection, partition.fetch_offset)
    snapshot = _snapshot(core, partition)
    diverging = _diverging(core, partition) if snapshot is None else None
    if snapshot is not None or diverging is not None:
        response = messages.fetch_response(
            core,
            event.api_version,
            ErrorCode.NONE,
            high_watermark=role.high_watermark(core),
            diverging=diverging,
            snapshot=snapshot,
        )
        core.emit(SendResponse(event.token, response))
        return
    admission = FetchAdmission(
        connection=event.connection,
        correlation_id=event.correlation_id,
        api_version=event.api_version,
        peer=peer,
        is_voter=core.voters.is_voter(peer),
        fetch_offset=partition.fetch_offset,
        request_high_watermark=partition.high_watermark,
        max_wait_us=messages.wait_us(request),
        bytes_max=request.max_bytes,
    )
    core.emit(AdmitFetch(event.token, admission))


def _note_doubles(core: Core, role: Leader, peer: ReplicaKey, connection: Connection, fetch_offset: Offset) -> None:
    """Is this replica served elsewhere, or has it come back with less than it had?"""
    is_static = core.kraft_versions.last == 0 and core.voters.is_voter(peer)  # then its id stands for it
    known = [each for each in core.peers if each.key == peer or (is_static and each.key.id == peer.id)]
    if not known:
        return
    present = max(known, key=lambda each: each.last_contact_us)
    if present.connection == connection:
        return
    if present.connection != NO_CONNECTION:
        role.turns.note(core, peer, present.connection, connection)
    elif fetch_offset < present.end_offset and core.now_us > present.last_contact_us + GONE_US_MIN:
        doubles.notice_lost_records(core, peer, present.end_offset, fetch_offset)


def _peer_of(version: int, request: FetchRequest) -> ReplicaKey:
    """Return the replica that fetches: the id moved in version 15, the directory id came in 17."""
    node_id = request.replica_state.replica_id if version >= 15 else request.replica_id
    return ReplicaKey(node_id, request.topics[0].partitions[0].replica_directory_id)


def _request_error(core: Core, version: int, request: FetchRequest) -> ErrorCode:
    """The top-level errors."""
    if version < VERSION_MIN:
        return ErrorCode.UNSUPPORTED_VERSION
    if request.cluster_id is not None and request.cluster_id != core.cluster_id:
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    topics = request.topics
    if len(topics) != 1 or len(topics[0].partitions) != 1 or topics[0].partitions[0].partition != 0:
        return ErrorCode.INVALID_REQUEST
    is_ours = topics[0].topic == TOPIC_NAME if version < 13 else topics[0].topic_id == METADATA_TOPIC_ID
    return ErrorCode.NONE if is_ours else ErrorCode.INVALID_REQUEST


def _partition_error(core: Core, request: FetchRequest, partition: _FetchPartition, peer: ReplicaKey) -> ErrorCode:
    if request.max_wait_ms < 0 or partition.fetch_offset < 0:
        return ErrorCode.INVALID_REQUEST
    if not 0 <= partition.last_fetched_epoch <= partition.current_leader_epoch:
        return ErrorCode.INVALID_REQUEST
    error = leader_error(core, partition.current_leader_epoch)
    if error is ErrorCode.NONE and peer.id == core.key.id:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return error


def leader_error(core: Core, epoch: Epoch) -> ErrorCode:
    """Is the request meant for the leader that this replica is? A higher epoch moves nobody here: its voters will
    tell."""
    if epoch < core.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if epoch > core.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    if not isinstance(core.role, Leader):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.BROKER_NOT_AVAILABLE if core.is_shutting_down else ErrorCode.NONE


def _diverging(core: Core, partition: _FetchPartition) -> OffsetAndEpoch | None:
    """Where the logs part ways, if the asker's log is not a prefix of this one (KIP-595, log reconciliation)."""
    offset, epoch = partition.fetch_offset, partition.last_fetched_epoch
    if offset == 0 and core.log.start_offset == 0:
        return None
    own_epoch, own_end = core.log.end_offset_for(epoch)
    if own_epoch == epoch and offset <= own_end:
        return None
    return OffsetAndEpoch(own_end, own_epoch)


def _snapshot(core: Core, partition: _FetchPartition) -> OffsetAndEpoch | None:
    """The snapshot to begin with, if the asker's log ends where this one has nothing any more, or nothing that could
    tell whether the two agree (KIP-630)."""
    latest, earliest = core.log.snapshots.latest, core.log.snapshots.earliest
    offset, epoch, start = partition.fetch_offset, partition.last_fetched_epoch, core.log.start_offset
    if latest is None or earliest is None:
        return None
    if offset == 0 or offset < start or epoch < earliest.epoch or (offset == start and epoch != earliest.epoch):
        return latest
    return None


def on_fetch_snapshot(core: Core, event: RequestReceived, request: FetchSnapshotRequest) -> None:
    """A piece of a snapshot, or why not. (0, 0) is never served."""
    if request.cluster_id is not None and request.cluster_id != core.cluster_id:
        core.emit(SendResponse(event.token, FetchSnapshotResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)))
        return
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        core.emit(SendResponse(event.token, FetchSnapshotResponse(error_code=ErrorCode.INVALID_REQUEST)))
        return
    topic = request.topics[0]
    partition = topic.partitions[0]
    snapshot = OffsetAndEpoch(partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
    size_bytes = core.log.snapshots.size_bytes(snapshot)
    error = _snapshot_error(core, topic, size_bytes)
    response = messages.fetch_snapshot_response(
        core, topic.name, partition, event.api_version, error, size_bytes=max(size_bytes, 0)
    )
    if error is not ErrorCode.NONE:
        core.emit(SendResponse(event.token, response))
        return
    assert isinstance(core.role, Leader)
    peer = ReplicaKey(request.replica_id, partition.replica_directory_id)
    core.role.copies_snapshot(core, peer, snapshot, partition.position)
    bytes_max = max(min(request.max_bytes, core.config.fetch_snapshot_bytes_max), 1)
    core.emit(SendSnapshotPart(event.token, snapshot, partition.position, bytes_max, response))


def _snapshot_error(core: Core, topic: FetchSnapshotRequest.TopicSnapshot, size_bytes: int) -> ErrorCode:
    partition = topic.partitions[0]
    if topic.name != TOPIC_NAME or partition.partition != 0:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    error = leader_error(core, partition.current_leader_epoch)
    if error is not ErrorCode.NONE:
        return error
    if size_bytes < 0:
        return ErrorCode.SNAPSHOT_NOT_FOUND
    return ErrorCode.NONE if 0 <= partition.position < size_bytes else ErrorCode.POSITION_OUT_OF_RANGE
