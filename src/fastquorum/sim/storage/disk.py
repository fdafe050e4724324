"""One node's data directory: files, names and their durability, and the faults a disk can show.

Implements `storage.ports.Disk`; its files look like `kernels.SegmentFile`. A name's creation, renaming or removal
is durable after a sync of its directory; a crash keeps a prefix of the changes that were not. Every call is a
point where the process may die.
"""

import errno
from typing import Final

from fastquorum.errors import FsyncFailed, StorageFailed
from fastquorum.kernels import Buffer
from fastquorum.sim.hazards import Hazards
from fastquorum.sim.prng import Prng
from fastquorum.sim.storage.inode import Inode
from fastquorum.storage.ports import FileMode

TEMPORARY: Final = ".tmp"


class DiskFaults:
    """The present faults of a disk; the nemesis sets them."""

    def __init__(self) -> None:
        self.failing_syncs = 0
        """The number of next syncs that fail with EIO."""
        self.failing_flushes = 0
        """The number of next syncs of the flusher that fail."""
        self.is_full = False
        self.sync_us = 100
        """Typical time of a sync, in microseconds."""
        self.sync_us_max = 1_000
        self.hung_until_us = -1
        """Time before which no sync ends; -1: the disk does not hang."""


class SimDisk:
    """A disk, which survives its process. `attach` gives it the hazards of the process that uses it now."""

    def __init__(self, node_id: int, prng: Prng, faults: DiskFaults) -> None:
        self.root = f"node-{node_id}"
        self.faults = faults
        self.entries: dict[str, Inode] = {}
        self._durable: dict[str, Inode] = {}
        self._changes: list[tuple[str, str, Inode | None]] = []
        """(directory, name, inode or None for a removal) not yet durable, in order."""
        self._directories: dict[str, None] = {"": None}
        self._prng = prng
        self._hazards: Hazards | None = None
        self.names_version = 0
        self.sync_failures = 0

    def attach(self, hazards: Hazards | None) -> None:
        self._hazards = hazards

    def crash(self) -> None:
        """Lose power: a prefix of the directory changes and any legal subset of the sectors remain."""
        keep = self._prng.randrange(len(self._changes) + 1)
        for _, name, inode in self._changes[:keep]:
            _put(self._durable, name, inode)
        self._changes.clear()
        self.entries = dict(self._durable)
        for name in sorted(self.entries):
            self.entries[name].crash(self._prng)
        self.names_version += 1

    def is_durable(self, name: str) -> bool:
        """Return whether this file would have its name after a crash now."""
        inode = self.entries.get(name)
        return (
            inode is not None and self._durable.get(name) is inode and all(name != each for _, each, _ in self._changes)
        )

    # --- storage.ports.Disk -------------------------------------------------------------------------------------------

    def open(self, name: str, mode: FileMode = "open") -> "SimFile":
        self.call("open", name)
        if mode == "create":
            if name in self.entries:
                raise StorageFailed(detail="exists", operation="open", path=self.path(name), errno_code=errno.EEXIST)
            self.refuse_full("open", name)
            inode = Inode()
            self._change(name, inode)
        elif name in self.entries:
            inode = self.entries[name]
        else:
            raise StorageFailed(detail="missing", operation="open", path=self.path(name), errno_code=errno.ENOENT)
        return SimFile(self, name, inode)

    def exists(self, name: str) -> bool:
        return name in self.entries or name in self._directories

    def list(self, directory: str = "") -> list[str]:
        prefix = f"{directory}/" if directory else ""
        return sorted(name[len(prefix) :] for name in self.entries if name.startswith(prefix))

    def make_directory(self, directory: str) -> None:
        self.call("make_directory", directory)
        self._directories[directory] = None

    def rename(self, source: str, target: str) -> None:
        self.call("rename", source)
        inode = self.entries[source]
        self._change(target, inode)
        self._change(source, None)

    def remove(self, name: str) -> None:
        self.call("remove", name)
        self._change(name, None)

    def sync_directory(self, directory: str = "") -> None:
        self.call("sync_directory", directory)
        self.refuse_sync("sync_directory", directory, None)
        rest = []
        for change in self._changes:
            if change[0] == directory:
                _put(self._durable, change[1], change[2])
            else:
                rest.append(change)
        self._changes = rest

    def read_file(self, name: str) -> bytes:
        self.call("read_file", name)
        return bytes(self.entries[name].data)

    def replace_file(self, name: str, data: bytes) -> None:
        temporary = name + TEMPORARY
        if temporary in self.entries:
            self.remove(temporary)
        file = self.open(temporary, "create")
        file.write(0, data)
        file.sync()
        self.rename(temporary, name)
        self.sync_directory(name.rpartition("/")[0])

    # --- inner --------------------------------------------------------------------------------------------------------

    def path(self, name: str) -> str:
        return f"{self.root}/{name}"

    def call(self, operation: str, name: str) -> None:
        if self._hazards is not None:
            self._hazards.port_call(f"{operation} {name}")

    def refuse_full(self, operation: str, name: str) -> None:
        if self.faults.is_full:
            code = errno.ENOSPC
            raise StorageFailed(detail="no space left", operation=operation, path=self.path(name), errno_code=code)

    def refuse_sync(self, operation: str, name: str, inode: Inode | None) -> None:
        """Fail if a sync is to fail now; then the content of the platter is unknown."""
        if self.faults.failing_syncs <= 0:
            return
        self.faults.failing_syncs -= 1
        self.sync_failures += 1
        self._report_failure()
        if inode is not None:
            inode.fail_sync(self._prng)
        raise FsyncFailed(detail="I/O error", operation=operation, path=self.path(name), errno_code=errno.EIO)

    def waited_for_sync(self) -> None:
        """Note that the caller's own thread waited for a sync."""
        if self._hazards is not None:
            self._hazards.blocked(self._prng.heavy_tail(self.faults.sync_us, self.faults.sync_us_max))

    def _report_failure(self) -> None:
        if self._hazards is not None:
            self._hazards.storage_failed()

    def _change(self, name: str, inode: Inode | None) -> None:
        self._changes.append((name.rpartition("/")[0], name, inode))
        _put(self.entries, name, inode)
        self.names_version += 1


