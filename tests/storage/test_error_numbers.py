"""Each error number of the system has words of its own, and none is taken for another."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import lmdb
import pytest

from fastquorum.errnos import REFUSALS, remedy
from fastquorum.errors import DirectoryError, StateStoreFailed, StorageFailed
from fastquorum.kernels import Kernels
from fastquorum.storage.io.disk import RealDisk
from fastquorum.storage.io.lock import lock_refusal
from fastquorum.storage.io.state import LmdbStateStore
from fastquorum.storage.names import QUORUM_STATE
from tests.conftest import ROOT
from tests.privileges import strace

from .test_real_files import OWNER

OF_FILES = (
    errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM,
    errno.EFBIG, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOLCK, errno.EIO,
    errno.ESTALE, errno.EOPNOTSUPP, errno.EINVAL, errno.ENODEV, errno.ENOTCONN, errno.ETIMEDOUT,
)  # fmt: skip


@pytest.mark.parametrize("code", sorted(errno.errorcode), ids=lambda code: errno.errorcode[code])
def test_a_lock_that_cannot_be_had_is_in_use_only_if_somebody_has_it(code: int) -> None:
    text = str(lock_refusal(OSError(code, os.strerror(code)), "/data"))
    is_held = code in (errno.EAGAIN, errno.EACCES)
    assert ("in use by another process" in text) == is_held
    assert (os.strerror(code) in text) != is_held


@pytest.mark.parametrize("code", OF_FILES, ids=lambda code: errno.errorcode[code])
def test_a_failure_says_what_to_do_about_its_own_number_and_blames_no_device_that_works(code: int) -> None:
    failed = StorageFailed(detail=os.strerror(code), operation="write", path="/data/x", errno_code=code)
    assert remedy(code)
    assert os.strerror(code) in str(failed)
    assert remedy(code) in str(failed)
    assert ("the device" in str(failed)) == (code in (errno.EIO, errno.ENODEV))
    assert failed.is_refusal == (code in REFUSALS)


@pytest.mark.parametrize("operation", ["open", "list", "read", "stat"])
def test_what_only_looks_changes_nothing_and_stops_no_replica_that_may_not_run(operation: str) -> None:
    failed = StorageFailed(detail="Too many open files", operation=operation, path="/x", errno_code=errno.EMFILE)
    assert "no longer known" not in str(failed)
    assert "the replica stops" not in str(failed)
    assert remedy(errno.EMFILE) in str(failed)


def test_a_number_that_is_not_known_is_told_in_the_systems_words() -> None:
    failed = StorageFailed(detail=os.strerror(errno.EXDEV), operation="write", path="/x", errno_code=errno.EXDEV)
    assert os.strerror(errno.EXDEV) in str(failed)
    assert remedy(errno.EIO) in str(failed)  # nobody knows: so the device comes first


@pytest.mark.parametrize(("code", "words"), [(errno.ENOLCK, "rpc.statd"), (errno.EAGAIN, "in use by another process")])
def test_what_the_system_answers_to_a_lock_reaches_the_user(tmp_path: Path, code: int, words: str) -> None:
    (tmp_path / ".lock").touch()
    injected = strace(tmp_path / "strace.log", f"fcntl:error={errno.errorcode[code]}", of=tmp_path / ".lock")
    program = f"from fastquorum.storage.io.lock import DirectoryLock; DirectoryLock.acquire({str(tmp_path)!r})"
    done = subprocess.run(
        [*injected, sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False, cwd=ROOT
    )
    assert words in done.stderr.splitlines()[-1]


def test_what_cannot_be_looked_at_is_not_taken_for_missing(tmp_path: Path, kernels: Kernels) -> None:
    """A durable mark, or a vote, that is there and cannot be reached would be made anew."""
    disk = RealDisk.open_directory(str(tmp_path), kernels)
    for name in ("mark", QUORUM_STATE):
        (tmp_path / name).symlink_to(name)
        with pytest.raises(StorageFailed, match="symbolic links") as failed:
            disk.exists(name)
        assert failed.value.errno_code == errno.ELOOP
    with pytest.raises(DirectoryError, match="cannot be looked at: Too many levels"):
        LmdbStateStore(str(tmp_path), OWNER, kernels)
    with pytest.raises(DirectoryError, match="cannot be looked at: Too many levels"):
        RealDisk.open_directory(str(tmp_path / "mark"), kernels)
    assert not disk.exists("nothing")
    assert not disk.exists("nothing/below")


def test_lmdbs_errors_keep_the_systems_number(tmp_path: Path, kernels: Kernels) -> None:
    store = LmdbStateStore(str(tmp_path), OWNER, kernels)
    failed = store._latch("save", lmdb.Error("mdb_txn_commit: Read-only file system"))
    assert isinstance(failed, StateStoreFailed)
    assert failed.errno_code == errno.EROFS
    store.close()
