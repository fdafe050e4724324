"""One process, one handle, one data directory: Kafka's `.lock` plus a registry inside the process.

The lock is a POSIX (fcntl) write lock on the whole file, as Java's FileChannel takes it, so Kafka and fastquorum
exclude each other. Such locks do not exclude their own process, and closing any descriptor of the file drops them:
hence the registry. The log's directory has a lock of its own (flock), for it may be reached by two data directories,
through a link, and `.lock` may be removed while it is held; a file system that has no such locks does without. A
directory whose disk failed stays condemned until the process ends, because the page cache may
hold what the disk does not (README, decision 3).
"""

import errno
import fcntl
import os
import threading
from contextlib import suppress
from typing import Final

from fastquorum.errnos import reason, remedy
from fastquorum.errors import DirectoryError
from fastquorum.storage.io_odd import check_not_odd
from fastquorum.storage.names import LOCK, LOG_DIRECTORY

_HELD: Final = (errno.EACCES, errno.EAGAIN)
"""Another process has a lock that conflicts."""

_guard = threading.Lock()
_held: "Final[dict[str, DirectoryLock]]" = {}
_condemned: Final[dict[str, str]] = {}


class DirectoryLock:
    """The lock on one data directory; made by `acquire`."""

    def __init__(self, root: str, fd: int, log_fd: int) -> None:
        """`log_fd`: of the log's directory; -1: there is none yet."""
        self._root = root
        self._fd = fd
        self._log_fd = log_fd

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
                lock = cls(path, fd, _lock_log(path))
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
        for fd in (self._log_fd, self._fd):
            if fd >= 0:
                with suppress(OSError):  # nothing was written to it, and the lock is gone in any case: close(2)
                    os.close(fd)
        self._fd = self._log_fd = -1

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


def _lock_log(root: str) -> int:
    """Lock the log's directory, whoever else reaches it by whatever name; -1: it is not there. DirectoryError."""
    path = os.path.join(root, LOG_DIRECTORY)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:  # it is missing, or whoever uses it says what is wrong with it
        return -1
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(fd)
        raise lock_refusal(error, path) from error
    except OSError:
        os.close(fd)
        return -1
    return fd


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
        if lock._log_fd >= 0:
            os.close(lock._log_fd)  # a child that outlives its parent would hold it
            lock._log_fd = -1
    _held.clear()


os.register_at_fork(after_in_child=_forget_in_child)
