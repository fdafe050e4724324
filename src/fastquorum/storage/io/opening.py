"""Opening what a path names, for tools: a data directory, its log directory, or one file of batches."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from fastquorum.controller.image.fold import Fold
from fastquorum.errnos import FULL, reason, remedy
from fastquorum.errors import DirectoryError, FsyncFailed, StorageFailed, UsageError
from fastquorum.kernels import Kernels
from fastquorum.storage.identity import is_formatted
from fastquorum.storage.images import fold_first_segment, fold_snapshot
from fastquorum.storage.io.disk import RealDisk, exists, refusals_named
from fastquorum.storage.io.lock import DirectoryLock
from fastquorum.storage.io.odd import check_not_odd
from fastquorum.storage.log.inspection import check_there
from fastquorum.storage.names import LOG_DIRECTORY, parse_checkpoint, parse_segment
from fastquorum.storage.offline import OfflineLog, StoredBatch, segment_batches, trim_log
from fastquorum.storage.verifying import Verification
from fastquorum.types import Offset

_MAGIC_POSITION: Final = 16
"""Position of the byte that says which version a batch has, the same in all versions."""
_MAGIC: Final = b"\x02"


def open_offline(path: str, kernels: Kernels) -> OfflineLog:
    """The log at a data directory or a log directory. Nothing is changed. DirectoryError."""
    disk = RealDisk.open_directory(path, kernels, writable=False)
    return OfflineLog(disk, kernels, _log_directory(disk))


def read_file_batches(path: str, kernels: Kernels) -> Iterator[StoredBatch]:
    """The batches of one `.log` or `.checkpoint` file."""
    check_holds_batches(path)
    directory, name = os.path.split(os.path.abspath(path))
    return segment_batches(RealDisk(directory, kernels, is_read_only=True), kernels, name, parse_segment(name) or 0)


def check_holds_batches(path: str) -> None:
    """DirectoryError if there is no such file, or neither its name nor its first bytes are of one that holds batches.

    A segment or a snapshot is one even if it is damaged; of what has another name, as a copy has, nobody can know.
    """
    if not exists(path):
        raise DirectoryError("there is no such file", path=path)
    if os.path.isdir(path):
        raise DirectoryError("is a directory, not a file", path=path)
    check_not_odd(path)
    name = os.path.basename(path)
    if parse_segment(name) is not None or parse_checkpoint(name) is not None:
        return
    try:
        with open(path, "rb") as file:
            start = file.read(_MAGIC_POSITION + 1)
    except OSError as error:
        raise DirectoryError(f"cannot be read: {reason(error)}", remedy(error.errno or 0), path) from error
    if start and start[_MAGIC_POSITION:] != _MAGIC:
        raise DirectoryError("holds no record batches", "name a segment, a snapshot, or the directory of a log", path)


def fold_file(path: str, kernels: Kernels, end_offset: Offset | None = None) -> Fold:
    """What one `.log` or `.checkpoint` file holds below end_offset (None: all), folded; whatever lies beside it.

    Raises:
        DirectoryError: there is no such file, or it is of another kind.
        UsageError: end_offset, for a snapshot that ends elsewhere.
        OffsetOutOfRange, ImageFailed, CorruptionError: as `storage.images.fold_log`; the first also for a segment that
            goes on with another.
    """
    directory, name = os.path.split(os.path.abspath(path))
    snapshot = parse_checkpoint(name)
    if snapshot is None or not exists(path):
        return fold_first_segment(read_file_batches(path, kernels), kernels, end_offset)
    if end_offset not in (None, snapshot.offset):
        raise UsageError(f"a snapshot holds one offset, {snapshot.offset}", "name the log's directory to see others")
    return fold_snapshot(OfflineLog(RealDisk(directory, kernels, is_read_only=True), kernels, ""), kernels, snapshot)


def trim_directory(path: str, kernels: Kernels) -> Verification:
    """Close a crashed data directory, under its lock. DirectoryError if it is in use; CorruptionError."""
    disk = RealDisk.open_directory(path, kernels)
    directory = _log_directory(disk)
    with held(disk.root if directory else os.path.dirname(disk.root)):
        return trim_log(disk, kernels, directory)


@contextmanager
def held(root: str) -> Iterator[None]:
    """While a command changes a data directory that no node may run on, and that it can change again: the directory's
    lock, and a DirectoryError where files may not be used or there is no room for them."""
    lock = DirectoryLock.acquire(root)
    try:
        with refusals_named():
            yield
    except StorageFailed as error:
        if error.errno_code not in FULL or isinstance(error, FsyncFailed):
            raise
        hint = f"{remedy(error.errno_code)}, and do it again"
        raise DirectoryError(f"{error.operation} failed: {error.detail}", hint, error.path) from error
    finally:
        lock.release()


def _log_directory(disk: RealDisk) -> str:
    """The log's directory below the disk's root; "" if the root is one itself."""
    if disk.exists(LOG_DIRECTORY):
        return LOG_DIRECTORY
    if any(parse_segment(name) is not None for name in disk.list()):
        return ""
    if is_formatted(disk):
        check_there(disk, LOG_DIRECTORY)
    raise DirectoryError(
        "there is no log here", f"expected a data directory with {LOG_DIRECTORY}, or that directory itself", disk.root
    )
