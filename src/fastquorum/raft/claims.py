"""Which epochs of others a replica believes: nobody who merely reaches its port may move it far, or often.

Whoever takes over an epoch persists it, and epochs never fall: the last one, taken over once, would end the quorum for
good. So an epoch that leaps is believed of a voter only, and never if it leads to where no quorum gets by elections.
A replica that is no voter here may be one all the same, by a record that has not come yet (KIP-853). Then its log is
ahead of this one: whoever has this log has its voter set, too. Where no leader leads or is heard, its requests count as
long as they do not leap, and move this replica once in an election timeout, which leaves the voters that are known
their time to elect one of them; its pre-votes move nobody, as they need not (KIP-996). Responses come from a replica
that was asked. Kafka believes every epoch of everybody.
"""

from typing import Final

from fastquorum.raft.core import EPOCH_MAX, Core
from fastquorum.raft.effects import Notice
from fastquorum.types import Epoch, NodeId, ReplicaKey

LEAP_MAX: Final = 100
"""Epochs: more elections than a voter that is not known here yet can be ahead by."""
LEAP_EPOCH_MAX: Final = EPOCH_MAX - 2**20
"""The highest epoch to leap to; an election each second takes 68 years to get there. The ones above are reached one by
one."""


def believes_vote(core: Core, epoch: Epoch, candidate: ReplicaKey, *, is_ahead: bool, pre_vote: bool) -> bool:
    """May a Vote request of this epoch, from a candidate whose log `is_ahead` of this one or not, be considered?

    A request that moves this replica to its epoch is to be asked about once: a stranger's is counted here.
    """
    if core.voters.is_voter(candidate):
        return _believes_voter(core, epoch, candidate.id)
    if pre_vote:
        return epoch <= core.epoch
    return is_ahead and _believes_stranger(core, epoch)


def believes_leader(core: Core, epoch: Epoch, leader_id: NodeId) -> bool:
    """May a BeginQuorumEpoch or EndQuorumEpoch request of this epoch be considered? It has no directory id of the
    leader's. As with `believes_vote`, it is to be asked about once."""
    if core.voters.get(leader_id) is not None:
        return _believes_voter(core, epoch, leader_id)
    return _believes_stranger(core, epoch)


def believes_response(core: Core, epoch: Epoch, source: NodeId) -> bool:
    """May a response of this epoch, from a replica that this one has asked, be considered?"""
    return _believes_voter(core, epoch, source)


def _believes_stranger(core: Core, epoch: Epoch) -> bool:
    if epoch <= core.epoch:
        return True
    # Who would give no pre-vote leads, or hears its leader (KIP-996): that leader is not disturbed.
    if not core.role.grants_pre_vote(core, is_up_to_date=True):
        return False
    if epoch > core.epoch + LEAP_MAX or core.now_us < core.moved_by_strangers_until_us:
        return False
    core.moved_by_strangers_until_us = core.now_us + core.config.election_timeout_us
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
