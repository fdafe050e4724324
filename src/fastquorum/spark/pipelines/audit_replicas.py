"""`audit-replicas`: do the replicas of a cluster hold the same bytes, and if not, who is the odd one?

Replicas copy batches from the leader byte for byte, so two logs are the same if their batches are: by offsets, epoch,
size and checksum, which every reader of a log has verified against the bytes. Without the quorum's high watermark,
committed means the longest prefix that is the same on a majority of the voters' directories (Raft, section 5.4.2); what
one replica has beyond that is a tail that was never acknowledged, and no divergence. Where a snapshot has more than a
majority shares, records were lost: it says what is committed at least (`pipelines.proofs`).

What is divergent is named by the majority: from its first differing offset on, a replica has no say any more. Needs
pyarrow and numpy, and no JVM.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastquorum.spark.pipelines.proofs import judge_by_snapshots
from fastquorum.spark.pipelines.replicas import (
    ANYTHING,
    DAMAGED,
    EMPTY,
    NOTHING,
    Ids,
    Replica,
    Verdict,
    latest_voters,
    replicas_of,
    voter_count,
)

BATCH_COLUMNS: Final = (
    "cluster_id",
    "node_id",
    "directory",
    "segment",
    "position",
    "base_offset",
    "last_offset",
    "epoch",
    "crc",
    "size_bytes",
    "error",
)
"""What is read of table `batches`, damage set aside in `error`."""
VOTER_COLUMNS: Final = ("cluster_id", "node_id", "directory", "offset", "voter_id")
"""What is read of table `voters`."""
TOLD_COLUMNS: Final = (*VOTER_COLUMNS, "snapshot_offset", "snapshot_epoch", "begin_offset")
"""What else is known of directories, in rows of their own: of a good snapshot, from table `checkpoints`; and from table
`base` up to where a snapshot holds what is before the log."""
PRESENT_COLUMNS: Final = ("cluster_id", "node_id", "directory")
"""What is read of table `quorum_state`, which has a row for each directory: what else the voters' rows are to name, so
that one without a single batch is judged, too."""
SNAPSHOT_COLUMNS: Final = (*PRESENT_COLUMNS, "offset", "epoch", "is_good")
"""What is read of table `checkpoints`."""
BASE_COLUMNS: Final = (*PRESENT_COLUMNS, "end_offset", "type")
"""What is read of table `base`, of its rows without a type."""
SCHEMA: Final = pa.schema(
    [
        pa.field("cluster_id", pa.string()),
        pa.field("node_id", pa.int32()),
        pa.field("directory", pa.string(), nullable=False),
        pa.field("is_voter", pa.bool_(), nullable=False),
        pa.field("verdict", pa.string(), nullable=False),
        pa.field("committed_end", pa.int64()),
        pa.field("start_offset", pa.int64()),
        pa.field("end_offset", pa.int64()),
        pa.field("offset", pa.int64()),
        pa.field("bytes", pa.int64(), nullable=False),
        pa.field("why", pa.string()),
    ]
)
"""One row for each replica. `offset`, `bytes`: where it differs or its tail begins, and how much follows from there."""


def audit_cluster(batches: pa.Table, told: pa.Table) -> pa.Table:
    """Of all replicas of one cluster; `batches` has BATCH_COLUMNS, and `told` VOTER_COLUMNS, or all of TOLD_COLUMNS. A
    directory that only `told` names is one of a replica that holds nothing; its row there may say no more."""
    ids = latest_voters(told)
    offsets, replicas = replicas_of(batches, told, ids)
    if not replicas:
        return SCHEMA.empty_table()
    majority = voter_count(ids, replicas) // 2 + 1
    shared = _walk(offsets, replicas, majority)
    # All empty: they agree, and on nothing.
    committed = judge_by_snapshots(offsets, replicas, shared) or None
    voters = [each for each in replicas if each.is_voter]
    lost = sum(each.has_lost for each in voters)
    holders = sum(each.is_trusted and committed is not None and each.end_offset > committed for each in voters)
    for each in replicas:
        _judge(each, offsets, committed, is_open=lost > 0 and lost + holders >= majority)
    rows = [_row(each, offsets, committed) for each in replicas]
    return pa.Table.from_pylist(rows, SCHEMA)


def as_report(audited: pa.Table) -> dict[str, Any]:
    """The same for programs: `divergent` and `uncommitted_tails` over all clusters, and each cluster whole. `notes`:
    what one should know of verdicts."""
    rows = audited.to_pylist()

    def those(verdict: Verdict) -> list[dict[str, Any]]:
        chosen = [row for row in rows if row["verdict"] == verdict]
        keys = ("cluster_id", "node_id", "directory", "offset", "bytes", "why")
        return [{"replica": row["node_id"]} | {key: row[key] for key in keys if key != "node_id"} for row in chosen]

    return {
        "divergent": those(Verdict.DIVERGENT),
        "uncommitted_tails": those(Verdict.TAIL),
        "undecided": those(Verdict.UNDECIDED),
        "replicas": rows,
        "notes": [*_of_nameless([row for row in rows if row["cluster_id"] is None]), *_of_nothing(rows)],
    }


def _of_nothing(rows: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Of clusters whose directories are there, and hold no record."""
    by_cluster: dict[str | None, list[dict[str, Any]]] = {}
    for row in rows:
        by_cluster.setdefault(row["cluster_id"], []).append(row)
    for cluster_id, replicas in by_cluster.items():
        if all(row["why"] == EMPTY for row in replicas):
            which = "a cluster that no meta.properties names" if cluster_id is None else f"cluster {cluster_id}"
            count = len(replicas)
            logs = (
                f"the logs of its {count} directories are empty" if count > 1 else "the log of its directory is empty"
            )
            text = f"of {which} nothing can be looked at: {logs}"
            yield {"cluster_id": cluster_id, "directories": count, "text": text}


