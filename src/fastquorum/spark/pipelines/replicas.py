"""The replicas of a cluster side by side: which batch each of them has at every base offset of the cluster.

Two batches are the same if offsets, epoch, size and checksum are: each then has one number. Who is right is not known
here. Needs pyarrow and numpy, and no JVM.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastquorum.types import OffsetAndEpoch

NOTHING: Final = -1
ANYTHING: Final = -2
"""In place of a batch that a replica no longer has: what a snapshot covers was committed."""
DAMAGED: Final = -3
EMPTY: Final = "its log is empty"

Ids = npt.NDArray[np.int64]


class Verdict(StrEnum):
    """What a replica is."""

    SAME = "same"
    BEHIND = "behind"
    """The same, as far as it goes, which is less than what is committed."""
    TAIL = "uncommitted tail"
    DIVERGENT = "divergent"
    UNDECIDED = "undecided"
    """No majority of the voters' directories is there, or none agrees: nobody can say whose fault it is."""


class Held(NamedTuple):
    """A batch of one replica."""

    base_offset: int
    epoch: int


@dataclass(slots=True)
class Replica:
    """One directory's log, and what became of it."""

    cluster_id: str | None
    node_id: int | None
    directory: str
    is_voter: bool
    start_offset: int
    end_offset: int
    ids: Ids
    """Of its batch at each base offset of the cluster."""
    sizes: Ids
    held: Ids
    """Of its good batches: base and last offset, and epoch; a row each, ascending in columns."""
    damage: dict[int, str] = field(default_factory=dict)
    """What readers say of it: file and position, by the offset at which it lies."""
    snapshots: list[OffsetAndEpoch] = field(default_factory=list)
    """Ids of its good ones, ascending."""
    verdict: Verdict = Verdict.SAME
    offset: int | None = None
    why: str | None = None
    has_lost: bool = False
    """It ends below what it once had."""

    @property
    def is_trusted(self) -> bool:
        return self.verdict is not Verdict.DIVERGENT

    def accuse(self, offset: int, why: str) -> None:
        self.verdict, self.offset, self.why = Verdict.DIVERGENT, offset, why

    def batch_at(self, offset: int) -> Held | None:
        """The one that holds a record at that offset, if it is there and good."""
        base, last, epochs = self.held
        at = int(np.searchsorted(last, offset))
        if at == len(last) or base[at] > offset:
            return None
        return Held(int(base[at]), int(epochs[at]))

    @property
    def own_fault(self) -> str | None:
        """What is wrong with it whatever the others have: its first damage, or that there is nothing."""
        if self.damage:
            return _damaged(self.damage[min(self.damage)])
        return EMPTY if self.end_offset == 0 else None

    def why_not(self, offsets: Ids, position: int) -> str:
        """What it has there, in place of what others have."""
        if self.ids[position] == DAMAGED:
            return _damaged(self.damage[int(offsets[position])])
        return "it has no batch there" if self.ids[position] == NOTHING else "it has another batch there"


def _damaged(error: str) -> str:
    return f"its bytes are damaged: {error}"


def latest_voters(voters: pa.Table) -> frozenset[int]:
    """The ids of the set that begins last, in whatever replica knows it."""
    rows = [row for row in voters.to_pylist() if row["voter_id"] is not None]  # else it tells of damage
    if not rows:
        return frozenset()
    last = max(row["offset"] for row in rows)
    return frozenset(row["voter_id"] for row in rows if row["offset"] == last)


def voter_count(ids: frozenset[int], replicas: Iterable[Replica]) -> int:
    """Where nobody says who votes, every replica that is there counts as a voter."""
    return len(ids) or sum(each.is_voter for each in replicas)


