"""`audit-replicas`: do the replicas of a cluster hold the same bytes, and if not, who is the odd one?

Replicas copy batches from the leader byte for byte, so two logs are the same if their batches are: by offsets, epoch,
size and checksum, which every reader of a log has verified against the bytes. Without the quorum's high watermark,
committed means the longest prefix that is the same on a majority of the voters' directories (Raft, section 5.4.2); what
one replica has beyond that is a tail that was never acknowledged, and no divergence.

What is divergent is named by the majority: from its first differing offset on, a replica has no say any more. Needs
pyarrow and numpy, and no JVM.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

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
PRESENT_COLUMNS: Final = ("cluster_id", "node_id", "directory")
"""What is read of table `quorum_state`, which has a row for each directory: what else the voters' rows are to name, so
that one without a single batch is judged, too."""
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
_NOTHING: Final = -1
_ANYTHING: Final = -2
"""In place of a batch that a replica no longer has: what a snapshot covers was committed."""
_DAMAGED: Final = -3

_Ids = npt.NDArray[np.int64]


class Verdict(StrEnum):
    """What a replica is."""

    SAME = "same"
    BEHIND = "behind"
    """The same, as far as it goes, which is less than what is committed."""
    TAIL = "uncommitted tail"
    DIVERGENT = "divergent"
    UNDECIDED = "undecided"
    """No majority of the voters' directories is there, or none agrees: nobody can say whose fault it is."""


@dataclass(slots=True)
class _Replica:
    cluster_id: str | None
    node_id: int | None
    directory: str
    is_voter: bool
    start_offset: int
    end_offset: int
    ids: _Ids
    """Of its batch at each base offset of the cluster."""
    sizes: _Ids
    verdict: Verdict = Verdict.SAME
    offset: int | None = None
    why: str | None = None

    @property
    def is_trusted(self) -> bool:
        return self.verdict is not Verdict.DIVERGENT


def audit_cluster(batches: pa.Table, voters: pa.Table) -> pa.Table:
    """Of all replicas of one cluster; `batches` and `voters` have BATCH_COLUMNS and VOTER_COLUMNS. A directory that
    only `voters` names is one of a replica that holds nothing; its row there may say no more."""
    if batches.num_rows == 0:
        return SCHEMA.empty_table()
    offsets, replicas = _replicas(batches, latest_voters(voters))
    replicas = sorted([*replicas, *_empty(offsets, replicas, voters)], key=lambda each: each.directory)
    count = _voter_count(voters, replicas)
    committed = _walk(offsets, replicas, count // 2 + 1)
    for each in replicas:
        _judge(each, offsets, committed)
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
        "notes": _notes([row for row in rows if row["cluster_id"] is None]),
    }


