"""A quorum whose nodes go on while their directories are read: something happens just before any one read of a file."""

import os
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fastquorum.spark.stored.stores import LocalStore
from fastquorum.storage.identity import LogKind
from tests.spark.verdicts.directories import Layout, Written, write, written
from tests.spark.verdicts.quorum import Node, Quorum

_LAYOUT = Layout(is_named=True, has_marks=True)
_BATCHES = 16
_SNAPSHOT_AT = 6
_ROLLED_AT = (4, 8, 12)


class Live:
    """Three replicas that hold the same, of which the first one's node goes on."""

    def __init__(self, root: Path) -> None:
        self.quorum = quorum = Quorum(random.Random(1))
        quorum.kind, quorum.is_dynamic, quorum.initial = LogKind.METADATA, False, (1, 2, 3)
        quorum.nodes = {each: Node(each) for each in quorum.initial}
        while quorum.leader is None:
            quorum.elect()
        for _ in range(_BATCHES):
            quorum.append()
        quorum.flush()
        for each in quorum.nodes.values():
            each.batches = list(quorum.leader.batches)
            each.flushed_end = each.mark_end = each.high_watermark = each.end
            each.segments = [0, *(each.batches[at].base_offset for at in _ROLLED_AT)]
            self._take_snapshot(each, _SNAPSHOT_AT)
        self.root = root / "live"
        self._scratch = root / "scratch"
        self.replicas = written(quorum, self.root, _LAYOUT)
        self.first = self.replicas[0]

    def _take_snapshot(self, node: Node, at: int) -> None:
        end = node.batches[at].base_offset
        node.snapshots[end] = (node.epoch_before(end) or 0, self.quorum.initial)

    def retain(self) -> None:
        """A snapshot is taken, and what it is of, removed."""
        node = self.first.node
        self._take_snapshot(node, _ROLLED_AT[-1] + 1)
        node.drop_before(node.segments[-1], self.quorum.initial)
        self._write()

    def append_and_roll(self) -> None:
        """The leader appends to all; the first one rolls in between."""
        node = self.first.node
        self.quorum.append()
        assert self.quorum.leader is not None
        node.segments.append(node.end)
        if node is not self.quorum.leader:
            node.batches.append(self.quorum.leader.batches[-1])
        self._write()

    def append_to_all(self) -> None:
        """All of them roll, hold one more batch, and know that it is committed."""
        self.quorum.append()
        assert self.quorum.leader is not None
        for node in self.quorum.nodes.values():
            node.segments.append(node.end)
            if node is not self.quorum.leader:
                node.batches.append(self.quorum.leader.batches[-1])
            node.flushed_end = node.mark_end = node.high_watermark = node.end
        for each in self.replicas:
            self._write(each)

    def cut_off(self) -> None:
        """A new leader has the first one cut off its end, which it had synced."""
        node = self.first.node
        node.cut(node.batches[_ROLLED_AT[-1] - 2].base_offset)
        self._write()

    def depose_first(self) -> None:
        """The first one leads, appends what nobody else gets, and is deposed: it has a stale tail, which it synced, as
        its mark says. The others have committed more since."""
        node = self.first.node
        second, third = (each.node for each in self.replicas[1:])
        self._lead(node, appends=1)
        node.mark_end = node.flushed_end = node.end
        self._lead(second, appends=_BATCHES)
        for _ in range(2):
            self.quorum.flush()
            self.quorum.replicate(third, 2 * _BATCHES)
        second.mark_end, third.mark_end = second.flushed_end, third.flushed_end
        for each in self.replicas:
            self._write(each)

    def _lead(self, node: Node, appends: int) -> None:
        while self.quorum.leader is not node:
            self.quorum.elect(node)
        for _ in range(appends):
            self.quorum.append()

    def cut_off_stale_tail(self) -> None:
        """The first one follows: it has fetched nothing yet."""
        node = self.first.node
        node.cut(node.high_watermark)
        self._write()

    def catch_up(self) -> None:
        """The first one fetches all that the others have, and its mark says that it has synced that."""
        node = self.first.node
        self.quorum.replicate(node, 2 * _BATCHES)
        node.mark_end = node.flushed_end
        self._write()

    def _write(self, replica: Written | None = None) -> None:
        """What came first, what went last, as nodes do it; but a mark is lowered before its log is cut off."""
        replica = replica or self.first
        shutil.rmtree(self._scratch, ignore_errors=True)
        now = Written(replica.node, self._scratch / "now")
        write(self.quorum, now, _LAYOUT)
        names = sorted(each.name for each in now.log.iterdir())
        for name in sorted(names, key=lambda each: each.endswith(".log")):
            os.replace(now.log / name, replica.log / name)
        for path in replica.log.iterdir():
            if path.name not in names:
                path.unlink()


@contextmanager
def happening_before_read(number: int, happening: Callable[[], None], *, again: bool = False) -> Iterator[list[int]]:
    """Whatever reads files of this machine meets it there, counted from 0, once; or `again` after each so many more.
    Gives the numbers of all reads."""
    reads: list[int] = []
    read = LocalStore._read

    def counted(self: LocalStore, path: str, start: int, size_bytes: int) -> bytes:
        reads.append(len(reads))
        if len(reads) == number + 1 or (again and len(reads) % (number + 1) == 0):
            happening()
        return read(self, path, start, size_bytes)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalStore, "_read", counted)
        yield reads
