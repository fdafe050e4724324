"""Where logs lie: directories of this machine, or any object store that fsspec knows. Read only.

A store is found anew from a path wherever one is needed, on the driver and on each executor: nothing open travels.
"""

import glob
import os
import stat
from typing import Any, Final, NamedTuple, Protocol

from fastquorum.errnos import remedy
from fastquorum.errors import DirectoryError, UsageError
from fastquorum.storage.io.odd import check_not_odd, dangling, odd_file

_SCHEME: Final = "://"
_LOCAL: Final = "file://"


class Entry(NamedTuple):
    """Something in a directory."""

    name: str
    path: str
    size_bytes: int
    is_directory: bool
    error: DirectoryError | None = None
    """Why it is never opened, as a link to nowhere, a FIFO, what may not be read. None: it is a file or directory."""
    may_be_directory: bool = False
    """With an `error`: a directory may lie behind it."""


class Store(Protocol):
    """Reads by path. Every failure is a DirectoryError that names it."""

    def expand(self, pattern: str) -> list[str]:
        """Return the paths that a glob fits, sorted."""

    def entries(self, path: str) -> list[Entry]:
        """Return a directory's entries, by name. DirectoryError if it is not a directory."""

    def real(self, path: str) -> str:
        """Return the path without links, as far as the store can tell."""

    def unseen(self, path: str) -> DirectoryError | None:
        """Return why it is not known what lies at a path that may be a directory. None also if nothing lies there."""

    def size(self, path: str) -> int:
        """Return a file's size in bytes, as it is now."""

    def read(self, path: str, start: int = 0, size_bytes: int = -1) -> bytes:
        """Read up to `size_bytes` bytes of a file from `start` on, fewer only at its end; -1: all that follow.
        DirectoryError if it is not a file."""

    def read_named(self, path: str) -> bytes:
        """Read all of a file that a user named, which may be a pipe."""


def store_of(path: str) -> Store:
    """Return the store that a path belongs to. UsageError if nothing reads it."""
    return LocalStore() if _SCHEME not in plain(path) else RemoteStore(path)


def plain(path: str) -> str:
    """Without the scheme, if it is of this machine."""
    return path.removeprefix(_LOCAL)


class LocalStore:
    """Directories of this machine."""

    def expand(self, pattern: str) -> list[str]:
        return sorted(glob.glob(plain(pattern)))

    def entries(self, path: str) -> list[Entry]:
        try:
            with os.scandir(path) as found:
                entries = [self._entry(each) for each in found]
        except OSError as error:
            raise _unreadable(path, error) from error
        return sorted(each for each in entries if each is not None)

    def _entry(self, found: "os.DirEntry[str]") -> Entry | None:
        """None if it was removed meanwhile, as a running node removes what it no longer needs."""
        try:
            status = found.stat()
        except OSError as error:
            why = _unseen(found.path, error)
            return None if why is None else Entry(found.name, found.path, 0, False, why, True)
        is_directory = stat.S_ISDIR(status.st_mode)
        return Entry(found.name, found.path, status.st_size, is_directory, odd_file(found.path, status.st_mode))

    def real(self, path: str) -> str:
        return os.path.realpath(path)

    def unseen(self, path: str) -> DirectoryError | None:
        try:
            os.stat(path)
        except OSError as error:
            return _unseen(path, error)
        return None

    def size(self, path: str) -> int:
        try:
            return os.stat(path).st_size
        except OSError as error:
            raise _unreadable(path, error) from error

    def read(self, path: str, start: int = 0, size_bytes: int = -1) -> bytes:
        check_not_odd(path)
        return self._read(path, start, size_bytes)

    def read_named(self, path: str) -> bytes:
        return self._read(path, 0, -1)

    def _read(self, path: str, start: int, size_bytes: int) -> bytes:
        try:
            with open(path, "rb", buffering=0) as file:
                if start:  # what somebody named may be a pipe
                    file.seek(start)
                return file.read(size_bytes) if size_bytes >= 0 else file.readall()
        except OSError as error:
            raise _unreadable(path, error) from error


