"""What to do about each verdict of `audit-replicas`: one line each.

A line says what becomes of it by itself, if anything, or else what comes next. Source: the recovery of a node's log
(`storage.log.recovery`), and the guide on voters that are lost.
"""

from collections.abc import Mapping
from typing import Final

from fastquorum.spark.pipelines.replicas import ReplicaVerdict
from fastquorum.spark.pipelines.torn import CUT_OFF

OF_VERDICTS: Final[Mapping[ReplicaVerdict, str]] = {
    ReplicaVerdict.BEHIND: "its node fetches the rest: look whether it runs, unless this is an older copy",
    ReplicaVerdict.TAIL: "the leader commits it, or a later one has it cut off: nothing is to be done while a majority "
    "runs",
    ReplicaVerdict.STALE: CUT_OFF,
    ReplicaVerdict.TORN: CUT_OFF,
    ReplicaVerdict.DIVERGENT: "keep a copy of the directory, and look at its disk; where the others hold the records, "
    "format the replica anew while all of them run, and stop none of them until it has caught up; where there are no "
    "others, restore a backup",
    ReplicaVerdict.LACKING: "keep a copy of every directory, and start none of these without a replica that has the "
    "records: they would elect one of themselves, and what was committed would be gone; put back newer copies, if "
    "there are any; else start a voter that has the records, with only as many of these as make a majority, so that it "
    "has to lead, and the rest when those have caught up; where no voter has them, restore a backup of one that had",
    ReplicaVerdict.UNDECIDED: "name the directories of all voters, and look at what cannot be read",
}
"""Verdict SAME has none."""
