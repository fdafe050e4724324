"""The quorum state in LMDB: every save is one synchronous transaction, and the first failure is the last operation.

Default sync flags only: no WRITEMAP (SIGBUS when the disk is full), no NOSYNC, no METASYNC off (both may undo a
vote). No lock file of LMDB's, which is mapped sparsely (SIGBUS, too): whoever opens this holds the directory's lock.
One environment a process and file. Never used across fork. LMDB 0.9 itself goes on after a failed data sync; this class
does not (README, decision 3).
"""

import errno
import os
from contextlib import closing, suppress
from typing import Final

import lmdb

from fastquorum.errors import ClosedError, DirectoryError, StateStoreFailed
from fastquorum.kernels import Kernels
from fastquorum.raft.election import ElectionState
from fastquorum.storage.io.disk import exists, sync_directory
from fastquorum.storage.io.odd import check_not_odd
from fastquorum.storage.names import QUORUM_STATE
from fastquorum.storage.replacing import damaged_state
from fastquorum.storage.state_value import RESERVE_KEY, STATE_KEY, StateOwner, decode_state, encode_state, state_in

MAP_BYTES: Final = 4 * 1024 * 1024
"""The value has about 100 bytes: a full map is a bug."""
RESERVE_BYTES: Final = 64 * 1024
_TEMPORARY: Final = ".tmp"

_open_stores: "dict[str, LmdbStateStore]" = {}
"""By real path. LMDB forbids opening one environment twice in a process."""


class LmdbStateStore:
    """A StateStore beside `meta.properties`. Not thread-safe."""

    def __init__(self, root: str, owner: StateOwner, kernels: Kernels) -> None:
        """Open, or create, the environment. DirectoryError, CorruptionError, StateStoreFailed."""
        self._path = os.path.join(os.path.realpath(root), QUORUM_STATE)
        self._owner = owner
        self._kernels = kernels
        self._failure = ""
        self._is_forked = False
        self._env: lmdb.Environment | None = None
        if self._path in _open_stores:
            raise DirectoryError("the quorum state is open in this process already", "close the other handle", root)
        is_new = not exists(self._path)
        if not os.access(os.path.dirname(self._path) if is_new else self._path, os.W_OK, effective_ids=True):
            raise DirectoryError("the quorum state cannot be written", "make it writable", self._path)
        latest: ElectionState | None = None
        try:
            if is_new:
                self._create()
            else:
                latest = self._latest()
            self._env = _open(self._path)
        except (lmdb.CorruptedError, lmdb.InvalidError, lmdb.VersionMismatchError) as error:
            raise damaged_state("state_file", self._path) from error
        except (lmdb.Error, OSError) as error:
            raise self._latch("open", error) from error
        _open_stores[self._path] = self
        if latest is not None and latest != self.load():
            self.save(latest)

    @property
    def path(self) -> str:
        return self._path

    def _latest(self) -> ElectionState | None:
        """The state that the file holds, whichever transaction LMDB takes for the last. It is looked at before LMDB
        does, which trusts a file: it would die of one that was cut off, and begin anew in an empty one.
        CorruptionError, DirectoryError."""
        check_not_odd(self._path)
        with open(self._path, "rb") as file:
            return state_in(self._kernels, self._owner, file.read(), self._path)

    def _create(self) -> None:
        """Under another name until it is whole: without room it would be left half-made, which nobody can open.

        The file is grown once and its pages are freed again: a vote then fits even when the disk is full.
        """
        temporary = self._path + _TEMPORARY
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        try:
            with closing(_open(temporary)) as env:
                self._reserve(env)
            os.rename(temporary, self._path)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        sync_directory(os.path.dirname(self._path))  # LMDB syncs its file, never the directory

    @staticmethod
    def _reserve(env: lmdb.Environment) -> None:
        for value in (bytes(RESERVE_BYTES), b"", b"", b""):  # freed pages are used again two transactions later
            with env.begin(write=True) as transaction:
                transaction.put(RESERVE_KEY, value)

    def load(self) -> ElectionState | None:
        """None if nothing was ever saved."""
        env = self._usable()
        try:
            with env.begin() as transaction:
                value = transaction.get(STATE_KEY)
        except (lmdb.CorruptedError, lmdb.PageNotFoundError) as error:
            raise damaged_state("state_file", self._path) from error
        except lmdb.Error as error:
            raise self._latch("read", error) from error
        return None if value is None else decode_state(self._kernels, self._owner, bytes(value), self._path)

    def save(self, state: ElectionState) -> None:
        """Durable when this returns. After a failure it is unknown whether the state was kept: nothing is tried
        again."""
        env = self._usable()
        try:
            with env.begin(write=True) as transaction:
                transaction.put(STATE_KEY, encode_state(self._kernels, self._owner, state))
        except lmdb.Error as error:
            raise self._latch("save", error) from error

    def renew(self) -> None:
        """Write what is there once more, before anybody acts on it: a former process may have died after it had
        written, and before that was synced. A power failure would take back a vote that was read here and granted
        again."""
        state = self.load()
        if state is not None:
            self.save(state)

    def close(self) -> None:
        """Idempotent; a no-op in a forked child."""
        env, self._env = self._env, None
        if env is not None and not self._is_forked:
            _open_stores.pop(self._path, None)
            env.close()

    def _usable(self) -> lmdb.Environment:
        if self._is_forked:
            raise ClosedError(
                "this handle was opened before fork and cannot work in the child",
                "open the directory in one process only",
            )
        if self._failure:
            raise StateStoreFailed(detail=self._failure, operation="use", path=self._path, errno_code=errno.EIO)
        if self._env is None:
            raise ClosedError("the quorum state is closed")
        return self._env

    def _latch(self, operation: str, error: Exception) -> StateStoreFailed:
        self._failure = f"{type(error).__name__}: {error}"
        code = _number_of(error)
        if _is_full(os.path.dirname(self._path)):
            if os.strerror(errno.ENOSPC) not in self._failure:
                # LMDB takes a write that a full file system cut short for a broken one.
                self._failure += ", as no space is left there"
            code = errno.ENOSPC
        return StateStoreFailed(detail=self._failure, operation=operation, path=self._path, errno_code=code)


