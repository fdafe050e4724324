"""Which replica of a cluster is read, and how far: what a majority shares counts.

By Raft's log matching (section 5.3), logs that have a record of the same epoch at an offset are the same up to it. Of
the replicas that hold all that is committed one is read that has no hole, if there is any: a batch whose bytes are
damaged, or a segment that is missing. Of those it is the one whose log begins first, then that of the lowest node id
and directory.

Whoever reads images needs less: a snapshot stands for all before its end, is of committed records only (KIP-630), and
is as good as its last record for what logs have in common. A hole counts behind it alone. Directories without a log
count among those of which a majority is needed.
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
        pa.field("unread", pa.string()),
    ]
)
"""A directory whose records are to be read, and up to where. Where none could be chosen, each directory, without an
end, and in `unread` why."""
NOTHING: Final = "none of its logs has a record to look at"


class Replica(NamedTuple):
    """Whose log is read."""

    cluster_id: str | None
    node_id: int | None
    directory: str | None


class _Log(NamedTuple):
    """What a choice looks at."""

    replica: Replica
    offsets: Ints
    """Of records, ascending; and of the last ones that snapshots stand for."""
    epochs: Ints
    start: int
    """Its first record's, or its newest snapshot's."""
    snapshots: Ints | None = None
    """For images: the ends of good ones from which it goes on."""

    def holes(self, end_offset: int) -> int:
        """How many records are missing before an end, exclusive, for what is to be made of them."""
        if self.snapshots is None:
            return missing_count(self.offsets, end_offset)
        base = int(self.snapshots[self.snapshots <= end_offset].max(initial=0))
        first, last = np.searchsorted(self.offsets, (base, end_offset))
        return end_offset - base - int(last - first)


def choice_of(batches: pa.Table, present: pa.Table, *, of_image: bool = False) -> pa.Table:
    """What `chosen_of` chooses of one cluster's records, by the headers of their batches; of CHOICE. Where it chooses
    none, each directory: what becomes of them, who has the records will say.

    Args:
        batches: BATCH_COLUMNS, of one cluster.
        present: PRESENT_COLUMNS, of the same; SNAPSHOT_COLUMNS `of_image`, without an offset but for snapshots.
    """
    logs = _logs_of(those(batches, np.asarray(batches["error"].is_null())), present if of_image else None)
    pairs = {(row["cluster_id"], row["directory"]) for each in (batches, present) for row in _whose(each)}
    why = _why_nothing(batches)
    try:
        best, end_offset = _best(logs, None, len(pairs) if of_image else 0)
    except UsageError as error:
        best, why = None, str(error)
    if best is not None:
        return pa.Table.from_pylist([{**best.replica._asdict(), "end_offset": end_offset}], CHOICE)
    rows = [
        {"cluster_id": cluster_id, "directory": directory, "unread": why}
        for cluster_id, directory in sorted(pairs, key=str)
    ]
    return pa.Table.from_pylist(rows, CHOICE)


def _logs_of(batches: pa.Table, snapshots: pa.Table | None) -> list[_Log]:
    """By headers alone, and for images by snapshots."""
    owners = _by_directory(batches)
    if snapshots is None:
        return [
            _Log(replica, *log, int(log[0][0])) for replica, rows in owners.items() if len((log := _expanded(rows))[0])
        ]
    kept = _by_directory(snapshots.filter(snapshots["offset"].is_valid()))
    nothing: Ints = np.zeros(0, np.int64)
    logs = []
    for replica in dict.fromkeys((*owners, *kept)):
        offsets, epochs = _expanded(owners[replica]) if replica in owners else (nothing, nothing)
        ends, its = (
            (ints(kept[replica][name]) for name in ("offset", "epoch")) if replica in kept else (nothing, nothing)
        )
        if not len(offsets) and not len(ends):
            continue
        start = int(offsets[0] if len(offsets) else ends.max())
        is_new = ~np.isin(ends - 1, offsets)
        # What lies between an older one and the log is gone: no image is made from there.
        bases = ends[ends >= start]
        offsets, epochs = np.concatenate([offsets, ends[is_new] - 1]), np.concatenate([epochs, its[is_new]])
        order = _in_order(np.arange(len(offsets)), offsets)
        logs.append(_Log(replica, offsets[order], epochs[order], start, bases))
    return logs


def _expanded(batches: pa.Table) -> tuple[Ints, Ints]:
    """Offsets and epochs of one log's records, in order."""
    base, last = ints(batches["base_offset"]), ints(batches["last_offset"])
    counts = np.maximum(last - base + 1, 0)
    starts = np.cumsum(counts) - counts
    offsets = np.arange(counts.sum()) - np.repeat(starts - base, counts)
    order = _in_order(np.arange(len(offsets)), offsets)
    return offsets[order], np.repeat(ints(batches["epoch"]), counts)[order]


def _by_directory(rows: pa.Table) -> dict[Replica, pa.Table]:
    return {replica: rows.take(pa.array(at)) for replica, at in _owned(rows).items()}


def _owned(rows: pa.Table) -> dict[Replica, Ints]:
    """Which rows are of each directory."""
    directories = rows["directory"].dictionary_encode().combine_chunks()
    owners = np.asarray(directories.indices)
    found = {}
    for each in range(len(directories.dictionary)):
        at = np.flatnonzero(owners == each)
        found[Replica(*(rows[name][int(at[0])].as_py() for name in Replica._fields))] = at
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
    offsets, epochs = ints(records["offset"]), ints(records["epoch"])
    found = {replica: _in_order(rows, offsets) for replica, rows in _owned(records).items()}
    logs = [_Log(replica, offsets[rows], epochs[rows], int(offsets[rows[0]])) for replica, rows in found.items()]
    best, end_offset = _best(logs, committed_end)
    assert best is not None
    return taken(records, found[best.replica][: int(np.searchsorted(best.offsets, end_offset))]), best.replica


def _best(logs: Sequence[_Log], committed_end: int | None, directory_count: int = 0) -> tuple[_Log | None, int]:
    """Whose log is read, and up to where, exclusive; None: there is none. `directory_count`: with those that have no
    log, if they are known. UsageError: nothing proves anything."""
    if not logs:
        return None, 0
    count = max(len(logs), directory_count)
    nobodys = [-1] * (count - len(logs))
    proven = [
        sorted((*(_shared_end(log, other) for other in logs), *nobodys), reverse=True)[count // 2] for log in logs
    ]
    # A majority is not needed for what a snapshot holds.
    kept = (-1 if log.snapshots is None else int(log.snapshots.max(initial=-1)) for log in logs)
    proven = [max(each) for each in zip(proven, kept, strict=True)]
    if max(proven) < 0:
        cluster_id = logs[0].replica.cluster_id
        whose = "a cluster that no meta.properties names" if cluster_id is None else f"cluster {cluster_id}"
        raise UsageError(f"of {count} replicas of {whose} no majority shares a record", "hand in the records of one")
    end = max(proven) if committed_end is None else committed_end

    def rank(at: int) -> tuple[int, bool, int, int, int, str]:
        log, its_end = logs[at], min(proven[at], end)
        holes = log.holes(its_end)
        name = -1 if log.replica.node_id is None else log.replica.node_id, log.replica.directory or ""
        return (-its_end, holes > 0, log.start, holes, *name)

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
