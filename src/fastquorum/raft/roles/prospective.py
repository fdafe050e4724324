"""Prospective: asks whether it would be elected, before it disturbs anybody with a new epoch. Nothing is persisted.

A refusal is no vote either, and grows old quickly: of two followers of a dead leader one notices first, and the other,
which still counts on the leader at that moment, refuses. Were that final, then in a quorum of three nobody could be
elected before the attempt has timed out, if only the first one's log is up to date. So whoever refused is asked again.

Source: KIP-996; Kafka `ProspectiveState`, which does not ask again.
"""

from typing import Final

from fastquorum.raft import messages
from fastquorum.raft.ballots import Ballots
from fastquorum.raft.core import Core
from fastquorum.raft.transitions import Cause, RoleName
from fastquorum.raft.voting import Voting
from fastquorum.types import NO_NODE, Micros

ASK_AGAIN_PART: Final = 10
"""The part of the election timeout after which a voter that refused is asked again."""


class Prospective(Voting):
    """May still give this epoch's vote to somebody else."""

    name = RoleName.PROSPECTIVE

    def __init__(self, core: Core, election_deadline_us: Micros, may_skip_at_us: Micros = -1) -> None:
        super().__init__(election_deadline_us)
        self._may_skip_at_us = may_skip_at_us
        """Until then a majority's pre-votes are needed, whoever knows none: only they protect a leader that others
        hear from a follower that has stood before the fetch timeout."""
        self.ballots = Ballots(core.voters.ids, core.key.id)
        self.has_peer_without_pre_vote = False
        """A voter knows no pre-vote: then the election itself must tell, as before KIP-996."""
        self._ask_again_at_us = core.now_us + core.config.election_timeout_us // ASK_AGAIN_PART

    def poll(self, core: Core) -> Cause | None:
        may_skip = self.has_peer_without_pre_vote and core.now_us >= self._may_skip_at_us
        if (self.ballots.is_won or may_skip) and core.can_commit:
            return Cause.PRE_VOTES_WON
        if self.ballots.is_lost or not core.can_commit or core.now_us >= self.election_deadline_us:
            return Cause.PRE_VOTES_LOST if _can_follow(core) else Cause.PRE_VOTES_LOST_LEADERLESS
        core.wake_at(self.election_deadline_us)
        if core.now_us >= self._ask_again_at_us:
            self._ask_again_at_us = core.now_us + core.config.election_timeout_us // ASK_AGAIN_PART
            self.ballots.forget_refusals()
        if self.has_peer_without_pre_vote:
            core.wake_at(self._may_skip_at_us)
        if self.ballots.has_refusals:
            core.wake_at(self._ask_again_at_us)
        core.ask_voters(self.ballots.unanswered, messages.vote_request(core, pre_vote=True))
        return None

    def voted(self, core: Core) -> None:
        super().voted(core)
        self.ballots = Ballots(core.voters.ids, core.key.id)
        core.requests.reset()


def _can_follow(core: Core) -> bool:
    leader_id = core.leader_id
    return leader_id not in (NO_NODE, core.key.id) and core.endpoint_of(leader_id) is not None
