"""Which epochs of others a replica believes: nobody who merely reaches its port may move it far, or often.

Whoever takes over an epoch persists it, and epochs never fall: the last one, taken over once, would end the quorum for
good. So an epoch that leaps is believed of a voter only, and never if it leads to where no quorum gets by elections.

A replica that is no voter here, a stranger, may be one all the same: by a record that has not come yet (KIP-853), or by
a newer configuration of static voters. Its Vote counts with a voter that neither leads nor has heard a leader for an
election timeout, as long as it does not leap, once in an election timeout: that leaves the voters that are known here
their time to elect one of them, and one that starts its time to find who leads. A Vote of a stranger that would not get
this replica's vote moves nobody.

That it leads is not believed of a stranger on its own word, as long as a majority of the voters that are known here,
this replica counted, answers: they elect one of themselves, or one of them follows the stranger and says so when it is
asked. Where that majority is gone, nobody else may be left to say it. What a stranger answers as a leader ends no
voter.

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
ANSWER_TIMEOUTS: Final = 4
"""Of elections: a voter that finds no leader asks the others for pre-votes at least once within so many of them."""


def believes_vote(core: Core, epoch: Epoch, candidate: ReplicaKey, *, is_up_to_date: bool) -> bool:
    """May a Vote or pre-vote of this epoch move this replica? `is_up_to_date`: the candidate's log is not behind.

    Call it once for each request: if a stranger is believed, that uses up what strangers may do for an election
    timeout.
    """
    if core.voters.is_voter(candidate):
        return _believes_voter(core, epoch, candidate.id)
    return epoch <= core.epoch or (is_up_to_date and _believes_stranger(core, epoch))


def believes_leader(core: Core, epoch: Epoch, leader_id: NodeId) -> bool:
    """May a BeginQuorumEpoch or EndQuorumEpoch of this epoch, which is not over here, move this replica? It has no
    directory id of the leader's. Call it once for each request, as `believes_vote`."""
    if core.voters.get(leader_id) is not None:
        return _believes_voter(core, epoch, leader_id)
    is_leader_known = epoch == core.epoch and core.leader_id != NO_NODE
    return is_leader_known or (not _does_majority_answer(core) and _believes_stranger(core, epoch))


def believes_response(core: Core, epoch: Epoch, source: NodeId) -> bool:
    """May a response of this epoch, from a replica that this one has asked, be considered? Who is no voter here was
    asked as the leader of this epoch, and leaps no further than by a request."""
    if is_stranger(core, source):
        return epoch <= core.epoch + LEAP_MAX
    return _believes_voter(core, epoch, source)


def is_stranger(core: Core, source: NodeId) -> bool:
    """Does an answer come from one that this voter follows without knowing it as a voter? Bootstrap servers, whose ids
    are negative, are given, and an observer's voters may all have changed since it knew any."""
    return core.is_voter and source >= 0 and core.voters.get(source) is None


def leave_time(core: Core) -> None:
    """A life begins, or a lead ends: strangers wait until the voters had their time, each of which counts as if it
    had just answered."""
    core.strangers_barred_until_us = core.now_us + core.config.election_timeout_us
    core.answered_us = dict.fromkeys(core.voters.ids, core.now_us)


def answered(core: Core, source: NodeId) -> None:
    """A replica that was asked has answered, whatever it says."""
    if core.voters.get(source) is not None:
        core.answered_us[source] = core.now_us


def heard_leader(core: Core, leader_id: NodeId, at_us: Micros) -> None:
    """The leader answered this follower then: no stranger disturbs it for an election timeout, though its connection be
    lost meanwhile."""
    barred_until_us = at_us + core.config.election_timeout_us
    core.strangers_barred_until_us = max(core.strangers_barred_until_us, barred_until_us)
    if core.voters.get(leader_id) is not None:
        core.answered_us[leader_id] = at_us


def _does_majority_answer(core: Core) -> bool:
    since_us = core.now_us - ANSWER_TIMEOUTS * core.config.election_timeout_us
    answering = sum(core.answered_us.get(node_id, since_us) > since_us for node_id in core.other_voters)
    return answering + core.is_voter > len(core.voters) // 2


def _believes_stranger(core: Core, epoch: Epoch) -> bool:
    # An observer in an epoch ahead of the quorum's would find no leader, and can bring no election about.
    if not core.is_voter:
        return False
    # Who would give no pre-vote leads, or hears its leader (KIP-996): that leader is not disturbed.
    if not core.role.grants_pre_vote(core, is_up_to_date=True):
        return False
    if epoch > core.epoch + LEAP_MAX or core.now_us < core.strangers_barred_until_us:
        return False
    core.strangers_barred_until_us = core.now_us + core.config.election_timeout_us
    return True


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
        f"there from epoch {core.epoch}; if its own election state says so, format its directory anew under another "
        "directory id, else find out what sends in its name",
    )


def notice_stranger(core: Core, source: NodeId, what: str) -> None:
    """Order what is to be said when one that is no voter here, and is followed, says what would end this voter if a
    voter said it."""
    core.emit(
        Notice(
            "leader_not_believed",
            source,
            f"node {source}, which is said to lead epoch {core.epoch} and is no voter that this node knows, {what}: "
            "that is not believed, and this node goes on as it is; find out who runs there, and whether the voters "
            "were changed while this node was away",
        )
    )
