"""What disks, people and bugs do to one replica's directory: each loss, and whether anything that is left proves it."""

import os
import random
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from fastquorum.storage.identity import LogKind
from fastquorum.storage.names import DURABLE_MARK, EPOCH_CHECKPOINT, OWN_PROPERTIES
from tests.spark.verdicts.directories import Layout, Written, write_again
from tests.spark.verdicts.quorum import BEGAN_MS, KERNELS, NO_OP, Batch, Node, Quorum

_EPOCH_AT: Final = 12
"""Position of the leader's epoch in a batch's header, which the checksum does not cover."""
_CHECKED_AT: Final = 21
"""Position from which on a checksum covers a batch's bytes."""
_LENGTH_AT: Final = 8


class Loss(NamedTuple):
    """What became of one replica."""

    replica: Written
    is_proven: bool
    """The replicas say so: one of them is not what a healthy quorum leaves."""
    breaks_promise: bool = False
    """And so does its log by itself."""
    crash_from: int | None = None
    """With `is_proven`: a crash may have left this from there on, so that it is proven only if more than that is called
    committed; None: no crash leaves it."""
    is_torn: bool = False
    """Nothing was lost: bytes lie behind the last batch, as after a crash."""


class Damaged(NamedTuple):
    """What a loss may look at."""

    chance: random.Random
    quorum: Quorum
    layout: Layout
    replica: Written
    all: list[Node]
    """Nodes of all directories."""

    @property
    def kept_end(self) -> int:
        """Below it the replica says itself what it once had: its mark, or a snapshot."""
        node = self.replica.node
        return max(node.mark_end if self.layout.has_marks else 0, *node.snapshots, 0)

    @property
    def has_mark(self) -> bool:
        return self.layout.has_marks and self.replica.node.mark_end > 0

    @property
    def last_epoch_start(self) -> int:
        """The first offset of the last epoch that the log has; 0: it has none."""
        batches = self.replica.node.batches
        return next((each.base_offset for each in batches if each.epoch == batches[-1].epoch), 0)

    def is_held_elsewhere(self, batch: Batch) -> bool:
        others = (each for each in self.quorum.nodes.values() if each is not self.replica.node)
        return any(each.start <= batch.base_offset and each.end > batch.last_offset for each in others)

    def is_stale(self, batch: Batch) -> bool:
        """Whether the log that goes farthest has something else there."""
        best = max(self.quorum.nodes.values(), key=lambda node: node.up_to_date)
        return best.start <= batch.base_offset < best.end and batch not in best.batches

    def write_over(self, batch: Batch, data: bytes) -> None:
        """In place of a batch."""
        for path in self.replica.segments:
            path.write_bytes(path.read_bytes().replace(batch.data, data))


def _both(world: Damaged, *, is_proven: bool) -> Loss:
    return Loss(world.replica, is_proven, breaks_promise=is_proven)


def _every_segment(world: Damaged, change: Callable[[Path], object]) -> None:
    for path in world.replica.segments:
        change(path)