class SimFile:
    """An open file; looks like `kernels.SegmentFile`."""

    def __init__(self, disk: SimDisk, name: str, inode: Inode) -> None:
        self.inode = inode
        self.name = name
        self._disk = disk
        self._failed = False
        self._closed = False

    @property
    def path(self) -> str:
        return self._disk.path(self.name)

    @property
    def size_bytes(self) -> int:
        return len(self.inode.data)

    @property
    def failed(self) -> bool:
        return self._failed

    def latch(self) -> None:
        """Note that a sync of this file failed elsewhere (the flusher's)."""
        self._failed = True

    def write(self, position: int, data: Buffer) -> None:
        self._before("write")
        if position + len(data) > len(self.inode.data):
            self._disk.refuse_full("write", self.name)
        self.inode.write(position, bytes(data))

    def read(self, position: int, size_bytes: int) -> bytes:
        self._disk.call("read", self.name)
        return bytes(self.inode.data[position : position + size_bytes])

    def read_into(self, position: int, buffer: bytearray | memoryview) -> int:
        data = self.read(position, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def zero_fill(self, start: int, end: int) -> None:
        if end <= start:
            return
        self._before("zero_fill")
        if end > len(self.inode.data):
            self._disk.refuse_full("zero_fill", self.name)
        self.inode.write(start, bytes(end - start))

    def allocate(self, start: int, end: int) -> bool:
        self._before("allocate")
        if end > len(self.inode.data) and self._disk.faults.is_full:
            return False
        self.inode.write(start, bytes(max(end - start, 0)))
        return True

    def truncate(self, size_bytes: int) -> None:
        self._before("truncate")
        self.inode.truncate(size_bytes)

    def sync(self) -> None:
        self._before("sync")
        try:
            self._disk.refuse_sync("sync", self.name, self.inode)
        except FsyncFailed:
            self._failed = True
            raise
        self.inode.sync(self.inode.changes)
        self._disk.waited_for_sync()

    def map(self) -> memoryview:
        return memoryview(bytes(self.inode.data))

    def fileno(self) -> int:
        return -1

    def close(self) -> None:
        self._closed = True

    def _before(self, operation: str) -> None:
        assert not self._closed, f"{operation} of the closed file {self.path}"
        self._disk.call(operation, self.name)
        if self._failed:
            code = errno.EIO
            raise StorageFailed(detail="a sync had failed", operation=operation, path=self.path, errno_code=code)


def _put(entries: dict[str, Inode], name: str, inode: Inode | None) -> None:
    if inode is None:
        entries.pop(name, None)
    else:
        entries[name] = inode
