"""One process, one handle, one data directory: Kafka's `.lock` plus a registry inside the process.

The lock is a POSIX (fcntl) write lock on the whole file, as Java's FileChannel takes it, so Kafka and fastquorum
exclude each other. Such locks do not exclude their own process, and closing any descriptor of the file drops them:
hence the registry. What two data directories may share has a lock of its own (flock): the log's directory may be
reached through a link, the files of a copy may be hard links, and `.lock` may be removed while it is held; a file
system that has no such locks does without. Nothing may be locked so that is the same in other nodes' directories:
tools that save room make one file of equal ones. A directory whose disk failed stays condemned until the process ends,
because the page cache may hold what the disk does not (README, decision 3).
"""

import errno
import fcntl
import os
import stat
import threading
from contextlib import suppress
from typing import Final

from fastquorum.errnos import reason, remedy
from fastquorum.errors import DirectoryError
from fastquorum.storage.io.odd import check_not_odd
from fastquorum.storage.names import LOCK, LOG_DIRECTORY, META_PROPERTIES, QUORUM_STATE

_HELD: Final = (errno.EACCES, errno.EAGAIN)
"""Another process has a lock that conflicts."""

_SHARED: Final = (LOG_DIRECTORY, META_PROPERTIES, QUORUM_STATE)
"""Each stays the same file for as long as a node runs, and says which node it is: no two nodes have it in common. LMDB
locks none of its file here (fcntl or flock)."""

_guard = threading.Lock()
_held: "Final[dict[str, DirectoryLock]]" = {}
_condemned: Final[dict[str, str]] = {}


class DirectoryLock:
    """The lock on one data directory; made by `acquire`."""

    def __init__(self, root: str, fd: int, shared: list[int]) -> None:
        """`shared`: descriptors of what another data directory may share, and is there."""
        self._root = root
        self._fd = fd
        self._shared = shared

    @classmethod
    def acquire(cls, root: str) -> "DirectoryLock":
        """DirectoryError if another process or handle holds it, or if the directory was condemned."""
        path = os.path.realpath(root)
        with _guard:
            if path in _condemned:
                raise DirectoryError(
                    f"its disk failed earlier in this process ({_condemned[path]})",
                    "restart the process: only then is the directory read from the disk itself",
                    path,
                )
            if path in _held:
                raise DirectoryError("is open in this process already", "close the other handle first", path)
            fd = _lock_file(path)
            try:
                lock = cls(path, fd, _lock_shared(path))
            except BaseException:
                os.close(fd)
                raise
            _held[path] = lock
            return lock

    @property
    def is_held(self) -> bool:
        return self._fd >= 0

    def release(self) -> None:
        """Idempotent."""
        with _guard:
            if self._fd >= 0:
                _held.pop(self._root, None)
            self._close()

    def _close(self) -> None:
        _close_all([*self._shared, *([self._fd] if self._fd >= 0 else [])])
        self._fd, self._shared = -1, []

    def condemn(self, reason: str) -> None:
        """A storage error happened: this process must never open the directory again. Keeps the lock's release to
        `release`."""
        with _guard:
            _condemned.setdefault(self._root, reason)


def _lock_file(root: str) -> int:
    path = os.path.join(root, LOCK)
    check_not_odd(path)
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise DirectoryError(f"{LOCK} cannot be opened: {reason(error)}", remedy(error.errno or 0), root) from error
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _check_there(fd, path)
    except OSError as error:
        os.close(fd)
        raise lock_refusal(error, root) from error
    return fd


def _lock_shared(root: str) -> list[int]:
    """Lock what is there of it, whoever else reaches it by whatever name. DirectoryError."""
    locked: list[int] = []
    try:
        for name in _SHARED:
            locked += _flock(os.path.join(root, name))
    except BaseException:
        _close_all(locked)
        raise
    return locked


def _flock(path: str) -> list[int]:
    """The descriptor; none if it is not there, cannot be read, or is something else: whoever uses it says so."""
    try:
        mode = os.stat(path).st_mode
        if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
            return []
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return []
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(fd)
        hint = "stop it first, or, if this is a copy, make one that shares no file with it (`cp -a`)"
        raise DirectoryError("is in use by another process, perhaps through a hard link", hint, path) from error
    except OSError:
        os.close(fd)
        return []
    return [fd]


def _close_all(fds: list[int]) -> None:
    for fd in fds:
        with suppress(OSError):  # nothing was written to it, and the lock is gone in any case: close(2)
            os.close(fd)


def _check_there(fd: int, path: str) -> None:
    """Raise OSError if the file that was locked is not the one there any more: a format that failed took it away."""
    with suppress(FileNotFoundError):
        if os.path.samestat(os.fstat(fd), os.stat(path)):
            return
    raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))


def lock_refusal(error: OSError, root: str) -> DirectoryError:
    """Return what a refused lock means: that somebody has it is one reason of several. Source: fcntl(2)."""
    if error.errno in _HELD:
        return DirectoryError("is in use by another process", "stop it first, or choose another data directory", root)
    return DirectoryError(f"{LOCK} cannot be locked: {reason(error)}", remedy(error.errno or 0), root)


def _forget_in_child() -> None:
    """A forked child holds none of its parent's locks, and may not even close their files for the registry's sake."""
    global _guard
    _guard = threading.Lock()  # the parent's may have been held by another thread
    for lock in _held.values():
        lock._fd = -1
        _close_all(lock._shared)  # a child that outlives its parent would hold them
        lock._shared = []
    _held.clear()


os.register_at_fork(after_in_child=_forget_in_child)
