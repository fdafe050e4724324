"""Which replica of a cluster is read, and how far: what a majority shares counts.

By Raft's log matching (section 5.3), logs that have a record of the same epoch at an offset are the same up to it. Of
the replicas that hold all that is committed one is read that has no hole, if there is any: a batch whose bytes are
damaged, or a segment that is missing. Of those it is the one whose log begins first, then that of the lowest node id
and directory.
"""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.errors import UsageError
from fastquorum.spark.pipelines.carrying import Flags, Ints


class Replica(NamedTuple):
    """Whose log is read."""

    cluster_id: str | None
    node_id: int | None
    directory: str | None


def chosen_of(records: pa.Table, committed_end: int | None) -> tuple[pa.Table, Replica]:
    """The committed records of the replica that is read, in order, and which it is."""
    records = those(records, ~are_damaged(records))
    if records.num_rows == 0:
        return records, Replica(None, None, None)
    directories = records["directory"].dictionary_encode().combine_chunks()
    owners = np.asarray(directories.indices)
    found = [_in_order(those(records, owners == each)) for each in range(len(directories.dictionary))]
    logs = [(ints(each["offset"]), ints(each["epoch"])) for each in found]
    majority = len(logs) // 2 + 1
    shared = [sorted((_shared_end(log, other) for other in logs), reverse=True)[majority - 1] for log in logs]
    if max(shared) < 0:
        cluster_id = records["cluster_id"][0].as_py()
        whose = "a cluster that no meta.properties names" if cluster_id is None else f"cluster {cluster_id}"
        raise UsageError(
            f"of {len(logs)} replicas of {whose} no majority shares a record", "hand in the records of one"
        )
    replicas = [Replica(*(each[name][0].as_py() for name in Replica._fields)) for each in found]
    end = max(shared) if committed_end is None else committed_end

    def rank(at: int) -> tuple[int, bool, int, int, int, str]:
        node_id, its_end = replicas[at].node_id, min(shared[at], end)
        holes = missing_count(logs[at][0], its_end)
        first = int(logs[at][0][0])
        return (-its_end, holes > 0, first, holes, -1 if node_id is None else node_id, replicas[at].directory or "")

    best = min(range(len(found)), key=rank)
    return found[best].slice(0, int(np.searchsorted(logs[best][0], end))), replicas[best]


def missing_count(offsets: Ints, end_offset: int) -> int:
    """How many records are not there between the first one and an end, exclusive. A log leaves none out."""
    if len(offsets) == 0 or end_offset <= offsets[0]:
        return 0
    return end_offset - int(offsets[0]) - int(np.searchsorted(offsets, end_offset))


def are_damaged(records: pa.Table) -> Flags:
    """Rows of damaged bytes, which are no records: what they claim to be counts for nothing."""
    found: Flags = np.asarray(pc.or_(records["offset"].is_null(), records["epoch"].is_null()))
    return found


def _shared_end(one: tuple[Ints, Ints], other: tuple[Ints, Ints]) -> int:
    """Exclusive; -1 if they share nothing."""
    (offsets, epochs), (its_offsets, its_epochs) = one, other
    at = np.minimum(np.searchsorted(its_offsets, offsets), len(its_offsets) - 1)
    same = np.flatnonzero((its_offsets[at] == offsets) & (its_epochs[at] == epochs))
    return int(offsets[same[-1]]) + 1 if len(same) else -1


def _in_order(records: pa.Table) -> pa.Table:
    offsets = ints(records["offset"])
    if bool((np.diff(offsets) > 0).all()):
        return records
    return records.take(pa.array(np.argsort(offsets, kind="stable")))


# --- rows -------------------------------------------------------------------------------------------------------------


def ints(column: pa.ChunkedArray) -> Ints:
    """As int64; -1 for null."""
    return np.asarray(column.fill_null(-1).cast(pa.int64()), np.int64)


def those(table: Any, wanted: Flags) -> Any:
    """Rows of a table or column; no copy if it is all of them."""
    return table if bool(wanted.all()) else table.filter(pa.array(wanted))


def taken(table: pa.Table, at: Ints) -> pa.Table:
    """Rows in another order, or some of them; no copy if nothing changes."""
    if len(at) == table.num_rows and bool((np.diff(at) == 1).all()):
        return table
    return table.take(pa.array(at))
