"""Why leadership changed, in words for whoever runs a node. Source: `raft.transitions.Cause`."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from fastquorum.raft.transitions import Cause

WORDS: Final = {
    Cause.ELECTION_TIMEOUT: "nobody was elected in time",
    Cause.FETCH_TIMEOUT: "the leader was silent for the fetch timeout",
    Cause.LEADER_RESIGNED: "the leader resigned",
    Cause.LEADER_GONE: "the leader's process is gone",
    Cause.SOLE_VOTER: "this node is the only voter",
    Cause.PRE_VOTES_WON: "a majority would vote for this node",
    Cause.PRE_VOTES_LOST: "a majority still hears the leader",
    Cause.PRE_VOTES_LOST_LEADERLESS: "a majority would not vote for this node",
    Cause.VOTES_WON: "a majority voted for this node",
    Cause.QUORUM_LOST: "no majority of voters fetched in time",
    Cause.RESIGN_REQUESTED: "this node was asked to resign",
    Cause.DISK_STALLED: "this node's disk does not answer",
    Cause.INTERPRETER_HELD: (
        "this node's interpreter was held by a call, or its own thread by the disk, for longer than disk.stall.max.ms"
    ),
    Cause.DISK_FULL: "this node's disk is full",
    Cause.SHUTDOWN: "this node stops",
    Cause.HIGHER_EPOCH: "another node began a later epoch",
    Cause.LEADER_OF_HIGHER_EPOCH: "another node was elected in a later epoch",
    Cause.LEADER_OF_THIS_EPOCH: "another node was elected",
}


def reason_of(causes: Sequence[Cause]) -> str:
    """Return what this replica saw, in order, in words; empty for what it knew when it started."""
    return ", then ".join(WORDS[cause] for cause in causes)


class LeadershipCause(NamedTuple):
    """Why leadership changed, as seen by one node."""

    cause: str
    """What began it, one of `CAUSES`, for programs: "fetch_timeout"."""
    reason: str
    """Everything that led to it, in order, for people."""

    def __str__(self) -> str:
        return f"{self.cause}: {self.reason}"


def name_of(cause: Cause) -> str:
    return cause.name.lower()


CAUSES: Final = tuple(name_of(cause) for cause in Cause)
"""Every name, in the order of the table."""


def leadership_cause(causes: Sequence[Cause]) -> LeadershipCause | None:
    """None if there was no change."""
    return LeadershipCause(name_of(causes[0]), reason_of(causes)) if causes else None


def parsed(text: str) -> LeadershipCause | None:
    """What `str` made of one; None for any other text."""
    cause, _, reason = text.partition(": ")
    return LeadershipCause(cause, reason) if cause in CAUSES and reason else None


def counts_by_name(counts: Mapping[Cause, int]) -> dict[str, int]:
    """Every cause's, also of those that began no change."""
    return {name_of(cause): counts.get(cause, 0) for cause in Cause}
