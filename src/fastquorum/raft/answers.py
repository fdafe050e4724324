"""Handles responses to raft's requests: first the error, epoch and leader that all share, then each API's own fields.

A top-level error never stops a replica but for CLUSTER_AUTHORIZATION_FAILED; INVALID_REQUEST for the partition does: a
peer that understood the request says that this replica breaks the protocol. An unproven leader (`claims`) stops nobody.
Unlike Kafka's, an answer that changes nothing is always followed by a backoff, so that two replicas cannot keep each
other busy.
"""

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from fastquorum.errors import ProtocolFatal
from fastquorum.raft import claims, moves
from fastquorum.raft.core import Core
from fastquorum.raft.events import FetchResponseReceived, RequestFailed, ResponseReceived
from fastquorum.raft.roles.candidate import Candidate
from fastquorum.raft.roles.follower import Follower
from fastquorum.raft.roles.prospective import Prospective
from fastquorum.raft.roles.resigned import Resigned
from fastquorum.types import LISTENER_NAME, NO_NODE, Endpoint, Epoch, NodeId
from fastquorum.wire import ErrorCode, Message
from fastquorum.wire.messages.fetch import FetchResponse
from fastquorum.wire.messages.quorum import BeginQuorumEpochResponse, EndQuorumEpochResponse, VoteResponse
from fastquorum.wire.messages.quorum_admin import UpdateRaftVoterResponse
from fastquorum.wire.messages.snapshot import FetchSnapshotResponse

_Answer = FetchResponse | FetchSnapshotResponse | VoteResponse | BeginQuorumEpochResponse | EndQuorumEpochResponse
_WithLeaderApart = (
    FetchResponse.FetchableTopicResponse.PartitionData | FetchSnapshotResponse.TopicSnapshot.PartitionSnapshot
)
"""Partitions that say who leads in a struct of its own."""


class _Listed(Protocol):
    """A node that an answer names, whichever message it is of."""

    node_id: NodeId
    host: str
    port: int


class _Outcome(NamedTuple):
    """The part that all answers share. `is_whole`: it says something about the partition."""

    is_whole: bool
    error: int
    epoch: Epoch = -1
    leader_id: NodeId = NO_NODE
    endpoints: tuple[Endpoint, ...] = ()


def on_response(core: Core, event: ResponseReceived) -> None:
    """An answer to Vote, Begin-, EndQuorumEpoch, UpdateRaftVoter or FetchSnapshot. A late or foreign one finds nobody
    waiting for it."""
    if not core.requests.answered(event.source, event.correlation_id):
        return
    message, role = event.message, core.role
    if isinstance(message, UpdateRaftVoterResponse):
        _on_update_raft_voter(core, event.source, message)
        return
    is_good = _is_good(core, event.source, _outcome(message))
    if isinstance(message, FetchSnapshotResponse):
        if core.role is role and isinstance(role, Follower) and event.source == role.leader_id:
            role.on_snapshot_part(core, message.topics[0].partitions[0] if is_good else None)
        return
    if not is_good:
        return
    if isinstance(message, VoteResponse) and isinstance(core.role, Prospective | Candidate):
        core.role.ballots.record(event.source, granted=message.topics[0].partitions[0].vote_granted)
    elif isinstance(message, EndQuorumEpochResponse) and isinstance(core.role, Resigned):
        core.role.acked(event.source)


def _on_update_raft_voter(core: Core, source: NodeId, message: UpdateRaftVoterResponse) -> None:
    """The leader has heard this static voter, or says who leads. None of its errors is worth stopping for."""
    leader, role = message.current_leader, core.role
    endpoints = (Endpoint(LISTENER_NAME, leader.host, leader.port),) if leader.host else ()
    if leader.leader_epoch >= core.epoch and claims.believes_response(core, leader.leader_epoch, source):
        moves.adopt(core, leader.leader_epoch, leader.leader_id, endpoints)
    is_settled = message.error_code in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION)
    if is_settled and core.role is role and isinstance(role, Follower) and source == role.leader_id:
        role.settle_voter_update()


