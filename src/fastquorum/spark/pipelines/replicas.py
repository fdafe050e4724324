"""The replicas of a cluster side by side: which batch each of them has at every base offset of the cluster.

Two batches are the same if offsets, epoch, size and checksum are: each then has one number. Who is right is not known
here. Needs pyarrow and numpy, and no JVM.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.spark.pipelines.carrying import Flags, Ints, ints
from fastquorum.spark.pipelines.torn import looks_torn
from fastquorum.types import OffsetAndEpoch

NOTHING: Final = -1
ANYTHING: Final = -2
"""In place of a batch that a replica no longer has: what a snapshot covers was committed."""
DAMAGED: Final = -3
INSIDE: Final = -4
"""No batch begins there: an earlier one goes on to it."""
EMPTY: Final = "its log is empty"
UNREADABLE: Final = "it cannot be read"

Ids = Ints


class ReplicaVerdict(StrEnum):
    """What a replica is."""

    SAME = "same"
    BEHIND = "behind"
    """The same, as far as it goes, which is less than what is committed."""
    TAIL = "uncommitted tail"
    STALE = "stale tail"
    """A deposed leader's records, where others were committed since: its node cuts them off when it starts."""
    TORN = "torn end"
    """A crash interrupted the last write, of which nothing was acknowledged: its node cuts it off when it starts."""
    DIVERGENT = "divergent"
    """What no healthy quorum shows: other bytes of the same epoch, or a fault below what this replica had itself
    acknowledged or put into a snapshot."""
    LACKING = "lacks committed records"
    """A voter that is behind, as so many are that no majority has what a snapshot or a durable mark says was committed:
    copies that were put back, or disks that lost it."""
    UNDECIDED = "undecided"
    """No majority of the voters is there, or as many say the one as the other: nobody can say whose fault it is."""


class Held(NamedTuple):
    """A batch of one replica."""

    base_offset: int
    epoch: int


class ReplicaDamage(NamedTuple):
    """A place in a replica that is not a good batch."""

    why: str
    is_torn: bool
    """It may be what a crash left of the last write."""
    is_last: bool = False
    """No good batch follows it."""
    is_written: bool = True
    """Bytes lie there. Else a segment is missing, or goes on too far, which no crash leaves: each is synced before the
    next one is begun."""


