"""Which replica of a cluster is read, and how far: what is committed, as `pipelines.audit_replicas` finds it, counts.

Of the replicas that hold all of it one is read that has no hole, if there is any: a batch whose bytes are damaged or
others than the majority's, a segment that is missing, or a beginning of which no snapshot tells. Of those it is one
that is not divergent, if there is any, then the one from which most of what was before can be told, then that whose
log begins first, and that of the lowest node id and directory.

Whoever reads images needs less: a snapshot stands for all before its end, and a hole counts where it is in the way of
the image that is asked for (`pipelines.candidates`). Whoever has nothing but records compares these: by Raft's log
matching (section 5.3), logs that have a record of the same epoch at an offset are the same up to it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.errors import UsageError
from fastquorum.spark.pipelines.audit_replicas import Audited, audit
from fastquorum.spark.pipelines.candidates import OfImage, ReadCandidate, segments_of
from fastquorum.spark.pipelines.carrying import Flags, Ints, ints
from fastquorum.spark.stored import arrow

CHOICE: Final = pa.schema(
    [
        pa.field("cluster_id", pa.string()),
        pa.field("directory", pa.string(), nullable=False),
        *arrow.fields(pa.int64(), "start_offset", "end_offset"),
        *arrow.fields(pa.string(), "unread", "unproven"),
    ]
)
"""A directory whose records are to be read, where its log begins, whatever became of that, and up to where. Where none
could be chosen, each directory, without these, and in `unread` why. `unproven`: why what is read may be uncommitted."""
NOTHING: Final = "none of its logs has a record to look at"
LOG_KIND: Final = "log_kind"
"""Column of `directory_rows`: "metadata" or "user"; null in rows about something else."""
USER_RECORDS: Final = "it holds user records, and this report is made of metadata logs"


class ChosenReplica(NamedTuple):
    """The replica that is read."""

    cluster_id: str | None
    node_id: int | None
    directory: str | None


class _Log(NamedTuple):
    """A log, as it is chosen by."""

    replica: ChosenReplica
    offsets: Ints
    """Offsets of its records, ascending."""
    epochs: Ints


def choice_of(batches: pa.Table, directory_rows: pa.Table, image: OfImage | None = None) -> pa.Table:
    """Choose what is read of one cluster (CHOICE). Where nothing proves what is committed: each directory, and why.
    Where a majority of the voters has no directory here: what the others share, and `unproven` says so.

    Logs of user records are not looked at; where there are no others, that is why nothing is read.

    Args:
        batches, directory_rows: as of `audit_cluster`; the latter has LOG_KIND, too.
        image: what is read of the cluster; None: its records are.
    """
    of_users = directory_rows.filter(pc.equal(directory_rows[LOG_KIND], "user"))
    batches, directory_rows = (_without(rows, of_users["directory"]) for rows in (batches, directory_rows))
    if of_users.num_rows and not batches.num_rows and not directory_rows.num_rows:
        rows = of_users.select(["cluster_id", "directory"]).to_pylist()
        return pa.Table.from_pylist([{**row, "unread": USER_RECORDS} for row in rows], CHOICE)
    audited = of_all = audit(batches, directory_rows)
    if of_all.is_missing_voters:
        audited = audit(batches, directory_rows.filter(directory_rows["voter_id"].is_null()))
    found = _candidates(audited, segments_of(batches), image)
    end = max((each.end for each in found), default=0)
    if end > 0:
        best = min(found, key=lambda each: each.rank)
        row: dict[str, Any] = {
            "cluster_id": best.replica.cluster_id,
            "directory": best.replica.directory,
            "start_offset": best.replica.start_offset,
            "end_offset": end,
            "unproven": _why_unproven(of_all, end) if of_all.is_missing_voters else None,
        }
        return pa.Table.from_pylist([row], CHOICE)
    why = _why_nothing(batches, audited)
    rows = [
        {"cluster_id": each.cluster_id, "directory": each.directory, "unread": why}
        for each in sorted(audited.replicas, key=lambda each: (str(each.cluster_id), each.directory))
    ]
    return pa.Table.from_pylist(rows, CHOICE)


def _candidates(audited: Audited, segments: Mapping[str, list[int]], image: OfImage | None) -> list[ReadCandidate]:
    both = zip(audited.replicas, audited.reach.tolist(), strict=True)
    committed = audited.committed or 0
    if image is None:
        return [ReadCandidate.of_records(each, reach, committed) for each, reach in both]
    return [
        ReadCandidate.of_image(each, reach, committed, image, segments.get(each.directory, [])) for each, reach in both
    ]


def _without(rows: pa.Table, directories: pa.ChunkedArray) -> pa.Table:
    return rows.filter(pc.invert(pc.is_in(rows["directory"], directories.combine_chunks())))


def _why_unproven(of_all: Audited, end: int) -> str | None:
    """Return why what is read up to `end` may not be committed, where a majority of the voters has no directory. None:
    snapshots or durable marks cover all of it."""
    proven_end = of_all.committed or 0
    if end <= proven_end:
        return None
    absent = sorted(str(each.id) for each in of_all.voters - of_all.seats)
    known = f"only what a snapshot or durable mark covers, below offset {proven_end}," if proven_end else "nothing"
    return (
        f"{len(absent)} of {len(of_all.voters)} voters ({', '.join(absent)}) have no directory here: this is "
        f"what the others share, up to offset {end}, of which {known} is known to be committed"
    )


def with_unproven(summary: dict[str, Any], unproven: str | None) -> dict[str, Any]:
    """Return a cluster's summary with why what was read of it may not be committed, if that is so."""
    return summary if unproven is None else {**summary, "unproven": unproven}


