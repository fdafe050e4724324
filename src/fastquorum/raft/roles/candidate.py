"""Candidate: has voted for itself in a new epoch, durably, and asks for the others' votes.

Source: KIP-595; Kafka `CandidateState`.
"""

from fastquorum.raft import messages
from fastquorum.raft.ballots import Ballots
from fastquorum.raft.core import Core, Role
from fastquorum.raft.transitions import Cause, RoleName
from fastquorum.types import Micros


class Candidate(Role):
    """A lost election is waited out: standing again at once would only collide again."""

    name = RoleName.CANDIDATE

    def __init__(self, core: Core, election_deadline_us: Micros) -> None:
        self.election_deadline_us = election_deadline_us
        self.ballots = Ballots(core.voters.ids, core.key.id)

    def poll(self, core: Core) -> Cause | None:
        if self.ballots.is_won and core.can_commit:
            return Cause.VOTES_WON
        if core.now_us >= self.election_deadline_us:
            return Cause.ELECTION_TIMEOUT
        core.wake_at(self.election_deadline_us)
        if not self.ballots.is_lost:
            core.ask_voters(self.ballots.unanswered, messages.vote_request(core, pre_vote=False))
        return None