def on_fetch_response(core: Core, event: FetchResponseReceived) -> None:
    """The answer to raft's own Fetch, which only asked who leads, or to the lane's, handed up."""
    assert isinstance(event.message, FetchResponse)
    outcome = _outcome(event.message)
    if event.correlation_id >= 0:
        waited = core.requests.answered(event.source, event.correlation_id)
        if waited and _is_good(core, event.source, outcome):
            core.requests.back_off(event.source, core.now_us)
        return
    role = core.role
    if not isinstance(role, Follower) or event.source != role.leader_id:
        return
    if not _is_good(core, event.source, outcome) or outcome.leader_id != role.leader_id:
        if core.role is role:
            if _is_from_a_leader(role, outcome, event.message):
                role.on_place_taken(core)
            role.fetch_later(core)
        return
    role.on_fetched(core, event.message.responses[0].partitions[0], event.span)


def _is_from_a_leader(role: Follower, outcome: _Outcome, response: FetchResponse) -> bool:
    """Does it refuse this Fetch as no leader would, and goes on to lead? Who has resigned knows no high watermark."""
    is_refused = outcome.error == ErrorCode.NOT_LEADER_OR_FOLLOWER and outcome.leader_id == role.leader_id
    return is_refused and response.responses[0].partitions[0].high_watermark >= 0


def on_failure(core: Core, event: RequestFailed) -> None:
    """Not sent, or never answered."""
    if not core.requests.answered(event.destination, event.correlation_id):
        return
    if event.unsupported:
        _pre_vote_unsupported(core)
    if isinstance(core.role, Resigned):
        core.role.failed(event.destination)
    core.requests.back_off(event.destination, core.now_us)


def _is_good(core: Core, source: NodeId, outcome: _Outcome) -> bool:
    """True if the answer is of this epoch and without error, so that the API's own part is for the caller to take
    in."""
    if not outcome.is_whole:
        if outcome.error == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            _end(
                core,
                source,
                "refuses this node (CLUSTER_AUTHORIZATION_FAILED)",
                "grant it ClusterAction there, and restart",
            )
        if outcome.error == ErrorCode.UNSUPPORTED_VERSION:
            _pre_vote_unsupported(core)
        core.requests.back_off(source, core.now_us)
        return False
    is_newest = outcome.epoch >= core.epoch and claims.believes_response(core, outcome.epoch, source)
    if is_newest and outcome.error != ErrorCode.UNKNOWN_LEADER_EPOCH:
        role = core.role
        claims.vouches(core, source, outcome.epoch, outcome.leader_id)
        moves.adopt(core, outcome.epoch, outcome.leader_id, outcome.endpoints)
        if core.role is not role:
            return False
        if outcome.error == ErrorCode.INVALID_REQUEST:
            _end(
                core,
                source,
                f"says in epoch {core.epoch} that this node breaks the protocol (INVALID_REQUEST)",
                "one of the two is at fault; compare their versions and their logs",
            )
        if outcome.error == ErrorCode.NONE and not moves.contradicts(core, outcome.epoch, outcome.leader_id):
            return True
    core.requests.back_off(source, core.now_us)
    return False


def _end(core: Core, source: NodeId, what: str, advice: str) -> None:
    """Raise ProtocolFatal for what was answered; of an unproven leader (`claims`) it is only told."""
    if claims.is_unproven(core, source):
        claims.notice_unproven(core, what)
    else:
        raise ProtocolFatal(f"node {source} {what}: {advice}")


def _pre_vote_unsupported(core: Core) -> None:
    if isinstance(core.role, Prospective):
        core.role.has_peer_without_pre_vote = True


def _outcome(message: Message) -> _Outcome:
    """Pick the common part out; an answer without exactly this one partition says nothing."""
    assert isinstance(message, _Answer)
    topics = message.responses if isinstance(message, FetchResponse) else message.topics
    if message.error_code != ErrorCode.NONE or len(topics) != 1 or len(topics[0].partitions) != 1:
        return _Outcome(False, message.error_code)
    partition = topics[0].partitions[0]
    leader = partition.current_leader if isinstance(partition, _WithLeaderApart) else partition
    leader_id = max(leader.leader_id, NO_NODE)
    endpoints = _endpoints_of(leader_id, message.node_endpoints) if leader_id != NO_NODE else ()
    return _Outcome(True, partition.error_code, leader.leader_epoch, leader_id, endpoints)


def _endpoints_of(leader_id: NodeId, listed: Iterable[_Listed]) -> tuple[Endpoint, ...]:
    return tuple(Endpoint(LISTENER_NAME, each.host, each.port) for each in listed if each.node_id == leader_id)
