"""Static voters become voters with directories: they tell the leader what they are, and kraft.version is raised from 0
to 1 once it has heard all of them.

While voters are static every voter tells every leader, until it is heard, by UpdateRaftVoter; the leader keeps that as
long as it leads. Raising the version puts it into the log: a KRaftVersionRecord and a VotersRecord, in one batch. The
ids stay the same, so every majority of the one set is one of the other. Source: KIP-853; Kafka `UpdateVoterHandler`,
`LeaderState.maybeAppendUpgradedKRaftVersion`.
"""

from typing import Final

from fastquorum.raft import messages
from fastquorum.raft.core import Core
from fastquorum.raft.effects import AppendControl, SendResponse
from fastquorum.raft.events import KRaftVersionRaised, RequestReceived
from fastquorum.raft.roles.leader import Leader
from fastquorum.types import ZERO_UUID, Endpoint, ReplicaKey, Voter, VoterSet
from fastquorum.wire import ErrorCode, Message
from fastquorum.wire.messages.quorum_admin import UpdateRaftVoterRequest, UpdateRaftVoterResponse

KRAFT_VERSION_MAX: Final = 1
LISTENERS_MAX: Final = 16
HOST_CHARACTERS_MAX: Final = 255
"""What a voter says of itself is kept, and gets into one batch with what the others say."""


def on_update_raft_voter(core: Core, event: RequestReceived, request: UpdateRaftVoterRequest) -> None:
    error = _error(core, request)
    if error is ErrorCode.NONE and isinstance(core.role, Leader):
        core.role.reported_voters[request.voter_id] = Voter(
            ReplicaKey(request.voter_id, request.voter_directory_id),
            tuple(Endpoint(each.name, each.host, each.port) for each in request.listeners),
            request.kraft_version_feature.min_supported_version,
            request.kraft_version_feature.max_supported_version,
        )
    response = UpdateRaftVoterResponse(error_code=error)
    leader = response.current_leader
    leader.leader_id, leader.leader_epoch = core.reported_leader_id, core.epoch
    endpoint = messages.leader_endpoint(core)
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
    if not _is_sound(core, request):
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE if request.voter_id in core.voters.ids else ErrorCode.VOTER_NOT_FOUND


def _is_sound(core: Core, request: UpdateRaftVoterRequest) -> bool:
    """A directory, somewhere to reach it, and a range of versions with the present one in it."""
    if request.voter_directory_id == ZERO_UUID or not 1 <= len(request.listeners) <= LISTENERS_MAX:
        return False
    if any(len(each.host) > HOST_CHARACTERS_MAX or len(each.name) > HOST_CHARACTERS_MAX for each in request.listeners):
        return False
    versions = request.kraft_version_feature
    return 0 <= versions.min_supported_version <= core.kraft_versions.last <= versions.max_supported_version


# --- raising the version ----------------------------------------------------------------------------------------------


def fault_of_raising(core: Core, kraft_version: int) -> str:
    """Why kraft.version cannot be raised to this one now; empty if it can. Kafka's words where Kafka refuses."""
    if not isinstance(core.role, Leader) or core.kraft_versions.last >= kraft_version:
        return _invalid(core, kraft_version)
    voters = _reported_voters(core, core.role)
    if not all(voter.kraft_version_min <= kraft_version <= voter.kraft_version_max for voter in voters):
        return (
            f"Invalid upgrade of kraft.version to KRAFT_VERSION_{kraft_version} because not all of the voters support "
            "it"
        )
    for peer in core.peers:
        # It was counted as a voter, by its id, and would be one no more: the lane goes on with whom it has admitted.
        if core.voters.is_voter(peer.key) and not voters.is_voter(peer.key):
            return (
                f"{_invalid(core, kraft_version)} while voter {peer.key.id} fetches, or has fetched from this leader, "
                f"with directory {peer.key.directory_id}, which is not the one that it has told of; ask again after "
                "the next election"
            )
    return ""


def _invalid(core: Core, kraft_version: int) -> str:
    present = core.kraft_versions.last
    return f"Invalid upgrade of kraft.version from version KRAFT_VERSION_{present} to KRAFT_VERSION_{kraft_version}"


def raising_records(core: Core, kraft_version: int) -> tuple[Message, ...]:
    """Return the records to append, in one batch; none if the version cannot be raised."""
    if not isinstance(core.role, Leader) or fault_of_raising(core, kraft_version):
        return ()
    voters = _reported_voters(core, core.role)
    return messages.kraft_version_record(kraft_version), messages.voters_record(voters)


def on_raised(core: Core, event: KRaftVersionRaised) -> None:
    """The version is raised as of this record, which others may never see: then it is undone with the record."""
    is_requested_in_time = event.epoch == core.epoch and event.end_offset == core.log_end
    if not is_requested_in_time or core.is_disk_full or core.is_shutting_down:
        return
    records = raising_records(core, event.kraft_version)
    if records:
        assert isinstance(core.role, Leader)
        voters, at = _reported_voters(core, core.role), core.log_end
        core.kraft_versions.append(at, event.kraft_version)
        core.voter_sets.append(at + 1, voters)
        core.emit(AppendControl(core.epoch, records))


def _reported_voters(core: Core, leader: Leader) -> VoterSet:
    """Return the voters as they reported themselves; of any other only the id is known, and it supports static voters
    alone."""
    reported = {**leader.reported_voters, core.key.id: Voter(core.key, core.listeners)}
    return VoterSet([reported.get(voter.key.id, voter._replace(kraft_version_max=0)) for voter in core.voters])
