"""A disk in memory that keeps durable and volatile bytes apart, for tests of the log alone.

A crash keeps, of what was not synced, whatever subset a callable chooses, sector by sector; directory entries likewise.
"""

import errno
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from fastquorum.errors import FsyncFailed, StorageFailed
from fastquorum.kernels import Buffer, SegmentFile

SECTOR = 64
"""Small, so that small logs tear in many places."""


@dataclass
class Inode:
    durable: bytearray = field(default_factory=bytearray)
    volatile: bytearray = field(default_factory=bytearray)
    dirty: set[int] = field(default_factory=set)
    """Sectors that differ."""

    def touch(self, start: int, end: int) -> None:
        self.dirty.update(range(start // SECTOR, (end + SECTOR - 1) // SECTOR))

    def sync(self) -> None:
        """Only dirty sectors are written: what was marked clean without reaching the disk never does."""
        del self.durable[len(self.volatile) :]
        self.durable.extend(bytes(len(self.volatile) - len(self.durable)))
        for sector in self.dirty:
            piece = self.volatile[sector * SECTOR : (sector + 1) * SECTOR]
            self.durable[sector * SECTOR : sector * SECTOR + len(piece)] = piece
        self.dirty.clear()

    def crash(self, chance: random.Random) -> None:
        survivor = bytearray(self.durable)
        if len(self.volatile) != len(self.durable) and chance.random() < 0.5:
            del survivor[len(self.volatile) :]
            survivor.extend(bytes(len(self.volatile) - len(survivor)))
        for sector in sorted(self.dirty):
            if chance.random() < 0.5:
                piece = self.volatile[sector * SECTOR : (sector + 1) * SECTOR]
                end = max(min(sector * SECTOR + len(piece), len(survivor)), sector * SECTOR)
                survivor[sector * SECTOR : end] = piece[: end - sector * SECTOR]
        self.durable = survivor
        self.volatile = bytearray(survivor)
        self.dirty.clear()


class FakeFile:
    def __init__(
        self, path: str, mode: Literal["create", "open", "read"] = "open", *, inode: Inode | None = None
    ) -> None:
        self._path = path
        self._mode = mode
        self.inode = inode or Inode()
        self._failed = False
        self.fail_sync = False

    @property
    def path(self) -> str:
        return self._path

    @property
    def size_bytes(self) -> int:
        return len(self.inode.volatile)

    @property
    def failed(self) -> bool:
        return self._failed

    def write(self, position: int, data: Buffer) -> None:
        assert self._mode != "read", f"write to {self._path}"
        content = self.inode.volatile
        end = position + len(data)
        if len(content) < end:
            content.extend(bytes(end - len(content)))
        content[position:end] = data
        self.inode.touch(position, end)

    def read(self, position: int, size_bytes: int) -> bytes:
        return bytes(self.inode.volatile[position : position + size_bytes])

    def read_into(self, position: int, buffer: bytearray | memoryview) -> int:
        data = self.read(position, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def zero_fill(self, start: int, end: int) -> None:
        self.write(start, bytes(max(end - start, 0)))

    def allocate(self, start: int, end: int) -> bool:
        FakeFile.write(self, start, bytes(max(end - start, 0)))
        return True

    def truncate(self, size_bytes: int) -> None:
        assert self._mode != "read", f"truncation of {self._path}"
        content = self.inode.volatile
        self.inode.touch(size_bytes, len(content))
        del content[size_bytes:]
        content.extend(bytes(size_bytes - len(content)))

    def sync(self) -> None:
        if self.fail_sync or self._failed:
            self._failed = True
            raise FsyncFailed(detail="injected", operation="sync", path=self._path, errno_code=5)
        self.inode.sync()

    def map(self) -> memoryview:
        return memoryview(bytes(self.inode.volatile))

    def fileno(self) -> int:
        return -1

    def close(self) -> None:
        pass


class FakeDisk:
    """Flat names, directories implied by `make_directory`."""

    root = "/fake"

    def __init__(self) -> None:
        self.entries: dict[str, Inode] = {}
        self.durable_entries: dict[str, Inode] = {}
        self.directories = {""}
        self.operations = 0
        self.crash_at = -1
        """Raise `Crashed` at this operation, to stop in the middle of something."""
        self.room_bytes: int | None = None
        self.fails_renames = False
        """How much more the files may hold together; None: as much as they like."""

    def open(self, name: str, mode: Literal["create", "open", "read"] = "open") -> SegmentFile:
        if mode != "read":
            self._step()
        if mode == "create":
            assert name not in self.entries, name
            self.take_room("open", name, 0)
            self.entries[name] = Inode()
        if name not in self.entries:
            raise StorageFailed(detail="no such file", operation="open", path=f"{self.root}/{name}", errno_code=2)
        return StepFile(self, f"{self.root}/{name}", mode, self.entries[name])

    def exists(self, name: str) -> bool:
        return name in self.entries or name in self.directories

    def list(self, directory: str = "") -> list[str]:
        prefix = f"{directory}/" if directory else ""
        inside = {name.removeprefix(prefix).split("/")[0] for name in self.entries if name.startswith(prefix)}
        return sorted(inside)

    def make_directory(self, directory: str) -> None:
        self.directories.add(directory)

    def rename(self, source: str, target: str) -> None:
        self._step()
        if self.fails_renames:
            raise StorageFailed(
                detail="I/O error", operation="rename", path=f"{self.root}/{source}", errno_code=errno.EIO
            )
        self.entries[target] = self.entries.pop(source)

    def remove(self, name: str) -> None:
        self._step()
        self.give_room(len(self.entries.pop(name).volatile))

    def sync_directory(self, directory: str = "") -> None:
        self._step()
        self.durable_entries = dict(self.entries)

    def read_file(self, name: str) -> bytes:
        return bytes(self.entries[name].volatile)

    def replace_file(self, name: str, data: bytes) -> None:
        self._step()
        if self.room_bytes is not None and self.room_bytes < len(data):
            raise self._full("write", name)
        self.take_room("write", name, len(data))
        if name in self.entries:
            self.give_room(len(self.entries[name].volatile))
        self.entries[name] = Inode(bytearray(data), bytearray(data))
        self._step()  # it is there, and its name is not synced
        self.durable_entries[name] = self.entries[name]

    def write_file(self, name: str, data: bytes) -> None:
        """For tests: put a file there, durably."""
        self.entries[name] = self.durable_entries[name] = Inode(bytearray(data), bytearray(data))

    def contents(self) -> dict[str, bytes]:
        return {name: bytes(inode.volatile) for name, inode in sorted(self.entries.items())}

    def copy(self) -> "FakeDisk":
        """Return a copy of the disk as it is now, everything durable."""
        disk = FakeDisk()
        for name, data in self.contents().items():
            disk.write_file(name, data)
        disk.directories = set(self.directories)
        return disk

    def crash(self, chance: random.Random) -> "FakeDisk":
        """The disk after a crash: synced bytes and names, and some of the others."""
        disk = FakeDisk()
        disk.directories = set(self.directories)
        for name in sorted({*self.entries, *self.durable_entries}):
            now, then = self.entries.get(name), self.durable_entries.get(name)
            inode = now if now is then or chance.random() < 0.5 else then
            if inode is None:
                continue
            survivor = Inode(bytearray(inode.durable), bytearray(inode.volatile), set(inode.dirty))
            survivor.crash(chance)
            disk.entries[name] = disk.durable_entries[name] = survivor
        return disk

    def take_room(self, operation: str, name: str, size_bytes: int) -> int:
        """For so many bytes, or fewer if there is not as much; StorageFailed if there is none."""
        if self.room_bytes is None:
            return size_bytes
        if self.room_bytes <= 0:
            raise self._full(operation, name)
        taken = min(size_bytes, self.room_bytes)
        self.room_bytes -= taken
        return taken

    def give_room(self, size_bytes: int) -> None:
        if self.room_bytes is not None:
            self.room_bytes += size_bytes

    def _full(self, operation: str, name: str) -> StorageFailed:
        path = f"{self.root}/{name}"
        return StorageFailed(detail="no space left", operation=operation, path=path, errno_code=errno.ENOSPC)

    def _step(self) -> None:
        self.operations += 1
        if self.operations == self.crash_at:
            raise Crashed


class Crashed(Exception):
    """The process ends here."""


class StepFile(FakeFile):
    """A file whose changes count as steps of its disk."""

    def __init__(self, disk: FakeDisk, path: str, mode: Literal["create", "open", "read"], inode: Inode) -> None:
        super().__init__(path, mode, inode=inode)
        self._disk = disk

    def write(self, position: int, data: Buffer) -> None:
        self._disk._step()
        wanted = max(position + len(data) - self.size_bytes, 0)
        taken = self._disk.take_room("write", self.path, wanted) if wanted else 0
        super().write(position, bytes(data)[: len(data) - wanted + taken])  # as pwrite does: what there is room for
        if taken < wanted:
            self._disk.take_room("write", self.path, 1)

    def allocate(self, start: int, end: int) -> bool:
        """Allocate like ext4: as much as there is room for, should there be too little."""
        self._disk._step()
        wanted = max(end - self.size_bytes, 0)
        room = self._disk.room_bytes
        taken = wanted if room is None else min(wanted, room)
        self._disk.give_room(-taken)
        super().allocate(start, end - wanted + taken)
        return taken == wanted

    def truncate(self, size_bytes: int) -> None:
        self._disk._step()
        self._disk.give_room(self.size_bytes - size_bytes)
        super().truncate(size_bytes)

    def sync(self) -> None:
        self._disk._step()
        super().sync()


class FakeFlusher:
    """A FlushPort whose syncs happen when the test says so."""

    def __init__(self) -> None:
        self.pending: list[tuple[int, tuple[SegmentFile, ...]]] = []
        self.failed = False

    def submit(self, token: int, files: Sequence[SegmentFile]) -> None:
        self.pending.append((token, tuple(files)))

    def run(self) -> int:
        """Sync the oldest one; its token."""
        token, files = self.pending.pop(0)
        for file in files:
            file.sync()
        return token
