"""A store as the disk that `storage` reads from: what verifies and folds logs reads them wherever they lie."""

from typing import Any, cast

from fastquorum.errors import CorruptionError, DirectoryError, FastQuorumError
from fastquorum.kernels import SegmentFile, load
from fastquorum.spark.stored.logs import FoundLog
from fastquorum.spark.stored.stores import Store, store_of
from fastquorum.storage import names
from fastquorum.storage.log.epochs import parse_epochs
from fastquorum.storage.log.mark import Mark, read_mark
from fastquorum.storage.log.scanning import EPOCH_MAX
from fastquorum.storage.ports import Disk
from fastquorum.types import OFFSET_MAX


class StoreFile:
    """One file, as long as it is now."""

    def __init__(self, store: Store, path: str) -> None:
        self._store = store
        self.path = path
        self.size_bytes = store.size(path)

    def read(self, position: int, size_bytes: int) -> bytes:
        return self._store.read(self.path, position, size_bytes)

    def read_into(self, position: int, buffer: bytearray | memoryview) -> int:
        data = self.read(position, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Nothing is open."""


class StoreDisk:
    """A data directory, or a log directory, of a store."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._store = store_of(root)

    def open(self, name: str, mode: str = "read") -> StoreFile:
        assert mode == "read", "nothing is written here"
        return StoreFile(self._store, f"{self.root}/{name}")

    def exists(self, name: str) -> bool:
        if not name:
            return bool(self.list())  # an object store has no empty directories
        directory, _, last = name.rpartition("/")
        return last in self.list(directory)

    def list(self, directory: str = "") -> list[str]:
        try:
            found = self._store.entries(f"{self.root}/{directory}" if directory else self.root)
        except DirectoryError:
            return []
        return [each.name for each in found]

    def read_file(self, name: str) -> bytes:
        return self._store.read(f"{self.root}/{name}")


def disk_of(log: FoundLog) -> tuple[Disk, str]:
    """Return the disk of a log's directory, and the log's directory on it."""
    inside = log.log_directory.removeprefix(log.directory).strip("/")
    # It lacks what writes, which no reader asks for.
    return cast(Disk, cast(Any, StoreDisk(log.directory))), inside


def durable_mark_of(log: FoundLog) -> Mark | None:
    """Return the mark that lies beside a log by now; None: none was found with it, or it cannot be read."""
    if log.entry(names.DURABLE_MARK) is None:
        return None
    disk, inside = disk_of(log)
    try:
        return read_mark(disk, load("native"), inside)
    except FastQuorumError:
        return None  # table `files` says what is wrong with it


def epochs_of(log: FoundLog) -> list[tuple[int, int]]:
    """Return what `leader-epoch-checkpoint` says beside a log by now: epochs, each with its first offset. None are
    there if the file was not when the log was found, or cannot be read."""
    try:
        return read_epochs(log)
    except FastQuorumError:
        return []  # tables `epochs` and `files` say what is wrong with it


def read_epochs(log: FoundLog) -> list[tuple[int, int]]:
    """Read `leader-epoch-checkpoint` as `epochs_of` does. CorruptionError, DirectoryError."""
    entry = log.entry(names.EPOCH_CHECKPOINT)
    if entry is None:
        return []
    disk, inside = disk_of(log)
    entries = parse_epochs(disk.read_file(names.join(inside, names.EPOCH_CHECKPOINT)), entry.path)
    if any(not 0 <= epoch <= EPOCH_MAX or not 0 <= start <= OFFSET_MAX for epoch, start in entries):
        raise CorruptionError("epoch_checkpoint", path=entry.path)
    return entries


def file_of(path: str) -> SegmentFile:
    return cast(SegmentFile, cast(Any, StoreFile(store_of(path), path)))
