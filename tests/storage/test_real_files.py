"""What touches the system: real files, the directory lock, the quorum state in LMDB."""

import contextlib
import errno
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fastquorum.config import QuorumConfig
from fastquorum.errors import (
    ClosedError,
    CorruptionError,
    DirectoryError,
    DirectoryReplaced,
    StateStoreFailed,
    StorageFailed,
)
from fastquorum.kernels import Kernels, load
from fastquorum.raft.election import ElectionState
from fastquorum.storage.format import FormatOptions, create_log, format_directory
from fastquorum.storage.identity import parse_voters
from fastquorum.storage.io.directory import DataDirectory
from fastquorum.storage.io.disk import RealDisk
from fastquorum.storage.io.lock import DirectoryLock
from fastquorum.storage.io.opening import trim_directory
from fastquorum.storage.io.state import RESERVE_BYTES, LmdbStateStore
from fastquorum.storage.log.log import Log
from fastquorum.storage.names import LOCK, LOG_DIRECTORY, META_PROPERTIES, QUORUM_STATE
from fastquorum.storage.state_value import StateOwner, decode_state, encode_state
from fastquorum.types import ReplicaKey, Uuid
from tests.privileges import fill, mounted, strace, unprivileged
from tests.storage.test_descriptors import descriptors_left

from .fake_disk import FakeFlusher

OWNER = StateOwner("usACA5tBSrKS64DhDt4jig", 1, Uuid(bytes(range(16))))
STATES = [
    ElectionState(),
    ElectionState(7, 2),
    ElectionState(2**31 - 1, -1, ReplicaKey(3, Uuid(b"v" * 16))),
    ElectionState(4, 1, ReplicaKey(0)),
]
SMALL = QuorumConfig(segment_bytes=200_000, preallocate_bytes=16 * 1024)

FORKS = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
"""Python warns of forks while other threads run; that is what these tests are about."""

# --- files ------------------------------------------------------------------------------------------------------------


def test_a_log_on_real_files_survives_reopening(kernels: Kernels, tmp_path: Path) -> None:
    disk = RealDisk.open_directory(str(tmp_path / "n1"), kernels, create=True)
    create_log(disk, kernels)
    flusher = kernels.Flusher()
    log = Log.open(disk, kernels, SMALL, flusher)
    for number in range(300):
        batch = kernels.encode_values([b"%d" % number * 300], base_offset=number, leader_epoch=1, timestamp_ms=number)
        log.append_batch(batch, base_offset=number, next_offset=number + 1, epoch=1, timestamp_ms=number)
        log.request_flush()
        for token, code in flusher.completions():
            log.flush_done(token, code)
        log.maintain(number)
    log.truncate_to(290)
    # Not closed: as if killed. Everything written is in the page cache, so it is all found again.
    flusher.close()
    again = Log.open(disk, kernels, SMALL, FakeFlusher())
    assert again.end_offset == again.flushed_end == 290
    assert len([name for name in disk.list(LOG_DIRECTORY) if name.endswith(".log")]) > 1
    assert kernels.decode_values(again.read(123, 1)) == [b"123" * 300]
    again.close()
    log._segments.clear()


def test_disk_operations(kernels: Kernels, tmp_path: Path) -> None:
    disk = RealDisk.open_directory(str(tmp_path), kernels)
    disk.make_directory("a")
    disk.replace_file("a/x", b"one")
    disk.replace_file("a/x", b"two")
    assert (disk.read_file("a/x"), disk.list("a"), disk.list("nothing")) == (b"two", ["x"], [])
    disk.rename("a/x", "a/y")
    assert (disk.exists("a/x"), disk.exists("a/y")) == (False, True)
    disk.remove("a/y")
    with pytest.raises(StorageFailed) as caught:
        disk.read_file("a/y")
    assert (caught.value.operation, caught.value.path, caught.value.errno_code) == ("read", str(tmp_path / "a/y"), 2)
    with pytest.raises(StorageFailed):
        disk.open("a/y")


def test_a_path_that_is_no_directory_is_refused(kernels: Kernels, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DirectoryError, match="is not a directory"):
        RealDisk.open_directory(str(tmp_path / "file"), kernels)
    with pytest.raises(DirectoryError, match="cannot be created"):
        RealDisk.open_directory(str(tmp_path / "file" / "below"), kernels, create=True)


