"""Which epochs of others a replica believes: nobody who merely reaches its port may move it far, or often.

Whoever takes over an epoch persists it, and epochs never fall: the last one, taken over once, would end the quorum for
good. So an epoch that leaps is believed of a voter only, and never if it leads to where no quorum gets by elections.
A replica that is no voter here, a stranger, may be one all the same: by a record that has not come yet (KIP-853), or by
a newer configuration of static voters. What it says counts with a voter that neither leads nor hears a leader, as long
as it does not leap, once in an election timeout: that leaves the voters that are known here their time to elect one of
them. A Vote of a stranger that would not get this replica's vote moves nobody. Observers are moved by no stranger: the
voters that may need one's vote are known to it. Responses come from a replica that was asked.

Who speaks in a voter's name is taken for that voter. Kafka believes every epoch of everybody.
"""

from typing import Final

from fastquorum.raft.core import EPOCH_MAX, Core
from fastquorum.raft.effects import Notice
from fastquorum.types import NO_NODE, Epoch, NodeId, ReplicaKey

LEAP_MAX: Final = 100
"""Epochs: more elections than a voter that is not known here yet can be ahead by."""
LEAP_EPOCH_MAX: Final = EPOCH_MAX - 2**20
"""The highest epoch to leap to; an election each second takes 68 years to get there. The ones above are reached one by
one."""


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
    return is_leader_known or _believes_stranger(core, epoch)


def believes_response(core: Core, epoch: Epoch, source: NodeId) -> bool:
    """May a response of this epoch, from a replica that this one has asked, be considered?"""
    return _believes_voter(core, epoch, source)


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
