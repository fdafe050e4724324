"""Which epochs of others a replica believes: nobody who merely reaches its port may move it far, or often.

Whoever takes over an epoch persists it, and epochs never fall: the last one, taken over once, would end the quorum for
good. So an epoch that leaps is believed of a voter only, and never if it leads to where no quorum gets by elections.

A replica that is no voter here, a stranger, may be one all the same: by a record that has not come yet (KIP-853), or by
a newer configuration of static voters. A voter that neither leads nor hears a leader is moved by it, but late: the
voters that are known here have the time of many elections first, to elect one of them or to say who leads. Then a
stranger's Vote, or its word that it leads, counts once in an election timeout, as long as it does not leap; a pre-vote
and the Vote that it was asked for count as one. A Vote that would not get this replica's vote moves nobody.

A stranger that leads on its own word alone is unproven: this voter copies its log, in which it may be named a voter,
and asks the others meanwhile. Until one of them names it too, this voter stands for election as if it heard nobody,
tells nobody of that leader, and neither stops nor goes to another epoch because of what it answers. Records that it
forged would be taken all the same: nothing but authentication keeps those away.

Observers are moved by no stranger: the voters that may need one's vote are known to it. Responses come from a replica
that was asked.

Who speaks in a voter's name is taken for that voter. Kafka believes every epoch of everybody.
"""

from typing import Final

from fastquorum.raft.core import EPOCH_MAX, Core
from fastquorum.raft.effects import Notice
from fastquorum.types import NO_NODE, Epoch, Micros, NodeId, ReplicaKey

LEAP_MAX: Final = 100
"""Epochs: more elections than a voter that is not known here yet can be ahead by."""
LEAP_EPOCH_MAX: Final = EPOCH_MAX - 2**20
"""The highest epoch to leap to; an election each second takes 68 years to get there. The ones above are reached one by
one."""
_WHERE_VOTERS_CHANGED: Final = (
    "find out who runs there; if the voters were changed while this node was away, restart it with the address of one "
    "that is a voter now as `bootstrap`"
)
ELECTIONS: Final = 8
"""So many election timeouts, besides the fetch timeout, a voter is without a leader before a stranger has a say."""


def believes_vote(core: Core, epoch: Epoch, candidate: ReplicaKey, *, is_up_to_date: bool, pre_vote: bool) -> bool:
    """May a Vote or pre-vote of this epoch move this replica? `is_up_to_date`: the candidate's log is not behind.

    Call it once for each request: if a stranger is believed, that uses up what strangers may do for an election
    timeout.
    """
    if core.voters.is_voter(candidate):
        return _believes_voter(core, epoch, candidate.id)
    return epoch <= core.epoch or (is_up_to_date and _believes_candidate(core, epoch, candidate, pre_vote=pre_vote))


def believes_leader(core: Core, epoch: Epoch, leader_id: NodeId) -> bool:
    """May a BeginQuorumEpoch or EndQuorumEpoch of this epoch, which is not over here, move this replica? It has no
    directory id of the leader's. Call it once for each request, as `believes_vote`."""
    if core.voters.get(leader_id) is not None:
        return _believes_voter(core, epoch, leader_id)
    if epoch > core.epoch:
        return _believes_stranger(core, epoch, leader_id)
    voted = core.election.voted_key
    is_elected = core.is_voter and voted is not None and voted.id == leader_id
    return core.leader_id != NO_NODE or is_elected or _believes_stranger(core, epoch, leader_id)


def believes_response(core: Core, epoch: Epoch, source: NodeId) -> bool:
    """May a response of this epoch, from a replica that this one has asked, be considered?"""
    if is_unproven(core, source):
        return epoch <= core.epoch
    return _believes_voter(core, epoch, source)


def is_unproven(core: Core, source: NodeId) -> bool:
    """Is this the leader, and nobody else has said so?"""
    return core.is_leader_unproven and source == core.leader_id


def vouches(core: Core, source: NodeId, epoch: Epoch, leader_id: NodeId) -> None:
    """A replica that was asked names a leader: if it is the one that is followed, it is unproven no more."""
    if epoch == core.own_word_epoch and leader_id == core.leader_id != source:
        core.own_word_epoch = -1


def was_led(core: Core, at_us: Micros) -> None:
    """Until then there was a leader, or this replica could not know: strangers wait."""
    core.led_until_us = max(core.led_until_us, at_us)


def leave_time(core: Core) -> None:
    """A voter that is known here may be elected now: strangers wait for an election timeout."""
    core.strangers_barred_until_us = core.now_us + core.config.election_timeout_us
    core.pre_voted_stranger = None


def _believes_candidate(core: Core, epoch: Epoch, candidate: ReplicaKey, *, pre_vote: bool) -> bool:
    """A stranger that was believed when it asked whether it would be elected may be: else it would use up by its
    pre-vote what its Vote needs."""
    if not pre_vote and core.pre_voted_stranger == (candidate, epoch):
        core.pre_voted_stranger = None
        return _lacks_leader(core)
    is_believed = _believes_stranger(core, epoch, candidate.id)
    if is_believed and pre_vote:
        core.pre_voted_stranger = candidate, epoch + 1
    return is_believed


def _believes_stranger(core: Core, epoch: Epoch, sender: NodeId) -> bool:
    if not _lacks_leader(core) or core.now_us < core.strangers_barred_until_us:
        return False
    if epoch > core.epoch + LEAP_MAX:
        core.emit(_leaping(core, epoch, sender))
        return False
    leave_time(core)
    return True


def _lacks_leader(core: Core) -> bool:
    """Has this voter been without a leader for so long that a stranger has a say?"""
    # An observer in an epoch ahead of the quorum's would find no leader, and can bring no election about.
    if not core.is_voter:
        return False
    # Who would give no pre-vote leads, or hears its leader (KIP-996): that leader is not disturbed.
    if not core.role.grants_pre_vote(core, is_up_to_date=True):
        return False
    return core.now_us >= core.led_until_us + core.config.fetch_timeout_us + ELECTIONS * core.config.election_timeout_us


def _believes_voter(core: Core, epoch: Epoch, sender: NodeId) -> bool:
    if epoch <= core.epoch + LEAP_MAX or epoch <= LEAP_EPOCH_MAX:
        return True
    core.emit(_damaged(core, epoch, sender))
    return False


def _damaged(core: Core, epoch: Epoch, sender: NodeId) -> Notice:
    return Notice(
        "epoch_not_believed",
        sender,
        f"node {sender} is in epoch {epoch}, says a message of it, which no elections lead to: it is not followed "
        f"there from epoch {core.epoch}; if its own election state says so, format an empty directory for it as "
        "that one was, and start it while all other voters run and follow one leader, else find out what sends in its "
        "name",
    )


def _leaping(core: Core, epoch: Epoch, sender: NodeId) -> Notice:
    return Notice(
        "epoch_not_believed",
        sender,
        f"node {sender} says that it is in epoch {epoch}, and is no voter that this node, which is in epoch "
        f"{core.epoch} and finds no leader, knows: it is not followed there; {_WHERE_VOTERS_CHANGED}",
    )


def notice_unproven(core: Core, what: str, then: str = "goes on as it is") -> None:
    """Order what is to be said of an unproven leader: when it says what would end this voter if a proven one said it,
    or when this voter does not take it for a leader."""
    core.emit(
        Notice(
            "leader_not_believed",
            core.leader_id,
            f"node {core.leader_id} says that it leads epoch {core.epoch}, is no voter that this node knows, and "
            f"{what}: that is not believed, and this node {then}; {_WHERE_VOTERS_CHANGED}",
        )
    )
