"""Which replica of a cluster is read, and how far: what a majority shares counts.

By Raft's log matching (section 5.3), logs that have a record of the same epoch at an offset are the same up to it; for
who reads images, a snapshot counts as the last record that it stands for. Of the replicas that hold all that is
committed one is read that has no hole, if there is any: a batch whose bytes are damaged, or a segment that is missing.
Of those it is the one whose log begins first, then that of the lowest node id and directory; for an image, which is
read to the end of a log, first one that ends where the majority does.
"""

from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.errors import UsageError
from fastquorum.spark.pipelines.carrying import Flags, Ints

BATCH_COLUMNS: Final = ("cluster_id", "node_id", "directory", "base_offset", "last_offset", "epoch", "error")
"""What is read of table `batches` to choose by, damage set aside in `error`."""
PRESENT_COLUMNS: Final = ("cluster_id", "node_id", "directory")
"""What is read of table `quorum_state`, which has a row for each directory."""
SNAPSHOT_COLUMNS: Final = (*PRESENT_COLUMNS, "offset", "epoch")
"""What is read of table `checkpoints`, of good ones."""
CHOICE: Final = pa.schema(
    [
        pa.field("cluster_id", pa.string()),
        pa.field("directory", pa.string(), nullable=False),
        pa.field("end_offset", pa.int64()),
        pa.field("has_tail", pa.bool_(), nullable=False),
        pa.field("unread", pa.string()),
    ]
)
"""A directory whose records are to be read, and up to where; behind that it may have a tail. Where none could be
chosen, each directory, without an end, and in `unread` why."""
_OF_RECORD: Final = (*PRESENT_COLUMNS, "epoch", "offset")
NOTHING: Final = "none of its logs has a record to look at"


class Replica(NamedTuple):
    """Whose log is read."""

    cluster_id: str | None
    node_id: int | None
    directory: str | None


def choice_of(batches: pa.Table, present: pa.Table, *, of_image: bool = False) -> pa.Table:
    """What `chosen_of` chooses of one cluster's records, by the headers of their batches; of CHOICE. Where it chooses
    none, each directory: what becomes of them, who has the records will say.

    Args:
        batches: BATCH_COLUMNS, of one cluster.
        present: PRESENT_COLUMNS, of the same; SNAPSHOT_COLUMNS `of_image`, without an offset but for snapshots.
    """
    known = those(batches, np.asarray(batches["error"].is_null()))
    records, why = _records_of(known), _why_nothing(batches)
    if of_image:
        records = _with_snapshots(records, present)
    try:
        chosen, replica = chosen_of(records, None, of_image=of_image)
    except UsageError as error:
        chosen, why = records.slice(0, 0), str(error)
    if chosen.num_rows:
        end_offset = chosen["offset"][-1].as_py() + 1
        own = records.filter(pc.equal(records["directory"], replica.directory))
        has_tail = pc.max(own["offset"]).as_py() >= end_offset
        row = {**replica._asdict(), "end_offset": end_offset, "has_tail": has_tail}
        return pa.Table.from_pylist([row], CHOICE)
    pairs = {(row["cluster_id"], row["directory"]) for each in (batches, present) for row in _whose(each)}
    rows = [
        {"cluster_id": cluster_id, "directory": directory, "has_tail": False, "unread": why}
        for cluster_id, directory in sorted(pairs, key=str)
    ]
    return pa.Table.from_pylist(rows, CHOICE)


def _records_of(batches: pa.Table) -> pa.Table:
    base, ends = ints(batches["base_offset"]), ints(batches["last_offset"]) + 1
    counts = np.maximum(ends - base, 0)
    of_each = np.repeat(np.arange(len(base)), counts)
    offsets = np.arange(len(of_each)) - np.repeat(np.cumsum(counts) - counts, counts) + base[of_each]
    records = batches.select(_OF_RECORD[:-1]).take(pa.array(of_each))
    return records.append_column(_OF_RECORD[-1], pa.array(offsets, pa.int64()))


def _with_snapshots(records: pa.Table, present: pa.Table) -> pa.Table:
    """And the last record that each snapshot stands for, unless the log has one there."""
    snapshots = present.filter(present["offset"].is_valid()).select(_OF_RECORD)
    last = pc.subtract(snapshots["offset"], 1)
    snapshots = snapshots.set_column(len(_OF_RECORD) - 1, "offset", last).cast(records.schema)
    return pa.concat_tables([records, snapshots.join(records, ["directory", "offset"], join_type="left anti")])


def _why_nothing(batches: pa.Table) -> str:
    errors = batches["error"].drop_null()
    return f"nothing of its logs can be read: {errors[0].as_py()}" if len(errors) else NOTHING


def _whose(table: pa.Table) -> list[dict[str, Any]]:
    """Each directory once."""
    found: list[dict[str, Any]] = table.group_by(["cluster_id", "directory"]).aggregate([]).to_pylist()
    return found


def chosen_of(records: pa.Table, committed_end: int | None, *, of_image: bool = False) -> tuple[pa.Table, Replica]:
    """The committed records of the replica that is read, in order, and which it is. `committed_end`: exclusive; None:
    what a majority of the replicas shares. `of_image`: rather one that ends there. UsageError: no majority shares
    anything."""
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

    def rank(at: int) -> tuple[int, bool, bool, int, int, int, str]:
        node_id, its_end = replicas[at].node_id, min(shared[at], end)
        holes = missing_count(logs[at][0], its_end)
        first, goes_on = int(logs[at][0][0]), of_image and int(logs[at][0][-1]) >= end
        name = -1 if node_id is None else node_id, replicas[at].directory or ""
        return (-its_end, holes > 0, goes_on, first, holes, *name)

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
