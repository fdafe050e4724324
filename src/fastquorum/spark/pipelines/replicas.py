"""The replicas of a cluster side by side: which batch each of them has at every base offset of the cluster.

Two batches are the same if offsets, epoch, size and checksum are: each then has one number. Who is right is not known
here. Needs pyarrow and numpy, and no JVM.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

NOTHING: Final = -1
ANYTHING: Final = -2
"""In place of a batch that a replica no longer has: what a snapshot covers was committed."""
DAMAGED: Final = -3

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


@dataclass(slots=True)
class Replica:
    cluster_id: str | None
    node_id: int | None
    directory: str
    is_voter: bool
    start_offset: int
    end_offset: int
    ids: Ids
    """Of its batch at each base offset of the cluster."""
    sizes: Ids
    verdict: Verdict = Verdict.SAME
    offset: int | None = None
    why: str | None = None

    @property
    def is_trusted(self) -> bool:
        return self.verdict is not Verdict.DIVERGENT


def latest_voters(voters: pa.Table) -> frozenset[int]:
    """The ids of the set that begins last, in whatever replica knows it."""
    rows = [row for row in voters.to_pylist() if row["voter_id"] is not None]  # else it tells of damage
    if not rows:
        return frozenset()
    last = max(row["offset"] for row in rows)
    return frozenset(row["voter_id"] for row in rows if row["offset"] == last)


def voter_count(voters: pa.Table, replicas: Iterable[Replica]) -> int:
    """Where nobody says who votes, every replica that is there counts as a voter."""
    return len(latest_voters(voters)) or sum(each.is_voter for each in replicas)


def replicas_of(batches: pa.Table, voters: frozenset[int]) -> tuple[Ids, list[Replica]]:
    """The base offsets of the cluster's batches, ascending, and who has which batch there."""
    is_damaged = np.asarray(batches["error"].is_valid())
    contents = np.stack(
        [_numbers(batches, name) for name in ("base_offset", "last_offset", "epoch", "crc", "size_bytes")]
    )
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
        good = mine[~is_damaged[mine]]
        start = int(base[mine].min())
        end = int(_numbers(batches, "last_offset")[good].max()) + 1 if len(good) else start
        placed = np.full(len(offsets), NOTHING, np.int64)
        sizes = np.zeros(len(offsets), np.int64)
        at = np.searchsorted(offsets, base[mine])
        placed[at] = ids[mine]
        sizes[at] = _numbers(batches, "size_bytes")[mine]
        placed[offsets < start] = np.where(placed[offsets < start] == NOTHING, ANYTHING, placed[offsets < start])
        is_voter = not voters or first["node_id"] in voters
        found.append(Replica(first["cluster_id"], first["node_id"], directory, is_voter, start, end, placed, sizes))
    return offsets, sorted(found, key=lambda each: each.directory)


def empty_of(offsets: Ids, others: Sequence[Replica], voters: pa.Table) -> list[Replica]:
    """Those that are there, and have no batch."""
    ids, known = latest_voters(voters), {each.directory for each in others}
    none, sizes = np.full(len(offsets), NOTHING, np.int64), np.zeros(len(offsets), np.int64)
    rows = {row["directory"]: row for row in voters.to_pylist() if row["node_id"] is not None}
    return [
        Replica(row["cluster_id"], row["node_id"], path, not ids or row["node_id"] in ids, 0, 0, none, sizes)
        for path, row in rows.items()
        if path not in known
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
