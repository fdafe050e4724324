"""The changes of role: how the next role is made, what is persisted and told on the way. The table itself is in
`transitions`.

Sources: KIP-595; Kafka `QuorumState`.
"""

from fastquorum.raft import claims, doubles
from fastquorum.raft.core import Core, Role
from fastquorum.raft.election import ElectionState
from fastquorum.raft.roles.candidate import Candidate
from fastquorum.raft.roles.follower import Follower
from fastquorum.raft.roles.leader import Leader
from fastquorum.raft.roles.prospective import Prospective
from fastquorum.raft.roles.resigned import Resigned
from fastquorum.raft.roles.unattached import Unattached
from fastquorum.raft.transitions import Cause, RoleName, next_role
from fastquorum.types import NO_NODE, Endpoint, Epoch, NodeId


def run(core: Core) -> None:
    """Do everything that is due, through as many roles as it takes."""
    while True:
        core.wake_at_us = -1
        cause = core.role.poll(core)
        if cause is None:
            return
        _leave(core, cause)


def _leave(core: Core, cause: Cause) -> None:
    """The role ended by itself."""
    target = next_role(core.role.name, cause)
    if target is RoleName.PROSPECTIVE:
        _notice_disbelief(core)
        may_skip_at_us = core.role.silent_at_us if isinstance(core.role, Follower) else core.now_us
        _become(core, cause, Prospective(core, core.random_election_deadline(), may_skip_at_us))
    elif target is RoleName.CANDIDATE:
        _to_candidate(core, cause)
    elif target is RoleName.LEADER:
        _to_leader(core, cause)
    elif target is RoleName.RESIGNED:
        _to_resigned(core, cause)
    elif target is RoleName.FOLLOWER:
        to_follower(core, cause, core.epoch, core.leader_id, core.endpoints_of(core.leader_id))
    elif cause is Cause.PRE_VOTES_LOST_LEADERLESS:
        to_unattached(core, cause, core.epoch, core.leader_id)
    else:
        to_unattached(core, cause, core.epoch + 1, NO_NODE)


def _notice_disbelief(core: Core) -> None:
    """Have it told that this voter stands beside a leader that it hears."""
    if isinstance(core.role, Follower) and core.role.is_in_contact(core) and core.is_leader_unproven:
        claims.notice_unproven(core, "no voter that is known here says so, too", "stands for election beside it")


def begin(core: Core) -> None:
    """The first step: timers start now. The only voter has nobody to wait for, whatever it was."""
    core.role = _first_role(core)
    claims.was_led(core, core.now_us)
    if core.is_only_voter and core.role.name is RoleName.RESIGNED:
        _leave(core, Cause.SOLE_VOTER)


def _become(core: Core, cause: Cause, role: Role) -> None:
    assert role.name is next_role(core.role.name, cause)
    core.close_lane()
    core.requests.reset()
    if isinstance(core.role, Leader):
        claims.was_led(core, core.now_us)
    core.role = role
    core.causes.append(cause)
    core.lane = None
    core.tally.became(role.name, core.now_us)


def to_unattached(core: Core, cause: Cause, epoch: Epoch, leader_id: NodeId) -> None:
    """Within the epoch the vote is kept; elections that were coming up are not put off by a new epoch."""
    deadline = core.random_election_deadline()
    if core.role.election_deadline_us >= 0 and not _was_rejected(core.role):
        deadline = core.role.election_deadline_us
    voted_key = core.election.voted_key if epoch == core.epoch else None
    core.close_lane()
    core.elect(ElectionState(epoch, leader_id, voted_key))
    _become(core, cause, Unattached(deadline))


def _was_rejected(role: Role) -> bool:
    return isinstance(role, Prospective) and role.ballots.is_lost


def to_follower(core: Core, cause: Cause, epoch: Epoch, leader_id: NodeId, endpoints: tuple[Endpoint, ...]) -> None:
    """Epoch and leader are durable before the first Fetch."""
    voted_key = core.election.voted_key if epoch == core.epoch else None
    core.close_lane()
    core.elect(ElectionState(epoch, leader_id, voted_key))
    core.leader_endpoints = endpoints
    endpoint = core.endpoint_of(leader_id)
    assert endpoint is not None, f"leader {leader_id} has no endpoint"
    _become(core, cause, Follower(core, leader_id, endpoint))


def _to_candidate(core: Core, cause: Cause) -> None:
    core.close_lane()
    core.elect(ElectionState(core.epoch + 1, NO_NODE, core.key))
    claims.leave_time(core)
    _become(core, cause, Candidate(core, core.random_election_deadline()))


def _to_leader(core: Core, cause: Cause) -> None:
    assert isinstance(core.role, Candidate)
    leader = Leader(core, core.role.ballots.granting)
    core.elect(ElectionState(core.epoch, core.key.id, None))
    _become(core, cause, leader)
    leader.open_epoch(core)