def replicas_of(batches: pa.Table, told: pa.Table, voters: frozenset[int]) -> tuple[Ids, list[Replica]]:
    """The base offsets of the cluster's batches, ascending, and who has which batch there: of each directory that any
    row names. `told`: rows that name directories, and may say `snapshot_offset` and `snapshot_epoch`, of a good
    snapshot, or `begin_offset`, up to which a snapshot holds what is before the log."""
    rows = [row for row in told.to_pylist() if row["directory"]]
    offsets, found = _with_batches(batches, voters) if batches.num_rows else (np.zeros(0, np.int64), [])
    found += _without(offsets, found, rows, voters)
    by_directory = {each.directory: each for each in found}
    for row in rows:
        if row.get("snapshot_offset") is not None:
            snapshot = OffsetAndEpoch(row["snapshot_offset"], row["snapshot_epoch"])
            by_directory[row["directory"]].snapshots.append(snapshot)
    for each in found:
        each.snapshots.sort()
    return offsets, sorted(found, key=lambda each: each.directory)


def _with_batches(batches: pa.Table, voters: frozenset[int]) -> tuple[Ids, list[Replica]]:
    is_damaged = np.asarray(batches["error"].is_valid())
    names = ("base_offset", "last_offset", "epoch", "crc", "size_bytes")
    contents = np.stack([_numbers(batches, name) for name in names])
    _, ids = np.unique(contents, axis=1, return_inverse=True)
    ids = np.where(is_damaged, DAMAGED, ids.reshape(-1)).astype(np.int64)
    directories = batches["directory"].combine_chunks().dictionary_encode()
    owners = np.asarray(directories.indices)
    base = _bases(batches, is_damaged, owners)
    offsets = np.unique(base)
    found = []
    for number, directory in enumerate(directories.dictionary.to_pylist()):
        mine = np.flatnonzero(owners == number)
        first = batches.slice(int(mine[0]), 1).to_pylist()[0]
        mine = mine[np.argsort(is_damaged[mine], kind="stable")]  # where bytes were put in between, damage counts
        bad = mine[is_damaged[mine]]
        errors = zip(base[bad].tolist(), batches["error"].take(pa.array(bad)).to_pylist(), strict=True)
        held = contents[:3, mine[~is_damaged[mine]]]
        held = held[:, np.argsort(held[1], kind="stable")]
        start = int(base[mine].min())
        placed = np.full(len(offsets), NOTHING, np.int64)
        sizes = np.zeros(len(offsets), np.int64)
        at = np.searchsorted(offsets, base[mine])
        placed[at] = ids[mine]
        sizes[at] = _numbers(batches, "size_bytes")[mine]
        placed[offsets < start] = np.where(placed[offsets < start] == NOTHING, ANYTHING, placed[offsets < start])
        found.append(
            Replica(
                first["cluster_id"],
                first["node_id"],
                directory,
                is_voter=not voters or first["node_id"] in voters,
                start_offset=start,
                end_offset=int(held[1, -1]) + 1 if held.size else start,
                ids=placed,
                sizes=sizes,
                held=held,
                damage=dict(reversed(list(errors))),  # of several at one offset the first
            )
        )
    return offsets, found


def _without(
    offsets: Ids, others: Iterable[Replica], rows: Iterable[dict[str, Any]], voters: frozenset[int]
) -> list[Replica]:
    """Those that are there, and have no batch."""
    known = {each.directory for each in others}
    begins = {row["directory"]: row["begin_offset"] for row in rows if row.get("begin_offset") is not None}
    return [
        Replica(
            row["cluster_id"],
            row["node_id"],
            directory,
            is_voter=not voters or row["node_id"] in voters,
            start_offset=(begin := begins.get(directory, 0)),
            end_offset=begin,
            ids=np.where(offsets < begin, ANYTHING, NOTHING),
            sizes=np.zeros(len(offsets), np.int64),
            held=np.zeros((3, 0), np.int64),
        )
        for directory, row in {row["directory"]: row for row in rows}.items()
        if directory not in known
    ]


def _bases(batches: pa.Table, is_damaged: npt.NDArray[np.bool_], owners: Ids) -> Ids:
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


def _numbers(table: pa.Table, name: str) -> Ids:
    """A column as int64; -1 for null."""
    return np.asarray(table[name].fill_null(-1).cast(pa.int64()), np.int64)
