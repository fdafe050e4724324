"""Unattached: in an epoch whose leader is not known, or not reachable. Voters wait for their election timeout; all
ask around.

Source: KIP-595; Kafka `UnattachedState`.
"""

from fastquorum.raft.core import Core
from fastquorum.raft.discovery import discover_leader
from fastquorum.raft.transitions import Cause, RoleName
from fastquorum.raft.voting import Voting


class Unattached(Voting):
    """Also what an observer is until it finds the leader; it never stands for election."""

    name = RoleName.UNATTACHED

    def poll(self, core: Core) -> Cause | None:
        if core.is_voter and not core.is_shutting_down:
            if core.is_only_voter and core.may_stand:
                return Cause.SOLE_VOTER
            if core.now_us >= self.election_deadline_us:
                if core.may_stand:
                    return Cause.ELECTION_TIMEOUT
                self.election_deadline_us = core.random_election_deadline()
            core.wake_at(self.election_deadline_us)
        discover_leader(core)
        return None