@dataclass(slots=True)
class ReplicaLog:
    """One directory's log, and its verdict."""

    cluster_id: str | None
    node_id: int | None
    directory: str
    start_offset: int
    end_offset: int
    ids: Ids
    """Id of its batch at each base offset of the cluster."""
    bodies: Ids
    """Id of its batch whatever the epoch, which a batch's checksum does not cover."""
    sizes: Ids
    ends: Ids
    """End of the good batch that begins at each of these offsets; 0: there is none."""
    held: Ids
    """Base and last offset, and epoch, of its good batches; a row each, ascending in columns."""
    damage: dict[int, ReplicaDamage] = field(default_factory=dict)
    """Damage that readers found, by its offset."""
    snapshots: list[OffsetAndEpoch] = field(default_factory=list)
    """Ids of its good snapshots, ascending."""
    unreadable: str | None = None
    """Why nothing of it could be read; None: it was."""
    synced_end: int | None = None
    """All below it was synced, and may have been acknowledged; None: it does not say."""
    committed_end: int = 0
    """All below it was committed, as its own node knew."""
    is_mark_of_log: bool = True
    """Its durable mark names a place between two batches of this log, or names none."""
    last_epoch_start: int | None = None
    """The first offset of the last epoch that its leader-epoch-checkpoint has: it had what is before that once; None:
    the file has none, or is not there."""
    is_mark_lost: bool = False
    """Its directory had a durable mark once, and has none that can be read."""
    refused: str | None = None
    """Why a node does not start on the files that are there; None: it does, as far as they go."""
    not_started: str | None = None
    """Why a node does not start on what its directory has beside the log; None: it does, as far as that goes."""
    directory_id: str | None = None
    """Id under which its directory was formatted; None: nothing says it."""
    is_voter: bool = False
    no_vote: str | None = None
    """Why it has no vote though its node is a voter; None: it has one, or its node is none."""
    verdict: ReplicaVerdict = ReplicaVerdict.SAME
    offset: int | None = None
    why: str | None = None
    lost_begin: int | None = None
    """Its files begin there, above 0, and no good snapshot says what was before; None: all before them is known."""
    has_lost: bool = False
    """It ends below what it once had."""

    @property
    def is_trusted(self) -> bool:
        return self.verdict is not ReplicaVerdict.DIVERGENT

    @property
    def kept_end(self) -> int:
        """Below it a fault is no crash's: it had been acknowledged, or was in a snapshot."""
        return max(self.synced_end or 0, self.snapshot_end)

    @property
    def snapshot_end(self) -> int:
        """End of its newest good snapshot, exclusive; 0: it has none."""
        return self.snapshots[-1].offset if self.snapshots else 0

    @property
    def vouched(self) -> OffsetAndEpoch | None:
        """What its own node knew to be committed, by its last record; None: nothing, or what says so is not of this
        log, or beyond its end."""
        is_credible = self.is_mark_of_log and max(self.committed_end, self.synced_end or 0) <= self.end_offset
        held = self.batch_at(self.committed_end - 1) if is_credible and self.committed_end else None
        return None if held is None else OffsetAndEpoch(self.committed_end, held.epoch)

    @property
    def proven_end(self) -> int:
        """All below it was committed, as its newest good snapshot or its durable mark says; 0: neither does."""
        vouched = self.vouched
        return max(self.snapshot_end, 0 if vouched is None else vouched.offset)

    @property
    def known_start(self) -> int:
        """Where its log begins, if a snapshot stands for what was before; else 0: what was lost proves nothing."""
        return self.start_offset if self.lost_begin is None else 0

    def judge(self, verdict: ReplicaVerdict, offset: int, why: str | None) -> None:
        self.verdict, self.offset, self.why = verdict, offset, why

    def batch_at(self, offset: int) -> Held | None:
        """Return the batch that holds a record at that offset, if it is there and good."""
        base, last, epochs = self.held
        at = int(np.searchsorted(last, offset))
        if at == len(last) or base[at] > offset:
            return None
        return Held(int(base[at]), int(epochs[at]))

    def epochs_from(self, offset: int) -> frozenset[int]:
        """Return the epochs of its batches that end there or later."""
        return frozenset(self.held[2, self.held[1] >= offset].tolist())

    @property
    def last_position(self) -> int:
        """Position of the last thing that it has; -1: it has nothing."""
        return int(np.flatnonzero((self.ids != NOTHING) & (self.ids != ANYTHING)).max(initial=-1))

    @property
    def own_fault(self) -> str | None:
        """Its first damage, or that it holds nothing, whatever the others have; None: neither."""
        if self.damage:
            return self.damage[min(self.damage)].why
        return EMPTY if self.end_offset == 0 else None

    def why_not(self, offsets: Ids, position: int) -> str:
        """Return what it has there, in place of what others have."""
        if self.ids[position] == DAMAGED:
            return self.damage[int(offsets[position])].why
        return "it has no batch there" if self.ids[position] == NOTHING else "it has another batch there"


_STATED: Final = {
    "durable_offset": "synced_end",
    "committed_offset": "committed_end",
    "last_epoch_start": "last_epoch_start",
    "refused": "refused",
    "not_started": "not_started",
    "own_directory_id": "directory_id",
}
"""Columns of rows that name directories, and what they are of a replica, where a row states them."""