def _zero(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def _empty(path: Path) -> None:
    path.write_bytes(b"")


# --- files ------------------------------------------------------------------------------------------------------------


def all_emptied(world: Damaged) -> Loss:
    _every_segment(world, _empty)
    return _nothing_left(world, world.replica.node.start)


def all_zeroed(world: Damaged) -> Loss:
    _every_segment(world, _zero)
    return _nothing_left(world, world.replica.node.start)


def all_removed(world: Damaged) -> Loss:
    _every_segment(world, Path.unlink)
    return _nothing_left(world, 0)


def _nothing_left(world: Damaged, begin: int) -> Loss:
    """Return the loss of a log that begins at `begin`, and is empty. Beside it the epochs that it had prove the loss,
    too, unless the last of them began at 0: then its first record may never have been synced."""
    is_kept = world.kept_end > begin
    has_epochs = world.layout.has_epochs and begin == 0 and world.last_epoch_start > 0
    return Loss(world.replica, is_proven=is_kept or has_epochs, breaks_promise=is_kept or has_epochs)


def first_removed(world: Damaged) -> Loss | None:
    first, *others = world.replica.segments
    if not others:
        return None
    first.unlink()
    return _both(world, is_proven=not any(end >= int(others[0].stem) for end in world.replica.node.snapshots))


def middle_removed(world: Damaged) -> Loss | None:
    inner = world.replica.segments[1:-1]
    if not inner:
        return None
    world.chance.choice(inner).unlink()
    return _both(world, is_proven=True)


def last_zeroed(world: Damaged) -> Loss:
    _zero(world.replica.segments[-1])
    return _both(world, is_proven=world.kept_end > int(world.replica.segments[-1].stem))


def last_removed(world: Damaged) -> Loss | None:
    *others, last = world.replica.segments
    if not others:
        return None
    last.unlink()
    return _both(world, is_proven=world.kept_end > int(last.stem))


def is_a_loop(world: Damaged) -> Loss:
    path = world.chance.choice(world.replica.segments)
    path.unlink()
    path.symlink_to(path)
    return _both(world, is_proven=True)


def links_to_nothing(world: Damaged) -> Loss:
    path = world.chance.choice(world.replica.segments)
    path.unlink()
    path.symlink_to(path.with_name("gone"))
    return _both(world, is_proven=True)


def is_a_directory(world: Damaged) -> Loss:
    path = world.chance.choice(world.replica.segments)
    path.unlink()
    path.mkdir()
    return _both(world, is_proven=True)


def log_removed(world: Damaged) -> Loss:
    shutil.rmtree(world.replica.log)
    return _both(world, is_proven=world.layout.is_named)


def all_but_meta_properties_removed(world: Damaged) -> Loss:
    """Remove all but meta.properties, as for a node of Kafka's whose log is gone."""
    (world.replica.path / OWN_PROPERTIES).unlink()
    return log_removed(world)


def formatted_anew(world: Damaged) -> Loss:
    """Nothing is left of what it had: it is as one that has just joined."""
    _every_segment(world, Path.unlink)
    for path in world.replica.log.glob("*.checkpoint"):
        path.unlink()
    for name in (DURABLE_MARK, EPOCH_CHECKPOINT):
        (world.replica.log / name).unlink(missing_ok=True)
    (world.replica.log / f"{0:020d}.log").touch()
    return Loss(world.replica, is_proven=False)


def older_put_back(world: Damaged) -> Loss | None:
    """A copy from some time ago, when nobody had told its node of anything committed. Where no majority of the voters
    is left that has what another's mark is of, or may have it, that proves the loss."""
    node = world.replica.node
    if node.start > 0 or not node.batches:
        return None
    node.cut(world.chance.choice([0, *(each.base_offset for each in node.batches)]))
    node.mark_end = node.high_watermark = 0
    node.snapshots = {}
    write_again(world.quorum, world.replica, world.layout)
    known = max((each for each in world.all if world.layout.has_marks), key=lambda each: each.committed, default=node)
    return Loss(world.replica, is_proven=not _may_be_on_majority(world, known))


def _may_be_on_majority(world: Damaged, known: Node) -> bool:
    """Whether so many voters as make a majority have what a node knows to be committed, or have no directory here; of
    the set that was in force there, or of one that it has heard of since."""
    end, epoch = known.committed, known.epoch_before(known.committed)
    sets = {known.voters(world.quorum.initial, end), known.voters(world.quorum.initial)}
    sets |= {each.voters for each in known.batches if each.voters is not None and each.base_offset >= end}
    holders = {
        each.id for each in world.all if each.epoch_before(end) == epoch or max(each.snapshots, default=0) >= end
    }
    absent = {voter for each in sets for voter in each} - {each.id for each in world.all}
    return any(len((holders | absent) & set(each)) > len(each) // 2 for each in sets)


def snapshots_removed(world: Damaged) -> Loss | None:
    node = world.replica.node
    if node.start == 0:
        return None
    for path in world.replica.log.glob("*.checkpoint"):
        path.unlink()
    return _both(world, is_proven=True)


# --- bytes ------------------------------------------------------------------------------------------------------------


def _flipped(world: Damaged, first_byte: int, end_byte: int | None) -> Loss | None:
    """One bit of a batch that others follow, or that was synced."""
    kept_end, batches = world.kept_end, world.replica.node.batches
    pool = [each for each in batches if each.last_offset < kept_end or each is not batches[-1]]
    if not pool:
        return None
    batch = world.chance.choice(pool)
    data = bytearray(batch.data)
    data[world.chance.randrange(first_byte, end_byte or len(data))] ^= 1 << world.chance.randrange(8)
    world.write_over(batch, bytes(data))
    return _damage_at(world, batch)


def _damage_at(world: Damaged, batch: Batch) -> Loss:
    """Behind its mark a crash may leave anything, the last segment's end above all, and without one behind all that is
    committed; and a stale tail is cut off."""
    is_kept = batch.last_offset < world.kept_end
    is_known = is_kept or not world.has_mark
    is_proven = is_known and (is_kept or not world.is_stale(batch))
    return Loss(world.replica, is_proven, is_known, crash_from=None if is_kept else batch.base_offset)


def body_flipped(world: Damaged) -> Loss | None:
    return _flipped(world, _CHECKED_AT, None)


def length_flipped(world: Damaged) -> Loss | None:
    return _flipped(world, _LENGTH_AT, _EPOCH_AT)


def offset_flipped(world: Damaged) -> Loss | None:
    return _flipped(world, 0, _LENGTH_AT)


def bytes_behind(world: Damaged) -> Loss:
    """Write bytes behind the log; nothing says what they are."""
    with world.replica.segments[-1].open("ab") as file:
        file.write(world.chance.randbytes(world.chance.choice((1, 37, 200))))
    return Loss(world.replica, is_proven=False, is_torn=True)


def _committed(world: Damaged) -> list[Batch]:
    """Return the batches that may be replaced. What a deposed leader has in place of committed records is not among
    them."""
    return [
        each
        for each in world.replica.node.batches
        if not each.is_control and each.last_offset < world.quorum.committed and not world.is_stale(each)
    ]


def other_bytes(world: Damaged) -> Loss | None:
    """Write other bytes of the same offsets and epoch."""
    pool = _committed(world)
    if not pool:
        return None
    batch = world.chance.choice(pool)
    value = NO_OP if world.quorum.kind is LogKind.METADATA else b"other"
    count = batch.last_offset - batch.base_offset + 1
    world.write_over(batch, _encoded(batch, batch.base_offset, [value] * count, BEGAN_MS - 77))
    return Loss(world.replica, is_proven=world.is_held_elsewhere(batch))


def other_boundaries(world: Damaged) -> Loss | None:
    pool = [each for each in _committed(world) if each.last_offset > each.base_offset]
    if not pool:
        return None
    batch = world.chance.choice(pool)
    values = [NO_OP if world.quorum.kind is LogKind.METADATA else b"other"] * (
        batch.last_offset - batch.base_offset + 1
    )
    cut = world.chance.randrange(1, len(values))
    parts = [(batch.base_offset, values[:cut]), (batch.base_offset + cut, values[cut:])]
    world.write_over(batch, b"".join(_encoded(batch, base, part, BEGAN_MS) for base, part in parts))
    return Loss(world.replica, is_proven=world.is_held_elsewhere(batch))


def _encoded(batch: Batch, base_offset: int, values: list[bytes], timestamp_ms: int) -> bytes:
    return KERNELS.encode_values(values, base_offset=base_offset, leader_epoch=batch.epoch, timestamp_ms=timestamp_ms)


def epoch_falls(world: Damaged) -> Loss | None:
    """A batch says an epoch below that of the one before."""
    batches = world.replica.node.batches
    pool = [each for before, each in pairwise(batches) if before.epoch > 0]
    if not pool:
        return None
    batch = world.chance.choice(pool)
    epoch = batch.epoch.to_bytes(4, "big")
    lower = (batches[batches.index(batch) - 1].epoch - 1).to_bytes(4, "big")
    assert batch.data[_EPOCH_AT : _EPOCH_AT + 4] == epoch
    world.write_over(batch, batch.data[:_EPOCH_AT] + lower + batch.data[_EPOCH_AT + 4 :])
    return _both(world, is_proven=True)


def truncated(world: Damaged) -> Loss | None:
    """Below what it says itself that it had."""
    pool = [each for each in world.replica.node.batches if each.last_offset < world.kept_end]
    if not pool:
        return None
    batch = world.chance.choice(pool)
    found = False
    for path in world.replica.segments:
        at = path.read_bytes().find(batch.data)
        if found:
            path.unlink()
        elif at >= 0:
            os.truncate(path, at)
            found = True
    return _both(world, is_proven=True)


def record_lost(world: Damaged) -> Loss | None:
    """A batch is gone, and those behind it are there."""
    batches = world.replica.node.batches[:-1]
    if not batches:
        return None
    batch = world.chance.choice(batches)
    world.write_over(batch, b"")
    return _damage_at(world, batch)


LOSSES: Final[tuple[Callable[[Damaged], Loss | None], ...]] = (
    all_emptied,
    all_zeroed,
    all_removed,
    first_removed,
    middle_removed,
    last_zeroed,
    last_removed,
    is_a_loop,
    links_to_nothing,
    is_a_directory,
    log_removed,
    all_but_meta_properties_removed,
    formatted_anew,
    older_put_back,
    snapshots_removed,
    body_flipped,
    length_flipped,
    offset_flipped,
    other_bytes,
    other_boundaries,
    epoch_falls,
    truncated,
    record_lost,
    bytes_behind,
)