def _of_nameless(nameless: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of directories that no meta.properties is beside: they are judged together, whatever they are."""
    if not nameless:
        return []
    count = len(nameless)
    whose = f"{count} directories belong: they are compared as replicas of one"
    text = f"no meta.properties says to which cluster {whose if count > 1 else nameless[0]['directory'] + ' belongs'}"
    strangers = sum(row["node_id"] is None and not row["is_voter"] for row in nameless)
    if strangers:
        text += f"; nor of which node {strangers} of them {'is' if strangers == 1 else 'are'}: no voter's, then"
    return [{"cluster_id": None, "directories": count, "text": text}]


# --- what a majority agrees on ----------------------------------------------------------------------------------------


def _walk(offsets: Ids, replicas: Sequence[Replica], majority: int) -> int | None:
    """The end of the longest prefix that is the same on a majority of voters; who differs below it is divergent from
    there on. None: nothing is the same on a majority."""
    position, end = 0, None
    while position < len(offsets):
        agreed = _agreed(replicas, position, majority)
        stops = np.flatnonzero((agreed == NOTHING) | _differs(replicas, position, agreed))
        if len(stops) == 0:
            break
        position += int(stops[0])
        chosen = agreed[stops[0]]
        if chosen == NOTHING:
            end = int(offsets[position])
            break
        for each in replicas:
            if each.is_trusted and each.ids[position] not in (chosen, ANYTHING) and _goes_on(each, position):
                each.accuse(int(offsets[position]), each.why_not(offsets, position))
        position += 1
    ends = sorted((each.end_offset for each in replicas if each.is_trusted and each.is_voter), reverse=True)
    if len(ends) < majority or (end is not None and position == 0):
        return None
    return ends[majority - 1] if end is None else min(end, ends[majority - 1])


def _agreed(replicas: Sequence[Replica], position: int, majority: int) -> Ids:
    """At every base offset from `position` on: the batch that a majority of voters has, or NOTHING."""
    trusted = [each.ids[position:] for each in replicas if each.is_trusted and each.is_voter]
    agreed = np.full(len(replicas[0].ids) - position, NOTHING, np.int64)
    for candidate in trusted:
        votes = sum(((ids == candidate) | (ids == ANYTHING)).astype(np.int64) for ids in trusted)
        agreed = np.where((candidate >= 0) & (votes >= majority), candidate, agreed)
    return agreed


def _differs(replicas: Sequence[Replica], position: int, agreed: Ids) -> npt.NDArray[np.bool_]:
    """Does anybody who is trusted, and whose log goes on there, have something else?"""
    differs = np.zeros(len(agreed), np.bool_)
    for each in replicas:
        if each.is_trusted:
            ids = each.ids[position:]
            there = np.flatnonzero(ids != NOTHING)
            goes_on = np.arange(len(ids)) <= (there[-1] if len(there) else -1)
            differs |= (ids != agreed) & (ids != ANYTHING) & goes_on
    return differs


def _goes_on(replica: Replica, position: int) -> bool:
    """Has it anything from there on?"""
    return bool((replica.ids[position:] != NOTHING).any())


# --- what becomes of each ---------------------------------------------------------------------------------------------


def _judge(replica: Replica, offsets: Ids, committed: int | None, *, is_open: bool) -> None:
    """`is_open`: of what is beyond the committed end nobody can tell whether a majority had it."""
    if replica.verdict is Verdict.DIVERGENT:
        return
    if committed is None:
        nobody = "no majority of the voters' directories holds the same" if len(offsets) else None
        replica.verdict = Verdict.UNDECIDED
        replica.why = "; ".join(each for each in (replica.own_fault, nobody) if each)
    elif replica.end_offset > committed or bool((replica.ids[offsets >= committed] == DAMAGED).any()):
        replica.verdict, replica.offset, replica.why = Verdict.TAIL, committed, replica.own_fault
        if is_open and replica.end_offset > committed:
            replica.verdict, replica.why = Verdict.UNDECIDED, "who has lost records cannot tell whether it held these"
    elif replica.end_offset < committed:
        replica.verdict, replica.why = Verdict.BEHIND, replica.own_fault


def _row(replica: Replica, offsets: Ids, committed: int | None) -> dict[str, Any]:
    behind = 0 if replica.offset is None else int(replica.sizes[offsets >= replica.offset].sum())
    return {
        "cluster_id": replica.cluster_id,
        "node_id": replica.node_id,
        "directory": replica.directory,
        "is_voter": replica.is_voter,
        "verdict": replica.verdict.value,
        "committed_end": committed,
        "start_offset": replica.start_offset,
        "end_offset": replica.end_offset,
        "offset": replica.offset,
        "bytes": behind,
        "why": replica.why,
    }
