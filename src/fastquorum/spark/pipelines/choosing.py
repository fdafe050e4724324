"""Which replica of a cluster is read, and how far: what a majority shares counts.

By Raft's log matching (section 5.3), logs that have a record of the same epoch at an offset are the same up to it. Of
the replicas that hold all that is committed one is read that has no hole, if there is any: a batch whose bytes are
damaged, or a segment that is missing. Of those it is the one whose log begins first, then that of the lowest node id
and directory.
"""

from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.errors import UsageError
from fastquorum.spark.pipelines.carrying import Flags, Ints

BATCH_COLUMNS: Final = ("cluster_id", "node_id", "directory", "base_offset", "last_offset", "epoch", "error")
"""What is read of table `batches` to choose by, damage set aside in `error`."""
PRESENT_COLUMNS: Final = ("cluster_id", "directory")
"""What is read of table `quorum_state`, which has a row for each directory."""
CHOICE: Final = pa.schema(
    [
        pa.field("cluster_id", pa.string()),
        pa.field("directory", pa.string(), nullable=False),
        pa.field("end_offset", pa.int64()),
    ]
)
"""A directory whose records are to be read, and up to where; null: as far as they go."""


class Replica(NamedTuple):
    """Whose log is read."""

    cluster_id: str | None
    node_id: int | None
    directory: str | None


def choice_of(batches: pa.Table, present: pa.Table) -> pa.Table:
    """What `chosen_of` chooses of one cluster's records, by the headers of their batches; of CHOICE. Where it chooses
    none, each directory: what becomes of them, who has the records will say. `batches`, `present`: BATCH_COLUMNS and
    PRESENT_COLUMNS, together of one cluster."""
    known = those(batches, np.asarray(batches["error"].is_null()))
    base, ends = ints(known["base_offset"]), ints(known["last_offset"]) + 1
    counts = np.maximum(ends - base, 0)
    of_each = np.repeat(np.arange(len(base)), counts)
    offsets = np.arange(len(of_each)) - np.repeat(np.cumsum(counts) - counts, counts) + base[of_each]
    records = known.select([*Replica._fields, "epoch"]).take(pa.array(of_each))
    records = records.append_column("offset", pa.array(offsets, pa.int64()))
    try:
        chosen, replica = chosen_of(records, None)
    except UsageError:
        chosen = records.slice(0, 0)
    if chosen.num_rows:
        row = {**replica._asdict(), "end_offset": chosen["offset"][-1].as_py() + 1}
        return pa.Table.from_pylist([row], CHOICE)
    pairs = {(row["cluster_id"], row["directory"]) for each in (batches, present) for row in _whose(each)}
    rows = [{"cluster_id": cluster_id, "directory": directory} for cluster_id, directory in sorted(pairs, key=str)]
    return pa.Table.from_pylist(rows, CHOICE)


def _whose(table: pa.Table) -> list[dict[str, Any]]:
    """Each directory once."""
    found: list[dict[str, Any]] = table.group_by(list(PRESENT_COLUMNS)).aggregate([]).to_pylist()
    return found


def chosen_of(records: pa.Table, committed_end: int | None) -> tuple[pa.Table, Replica]:
    """The committed records of the replica that is read, in order, and which it is. `committed_end`: exclusive; None:
    what a majority of the replicas shares. UsageError: no majority shares anything."""
    records = those(records, ~are_damaged(records))
    if records.num_rows == 0:
        return records, Replica(None, None, None)
    directories = records["directory"].dictionary_encode().combine_chunks()
    owners, offsets, epochs = np.asarray(directories.indices), ints(records["offset"]), ints(records["epoch"])
    found = [_in_order(np.flatnonzero(owners == each), offsets) for each in range(len(directories.dictionary))]
    logs = [(offsets[rows], epochs[rows]) for rows in found]
    majority = len(logs) // 2 + 1
    shared = [sorted((_shared_end(log, other) for other in logs), reverse=True)[majority - 1] for log in logs]
    if max(shared) < 0:
        cluster_id = records["cluster_id"][0].as_py()
        whose = "a cluster that no meta.properties names" if cluster_id is None else f"cluster {cluster_id}"
        raise UsageError(
            f"of {len(logs)} replicas of {whose} no majority shares a record", "hand in the records of one"
        )
    replicas = [Replica(*(records[name][int(rows[0])].as_py() for name in Replica._fields)) for rows in found]
    end = max(shared) if committed_end is None else committed_end

    def rank(at: int) -> tuple[int, bool, int, int, int, str]:
        node_id, its_end = replicas[at].node_id, min(shared[at], end)
        holes = missing_count(logs[at][0], its_end)
        first = int(logs[at][0][0])
        return (-its_end, holes > 0, first, holes, -1 if node_id is None else node_id, replicas[at].directory or "")

    best = min(range(len(found)), key=rank)
    return taken(records, found[best][: int(np.searchsorted(logs[best][0], end))]), replicas[best]


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


def _in_order(rows: Ints, offsets: Ints) -> Ints:
    """Rows of one log, by their offsets."""
    its = offsets[rows]
    return rows if bool((np.diff(its) > 0).all()) else rows[np.argsort(its, kind="stable")]


# --- rows -------------------------------------------------------------------------------------------------------------


def ints(column: pa.ChunkedArray) -> Ints:
    """As int64; -1 for null."""
    return np.asarray(column.fill_null(-1).cast(pa.int64()), np.int64)


def those(table: Any, wanted: Flags) -> Any:
    """Rows of a table or column; no copy if it is all of them."""
    return table if bool(wanted.all()) else table.filter(pa.array(wanted))


def taken(table: pa.Table, at: Ints) -> pa.Table:
    """Rows in another order, or some of them; no copy of rows that follow on one another."""
    if len(at) == 0:
        return table.slice(0, 0)
    if at[-1] - at[0] + 1 == len(at) and bool((np.diff(at) == 1).all()):
        return table.slice(int(at[0]), len(at))
    return table.take(pa.array(at))
