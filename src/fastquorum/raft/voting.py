"""The roles that can give this epoch's vote away.

Source: KIP-996; Kafka `UnattachedState`.
"""

from fastquorum.raft.core import Core, Role
from fastquorum.types import Micros, ReplicaKey


class Voting(Role):
    """Unattached and prospective: the roles that can give this epoch's vote away (KIP-996)."""

    def __init__(self, election_deadline_us: Micros) -> None:
        self.election_deadline_us = election_deadline_us

    def grants_vote(self, core: Core, candidate: ReplicaKey, is_up_to_date: bool) -> bool:
        voted = core.election.voted_key
        if voted is not None:
            return core.is_same_replica(voted, candidate) and is_up_to_date
        return core.leader_id < 0 and is_up_to_date

    def voted(self, core: Core) -> None:
        """The vote was given: let the candidate have its time."""
        self.election_deadline_us = core.random_election_deadline()
