"""Which epochs of others a replica believes: nobody who merely reaches its port may move it far.

Whoever takes over an epoch persists it, and epochs never fall: the last one, taken over once, would end the quorum for
good. So an epoch that leaps is believed of a voter only, and never if it leads to where no quorum gets by elections.
A replica that is no voter here may be one all the same, by a record that has not come yet (KIP-853): its requests count
as long as they do not leap, where no leader leads or is heard; its pre-votes move nobody, as they need not (KIP-996).
Responses come from a replica that was asked. Kafka believes every epoch of everybody.
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


def is_credible_vote(core: Core, epoch: Epoch, candidate: ReplicaKey, *, pre_vote: bool) -> bool:
    """May a Vote request of this epoch move this replica?"""
    is_known = core.voters.is_voter(candidate)
    return _is_credible(core, epoch, candidate.id, is_known) and (is_known or not pre_vote or epoch <= core.epoch)


def is_credible_leader(core: Core, epoch: Epoch, leader_id: NodeId) -> bool:
    """May a BeginQuorumEpoch or EndQuorumEpoch request of this epoch? It has no directory id of the leader's."""
    return _is_credible(core, epoch, leader_id, core.voters.get(leader_id) is not None)


def is_credible_response(core: Core, epoch: Epoch, source: NodeId) -> bool:
    """May a response of this epoch, from a replica that this one has asked?"""
    return _is_credible(core, epoch, source, is_known=True)


def _is_credible(core: Core, epoch: Epoch, sender: NodeId, is_known: bool) -> bool:
    is_near = epoch <= core.epoch + LEAP_MAX
    if not is_known:
        # Who would give no pre-vote leads, or hears its leader (KIP-996): that leader is not disturbed.
        return epoch <= core.epoch or (is_near and core.role.grants_pre_vote(core, is_up_to_date=True))
    if is_near or epoch <= LEAP_EPOCH_MAX:
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