def could_look(summaries: Iterable[dict[str, Any]]) -> bool:
    """Return whether each cluster could be looked at. One of user records does not matter beside others."""
    whys = [each.get("unchecked") for each in summaries]
    return all(why in (None, USER_RECORDS) for why in whys) and (not whys or None in whys)


def _why_nothing(batches: pa.Table, audited: Audited) -> str:
    errors = batches["error"].drop_null()
    if len(errors) and len(errors) == batches.num_rows:
        return f"nothing of its logs can be read: {errors[0].as_py()}"
    if not batches.num_rows and not any(each.snapshots for each in audited.replicas):
        return NOTHING
    first = audited.replicas[0]
    return str(_none_shared(len(audited.replicas), first.cluster_id))


def _none_shared(count: int, cluster_id: str | None) -> UsageError:
    which = "a cluster that no meta.properties names" if cluster_id is None else f"cluster {cluster_id}"
    return UsageError(f"of {count} replicas of {which} no majority shares a record", "hand in the records of one")


def _owned(rows: pa.Table) -> dict[ChosenReplica, Ints]:
    directories = rows["directory"].dictionary_encode().combine_chunks()
    owners = np.asarray(directories.indices)
    found = {}
    for each in range(len(directories.dictionary)):
        at = np.flatnonzero(owners == each)
        found[ChosenReplica(*(rows[name][int(at[0])].as_py() for name in ChosenReplica._fields))] = at
    return found


def chosen_of(records: pa.Table, committed_end: int | None) -> tuple[pa.Table, ChosenReplica]:
    """Return the committed records of the replica that is read, in order, and which replica it is. `committed_end`:
    exclusive; None: what a majority of the replicas shares. UsageError: no majority shares anything."""
    records = select_rows(records, ~are_damaged(records))
    if records.num_rows == 0:
        return records, ChosenReplica(None, None, None)
    offsets, epochs = ints(records["offset"]), ints(records["epoch"])
    found = {replica: _in_order(rows, offsets) for replica, rows in _owned(records).items()}
    best, end_offset = _best([_Log(each, offsets[rows], epochs[rows]) for each, rows in found.items()], committed_end)
    return taken(records, found[best.replica][: int(np.searchsorted(best.offsets, end_offset))]), best.replica


def _best(logs: Sequence[_Log], committed_end: int | None) -> tuple[_Log, int]:
    """Return the log that is read, and up to where, exclusive. UsageError: no majority shares anything."""
    count = len(logs)
    proven = [sorted((_shared_end(log, other) for other in logs), reverse=True)[count // 2] for log in logs]
    if max(proven) < 0:
        raise _none_shared(count, logs[0].replica.cluster_id)
    end = max(proven) if committed_end is None else committed_end

    def rank(at: int) -> tuple[int, bool, int, int, int, str]:
        log, its_end = logs[at], min(proven[at], end)
        holes = missing_count(log.offsets, its_end)
        name = -1 if log.replica.node_id is None else log.replica.node_id, log.replica.directory or ""
        return (-its_end, holes > 0, int(log.offsets[0]), holes, *name)

    return logs[min(range(len(logs)), key=rank)], end


def missing_count(offsets: Ints, end_offset: int, start_offset: int | None = None) -> int:
    """Count the records that are missing from `start_offset` (None: the first record) to an end, exclusive."""
    if len(offsets) == 0 or end_offset <= offsets[0]:
        return 0
    start = int(offsets[0]) if start_offset is None else start_offset
    return end_offset - start - int(np.searchsorted(offsets, end_offset) - np.searchsorted(offsets, start))


def are_damaged(records: pa.Table) -> Flags:
    """Return which rows are damaged bytes, which are not records: what they claim to be does not count."""
    found: Flags = np.asarray(pc.or_(records["offset"].is_null(), records["epoch"].is_null()))
    return found


def _shared_end(one: _Log, other: _Log) -> int:
    """Return the end of what two logs share, exclusive; -1 if they share nothing."""
    at = np.minimum(np.searchsorted(other.offsets, one.offsets), len(other.offsets) - 1)
    same = np.flatnonzero((other.offsets[at] == one.offsets) & (other.epochs[at] == one.epochs))
    return int(one.offsets[same[-1]]) + 1 if len(same) else -1


def _in_order(rows: Ints, offsets: Ints) -> Ints:
    """Return rows of one log, ordered by their offsets."""
    its = offsets[rows]
    return rows if bool((np.diff(its) > 0).all()) else rows[np.argsort(its, kind="stable")]


# --- rows -------------------------------------------------------------------------------------------------------------


def select_rows(table: Any, wanted: Flags) -> Any:
    """Select rows of a table or column; no copy if it is all of them."""
    return table if bool(wanted.all()) else table.filter(pa.array(wanted))


def taken(table: pa.Table, at: Ints) -> pa.Table:
    """Take rows in another order, or some of them; no copy of rows that follow one another."""
    if len(at) == 0:
        return table.slice(0, 0)
    if at[-1] - at[0] + 1 == len(at) and bool((np.diff(at) == 1).all()):
        return table.slice(int(at[0]), len(at))
    return table.take(pa.array(at))
