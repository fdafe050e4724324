"""Prospective: asks whether it would be elected, before it disturbs anybody with a new epoch. Nothing is persisted.

Source: KIP-996; Kafka `ProspectiveState`.
"""

from fastquorum.raft import messages
from fastquorum.raft.ballots import Ballots
from fastquorum.raft.core import Core
from fastquorum.raft.role import Voting
from fastquorum.raft.transitions import Cause, RoleName
from fastquorum.types import NO_NODE, Micros


class Prospective(Voting):
    """May still give this epoch's vote to somebody else."""

    name = RoleName.PROSPECTIVE

    def __init__(self, core: Core, election_deadline_us: Micros) -> None:
        super().__init__(election_deadline_us)
        self.ballots = Ballots(core.voters.ids, core.key.id)
        self.has_peer_without_pre_vote = False
        """A voter knows no pre-vote: then the election itself must tell, as before KIP-996."""

    def poll(self, core: Core) -> Cause | None:
        if (self.ballots.is_won or self.has_peer_without_pre_vote) and not core.is_disk_stalled:
            return Cause.PRE_VOTES_WON
        if self.ballots.is_lost or core.is_disk_stalled or core.now_us >= self.election_deadline_us:
            return Cause.PRE_VOTES_LOST if _can_follow(core) else Cause.PRE_VOTES_LOST_LEADERLESS
        core.wake_at(self.election_deadline_us)
        core.ask_voters(self.ballots.unanswered, messages.vote_request(core, pre_vote=True))
        return None

    def voted(self, core: Core) -> None:
        super().voted(core)
        self.ballots = Ballots(core.voters.ids, core.key.id)
        core.requests.reset()


def _can_follow(core: Core) -> bool:
    leader_id = core.leader_id
    return leader_id not in (NO_NODE, core.key.id) and core.endpoint_of(leader_id) is not None