def replicas_of(batches: pa.Table, directory_rows: pa.Table) -> tuple[Ids, list[ReplicaLog]]:
    """Return the base offsets of the cluster's batches, ascending, and which replica has which batch there: each
    directory that any row names, the farthest first. `directory_rows`: rows that name directories, and may have
    `snapshot_offset` and `snapshot_epoch`, of a good snapshot, `begin_offset`, where its files begin, `durable_segment`
    and `durable_position`, where its durable mark is, `is_mark_lost`, and what `_STATED` has."""
    is_unreadable = _are_unreadable(batches)
    unreadable = batches.filter(is_unreadable).select(["cluster_id", "node_id", "directory", "error"]).to_pylist()
    batches = batches.filter(pc.invert(is_unreadable))
    rows = [*unreadable, *(row for row in directory_rows.to_pylist() if row["directory"])]
    offsets, found = _with_batches(batches) if batches.num_rows else (np.zeros(0, np.int64), [])
    found += _without(offsets, found, rows)
    by_directory = {each.directory: each for each in found}
    for row in rows:
        each = by_directory[row["directory"]]
        if row.get("snapshot_offset") is not None:
            each.snapshots.append(OffsetAndEpoch(row["snapshot_offset"], row["snapshot_epoch"]))
        if row.get("durable_offset") is not None:
            each.is_mark_of_log = _is_mark_of_log(batches, row)
        for column, name in _STATED.items():
            if row.get(column) is not None:
                setattr(each, name, row[column])
        if row.get("is_mark_lost"):
            each.is_mark_lost = True
    for row in unreadable:
        by_directory[row["directory"]].unreadable = f"{UNREADABLE}: {row['error']}"
    for row in rows:
        each, begin = by_directory[row["directory"]], row.get("begin_offset") or 0
        if begin and not any(snapshot.offset >= begin for snapshot in each.snapshots):
            each.lost_begin = begin
    for each in found:
        each.snapshots.sort()
    return offsets, sorted(found, key=_rank)


def _is_mark_of_log(batches: pa.Table, row: dict[str, Any]) -> bool:
    """Return whether a batch ends where a durable mark says that one does, or a segment begins there."""
    offset, segment, position = (row.get(f"durable_{name}") for name in ("offset", "segment", "position"))
    if position is None or (position == 0 and offset == segment):
        return True
    ends = pc.add(batches["position"], pc.cast(batches["size_bytes"], pa.int64()))
    is_there = pc.and_(pc.equal(batches["segment"], segment), pc.equal(ends, position))
    is_it = pc.and_(is_there, pc.equal(batches["last_offset"], (offset or 0) - 1))
    is_good = pc.and_(pc.equal(batches["directory"], row["directory"]), batches["error"].is_null())
    return bool(pc.any(pc.and_(is_good, is_it)).as_py())


def _rank(each: ReplicaLog) -> tuple[int, int, int, bytes, int, str]:
    """Rank of a replica: the farthest first, as votes are granted, then by what it holds. So the first of several
    replicas is the same one whatever directories are called; only of equal logs the name may decide."""
    last_epoch = int(each.held[2].max(initial=-1))
    node_id = -1 if each.node_id is None else each.node_id
    return -last_epoch, -each.end_offset, each.start_offset, each.ids.tobytes(), node_id, each.directory


def _are_unreadable(batches: pa.Table) -> pa.ChunkedArray:
    """Rows of what was not seen at all: a directory, or a segment's rest from somewhere on."""
    is_unseen = pc.and_(batches["base_offset"].is_null(), pc.equal(pc.fill_null(batches["size_bytes"], 0), 0))
    return pc.and_(batches["error"].is_valid(), pc.or_(batches["segment"].is_null(), is_unseen))


def _with_batches(batches: pa.Table) -> tuple[Ids, list[ReplicaLog]]:
    is_damaged = np.asarray(batches["error"].is_valid())
    names = ("base_offset", "last_offset", "epoch", "crc", "size_bytes")
    contents = np.stack([ints(batches[name]) for name in names])
    ids = _numbered(contents, is_damaged)
    bodies = _numbered(contents[[0, 1, 3, 4]], is_damaged)
    directories = batches["directory"].combine_chunks().dictionary_encode()
    owners = np.asarray(directories.indices)
    base = _bases(batches, is_damaged, owners)
    offsets = np.unique(base)
    found = []
    for number, directory in enumerate(directories.dictionary.to_pylist()):
        mine = np.flatnonzero(owners == number)
        first = batches.slice(int(mine[0]), 1).to_pylist()[0]
        good = mine[~is_damaged[mine]]
        held = contents[:3, good][:, np.argsort(contents[1, good], kind="stable")]
        start = int(base[mine].min())
        damage = _damage(batches.take(pa.array(mine)), base[mine], contents[1, mine], is_damaged[mine])
        placed = np.full(len(offsets), NOTHING, np.int64)
        sizes = np.zeros(len(offsets), np.int64)
        ends = np.zeros(len(offsets), np.int64)
        at = np.searchsorted(offsets, base[good])
        its_bodies = np.full(len(offsets), NOTHING, np.int64)
        placed[at], its_bodies[at], ends[at] = ids[good], bodies[good], contents[1, good] + 1
        at = np.searchsorted(offsets, base[mine])
        sizes[at] = ints(batches["size_bytes"])[mine]
        placed[_inside(offsets, held) & (placed == NOTHING)] = INSIDE
        # Where bytes were put in between, damage counts.
        placed[np.searchsorted(offsets, np.fromiter(damage, np.int64, len(damage)))] = DAMAGED
        placed[(offsets < start) & (placed == NOTHING)] = ANYTHING
        found.append(
            ReplicaLog(
                first["cluster_id"],
                first["node_id"],
                directory,
                start_offset=start,
                end_offset=int(held[1, -1]) + 1 if held.size else start,
                ids=placed,
                bodies=its_bodies,
                sizes=sizes,
                ends=ends,
                held=held,
                damage=damage,
            )
        )
    return offsets, found


