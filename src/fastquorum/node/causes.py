"""Why leadership changed, in words for whoever runs a node. Source: `raft.transitions.Cause`."""

from collections.abc import Sequence
from typing import Final

from fastquorum.raft.transitions import Cause

WORDS: Final = {
    Cause.ELECTION_TIMEOUT: "nobody was elected in time",
    Cause.FETCH_TIMEOUT: "the leader was silent for the fetch timeout",
    Cause.LEADER_GONE: "the leader resigned, or its process is gone",
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
    """What this replica saw, in order; empty for what it knew when it started."""
    return ", then ".join(WORDS[cause] for cause in causes)
