"""Which replica of a cluster is read, and how far: what a majority shares counts.

By Raft's log matching (section 5.3), logs that have a record of the same epoch at an offset are the same up to it; for
who reads images, a snapshot counts as the last record that it stands for. Of the replicas that hold all that is
committed one is read that has no hole, if there is any: a batch whose bytes are damaged, or a segment that is missing.
Of those it is the one whose log begins first, then that of the lowest node id and directory; for an image, which is
read to the end of a log, first one that ends where the majority does.
"""

from collections.abc import Sequence
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
NOTHING: Final = "none of its logs has a record to look at"


class Replica(NamedTuple):
    """Whose log is read."""

    cluster_id: str | None
    node_id: int | None
    directory: str | None


class _Log(NamedTuple):
    """What a choice looks at: of each record its offset, ascending, and its epoch."""

    replica: Replica
    offsets: Ints
    epochs: Ints
    is_based: bool = True
    """An image can be made of it: it has its first record, or a snapshot that stands for what is before it."""


def choice_of(batches: pa.Table, present: pa.Table, *, of_image: bool = False) -> pa.Table:
    """What `chosen_of` chooses of one cluster's records, by the headers of their batches; of CHOICE. Where it chooses
    none, each directory: what becomes of them, who has the records will say.

    Args:
        batches: BATCH_COLUMNS, of one cluster.
        present: PRESENT_COLUMNS, of the same; SNAPSHOT_COLUMNS `of_image`, without an offset but for snapshots.
    """
    logs = _logs_of(those(batches, np.asarray(batches["error"].is_null())), present if of_image else None)
    why = _why_nothing(batches)
    try:
        best, end_offset = _best(logs, None, of_image=of_image)
    except UsageError as error:
        best, why = None, str(error)
    if best is not None:
        row = {
            **best.replica._asdict(),
            "end_offset": end_offset,
            "has_tail": bool(best.offsets[-1] >= end_offset),
        }
        return pa.Table.from_pylist([row], CHOICE)
    pairs = {(row["cluster_id"], row["directory"]) for each in (batches, present) for row in _whose(each)}
    rows = [
        {"cluster_id": cluster_id, "directory": directory, "has_tail": False, "unread": why}
        for cluster_id, directory in sorted(pairs, key=str)
    ]
    return pa.Table.from_pylist(rows, CHOICE)


def _logs_of(batches: pa.Table, snapshots: pa.Table | None) -> list[_Log]:
    """By headers alone. A snapshot counts as the last record that it stands for, unless the log has one there."""
    owners, ends, kept = _by_directory(batches), {}, {}
    for replica, rows in owners.items():
        base, last = ints(rows["base_offset"]), ints(rows["last_offset"])
        counts = np.maximum(last - base + 1, 0)
        starts = np.cumsum(counts) - counts
        offsets = np.arange(counts.sum()) - np.repeat(starts - base, counts)
        ends[replica] = offsets, np.repeat(ints(rows["epoch"]), counts)
    if snapshots is not None:
        kept = _by_directory(snapshots.filter(snapshots["offset"].is_valid()))
    logs = []
    nothing: Ints = np.zeros(0, np.int64)
    for replica in dict.fromkeys((*ends, *kept)):
        offsets, epochs = ends.get(replica, (nothing, nothing))
        is_based = snapshots is None or (len(offsets) > 0 and offsets.min() == 0)
        if replica in kept:
            stands_for, its_epochs = ints(kept[replica]["offset"]) - 1, ints(kept[replica]["epoch"])
            is_based = is_based or len(offsets) == 0 or bool(stands_for.max() >= offsets.min() - 1)
            is_new = ~np.isin(stands_for, offsets)
            offsets = np.concatenate([offsets, stands_for[is_new]])
            epochs = np.concatenate([epochs, its_epochs[is_new]])
        if len(offsets):
            order = _in_order(np.arange(len(offsets)), offsets)
            logs.append(_Log(replica, offsets[order], epochs[order], is_based))
    return logs