def _numbered(contents: Ids, is_damaged: Flags) -> Ids:
    """One number for each content; contents are columns."""
    _, found = np.unique(contents, axis=1, return_inverse=True)
    return np.where(is_damaged, DAMAGED, found.reshape(-1)).astype(np.int64)


def _inside(offsets: Ids, held: Ids) -> Flags:
    """At which offsets a batch goes on that began earlier."""
    if not held.size:
        return np.zeros(len(offsets), np.bool_)
    at = np.searchsorted(held[1], offsets)
    last = np.minimum(at, held.shape[1] - 1)
    found: Flags = (at < held.shape[1]) & (held[0, last] < offsets)
    return found


def _damage(rows: pa.Table, base: Ids, last: Ids, is_damaged: Flags) -> dict[int, ReplicaDamage]:
    """Return the damage of one replica by itself, by offset; where there are several, the first. Two segments that both
    have an offset are damage, too."""
    segments, positions = ints(rows["segment"]), ints(rows["position"])
    claimed, sizes = ints(rows["base_offset"]), ints(rows["size_bytes"])
    order = np.lexsort((positions, segments))
    found: dict[int, ReplicaDamage] = {}
    end = overlapping = -1
    for at in order.tolist():
        offset = int(base[at])
        if is_damaged[at]:
            claim = int(claimed[at]) if claimed[at] >= 0 else None
            size, is_last = int(sizes[at]), bool(at == order[-1])
            is_torn = is_last and looks_torn(offset, claim, size)
            why = f"its bytes are damaged: {rows['error'][at].as_py()}"
            found.setdefault(offset, ReplicaDamage(why, is_torn, is_last, is_written=size > 0))
        elif offset < end and segments[at] != overlapping:
            overlapping = segments[at]
            text = f"segment {segments[at]} has offset {offset} again: an earlier one goes on to offset {end - 1}"
            found.setdefault(offset, ReplicaDamage(text, is_torn=False, is_written=False))
        end = max(end, int(last[at]) + 1)
    return found


def _without(offsets: Ids, others: Iterable[ReplicaLog], rows: Iterable[dict[str, Any]]) -> list[ReplicaLog]:
    """Return the replicas that are there, and have no batch."""
    known = {each.directory for each in others}
    begins = {row["directory"]: row["begin_offset"] for row in rows if row.get("begin_offset")}
    return [
        ReplicaLog(
            row["cluster_id"],
            row["node_id"],
            directory,
            start_offset=(begin := begins.get(directory, 0)),
            end_offset=begin,
            ids=np.where(offsets < begin, ANYTHING, NOTHING),
            bodies=np.full(len(offsets), NOTHING, np.int64),
            sizes=np.zeros(len(offsets), np.int64),
            ends=np.zeros(len(offsets), np.int64),
            held=np.zeros((3, 0), np.int64),
        )
        for directory, row in {row["directory"]: row for row in rows}.items()
        if directory not in known
    ]


def _bases(batches: pa.Table, is_damaged: Flags, owners: Ids) -> Ids:
    """Return where each row begins, as an offset. Of damage that is where what its replica has before it ends: the
    offset that damaged bytes claim may be anything, and no checksum covers it."""
    base, last = ints(batches["base_offset"]), ints(batches["last_offset"])
    segments, positions = ints(batches["segment"]), ints(batches["position"])
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
