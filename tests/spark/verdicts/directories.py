"""A quorum's replicas as data directories, as their nodes write them, and dressed in every way that changes nothing."""

import random
import shutil
from pathlib import Path
from typing import Final, NamedTuple

from fastquorum.storage.identity import LogKind
from fastquorum.storage.log.checkpoint import CheckpointTimes, encode_checkpoint
from fastquorum.storage.log.epochs import format_epochs
from fastquorum.storage.log.mark import LogPosition, Mark, encode_mark
from fastquorum.storage.names import (
    DURABLE_MARK,
    EPOCH_CHECKPOINT,
    LOG_DIRECTORY,
    META_PROPERTIES,
    OWN_PROPERTIES,
    checkpoint_name,
    segment_name,
)
from fastquorum.storage.properties import format_properties
from fastquorum.types import OffsetAndEpoch
from tests.spark.verdicts.quorum import BEGAN_MS, KERNELS, NO_OP, Node, Quorum, directory_id, node_id_of, voter_set

CLUSTER: Final = "c"
STRANGERS: Final = "another-cluster"
"""The cluster of a directory that lies among the others."""
_ENDLESS: Final = 1 << 62


class Written(NamedTuple):
    """A replica's directory."""

    node: Node
    path: Path

    @property
    def log(self) -> Path:
        return self.path / LOG_DIRECTORY

    @property
    def segments(self) -> list[Path]:
        return sorted(self.log.glob("*.log"))


class Layout(NamedTuple):
    """What the directories of a world have in common."""

    is_named: bool
    """meta.properties is there: else nothing says whose a directory is."""
    has_marks: bool
    has_epochs: bool = False
    """leader-epoch-checkpoint is there."""


def written(quorum: Quorum, root: Path, layout: Layout) -> list[Written]:
    """All replicas, and, where they can be told apart, the copies that were taken."""
    copies = quorum.copies if layout.is_named else []
    named = [(f"n{each.id}", each) for each in quorum.nodes.values()]
    named += [(f"copy{at}", each) for at, each in enumerate(copies)]
    found = [Written(node, root / name) for name, node in named]
    for each in found:
        write(quorum, each, layout)
    return found


def write(quorum: Quorum, replica: Written, layout: Layout, cluster_id: str = CLUSTER) -> None:
    node, log = replica.node, replica.log
    log.mkdir(parents=True)
    if layout.is_named:
        ids = f"node.id={node_id_of(node.id)}\ndirectory.id={directory_id(node.id)}\n"
        (replica.path / META_PROPERTIES).write_text(f"version=1\ncluster.id={cluster_id}\n{ids}")
    (replica.path / OWN_PROPERTIES).write_bytes(_own_properties(quorum))
    _write_snapshots(quorum, node, log)
    bases = [each for each in node.segments if each >= node.start]
    bases = bases if bases[:1] == [node.start] else [node.start, *bases]
    for base, end in zip(bases, [*bases[1:], _ENDLESS], strict=True):
        data = b"".join(each.data for each in node.batches if base <= each.base_offset < end)
        (log / segment_name(base)).write_bytes(data + (node.torn if end == _ENDLESS else b""))
    if layout.has_marks and node.mark_end > 0:
        base = max(each for each in bases if each <= node.mark_end)
        before = [each for each in node.batches if base <= each.base_offset and each.last_offset < node.mark_end]
        position = LogPosition(node.mark_end, base, sum(len(each.data) for each in before))
        (log / DURABLE_MARK).write_bytes(encode_mark(KERNELS, Mark(position, 0, node.start, node.committed)))

    if layout.has_epochs:
        began: dict[int, int] = {}
        for each in node.batches:
            began.setdefault(each.epoch, each.base_offset)
        (log / EPOCH_CHECKPOINT).write_bytes(format_epochs(list(began.items())))


def write_again(quorum: Quorum, replica: Written, layout: Layout) -> None:
    """Write a replica again as its node is by now."""
    shutil.rmtree(replica.path)
    write(quorum, replica, layout)


def _own_properties(quorum: Quorum) -> bytes:
    voters = () if quorum.is_dynamic else quorum.initial
    own = {
        "format.version": "1",
        "log.kind": quorum.kind,
        "topic.name": "t",
        "listener.name": "CONTROLLER",
        "kraft.version": str(int(quorum.is_dynamic)),
        "voters": ",".join(f"{each}@h{each}:9000" for each in voters),
    }
    return format_properties(own)


def _write_snapshots(quorum: Quorum, node: Node, log: Path) -> None:
    version = int(quorum.is_dynamic)
    kept = {end: (epoch, ids if version else None) for end, (epoch, ids) in node.snapshots.items()}
    if version and node.id in quorum.initial and node.start == 0:
        kept[0] = (0, quorum.initial)
    for end, (epoch, ids) in kept.items():
        times = CheckpointTimes(BEGAN_MS, BEGAN_MS, BEGAN_MS, last_contained_ms=BEGAN_MS if end else 0)
        voters = None if ids is None else voter_set(ids)
        data = encode_checkpoint(KERNELS, times, epoch=epoch, kraft_version=version, voters=voters)
        (log / checkpoint_name(OffsetAndEpoch(end, epoch))).write_bytes(data)


class Dressed(NamedTuple):
    """The same directories by other names."""

    paths: list[str]
    names: dict[str, str]
    """What each is really called, by what it is called now."""


def dressed(chance: random.Random, root: Path, replicas: list[Written], stranger: Written | None) -> Dressed:
    """By links with other names, in another order, one of them twice, and one of another cluster among them."""
    root.mkdir(parents=True)
    names: dict[str, str] = {}
    links = []
    for each in replicas:
        link = root / f"{chance.randrange(1 << 32):08x}"
        link.symlink_to(each.path)
        names[str(link)] = each.path.name
        links.append(str(link))
    links.append(chance.choice(links))
    if stranger is not None:
        links.append(str(stranger.path))
    chance.shuffle(links)
    return Dressed(links, names)


def of_stranger(quorum: Quorum, root: Path, layout: Layout) -> Written | None:
    """A replica of another cluster, which has the ids and the offsets of one of these, and other records."""
    if not layout.is_named:
        return None
    other = Written(Node(1), root / "stranger")
    write(quorum, other, layout, STRANGERS)
    value = NO_OP if quorum.kind is LogKind.METADATA else b"theirs"
    data = KERNELS.encode_values([value] * 3, base_offset=0, leader_epoch=1, timestamp_ms=BEGAN_MS)
    other.segments[0].write_bytes(data)
    return other


def emptied(root: Path) -> Path:
    """The place, with nothing there."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    return root