def _to_resigned(core: Core, cause: Cause) -> None:
    assert isinstance(core.role, Leader)
    _become(core, cause, Resigned(core, core.random_election_deadline(), core.role.successors(core)))


def adopt(core: Core, epoch: Epoch, leader_id: NodeId, endpoints: tuple[Endpoint, ...] = ()) -> bool:
    """A peer says who leads which epoch. True if that changed this replica's role.

    A leader whose address nobody knows cannot be followed: a higher epoch is taken over, and its leader looked for. A
    second leader of one epoch is a lie or a disaster that stopping would not undo: this replica keeps to the one it
    knows (`contradicts`).
    """
    notice_own_lead(core, epoch, leader_id, endpoints)
    if epoch > core.epoch:
        known = endpoints or core.endpoints_of(leader_id)
        if leader_id in (NO_NODE, core.key.id):
            to_unattached(core, Cause.HIGHER_EPOCH, epoch, leader_id)
        elif known:
            _follow_named(core, Cause.LEADER_OF_HIGHER_EPOCH, epoch, leader_id, known)
        else:
            to_unattached(core, Cause.HIGHER_EPOCH, epoch, leader_id)
        return True
    if epoch < core.epoch or leader_id == NO_NODE or contradicts(core, epoch, leader_id):
        return False
    known = endpoints or core.endpoints_of(leader_id)
    if not known or core.role.name in (RoleName.LEADER, RoleName.RESIGNED) or leader_id == core.key.id:
        return False
    if core.leader_id != leader_id or len(known) > len(core.leader_endpoints):
        _follow_named(core, Cause.LEADER_OF_THIS_EPOCH, epoch, leader_id, known)
        return True
    return False


def _follow_named(core: Core, cause: Cause, epoch: Epoch, leader_id: NodeId, endpoints: tuple[Endpoint, ...]) -> None:
    """Follow a leader that others named. An unproven one puts off no election that was coming up."""
    role = core.role
    stands_at_us = role.silent_at_us if isinstance(role, Follower) else role.election_deadline_us
    to_follower(core, cause, epoch, leader_id, endpoints)
    assert isinstance(core.role, Follower)
    if core.is_leader_unproven and stands_at_us >= 0:
        core.role.stand_by(stands_at_us)


def notice_own_lead(core: Core, epoch: Epoch, leader_id: NodeId, endpoints: tuple[Endpoint, ...]) -> None:
    """Have it told if a peer names this replica as the leader of an epoch that it does not lead: its leads are durable
    before anybody hears of them."""
    if leader_id == core.key.id and (epoch > core.epoch or (epoch == core.epoch and core.leader_id != leader_id)):
        doubles.notice_own_lead(core, endpoints)


def contradicts(core: Core, epoch: Epoch, leader_id: NodeId) -> bool:
    """Would this be a second leader of the epoch, or this replica in an epoch that it does not lead? A voter that leads
    takes the place of one that is none here, and of which it was only said that it does."""
    if epoch != core.epoch or leader_id in (NO_NODE, core.leader_id):
        return False
    if leader_id == core.key.id:
        return True
    return core.leader_id != NO_NODE and not (_is_hearsay(core) and core.voters.get(leader_id) is not None)


def _is_hearsay(core: Core) -> bool:
    """Is the leader of this epoch no voter here, and was never heard, or is unproven?"""
    if core.leader_id == core.key.id or core.voters.get(core.leader_id) is not None:
        return False
    return not (isinstance(core.role, Follower) and core.role.has_fetched)


def initial_role(core: Core, stored: ElectionState | None) -> None:
    """Start-up from any persisted state (Kafka `QuorumState.initialize`). An election older than the log
    cannot say who voted in the log's epoch."""
    election = stored if stored is not None else ElectionState()
    core.resume(election)
    if core.voters.get(election.leader_id) is None:
        core.own_word_epoch = election.epoch  # it is not known who said so
    if election.epoch < core.log.last_epoch:
        core.elect(ElectionState(core.log.last_epoch))
    core.role = _first_role(core)


def _first_role(core: Core) -> Role:
    """What the persisted election makes of a replica that starts."""
    voted_key, leader_id = core.election.voted_key, core.leader_id
    if leader_id == core.key.id:
        return Resigned(core, core.random_election_deadline(), ())
    if leader_id == NO_NODE:
        if voted_key is not None and core.is_voter and core.is_same_replica(voted_key, core.key):
            return Candidate(core, core.random_election_deadline())
        return Unattached(core.random_election_deadline())
    endpoint = core.endpoint_of(leader_id)
    if endpoint is None:
        return Unattached(core.random_election_deadline())
    core.leader_endpoints = core.endpoints_of(leader_id)
    return Follower(core, leader_id, endpoint)
