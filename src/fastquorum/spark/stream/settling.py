"""What the directories of a majority share, and a leader to come could still undo: until that is settled, it is not
committed.

Records that a majority holds are committed if the leader of their own epoch brought them there. If a later one did,
they are only together with a record of its own: else a voter whose log ends in an epoch between the two may be elected,
and cut them off. Every leader begins with a record of its own, so this lasts for an election. A plain function over
Arrow tables. Source: Raft, section 5.4.2 and figure 8; KIP-595.
"""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.spark.pipelines.replicas import ReplicaVerdict
from fastquorum.types import Epoch, Offset

OTHERS: Final = frozenset(ReplicaVerdict) - {ReplicaVerdict.SAME, ReplicaVerdict.BEHIND, ReplicaVerdict.TAIL}
"""Verdicts of replicas that have something else where others have what a majority shares."""


def unsettled_from(batches: pa.Table, audited: pa.Table, *, sees_all: bool, known_epoch: Epoch) -> Offset | None:
    """Return the offset from which on what a majority shares may still be undone; None: it is committed.

    Args:
        batches: of one cluster, with columns directory, last_offset, epoch and error.
        audited: what `audit_cluster` made of them.
        sees_all: no voter's directory is missing. Else any epoch that was begun since may have left another log there,
            and nothing of `batches` is certain.
        known_epoch: the latest that any of the voters' nodes knows of; -1: none.
    """
    voters = [row for row in audited.to_pylist() if row["is_voter"] and row["committed_end"] is not None]
    if not voters:
        return None
    end = voters[0]["committed_end"]
    others = {row["directory"]: row["offset"] for row in voters if _lacks_some(row, end)}
    good = batches.filter(batches["error"].is_null())
    newest = _newest(good)
    shared = good.filter(pc.equal(good["last_offset"], end - 1))
    agreed = [epoch for directory, epoch in _newest(shared).items() if directory not in others]
    if not agreed:
        return None  # nothing is new
    rivals: list[Offset] = [offset for directory, offset in others.items() if newest.get(directory, -1) > max(agreed)]
    if rivals:
        return min(rivals)
    latest = max(known_epoch, *(newest.get(row["directory"], -1) for row in voters))
    return None if sees_all or latest <= max(agreed) else 0


def _lacks_some(row: dict[str, object], end: Offset) -> bool:
    """Has the replica something else, where others have what a majority shares?"""
    offset = row["offset"]
    return row["verdict"] in OTHERS and isinstance(offset, int) and offset < end


def _newest(batches: pa.Table) -> dict[str, Epoch]:
    """Return the latest epoch of each directory's batches."""
    found = batches.select(["directory", "epoch"]).group_by("directory").aggregate([("epoch", "max")])
    return dict(zip(found["directory"].to_pylist(), found["epoch_max"].to_pylist(), strict=True))
