"""The driver of the native shell where threads meet: appends that wait for raft/'s decision keep their order."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType

import pytest

from fastquorum.config import QuorumConfig
from fastquorum.errors import NotLeader
from fastquorum.kernels.lane import LaneTimeouts, LeaderTerms
from fastquorum.node.io.clock import now_us
from fastquorum.node.io.native_flusher import NativeFlusher
from fastquorum.node.io.native_shell import NativeShell
from fastquorum.storage.format import create_log
from fastquorum.storage.io_disk import RealDisk
from fastquorum.storage.log import Log
from tests.lane.builders import control_batch, key

from .native_rig import NEVER, Rig, is_readable, kernels, native, until

TERMS = LeaderTerms(epoch=5, voters=(key(1),), epoch_start=0, high_watermark=-1, timeouts=LaneTimeouts(NEVER))


class OvertakenLock:
    """A lock in front of which its next taker is overtaken by somebody."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.overtaker: Callable[[], None] | None = None

    def __enter__(self) -> None:
        overtaker, self.overtaker = self.overtaker, None
        if overtaker is not None:
            overtaker()
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()


@pytest.fixture
def lock() -> OvertakenLock:
    return OvertakenLock()


@pytest.fixture
def driver(rig: Rig, lock: OvertakenLock, tmp_path: Path) -> Iterator[NativeShell]:
    """It leads epoch 5, alone."""
    disk = RealDisk.open_directory(str(tmp_path / "n1"), kernels, create=True)
    create_log(disk, kernels)
    flusher = NativeFlusher()
    flusher.bind(rig.shell, lambda file: file)
    log = Log.open(disk, kernels, QuorumConfig(), flusher)
    log.append_batch(control_batch(0, 5), base_offset=0, next_offset=1, epoch=5, timestamp_ms=1_000)
    driver = NativeShell(
        config=QuorumConfig(),
        kernels=kernels,
        log=log,
        lock=lock,
        shell=rig.shell,
        mailbox=native.Mailbox(),
        unwrapped=lambda file: file,
    )
    driver.settle(TERMS, now_us())
    # Here is no loop that would count a sync which ends while the log is taken back.
    until(lambda: log.flushed_end == 1 and not log.is_flushing, "what the term begins with is synced")
    yield driver
    driver.stop(None, now_us())
    rig.shell.end_threads()
    log.abandon()
    log.close()


def test_an_append_does_not_pass_one_that_its_caller_made_before_it(driver: NativeShell, lock: OvertakenLock) -> None:
    def decide() -> None:
        """raft/ is done, and finds nobody who waits: the first append has been told to, and is not queued yet."""
        driver.resume(now_us())
        driver.drain(now_us())

    box, refused = native.Mailbox(), []
    driver.freeze(now_us())
    lock.overtaker = decide
    for value in ("first", "second"):
        driver.append_mail(value.encode(), box, value, lambda waiting, error: refused.append((waiting, error)))
    driver.drain(now_us())
    driver.push()
    told: list[tuple[str, int]] = []
    while len(told) < 2:
        assert is_readable(box, 20)
        told += box.collect()
    assert told == [("first", 1), ("second", 2)]
    assert refused == []


def test_a_leader_that_is_given_up_refuses_appends_at_once_whoever_has_the_lock(
    driver: NativeShell, lock: OvertakenLock
) -> None:
    """As while the replica's thread, which has it, waits for a disk that does not answer."""
    box, is_over = native.Mailbox(), threading.Event()
    has_lock = threading.Event()

    def hang() -> None:
        with lock:
            has_lock.set()
            is_over.wait()

    hanging = threading.Thread(target=hang)
    hanging.start()
    try:
        assert has_lock.wait(20)
        driver.give_up()
        with pytest.raises(NotLeader, match="does not lead epoch 5"):
            driver.append_mail(b"refused", box, "refused", lambda *_: None)
    finally:
        is_over.set()
        hanging.join()
    # It is back, and leads again one day.
    driver.close(now_us())
    driver.settle(TERMS, now_us())
    driver.drain(now_us())
    driver.append_mail(b"taken", box, "taken", lambda *_: None)
    driver.push()
    assert is_readable(box, 20)
    assert box.collect() == [("taken", 1)]
