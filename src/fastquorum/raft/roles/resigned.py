"""Resigned: led this epoch and does not any more, nor ever again in it. Tells the voters who should stand.

Also what a restarted leader is: it cannot know which of its last records survived elsewhere (KAFKA-10527).
Source: KIP-595; Kafka `ResignedState`.
"""

from collections.abc import Sequence

from fastquorum.raft import messages
from fastquorum.raft.core import Core, Role
from fastquorum.raft.transitions import Cause, RoleName
from fastquorum.types import Micros, NodeId, ReplicaKey


class Resigned(Role):
    """Sends EndQuorumEpoch until every voter has heard it, or the next epoch begins."""

    name = RoleName.RESIGNED

    def __init__(self, core: Core, election_deadline_us: Micros, candidates: Sequence[ReplicaKey]) -> None:
        self.election_deadline_us = election_deadline_us
        self.candidates = tuple(candidates)
        """The voters that should stand next, best first."""
        self._unacked: list[NodeId] = list(core.other_voters)
        self._unreachable: set[NodeId] = set()
        """The voters in `_unacked` that could not be reached at the last attempt."""

    def acked(self, voter_id: NodeId) -> None:
        if voter_id in self._unacked:
            self._unacked.remove(voter_id)
        self._unreachable.discard(voter_id)

    def failed(self, voter_id: NodeId) -> None:
        """It was not reached, or did not answer."""
        if voter_id in self._unacked:
            self._unreachable.add(voter_id)

    def has_no_successor(self, core: Core) -> bool:
        """Every voter was told or cannot be reached, and those that were told are no majority without this replica:
        there is nobody to wait for."""
        others = core.other_voters
        acknowledged = sum(voter_id not in self._unacked for voter_id in others)
        return self._unreachable.issuperset(self._unacked) and acknowledged < core.voters.majority

    def poll(self, core: Core) -> Cause | None:
        if not core.is_shutting_down:
            if core.now_us >= self.election_deadline_us:
                return Cause.ELECTION_TIMEOUT
            core.wake_at(self.election_deadline_us)
        core.ask_voters(self._unacked, messages.end_quorum_epoch_request(core, self.candidates))
        return None
