"""Which role follows which, and why: the one table that every change of role goes through.

`tests.quality.diagrams` draws it. Must not know what the roles do. Sources: KIP-595, KIP-996 (prospective);
Kafka `QuorumState`.
"""

import enum
from typing import Final


class RoleName(enum.StrEnum):
    """The roles of KIP-595 and KIP-996. An observer is an unattached or following replica outside the voter set."""

    UNATTACHED = "unattached"
    PROSPECTIVE = "prospective"
    CANDIDATE = "candidate"
    LEADER = "leader"
    FOLLOWER = "follower"
    RESIGNED = "resigned"


class Cause(enum.StrEnum):
    """Why a role ends."""

    ELECTION_TIMEOUT = "election timeout"
    FETCH_TIMEOUT = "fetch timeout"
    LEADER_RESIGNED = "leader resigned"
    LEADER_GONE = "leader gone"
    SOLE_VOTER = "sole voter"
    PRE_VOTES_WON = "pre-votes won"
    PRE_VOTES_LOST = "pre-votes lost, leader known"
    PRE_VOTES_LOST_LEADERLESS = "pre-votes lost, no leader"
    VOTES_WON = "votes won"
    QUORUM_LOST = "no majority fetches"
    RESIGN_REQUESTED = "asked to resign"
    DISK_STALLED = "disk stalled"
    INTERPRETER_HELD = "interpreter held"
    DISK_FULL = "disk full"
    SHUTDOWN = "shutdown"
    HIGHER_EPOCH = "higher epoch, no leader"
    LEADER_OF_HIGHER_EPOCH = "leader of a higher epoch"
    LEADER_OF_THIS_EPOCH = "leader of this epoch"


_U, _P, _C = RoleName.UNATTACHED, RoleName.PROSPECTIVE, RoleName.CANDIDATE
_L, _F, _R = RoleName.LEADER, RoleName.FOLLOWER, RoleName.RESIGNED

TABLE: Final[dict[tuple[RoleName, Cause], RoleName]] = {
    (_U, Cause.ELECTION_TIMEOUT): _P,
    (_U, Cause.SOLE_VOTER): _P,
    (_F, Cause.FETCH_TIMEOUT): _P,
    (_F, Cause.LEADER_RESIGNED): _P,
    (_F, Cause.LEADER_GONE): _P,
    (_R, Cause.SOLE_VOTER): _P,
    (_P, Cause.PRE_VOTES_WON): _C,
    (_P, Cause.PRE_VOTES_LOST): _F,
    (_P, Cause.PRE_VOTES_LOST_LEADERLESS): _U,
    (_C, Cause.VOTES_WON): _L,
    (_C, Cause.ELECTION_TIMEOUT): _P,
    (_L, Cause.QUORUM_LOST): _R,
    (_L, Cause.RESIGN_REQUESTED): _R,
    (_L, Cause.DISK_STALLED): _R,
    (_L, Cause.INTERPRETER_HELD): _R,
    (_L, Cause.DISK_FULL): _R,
    (_L, Cause.SHUTDOWN): _R,
    (_R, Cause.ELECTION_TIMEOUT): _U,
    **{(role, Cause.HIGHER_EPOCH): _U for role in RoleName},
    **{(role, Cause.LEADER_OF_HIGHER_EPOCH): _F for role in RoleName},
    # Not from leader or resigned: this replica led the epoch, so nobody else did (KAFKA-18379).
    **{(role, Cause.LEADER_OF_THIS_EPOCH): _F for role in (_U, _P, _C, _F)},
}


def next_role(role: RoleName, cause: Cause) -> RoleName:
    """The role that follows. An illegal pair is a bug of ours and asserts."""
    assert (role, cause) in TABLE, f"a {role} replica cannot end for: {cause}"
    return TABLE[role, cause]