def _notes(nameless: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
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


# --- whose batches are where ------------------------------------------------------------------------------------------


def latest_voters(voters: pa.Table) -> frozenset[int]:
    """The ids of the set that begins last, in whatever replica knows it."""
    rows = [row for row in voters.to_pylist() if row["voter_id"] is not None]  # else it tells of damage
    if not rows:
        return frozenset()
    last = max(row["offset"] for row in rows)
    return frozenset(row["voter_id"] for row in rows if row["offset"] == last)


def _voter_count(voters: pa.Table, replicas: Iterable[_Replica]) -> int:
    """Where nobody says who votes, every replica that is there counts as a voter."""
    return len(latest_voters(voters)) or sum(each.is_voter for each in replicas)


def _replicas(batches: pa.Table, voters: frozenset[int]) -> tuple[_Ids, list[_Replica]]:
    """The base offsets of the cluster's batches, ascending, and who has which batch there."""
    is_damaged = np.asarray(batches["error"].is_valid())
    contents = np.stack(
        [_numbers(batches, name) for name in ("base_offset", "last_offset", "epoch", "crc", "size_bytes")]
    )
    _, ids = np.unique(contents, axis=1, return_inverse=True)
    ids = np.where(is_damaged, _DAMAGED, ids.reshape(-1)).astype(np.int64)
    directories = batches["directory"].combine_chunks().dictionary_encode()
    owners = np.asarray(directories.indices)
    base = _bases(batches, is_damaged, owners)
    offsets = np.unique(base)
    found = []
    for number, directory in enumerate(directories.dictionary.to_pylist()):
        mine = np.flatnonzero(owners == number)
        first = batches.slice(int(mine[0]), 1).to_pylist()[0]
        mine = mine[np.argsort(is_damaged[mine], kind="stable")]  # where bytes were put in between, damage counts
        good = mine[~is_damaged[mine]]
        start = int(base[mine].min())
        end = int(_numbers(batches, "last_offset")[good].max()) + 1 if len(good) else start
        placed = np.full(len(offsets), _NOTHING, np.int64)
        sizes = np.zeros(len(offsets), np.int64)
        at = np.searchsorted(offsets, base[mine])
        placed[at] = ids[mine]
        sizes[at] = _numbers(batches, "size_bytes")[mine]
        placed[offsets < start] = np.where(placed[offsets < start] == _NOTHING, _ANYTHING, placed[offsets < start])
        is_voter = not voters or first["node_id"] in voters
        found.append(_Replica(first["cluster_id"], first["node_id"], directory, is_voter, start, end, placed, sizes))
    return offsets, sorted(found, key=lambda each: each.directory)


def _empty(offsets: _Ids, others: Sequence[_Replica], voters: pa.Table) -> list[_Replica]:
    """Those that are there, and have no batch."""
    ids, known = latest_voters(voters), {each.directory for each in others}
    none, sizes = np.full(len(offsets), _NOTHING, np.int64), np.zeros(len(offsets), np.int64)
    rows = {row["directory"]: row for row in voters.to_pylist() if row["node_id"] is not None}
    return [
        _Replica(row["cluster_id"], row["node_id"], path, not ids or row["node_id"] in ids, 0, 0, none, sizes)
        for path, row in rows.items()
        if path not in known
    ]


def _bases(batches: pa.Table, is_damaged: npt.NDArray[np.bool_], owners: _Ids) -> _Ids:
    """Where each row begins, as an offset. Of damage that is where what its replica has before it ends: the offset that
    damaged bytes claim may be anything, and no checksum covers it."""
    base, last = _numbers(batches, "base_offset"), _numbers(batches, "last_offset")
    segments, positions = _numbers(batches, "segment"), _numbers(batches, "position")
    if not is_damaged.any():
        return base
    lowest = int(base[~is_damaged].min()) if not is_damaged.all() else 0
    found = base.copy()
    for owner in np.unique(owners[is_damaged]).tolist():
        mine = np.flatnonzero(owners == owner)
        mine = mine[np.lexsort((positions[mine], segments[mine]))]
        ends = np.where(is_damaged[mine], -1, last[mine] + 1)
        before = np.concatenate([[-1], np.maximum.accumulate(ends)[:-1]])
        # Who read on from inside a segment, and found damage at once, began with what all have.
        first = np.where((before < 0) & (positions[mine] > 0), lowest, segments[mine])
        found[mine] = np.where(is_damaged[mine], np.maximum(np.maximum(before, first), 0), base[mine])
    return found


def _numbers(table: pa.Table, name: str) -> _Ids:
    """A column as int64; -1 for null."""
    return np.asarray(table[name].fill_null(-1).cast(pa.int64()), np.int64)


# --- what a majority agrees on ----------------------------------------------------------------------------------------


def _walk(offsets: _Ids, replicas: Sequence[_Replica], majority: int) -> int | None:
    """The end of the longest prefix that is the same on a majority of voters; who differs below it is divergent from
    there on. None: nothing is the same on a majority."""
    position, end = 0, None
    while position < len(offsets):
        agreed = _agreed(replicas, position, majority)
        stops = np.flatnonzero((agreed == _NOTHING) | _differs(replicas, position, agreed))
        if len(stops) == 0:
            break
        position += int(stops[0])
        chosen = agreed[stops[0]]
        if chosen == _NOTHING:
            end = int(offsets[position])
            break
        for each in replicas:
            if each.is_trusted and each.ids[position] not in (chosen, _ANYTHING) and _goes_on(each, position):
                each.verdict = Verdict.DIVERGENT
                each.offset = int(offsets[position])
                each.why = _why(each, position)
        position += 1
    ends = sorted((each.end_offset for each in replicas if each.is_trusted and each.is_voter), reverse=True)
    if len(ends) < majority or (end is not None and position == 0):
        return None
    return ends[majority - 1] if end is None else min(end, ends[majority - 1])


def _agreed(replicas: Sequence[_Replica], position: int, majority: int) -> _Ids:
    """At every base offset from `position` on: the batch that a majority of voters has, or _NOTHING."""
    trusted = [each.ids[position:] for each in replicas if each.is_trusted and each.is_voter]
    agreed = np.full(len(replicas[0].ids) - position, _NOTHING, np.int64)
    for candidate in trusted:
        votes = sum(((ids == candidate) | (ids == _ANYTHING)).astype(np.int64) for ids in trusted)
        agreed = np.where((candidate >= 0) & (votes >= majority), candidate, agreed)
    return agreed


def _differs(replicas: Sequence[_Replica], position: int, agreed: _Ids) -> npt.NDArray[np.bool_]:
    """Does anybody who is trusted, and whose log goes on there, have something else?"""
    differs = np.zeros(len(agreed), np.bool_)
    for each in replicas:
        if each.is_trusted:
            ids = each.ids[position:]
            there = np.flatnonzero(ids != _NOTHING)
            goes_on = np.arange(len(ids)) <= (there[-1] if len(there) else -1)
            differs |= (ids != agreed) & (ids != _ANYTHING) & goes_on
    return differs


def _goes_on(replica: _Replica, position: int) -> bool:
    """Has it anything from there on?"""
    return bool((replica.ids[position:] != _NOTHING).any())


def _why(replica: _Replica, position: int) -> str:
    if replica.ids[position] == _DAMAGED:
        return "its bytes are damaged"
    return "it has no batch there" if replica.ids[position] == _NOTHING else "it has another batch there"


# --- what becomes of each ---------------------------------------------------------------------------------------------


def _judge(replica: _Replica, offsets: _Ids, committed: int | None) -> None:
    if replica.verdict is Verdict.DIVERGENT:
        return
    if committed is None:
        replica.verdict = Verdict.UNDECIDED
        replica.why = "no majority of the voters' directories holds the same"
    elif replica.end_offset > committed or bool((replica.ids[offsets >= committed] == _DAMAGED).any()):
        replica.verdict, replica.offset = Verdict.TAIL, committed
    elif replica.end_offset < committed:
        replica.verdict = Verdict.BEHIND


def _row(replica: _Replica, offsets: _Ids, committed: int | None) -> dict[str, Any]:
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