@pytest.fixture
def tmpfs(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB."""
    with mounted(tmp_path / "tmpfs", "tmpfs", "size=1m") as place:
        yield place


def test_a_read_only_file_system_is_refused(kernels: Kernels, tmpfs: Path) -> None:
    disk = RealDisk.open_directory(str(tmpfs), kernels)
    create_log(disk, kernels)
    subprocess.run(["mount", "-o", "remount,ro", str(tmpfs)], check=True)
    with pytest.raises(DirectoryError, match="read-only"):
        RealDisk.open_directory(str(tmpfs), kernels)
    with pytest.raises(DirectoryError, match=r"\.lock cannot be opened"):
        DirectoryLock.acquire(str(tmpfs))
    with pytest.raises(StorageFailed):  # where it happens to a replica that runs
        Log.open(disk, kernels, SMALL, FakeFlusher())
    with pytest.raises(DirectoryError, match="quorum state cannot be written"):
        LmdbStateStore(str(tmpfs), OWNER, kernels)


def test_a_vote_fits_on_a_full_disk(kernels: Kernels, tmpfs: Path) -> None:
    store = LmdbStateStore(str(tmpfs), OWNER, kernels)
    with (tmpfs / "filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
        while True:
            filler.write(bytes(1024))
    for epoch in range(1, 50):
        store.save(ElectionState(epoch, voted_key=ReplicaKey(2)))
    assert store.load() == ElectionState(49, voted_key=ReplicaKey(2))
    store.close()


def test_a_quorum_state_that_has_no_room_to_begin_says_so(kernels: Kernels, tmpfs: Path) -> None:
    refusals: list[StateStoreFailed] = []
    for left in range(0, 160, 4):
        filling = fill(tmpfs, left * 1024)
        try:
            LmdbStateStore(str(tmpfs), OWNER, kernels).close()
        except StateStoreFailed as failed:
            refusals.append(failed)
        filling.unlink()
        LmdbStateStore(str(tmpfs), OWNER, kernels).close()
        assert os.path.getsize(tmpfs / QUORUM_STATE) >= RESERVE_BYTES
        for path in tmpfs.iterdir():
            path.unlink()
    assert len(refusals) >= 10
    for each in refusals:
        assert "no space" in str(each).lower()
        assert "make room" in str(each)
        assert not each.lacks_room, "whatever it is, it is final"


def test_a_full_disk_stops_the_log_and_loses_nothing(kernels: Kernels, tmpfs: Path) -> None:
    disk = RealDisk.open_directory(str(tmpfs), kernels)
    create_log(disk, kernels)
    config = QuorumConfig(preallocate_bytes=64 * 1024)
    log = Log.open(disk, kernels, config, FakeFlusher())
    flushed = 0

    def append_until_full() -> None:
        nonlocal flushed
        for number in range(1_000):
            batch = kernels.encode_values([bytes(5_000)], base_offset=number, leader_epoch=1, timestamp_ms=0)
            log.append_batch(batch, base_offset=number, next_offset=number + 1, epoch=1, timestamp_ms=0)
            log._segments[-1].file.sync()
            flushed = number + 1

    with pytest.raises(StorageFailed) as caught:
        append_until_full()
    assert caught.value.errno_code == 28
    assert log.failed
    with pytest.raises(StorageFailed):
        log.request_flush()
    log.close()
    subprocess.run(["mount", "-o", "remount,size=4m", str(tmpfs)], check=True)
    again = Log.open(disk, kernels, config, FakeFlusher())
    assert again.end_offset >= flushed > 50
    again.close()


# --- a whole directory ------------------------------------------------------------------------------------------------


def formatted(path: Path, kernels: Kernels) -> FormatOptions:
    options = FormatOptions("c", 1, Uuid(b"d" * 16), parse_voters("1@h:1,2@h:2"))
    format_directory(RealDisk.open_directory(str(path), kernels, create=True), kernels, options, now_ms=5)
    return options


def append_one(data: DataDirectory, kernels: Kernels, epoch: int) -> None:
    base = data.log.end_offset
    batch = kernels.encode_values([b"x"], base_offset=base, leader_epoch=epoch, timestamp_ms=0)
    data.log.append_batch(batch, base_offset=base, next_offset=base + 1, epoch=epoch, timestamp_ms=0)


def test_a_directory_is_opened_as_a_whole(kernels: Kernels, tmp_path: Path) -> None:
    options = formatted(tmp_path, kernels)
    with DataDirectory.open(str(tmp_path), kernels, SMALL, FakeFlusher(), cluster_id="c", node_id=1) as data:
        assert (data.identity.key, data.voters, data.kraft_version) == (
            ReplicaKey(1, options.directory_id),
            options.voters,
            0,
        )
        assert data.election == ElectionState()
        data.states.save(ElectionState(3, 1))
        append_one(data, kernels, 3)
        with pytest.raises(DirectoryError, match="open in this process already"):
            DataDirectory.open(str(tmp_path), kernels, SMALL, FakeFlusher())
    with DataDirectory.open(str(tmp_path), kernels, SMALL, FakeFlusher()) as data:
        assert (data.election, data.log.end_offset) == (ElectionState(3, 1), 1)


def test_a_running_replica_keeps_descriptors_in_reserve_and_leaves_none_behind(
    kernels: Kernels, tmp_path: Path
) -> None:
    formatted(tmp_path, kernels)
    before = len(os.listdir("/proc/self/fd"))
    with DataDirectory.open(str(tmp_path), kernels, SMALL, FakeFlusher()) as data, descriptors_left(0):
        data.disk.sync_directory(LOG_DIRECTORY)
        data.disk.replace_file("mark", b"new")
    assert len(os.listdir("/proc/self/fd")) == before
    with pytest.raises(DirectoryError, match="belongs to"):
        DataDirectory.open(str(tmp_path), kernels, SMALL, FakeFlusher(), cluster_id="another")
    assert len(os.listdir("/proc/self/fd")) == before


def test_log_and_quorum_state_must_belong_together(kernels: Kernels, tmp_path: Path) -> None:
    formatted(tmp_path, kernels)
    with DataDirectory.open(str(tmp_path), kernels, SMALL, FakeFlusher()) as data:
        data.states.save(ElectionState(3, 1))
        append_one(data, kernels, 4)
    with pytest.raises(CorruptionError, match="stale_state"):
        DataDirectory.open(str(tmp_path), kernels, SMALL, FakeFlusher())
    (tmp_path / QUORUM_STATE).unlink()
    for _ in range(2):  # the attempt leaves no state behind
        with pytest.raises(DirectoryError, match="quorum state is missing"):
            DataDirectory.open(str(tmp_path), kernels, SMALL, FakeFlusher())


def test_after_a_fatal_error_a_directory_stays_shut(kernels: Kernels, tmp_path: Path) -> None:
    formatted(tmp_path, kernels)
    data = DataDirectory.open(str(tmp_path), kernels, SMALL, FakeFlusher())
    data.states.save(ElectionState(1, 1))
    append_one(data, kernels, 1)
    before = (tmp_path / LOG_DIRECTORY / f"{0:020d}.log").read_bytes()
    data.close(StorageFailed(detail="EIO", operation="sync", path="x", errno_code=5))
    assert (tmp_path / LOG_DIRECTORY / f"{0:020d}.log").read_bytes() == before
    with pytest.raises(DirectoryError, match="restart the process"):
        DataDirectory.open(str(tmp_path), kernels, SMALL, FakeFlusher())


@pytest.mark.parametrize("is_closed", [True, False])
@pytest.mark.parametrize("directory", ["", LOG_DIRECTORY])
def test_nothing_is_written_into_a_directory_that_was_put_in_the_place_of_a_running_one(
    kernels: Kernels, tmp_path: Path, directory: str, is_closed: bool
) -> None:
    """For example by `mv n1 n1.bad; cp -a backup n1` while its node is forgotten."""
    root = tmp_path / "n1"
    formatted(root, kernels)
    data = DataDirectory.open(str(root), kernels, SMALL, FakeFlusher())
    append_one(data, kernels, 1)
    shutil.copytree(root / directory, tmp_path / "backup")
    os.rename(root / directory, tmp_path / "old")
    os.rename(tmp_path / "backup", root / directory)
    before = contents(root)
    if is_closed:
        with pytest.raises(DirectoryReplaced, match="no longer the directory that was opened"):
            data.close()
    else:
        with pytest.raises(DirectoryReplaced, match="no longer the directory that was opened") as refused:
            append_beyond_a_segment(data, kernels)
        data.close(refused.value)
    assert contents(root) == before
    shutil.rmtree(root / directory)
    os.rename(tmp_path / "old", root / directory)
    DirectoryLock.acquire(str(root)).release()  # put back it may be opened, in this process too


def append_beyond_a_segment(data: DataDirectory, kernels: Kernels) -> None:
    batch_bytes = 64
    for _ in range(2 * SMALL.segment_bytes // batch_bytes):
        append_one(data, kernels, 1)


def contents(root: Path) -> dict[str, bytes]:
    return {str(each.relative_to(root)): each.read_bytes() for each in sorted(root.rglob("*")) if each.is_file()}


def test_a_file_of_another_owner_is_a_refusal_not_a_failing_disk(kernels: Kernels, tmp_path: Path) -> None:
    formatted(tmp_path, kernels)
    segment = next((tmp_path / LOG_DIRECTORY).glob("*.log"))
    segment.chmod(0)
    with unprivileged(), pytest.raises(DirectoryError, match=r"Permission denied; check its owner"):
        DataDirectory.open(str(tmp_path), kernels, SMALL, FakeFlusher())
    segment.chmod(0o600)
    DataDirectory.open(str(tmp_path), kernels, SMALL, FakeFlusher()).close()  # not condemned


def test_a_lock_whose_descriptor_closes_with_an_error_is_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = DirectoryLock.acquire(str(tmp_path))
    close = os.close

    def closed_with_an_error(fd: int) -> None:
        close(fd)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, "close", closed_with_an_error)
        lock.release()
    DirectoryLock.acquire(str(tmp_path)).release()


# --- the lock ---------------------------------------------------------------------------------------------------------


def test_one_handle_in_a_process(tmp_path: Path) -> None:
    lock = DirectoryLock.acquire(str(tmp_path))
    with pytest.raises(DirectoryError, match="open in this process already"):
        DirectoryLock.acquire(str(tmp_path / "."))
    lock.release()
    lock.release()
    DirectoryLock.acquire(str(tmp_path)).release()


def test_two_processes_exclude_each_other(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom fastquorum.storage.io.lock import DirectoryLock\n"
        "lock = DirectoryLock.acquire(sys.argv[1])\nprint('held', flush=True)\nsys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(DirectoryError, match="another process"):
            DirectoryLock.acquire(str(tmp_path))
        other.communicate("")
    DirectoryLock.acquire(str(tmp_path)).release()


def hard_linked(source: Path, root: Path, *copied: str) -> Path:
    """A copy whose files are those of the source, but for these, and for the lock's, which every copy may lack."""
    root.mkdir()
    for path in sorted(source.rglob("*")):
        target = root / path.relative_to(source)
        if path.is_dir():
            target.mkdir()
        elif path.name in copied:
            shutil.copy(path, target)
        elif path.name != LOCK:
            os.link(path, target)
    return root


@pytest.mark.parametrize("copied", [(), (META_PROPERTIES,), (QUORUM_STATE,)], ids=["none", "properties", "state"])
def test_a_hard_linked_copy_of_a_directory_in_use_is_in_use(
    kernels: Kernels, tmp_path: Path, copied: tuple[str, ...]
) -> None:
    """Both would write the same files, as `cp -al` leaves them."""
    root = tmp_path / "n1"
    formatted(root, kernels)
    DataDirectory.open(str(root), kernels, SMALL, FakeFlusher()).close()
    program = (
        "import sys\nfrom fastquorum.storage.io.lock import DirectoryLock\n"
        "lock = DirectoryLock.acquire(sys.argv[1])\nprint('held', flush=True)\nsys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        twin = hard_linked(root, tmp_path / "twin", *copied)
        before = contents(twin)
        for act in (
            lambda: DataDirectory.open(str(twin), kernels, SMALL, FakeFlusher()),
            lambda: trim_directory(str(twin), kernels),
        ):
            with pytest.raises(DirectoryError, match=r"is in use by another process.*hard link"):
                act()
        assert {name: data for name, data in contents(twin).items() if name != LOCK} == before
        other.communicate("")
    DataDirectory.open(str(twin), kernels, SMALL, FakeFlusher()).close()


def test_a_condemned_directory_stays_shut_in_this_process(tmp_path: Path) -> None:
    lock = DirectoryLock.acquire(str(tmp_path))
    lock.condemn("fdatasync: EIO")
    lock.release()
    with pytest.raises(DirectoryError, match=r"fdatasync: EIO.*restart the process"):
        DirectoryLock.acquire(str(tmp_path))
    program = f"from fastquorum.storage.io.lock import DirectoryLock\nDirectoryLock.acquire({str(tmp_path)!r})"
    subprocess.run([sys.executable, "-c", program], check=True)


def in_child(check: Callable[[], int]) -> int:
    """Run in a forked child; its exit status."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            status = check()
        finally:
            os._exit(status)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return -9


@FORKS
def test_a_forked_child_holds_no_lock_and_gets_none(tmp_path: Path) -> None:
    lock = DirectoryLock.acquire(str(tmp_path))

    def check() -> int:
        lock.release()  # must not drop the parent's
        try:
            DirectoryLock.acquire(str(tmp_path))
        except DirectoryError as error:
            return 0 if "another process" in str(error) and not lock.is_held else 2
        return 3

    assert in_child(check) == 0
    assert lock.is_held
    lock.release()


# --- the quorum state -------------------------------------------------------------------------------------------------


TRANSACTION_AT = (144, 4096 + 144)
"""The lowest byte of the transaction's number in each of LMDB's meta pages."""


@pytest.mark.parametrize("state", STATES)
def test_a_state_is_kept(kernels: Kernels, tmp_path: Path, state: ElectionState) -> None:
    store = LmdbStateStore(str(tmp_path), OWNER, kernels)
    assert store.load() is None
    store.save(ElectionState())
    store.save(state)
    store.close()
    again = LmdbStateStore(str(tmp_path), OWNER, kernels)
    assert again.load() == state
    again.close()


def test_every_flipped_bit_of_a_state_is_seen(kernels: Kernels) -> None:
    value = encode_state(kernels, OWNER, STATES[2])
    assert decode_state(kernels, OWNER, value) == STATES[2]
    for at in range(len(value)):
        for bit in range(8):
            bad = bytearray(value)
            bad[at] ^= 1 << bit
            with pytest.raises(CorruptionError):
                decode_state(kernels, OWNER, bytes(bad))
        with pytest.raises(CorruptionError):
            decode_state(kernels, OWNER, value[:at])
    with pytest.raises(CorruptionError):
        decode_state(kernels, OWNER, value + b"\0")


@pytest.mark.parametrize(
    "other", [OWNER._replace(cluster_id="x"), OWNER._replace(node_id=2), OWNER._replace(directory_id=Uuid())]
)
def test_the_state_of_another_replica_is_refused(kernels: Kernels, other: StateOwner) -> None:
    with pytest.raises(CorruptionError) as caught:
        decode_state(kernels, other, encode_state(kernels, OWNER, STATES[1]))
    assert caught.value.reason == "foreign_state"


def test_a_newer_state_is_refused(kernels: Kernels) -> None:
    value = bytearray(encode_state(kernels, OWNER, STATES[1])[:-4])
    value[9] = 2
    with pytest.raises(DirectoryError, match="format version 2"):
        decode_state(kernels, OWNER, bytes(value) + kernels.crc32c(value).to_bytes(4, "big"))


def test_a_value_damaged_in_the_file_is_refused(kernels: Kernels, tmp_path: Path) -> None:
    store = LmdbStateStore(str(tmp_path), OWNER, kernels)
    store.save(STATES[2])
    store.close()
    path = tmp_path / QUORUM_STATE
    data = path.read_bytes()
    value = encode_state(kernels, OWNER, STATES[2])
    start = data.index(value)
    assert data.count(value) == 1
    for at in range(start, start + len(value)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(CorruptionError) as caught:
            LmdbStateStore(str(tmp_path), OWNER, kernels)
        assert caught.value.path == str(path)


def numbered_lower(tmp_path: Path, kernels: Kernels, lower_by: int) -> None:
    """A vote was saved, and the number of its transaction is lower now."""
    store = LmdbStateStore(str(tmp_path), OWNER, kernels)
    for state in (ElectionState(7), ElectionState(7, -1, ReplicaKey(2))):
        store.save(state)
    store.close()
    path = tmp_path / QUORUM_STATE
    data = bytearray(path.read_bytes())
    last = max(TRANSACTION_AT, key=lambda at: data[at])
    data[last] -= lower_by
    path.write_bytes(data)


@pytest.mark.parametrize("lower_by", [1, 3])
def test_meta_pages_whose_numbers_do_not_follow_each_other_are_refused(
    kernels: Kernels, tmp_path: Path, lower_by: int
) -> None:
    numbered_lower(tmp_path, kernels, lower_by)
    with pytest.raises(CorruptionError, match="state_file"):
        LmdbStateStore(str(tmp_path), OWNER, kernels)


def test_a_vote_is_not_forgotten_where_the_number_of_its_transaction_is_damaged(
    kernels: Kernels, tmp_path: Path
) -> None:
    """Which of two meta pages is the last, these numbers alone say; lower by two, it fits the other page's. LMDB itself
    leaves it so where the last write of a transaction failed, and the node has to start again once the disk works."""
    numbered_lower(tmp_path, kernels, 2)
    for _ in range(2):
        store = LmdbStateStore(str(tmp_path), OWNER, kernels)
        assert store.load() == ElectionState(7, -1, ReplicaKey(2))
        store.close()


def test_a_file_that_is_no_lmdb_is_refused(kernels: Kernels, tmp_path: Path) -> None:
    (tmp_path / QUORUM_STATE).write_bytes(b"x" * 8192)
    with pytest.raises(CorruptionError):
        LmdbStateStore(str(tmp_path), OWNER, kernels)


def test_an_environment_is_opened_once(kernels: Kernels, tmp_path: Path) -> None:
    store = LmdbStateStore(str(tmp_path), OWNER, kernels)
    with pytest.raises(DirectoryError, match="open in this process already"):
        LmdbStateStore(str(tmp_path), OWNER, kernels)
    store.close()
    store.close()
    with pytest.raises(ClosedError):
        store.load()
    LmdbStateStore(str(tmp_path), OWNER, kernels).close()


def test_after_a_failure_nothing_is_tried_again(kernels: Kernels, tmp_path: Path) -> None:
    store = LmdbStateStore(str(tmp_path), OWNER._replace(cluster_id="x" * 60_000), kernels)
    assert store._env is not None
    store._env.set_mapsize(4096 * 30)  # too small for a copy of so large a value

    def save_until_full() -> None:
        for epoch in range(1, 100):
            store.save(ElectionState(epoch))

    with pytest.raises(StateStoreFailed) as caught:
        save_until_full()
    assert caught.value.path == store.path
    store._env.set_mapsize(4 * 1024 * 1024)
    with pytest.raises(StateStoreFailed):
        store.save(ElectionState(100))
    with pytest.raises(StateStoreFailed):
        store.load()
    store.close()


@FORKS
def test_a_store_is_dead_in_a_forked_child(kernels: Kernels, tmp_path: Path) -> None:
    store = LmdbStateStore(str(tmp_path), OWNER, kernels)
    store.save(STATES[1])

    def check() -> int:
        for use in (store.load, lambda: store.save(STATES[2])):
            try:
                use()
            except ClosedError:
                continue
            return 2
        store.close()
        return 0

    assert in_child(check) == 0
    assert store.load() == STATES[1]
    store.close()


def test_a_vote_that_a_former_process_left_is_written_again_before_anybody_acts_on_it(
    kernels: Kernels, tmp_path: Path
) -> None:
    """It may have died between writing and syncing it, which nobody can see: the page cache has it."""
    formatted(tmp_path, kernels)
    with DataDirectory.open(str(tmp_path), kernels, SMALL, FakeFlusher()) as data:
        data.states.save(ElectionState(3, 1))
    before = last_transaction(tmp_path)
    with DataDirectory.open(str(tmp_path), kernels, SMALL, FakeFlusher()) as data:
        assert data.election == ElectionState(3, 1)
    assert last_transaction(tmp_path) == before + 1


def last_transaction(root: Path) -> int:
    data = (root / QUORUM_STATE).read_bytes()
    return max(int.from_bytes(data[at : at + 8], "little") for at in TRANSACTION_AT)


def test_a_failed_sync_of_lmdb_is_fatal(tmp_path: Path) -> None:
    """A failed fdatasync, injected under LMDB: the save raises, and the store never tries again."""
    LmdbStateStore(str(tmp_path), StateOwner("c", 1, Uuid(b"d" * 16)), load("pure")).close()
    program = """
import sys
from fastquorum.errors import StateStoreFailed
from fastquorum.kernels import load
from fastquorum.raft.election import ElectionState
from fastquorum.storage.io.state import LmdbStateStore
from fastquorum.storage.state_value import StateOwner
from fastquorum.types import Uuid
store = LmdbStateStore(sys.argv[1], StateOwner("c", 1, Uuid(b"d" * 16)), load("pure"))
seen = []
for epoch in range(1, 6):
    try:
        store.save(ElectionState(epoch))
        seen.append("saved")
    except StateStoreFailed:
        seen.append("failed")
print(",".join(seen))
"""
    prefix = strace(tmp_path / "strace.log", "fdatasync:error=EIO:when=2")
    done = subprocess.run(
        [*prefix, sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=False
    )
    outcomes = done.stdout.strip().split(",")
    assert "failed" in outcomes, done.stderr
    first = outcomes.index("failed")
    assert set(outcomes[first:]) == {"failed"}
