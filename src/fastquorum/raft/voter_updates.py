"""UpdateRaftVoter: a voter tells the leader its directory id, endpoints and versions, for when kraft.version is raised.

While voters are static (kraft.version 0) Kafka's controllers tell every leader, again and again until it has heard
them. It is nothing that this leader has to keep: it cannot raise kraft.version, and the next leader is told anew.
Source: KIP-853; Kafka `UpdateVoterHandler`.
"""

from fastquorum.raft.core import Core
from fastquorum.raft.effects import SendResponse
from fastquorum.raft.events import RequestReceived
from fastquorum.raft.leader import Leader
from fastquorum.types import NO_NODE
from fastquorum.wire import ErrorCode
from fastquorum.wire.quorum_admin import UpdateRaftVoterRequest, UpdateRaftVoterResponse


def on_update_raft_voter(core: Core, event: RequestReceived, request: UpdateRaftVoterRequest) -> None:
    response = UpdateRaftVoterResponse(error_code=_error(core, request))
    leader = response.current_leader
    leader.leader_id, leader.leader_epoch = core.leader_id, core.epoch
    endpoint = core.endpoint_of(core.leader_id) if core.leader_id != NO_NODE else None
    if endpoint is not None:
        leader.host, leader.port = endpoint.host, endpoint.port
    core.emit(SendResponse(event.token, response))


def _error(core: Core, request: UpdateRaftVoterRequest) -> ErrorCode:
    if request.cluster_id is not None and request.cluster_id != core.cluster_id:
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    if request.current_leader_epoch < core.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if request.current_leader_epoch > core.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    if not isinstance(core.role, Leader):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if core.kraft_versions.last > 0:
        return ErrorCode.UNSUPPORTED_VERSION  # it would have to be written into the log
    if not request.listeners or request.kraft_version_feature.min_supported_version > core.kraft_versions.last:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE if request.voter_id in core.voters.ids else ErrorCode.VOTER_NOT_FOUND
