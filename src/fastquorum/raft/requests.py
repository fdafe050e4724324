"""Vote, BeginQuorumEpoch and EndQuorumEpoch as they come in: Kafka's checks in Kafka's order, then the role's decision.

An INVALID_REQUEST for the partition stops a Kafka process, so it is only given where Kafka gives it, and to one that
claims to lead an epoch which somebody else leads. Sources: KIP-595, KIP-853, KIP-996.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from fastquorum.raft import claims, doubles, messages, moves
from fastquorum.raft.core import Core
from fastquorum.raft.effects import SendResponse
from fastquorum.raft.election import ElectionState
from fastquorum.raft.events import Token
from fastquorum.raft.roles.follower import Follower
from fastquorum.raft.transitions import Cause
from fastquorum.raft.voting import Voting
from fastquorum.types import NO_NODE, TOPIC_NAME, ZERO_UUID, Endpoint, Epoch, Micros, NodeId, ReplicaKey, Uuid
from fastquorum.wire import ErrorCode
from fastquorum.wire.messages.quorum import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    VoteRequest,
    VoteResponse,
)

NOT_CREDIBLE: Final = ErrorCode.VOTER_NOT_FOUND
"""The error for a request whose epoch is not believed (`claims`)."""
_RequestedVote = VoteRequest.TopicData.PartitionData


class PendingRequest(NamedTuple):
    """A request that waits for its answer."""

    token: Token
    version: int


def on_vote(core: Core, pending: PendingRequest, request: VoteRequest) -> None:
    error = _request_error(core, request.cluster_id, _is_our_topic(request.topics))
    if error is not ErrorCode.NONE:
        core.emit(SendResponse(pending.token, VoteResponse(error_code=error)))
        return
    vote = request.topics[0].partitions[0]
    error, granted = _judge_vote(core, request.voter_id, vote)
    response = messages.vote_response(core, pending.version, error, granted=granted)
    response.error_code = _top_level(error)
    core.emit(SendResponse(pending.token, response))


def _judge_vote(core: Core, voter_id: NodeId, vote: _RequestedVote) -> tuple[ErrorCode, bool]:
    last_epoch_max = vote.replica_epoch if vote.pre_vote else vote.replica_epoch - 1
    if vote.last_offset < 0 or not 0 <= vote.last_offset_epoch <= last_epoch_max:
        return ErrorCode.INVALID_REQUEST, False
    candidate = ReplicaKey(vote.replica_id, vote.replica_directory_id)
    doubles.note_epoch(core, candidate, vote.replica_epoch)
    error = _epoch_error(core, vote.replica_epoch, vote.replica_id)
    if error is not ErrorCode.NONE:
        return error, False
    is_up_to_date = _is_up_to_date(core, vote)
    is_believed = claims.believes_vote(
        core, vote.replica_epoch, candidate, is_up_to_date=is_up_to_date, pre_vote=vote.pre_vote
    )
    if not is_believed:
        return NOT_CREDIBLE, False
    if vote.replica_epoch > core.epoch:
        moves.to_unattached(core, Cause.HIGHER_EPOCH, vote.replica_epoch, NO_NODE)
    if not _is_for_us(core, voter_id, vote.voter_directory_id):
        return ErrorCode.INVALID_VOTER_KEY, False
    if vote.pre_vote:
        # A leader that can commit nothing would only be replaced by the next one: nobody is helped by elections then.
        may_help = not core.log.takes_nothing
        return ErrorCode.NONE, may_help and core.role.grants_pre_vote(core, is_up_to_date)
    granted = core.role.grants_vote(core, candidate, is_up_to_date)
    if granted:
        _give_vote(core, candidate)
    return ErrorCode.NONE, granted


def _is_up_to_date(core: Core, vote: _RequestedVote) -> bool:
    """Epoch first: a longer log of an older epoch lacks what was committed since (Raft section 5.4.1)."""
    return (vote.last_offset_epoch, vote.last_offset) >= (core.log.last_epoch, core.log_end)


def _give_vote(core: Core, candidate: ReplicaKey) -> None:
    """Durable before the answer leaves. A voter that is known here is left the time to be elected; for others the known
    ones do not wait (`claims`)."""
    assert isinstance(core.role, Voting)
    if core.election.voted_key is None:
        core.elect(ElectionState(core.epoch, NO_NODE, candidate))
    if core.voters.is_voter(candidate):
        core.role.voted(core)
        claims.leave_time(core)


def on_begin_quorum_epoch(core: Core, pending: PendingRequest, request: BeginQuorumEpochRequest) -> None:
    error = _request_error(core, request.cluster_id, _is_our_topic(request.topics))
    if error is not ErrorCode.NONE:
        core.emit(SendResponse(pending.token, BeginQuorumEpochResponse(error_code=error)))
        return
    begun = request.topics[0].partitions[0]
    endpoints = tuple(Endpoint(each.name, each.host, each.port) for each in request.leader_endpoints)
    error = _adopt_leader(core, begun.leader_epoch, begun.leader_id, endpoints)
    if error is ErrorCode.NONE and not _is_for_us(core, request.voter_id, begun.voter_directory_id):
        error = ErrorCode.INVALID_VOTER_KEY
    response = messages.epoch_response(BeginQuorumEpochResponse, core, pending.version, error)
    response.error_code = _top_level(error)
    core.emit(SendResponse(pending.token, response))


def on_end_quorum_epoch(core: Core, pending: PendingRequest, request: EndQuorumEpochRequest) -> None:
    error = _request_error(core, request.cluster_id, _is_our_topic(request.topics))
    if error is not ErrorCode.NONE:
        core.emit(SendResponse(pending.token, EndQuorumEpochResponse(error_code=error)))
        return
    ended = request.topics[0].partitions[0]
    endpoints = tuple(Endpoint(each.name, each.host, each.port) for each in request.leader_endpoints)
    error = _adopt_leader(core, ended.leader_epoch, ended.leader_id, endpoints)
    role = core.role
    if error is ErrorCode.NONE and isinstance(role, Follower) and role.leader_id == ended.leader_id:
        candidates = [ReplicaKey(each.candidate_id, each.candidate_directory_id) for each in ended.preferred_candidates]
        if pending.version == 0:
            candidates = [ReplicaKey(node_id) for node_id in ended.preferred_successors]
        role.leader_resigned(core, end_quorum_epoch_backoff(core, candidates))
    response = messages.epoch_response(EndQuorumEpochResponse, core, pending.version, error)
    response.error_code = _top_level(error)
    core.emit(SendResponse(pending.token, response))


def end_quorum_epoch_backoff(core: Core, candidates: Sequence[ReplicaKey]) -> Micros:
    """How long to leave the election to the better candidates: the first none, the n-th twice as long as the one
    before."""
    longest = core.config.election_backoff_us_max
    for position, candidate in enumerate(candidates):
        if core.is_same_replica(candidate, core.key):
            if position == 0:
                return 0
            return min(longest, (longest >> (len(candidates) - 1)) << (position - 1))
    return longest


# --- the checks -------------------------------------------------------------------------------------------------------


def _request_error(core: Core, cluster_id: str | None, is_our_topic: bool) -> ErrorCode:
    """The top-level errors: they say nothing about the partition and change nothing."""
    if cluster_id is not None and cluster_id != core.cluster_id:
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    return ErrorCode.NONE if is_our_topic else ErrorCode.INVALID_REQUEST


def _top_level(error: ErrorCode) -> ErrorCode:
    """The partition's error, at the top level as well if the sender should leave this replica alone for a moment: it
    would not look at a partition of an epoch below its own, and ask again at once."""
    return error if error is NOT_CREDIBLE else ErrorCode.NONE


def _is_our_topic(
    topics: Sequence[VoteRequest.TopicData]
    | Sequence[BeginQuorumEpochRequest.TopicData]
    | Sequence[EndQuorumEpochRequest.TopicData],
) -> bool:
    """Exactly the one topic and partition there is."""
    if len(topics) != 1 or topics[0].topic_name != TOPIC_NAME:
        return False
    partitions = topics[0].partitions
    return len(partitions) == 1 and partitions[0].partition_index == 0


def _epoch_error(core: Core, epoch: Epoch, sender_id: NodeId) -> ErrorCode:
    if epoch < core.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.INVALID_REQUEST if sender_id < 0 else ErrorCode.NONE


def _adopt_leader(core: Core, epoch: Epoch, leader_id: NodeId, endpoints: tuple[Endpoint, ...]) -> ErrorCode:
    """A replica says that it leads, or led. Refused as Kafka's own crash would: a second leader of one epoch must
    not go on."""
    error = _epoch_error(core, epoch, leader_id)
    if error is ErrorCode.NONE and not claims.believes_leader(core, epoch, leader_id):
        return NOT_CREDIBLE
    if error is ErrorCode.NONE and moves.contradicts(core, epoch, leader_id):
        moves.notice_own_lead(core, epoch, leader_id, endpoints)
        return ErrorCode.INVALID_REQUEST
    if error is ErrorCode.NONE:
        if (epoch, leader_id) != (core.epoch, core.leader_id) and core.voters.get(leader_id) is None:
            core.own_word_epoch = epoch
        moves.adopt(core, epoch, leader_id, endpoints)
    return error


def _is_for_us(core: Core, voter_id: NodeId, directory_id: Uuid) -> bool:
    """Does the request mean this replica? Unspecified is accepted: older versions name nobody."""
    return voter_id in (NO_NODE, core.key.id) and directory_id in (ZERO_UUID, core.key.directory_id)
