"""The real disk: one data directory, through `os` and the kernels' SegmentFile.

Directory operations are few and cold; only segment files are on the commit path. Every OSError becomes one of ours
here.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Final, Self

from fastquorum.errnos import reason, remedy
from fastquorum.errors import DirectoryError, DirectoryReplaced, FsyncFailed, StorageFailed
from fastquorum.kernels import Kernels, SegmentFile
from fastquorum.storage.io.odd import check_not_dangling, check_not_odd
from fastquorum.storage.io.reserve import DescriptorReserve
from fastquorum.storage.names import LOG_DIRECTORY, QUORUM_STATE, TEMPORARY_SUFFIX
from fastquorum.storage.ports import FileMode

_WRITTEN: Final = ("", LOG_DIRECTORY, QUORUM_STATE)
"""Directories whose files a start replaces, and what it writes in place. Recovery looks at the segments it keeps."""


class RealDisk:
    """A Disk over a directory of the file system.

    Files are opened by path. Before each, it is looked whether the directories are those that were there at first:
    another one that was put, or mounted, in their place is none of this replica's. DirectoryReplaced if so.
    """

    def __init__(self, root: str, kernels: Kernels, *, is_read_only: bool = False) -> None:
        """`is_read_only`: for tools that look at what nobody runs; what may not be read is then a DirectoryError."""
        self._root = os.path.abspath(root)
        self._kernels = kernels
        self._is_read_only = is_read_only
        self._places: dict[str, tuple[int, int]] = {}
        """Device and inode of each directory, since it was first used."""
        self._check_place(self._root)
        self._reserve = DescriptorReserve(0)

    def keep_descriptors(self) -> DescriptorReserve:
        """From now on keep some in reserve, for what is opened but new files: those can wait. To be closed."""
        self._reserve = DescriptorReserve()
        return self._reserve

    @classmethod
    def open_directory(cls, root: str, kernels: Kernels, *, create: bool = False, writable: bool = True) -> Self:
        """The disk of an existing directory, or one made here. DirectoryError if it cannot be used."""
        path = os.path.abspath(root)
        check_links(path)
        if create and not exists(path):
            try:
                os.makedirs(path)
                sync_directory(os.path.dirname(path))
            except OSError as error:
                hint = remedy(error.errno or 0)
                raise DirectoryError(f"cannot be created: {reason(error)}", hint, path) from error
        if not exists(path):
            raise DirectoryError("there is no such directory", path=path)
        if not os.path.isdir(path):
            raise DirectoryError("is not a directory", path=path)
        # As an open asks: by the effective user.
        if not os.access(path, os.R_OK | os.X_OK, effective_ids=True):
            raise DirectoryError("may not be read by this user", remedy(errno.EACCES), path)
        if writable:
            _check_writable(path)
        return cls(path, kernels, is_read_only=not writable)

    @property
    def root(self) -> str:
        return self._root

    def open(self, name: str, mode: FileMode = "open") -> SegmentFile:
        path = self._path(name)
        if mode != "create":
            check_not_odd(path)
        with refusals_named() if self._is_read_only else nullcontext():
            if mode == "create":
                return self._kernels.SegmentFile(path, mode)
            if os.path.isdir(path):  # which opens for reading, and fails when it is read
                detail = os.strerror(errno.EISDIR)
                raise StorageFailed(detail=detail, operation="open", path=path, errno_code=errno.EISDIR)
            return self._reserve.run(lambda: self._kernels.SegmentFile(path, mode))

    def exists(self, name: str) -> bool:
        """StorageFailed or DirectoryError where that cannot be told: what is there must not be taken for missing, and
        what a link leads to may be there tomorrow."""
        path = self._path(name)
        with self._mapped("stat", name):
            is_there = _is_there(path)
        check_not_odd(path)
        return is_there

    def list(self, directory: str = "") -> list[str]:
        with self._mapped("list", directory):
            try:
                return sorted(os.listdir(self._path(directory)))
            except FileNotFoundError:
                return []

    def make_directory(self, directory: str) -> None:
        with self._mapped("make_directory", directory):
            os.makedirs(self._path(directory), exist_ok=True)
        self.sync_directory(os.path.dirname(directory))

    def rename(self, source: str, target: str) -> None:
        with self._mapped("rename", source):
            os.rename(self._path(source), self._path(target))

    def remove(self, name: str) -> None:
        with self._mapped("remove", name):
            os.unlink(self._path(name))

    def sync_directory(self, directory: str = "") -> None:
        self._reserve.run(lambda: self._sync_directory(directory))

    def _sync_directory(self, directory: str) -> None:
        with (
            self._mapped("open", directory),
            _opened_directory(self._path(directory)) as fd,
            self._mapped("sync_directory", directory, FsyncFailed),
        ):
            os.fsync(fd)

    def read_file(self, name: str) -> bytes:
        check_not_odd(self._path(name))
        with self._mapped("read", name), open(self._path(name), "rb") as file:
            return file.read()

    def replace_file(self, name: str, data: bytes) -> None:
        self._reserve.run(lambda: self._replace_file(name, data))

    def _replace_file(self, name: str, data: bytes) -> None:
        path = self._path(name)
        temporary = path + TEMPORARY_SUFFIX
        # The directory is opened first: once the new file has its name, nothing may fail for want of a descriptor.
        with self._mapped("write", name), _opened_directory(os.path.dirname(path)) as directory:
            fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(fd, view) :]
                with self._mapped("sync", name, FsyncFailed):
                    os.fsync(fd)
            finally:
                os.close(fd)
            os.rename(temporary, path)
            with self._mapped("sync_directory", os.path.dirname(name), FsyncFailed):
                os.fsync(directory)

    def _path(self, name: str) -> str:
        assert ".." not in name.split("/"), name
        assert not name.startswith("/"), name
        self._check_place(self._root)
        if not name:
            return self._root
        path = os.path.join(self._root, name)
        if "/" in name:
            self._check_place(os.path.dirname(path))
        return path

    def _check_place(self, directory: str) -> None:
        if self._is_read_only:
            return  # of a log that a node runs, what was removed may be anew
        try:
            found = os.stat(directory)
        except OSError:
            return  # whoever uses it hears of it
        place = found.st_dev, found.st_ino
        if self._places.setdefault(directory, place) != place:
            raise DirectoryReplaced(detail="replaced", operation="open", path=directory, errno_code=errno.ESTALE)

    @contextmanager
    def _mapped(self, operation: str, name: str, kind: type[StorageFailed] = StorageFailed) -> Iterator[None]:
        try:
            yield
        except StorageFailed:
            raise
        except OSError as error:
            code = error.errno or errno.EIO
            failed = kind(detail=os.strerror(code), operation=operation, path=self._path(name), errno_code=code)
            if self._is_read_only and failed.is_refusal:
                raise _refused(failed) from error
            raise failed from error


def _check_writable(root: str) -> None:
    """DirectoryError unless this user may write all that a start writes, but for the segments: one that finds out in
    the middle has changed what was written before."""
    for name in _WRITTEN:
        path = os.path.join(root, name) if name else root
        needed = os.W_OK | os.X_OK if os.path.isdir(path) else os.W_OK
        if os.path.exists(path) and not os.access(path, needed, effective_ids=True):
            hint = "look at its owner and mode, and whether its file system is mounted read-write"
            raise DirectoryError("is read-only here", hint, path)


@contextmanager
def refusals_named() -> Iterator[None]:
    """While nothing is running on a directory, a file that may not be used is a DirectoryError: no disk has failed."""
    try:
        yield
    except StorageFailed as error:
        if error.is_refusal:
            raise _refused(error) from error
        raise


def _refused(error: StorageFailed) -> DirectoryError:
    return DirectoryError(f"{error.operation} failed: {error.detail}", remedy(error.errno_code), error.path)


def check_links(path: str) -> None:
    """Raise DirectoryError where `path`, or a directory that it is to be in, is a link to what is not there."""
    while not os.path.lexists(path) and (parent := os.path.dirname(path)) != path:
        path = parent
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        check_not_dangling(path)
    except OSError:
        pass  # `exists` names it


def exists(path: str) -> bool:
    """Is there a file or directory? DirectoryError where that cannot be told, as behind one that may not be entered."""
    try:
        return _is_there(path)
    except OSError as error:
        raise DirectoryError(f"cannot be looked at: {reason(error)}", remedy(error.errno or 0), path) from error


def _is_there(path: str) -> bool:
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def sync_directory(path: str) -> None:
    """Make the names in it durable. Raises OSError."""
    with _opened_directory(path) as fd:
        os.fsync(fd)


@contextmanager
def _opened_directory(path: str) -> Iterator[int]:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)
