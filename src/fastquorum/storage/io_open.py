"""Opening what a path names, for tools: a data directory, its log directory, or one file of batches."""

import os
from collections.abc import Iterator

from fastquorum.controller.image.fold import Fold
from fastquorum.errors import DirectoryError, UsageError
from fastquorum.kernels import Kernels
from fastquorum.storage.images import fold_first_segment, fold_snapshot
from fastquorum.storage.io_disk import RealDisk
from fastquorum.storage.io_lock import DirectoryLock
from fastquorum.storage.names import LOG_DIRECTORY, parse_checkpoint, parse_segment
from fastquorum.storage.offline import OfflineLog, StoredBatch, Verification, segment_batches, trim_log
from fastquorum.types import Offset


def open_offline(path: str, kernels: Kernels) -> OfflineLog:
    """The log at a data directory or a log directory. Nothing is changed. DirectoryError."""
    disk = RealDisk.open_directory(path, kernels, writable=False)
    return OfflineLog(disk, kernels, _log_directory(disk))


def read_file_batches(path: str, kernels: Kernels) -> Iterator[StoredBatch]:
    """The batches of one `.log` or `.checkpoint` file."""
    directory, name = os.path.split(os.path.abspath(path))
    if not os.path.isfile(path):
        raise DirectoryError("there is no such file", path=path)
    return segment_batches(RealDisk(directory, kernels), kernels, name, parse_segment(name) or 0)


def fold_file(path: str, kernels: Kernels, end_offset: Offset | None = None) -> Fold:
    """What one `.log` or `.checkpoint` file holds below end_offset (None: all), folded; whatever lies beside it.

    Raises:
        DirectoryError: there is no such file.
        UsageError: end_offset, for a snapshot that ends elsewhere.
        OffsetOutOfRange, ImageFailed, CorruptionError: as `storage.images.fold_log`; the first also for a segment that
            goes on with another.
    """
    directory, name = os.path.split(os.path.abspath(path))
    snapshot = parse_checkpoint(name)
    if snapshot is None or not os.path.isfile(path):
        return fold_first_segment(read_file_batches(path, kernels), kernels, end_offset)
    if end_offset not in (None, snapshot.offset):
        raise UsageError(f"a snapshot holds one offset, {snapshot.offset}", "name the log's directory to see others")
    return fold_snapshot(OfflineLog(RealDisk(directory, kernels), kernels, ""), kernels, snapshot)


def trim_directory(path: str, kernels: Kernels) -> Verification:
    """Close a crashed data directory, under its lock. DirectoryError if it is in use; CorruptionError."""
    disk = RealDisk.open_directory(path, kernels)
    directory = _log_directory(disk)
    lock = DirectoryLock.acquire(disk.root if directory else os.path.dirname(disk.root))
    try:
        return trim_log(disk, kernels, directory)
    finally:
        lock.release()


def _log_directory(disk: RealDisk) -> str:
    """The log's directory below the disk's root; "" if the root is one itself."""
    if disk.exists(LOG_DIRECTORY):
        return LOG_DIRECTORY
    if any(parse_segment(name) is not None for name in disk.list()):
        return ""
    raise DirectoryError(
        "there is no log here", f"expected a data directory with {LOG_DIRECTORY}, or that directory itself", disk.root
    )