class RemoteStore:
    """What fsspec reads: s3://, gs://, memory://, ..."""

    def __init__(self, path: str) -> None:
        try:
            import fsspec
        except ImportError as error:
            raise UsageError(f"{path} needs fsspec", "pip install 'fastquorum[spark]'") from error
        scheme = path.partition(_SCHEME)[0]
        try:
            self._files: Any = fsspec.filesystem(scheme)
        except (ValueError, ImportError) as error:
            raise UsageError(f"nothing here reads {scheme}{_SCHEME}", str(error)) from error
        self._scheme = scheme

    def expand(self, pattern: str) -> list[str]:
        try:
            found = self._now.glob(pattern)
        except (OSError, ValueError) as error:
            raise _unreadable(pattern, error) from error
        return sorted(self._whole(each) for each in found)

    def entries(self, path: str) -> list[Entry]:
        try:
            found = self._now.ls(path, detail=True)
        except (OSError, ValueError) as error:
            raise _unreadable(path, error) from error
        # Paths go on from the one that was asked for: stores spell their own differently.
        root, itself = path.rstrip("/"), str(self._files._strip_protocol(path)).strip("/")
        named = [(each["name"].strip("/"), each) for each in found]
        return sorted(
            Entry(_last(name), f"{root}/{_last(name)}", each["size"] or 0, each["type"] == "directory")
            for name, each in named
            if name != itself
        )

    def real(self, path: str) -> str:
        return path

    def unseen(self, path: str) -> DirectoryError | None:
        return None

    def size(self, path: str) -> int:
        try:
            return int(self._now.size(path))
        except (OSError, ValueError) as error:
            raise _unreadable(path, error) from error

    def read(self, path: str, start: int = 0, size_bytes: int = -1) -> bytes:
        try:
            end = None if size_bytes < 0 else start + size_bytes
            return bytes(self._files.cat_file(path, start=start, end=end))
        except (OSError, ValueError) as error:
            raise _unreadable(path, error) from error

    def read_named(self, path: str) -> bytes:
        return self.read(path)

    @property
    def _now(self) -> Any:
        """Without what it remembers of an earlier look: it outlives this store, and a log grows."""
        self._files.invalidate_cache()
        return self._files

    def _whole(self, name: str) -> str:
        return name if _SCHEME in name else f"{self._scheme}{_SCHEME}{name}"


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def as_named(error: DirectoryError, hint: str) -> DirectoryError:
    """Return the error of a path that a user named: if it is not there, it was not removed meanwhile."""
    is_missing = isinstance(error.__cause__, FileNotFoundError) and not os.path.islink(error.path)
    return DirectoryError("is not there", hint, error.path) if is_missing else error


def _unseen(path: str, error: OSError) -> DirectoryError | None:
    """Return why it is not known what lies there; None if nothing does."""
    is_gone = isinstance(error, FileNotFoundError) and not os.path.islink(path)
    return None if is_gone else _unreadable(path, error)


def _unreadable(path: str, error: Exception) -> DirectoryError:
    if isinstance(error, FileNotFoundError | NotADirectoryError) and os.path.islink(path) and not os.path.exists(path):
        return dangling(path)
    if isinstance(error, FileNotFoundError):
        return DirectoryError("is not there", "was it removed meanwhile, by retention or by hand?", path)
    if isinstance(error, NotADirectoryError):
        return DirectoryError("is a file", "name a data directory, a log directory, or one with such below it", path)
    if isinstance(error, PermissionError):
        return DirectoryError("may not be read", "run this as a user who may, or change its permissions", path)
    hint = remedy(error.errno or 0) if isinstance(error, OSError) else ""
    return DirectoryError(f"cannot be read: {error}", hint, path)
