"""What every role answers. A role holds only what ends with it; what outlives it is `core.Core`'s.

Source: KIP-595, KIP-996; Kafka `EpochState`.
"""

from typing import TYPE_CHECKING, ClassVar

from fastquorum.raft.transitions import Cause, RoleName
from fastquorum.types import Micros, ReplicaKey

if TYPE_CHECKING:
    from fastquorum.raft.core import Core


class Role:
    """Base of the six roles."""

    name: ClassVar[RoleName]
    election_deadline_us: Micros = -1
    """When the next election may begin; -1 in roles that do not wait for one."""

    def poll(self, core: "Core") -> Cause | None:
        """Do what is due now, register the next wake-up with the core, and say why the role ends, if it does."""
        raise NotImplementedError

    def absorb(self, core: "Core") -> None:
        """Take over what the frozen lane saw (lane rule 6), before anything is decided."""

    def grants_pre_vote(self, core: "Core", is_up_to_date: bool) -> bool:
        """Would this replica's vote be given, as KIP-996 asks? Stores nothing."""
        return is_up_to_date

    def grants_vote(self, core: "Core", candidate: ReplicaKey, is_up_to_date: bool) -> bool:
        """Is this epoch's vote given to this candidate? The epoch is the current one.

        It may be given again, to whoever missed the answer. But a candidate that lost the end of its log in a crash
        asks with less than it was given the vote for: that must not be a vote for the shorter log (Raft section 5.4.1
        asks for both conditions; Kafka's `UnattachedState` looks at the log only the first time).
        """
        return False


class Voting(Role):
    """Unattached and prospective: the roles that can give this epoch's vote away (KIP-996)."""

    def __init__(self, election_deadline_us: Micros) -> None:
        self.election_deadline_us = election_deadline_us

    def grants_vote(self, core: "Core", candidate: ReplicaKey, is_up_to_date: bool) -> bool:
        voted = core.election.voted_key
        if voted is not None:
            return core.is_same_replica(voted, candidate) and is_up_to_date
        return core.leader_id < 0 and is_up_to_date

    def voted(self, core: "Core") -> None:
        """The vote was given: let the candidate have its time."""
        self.election_deadline_us = core.random_election_deadline()