def write_unsynced(root: str, owner: StateOwner, kernels: Kernels, state: ElectionState) -> None:
    """The quorum state of a directory that nobody counts on before it is whole, as when many are made at once: nothing
    is synced. StateStoreFailed."""
    path = os.path.join(root, QUORUM_STATE)
    try:
        with (
            closing(_open(path, sync=False)) as env,
            env.begin(write=True) as transaction,
        ):
            transaction.put(STATE_KEY, encode_state(kernels, owner, state))
    except (lmdb.Error, OSError) as error:
        code = _number_of(error)
        raise StateStoreFailed(detail=str(error), operation="save", path=path, errno_code=code) from error


def _number_of(error: Exception) -> int:
    """LMDB's errors end with the system's words, and do not have its number. EIO if it cannot be told."""
    if isinstance(error, OSError):
        return error.errno or errno.EIO
    words = {code: os.strerror(code) for code in errno.errorcode}
    found = [code for code in words if str(error).endswith(words[code])]
    return max(found, key=lambda code: len(words[code]), default=errno.EIO)


def _open(path: str, *, sync: bool = True) -> lmdb.Environment:
    return lmdb.open(os.fsencode(path), map_size=MAP_BYTES, subdir=False, max_dbs=0, lock=False, sync=sync)


def _is_full(directory: str) -> bool:
    """Is less left than a new environment takes? False also where that cannot be told."""
    try:
        found = os.statvfs(directory)
    except OSError:
        return False
    return found.f_bavail * found.f_frsize < 2 * RESERVE_BYTES


def _poison_in_child() -> None:
    for store in _open_stores.values():
        store._is_forked = True
    _open_stores.clear()


os.register_at_fork(after_in_child=_poison_in_child)