def _by_directory(rows: pa.Table) -> dict[Replica, pa.Table]:
    directories = rows["directory"].combine_chunks().dictionary_encode()
    owners = np.asarray(directories.indices)
    found = {}
    for each in range(len(directories.dictionary)):
        its = rows.take(pa.array(np.flatnonzero(owners == each)))
        found[Replica(*(its[name][0].as_py() for name in Replica._fields))] = its
    return found


def _why_nothing(batches: pa.Table) -> str:
    errors = batches["error"].drop_null()
    return f"nothing of its logs can be read: {errors[0].as_py()}" if len(errors) else NOTHING


def _whose(table: pa.Table) -> list[dict[str, Any]]:
    """Each directory once."""
    found: list[dict[str, Any]] = table.group_by(["cluster_id", "directory"]).aggregate([]).to_pylist()
    return found


def chosen_of(records: pa.Table, committed_end: int | None) -> tuple[pa.Table, Replica]:
    """The committed records of the replica that is read, in order, and which it is. `committed_end`: exclusive; None:
    what a majority of the replicas shares. UsageError: no majority shares anything."""
    records = those(records, ~are_damaged(records))
    if records.num_rows == 0:
        return records, Replica(None, None, None)
    directories = records["directory"].dictionary_encode().combine_chunks()
    owners, offsets, epochs = np.asarray(directories.indices), ints(records["offset"]), ints(records["epoch"])
    found, logs = {}, []
    for each in range(len(directories.dictionary)):
        rows = _in_order(np.flatnonzero(owners == each), offsets)
        replica = Replica(*(records[name][int(rows[0])].as_py() for name in Replica._fields))
        found[replica] = rows
        logs.append(_Log(replica, offsets[rows], epochs[rows]))
    best, end_offset = _best(logs, committed_end)
    assert best is not None
    return taken(records, found[best.replica][: int(np.searchsorted(best.offsets, end_offset))]), best.replica


def _best(logs: Sequence[_Log], committed_end: int | None, *, of_image: bool = False) -> tuple[_Log | None, int]:
    """Whose log is read, and up to where, exclusive; None: there is none. UsageError: no majority shares anything."""
    if not logs:
        return None, 0
    majority = len(logs) // 2 + 1
    shared = [sorted((_shared_end(log, other) for other in logs), reverse=True)[majority - 1] for log in logs]
    if max(shared) < 0:
        cluster_id = logs[0].replica.cluster_id
        whose = "a cluster that no meta.properties names" if cluster_id is None else f"cluster {cluster_id}"
        raise UsageError(
            f"of {len(logs)} replicas of {whose} no majority shares a record", "hand in the records of one"
        )
    end = max(shared) if committed_end is None else committed_end

    def rank(at: int) -> tuple[int, bool, bool, int, int, int, str]:
        log, its_end = logs[at], min(shared[at], end)
        holes = missing_count(log.offsets, its_end)
        goes_on = of_image and int(log.offsets[-1]) >= end
        name = -1 if log.replica.node_id is None else log.replica.node_id, log.replica.directory or ""
        return (-its_end, holes > 0 or not log.is_based, goes_on, int(log.offsets[0]), holes, *name)

    return logs[min(range(len(logs)), key=rank)], end


def missing_count(offsets: Ints, end_offset: int) -> int:
    """How many records are not there between the first one and an end, exclusive. A log leaves none out."""
    if len(offsets) == 0 or end_offset <= offsets[0]:
        return 0
    return end_offset - int(offsets[0]) - int(np.searchsorted(offsets, end_offset))


def are_damaged(records: pa.Table) -> Flags:
    """Rows of damaged bytes, which are no records: what they claim to be counts for nothing."""
    found: Flags = np.asarray(pc.or_(records["offset"].is_null(), records["epoch"].is_null()))
    return found


def _shared_end(one: _Log, other: _Log) -> int:
    """Exclusive; -1 if they share nothing."""
    at = np.minimum(np.searchsorted(other.offsets, one.offsets), len(other.offsets) - 1)
    same = np.flatnonzero((other.offsets[at] == one.offsets) & (other.epochs[at] == one.epochs))
    return int(one.offsets[same[-1]]) + 1 if len(same) else -1


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
