"""The driver of the native shell where threads meet: appends that wait for raft/'s decision keep their order."""

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from fastquorum.config import QuorumConfig
from fastquorum.errors import FastQuorumError, NotLeader, Overloaded, RecordTooLarge
from fastquorum.kernels.codes import EVENT_SYNCED
from fastquorum.kernels.lane import FollowerSession, LaneTimeouts, LeaderSession
from fastquorum.node.io.callers.gate import Gate
from fastquorum.node.io.clock import now_us
from fastquorum.node.io.native.flusher import NativeFlusher
from fastquorum.node.io.native.shell import NativeShell
from fastquorum.node.io.native.waiters import NativeLoopCallers, NativeThreadCallers
from fastquorum.node.lane.peer_events import FetchLink
from fastquorum.storage.format import create_log
from fastquorum.storage.io.disk import RealDisk
from fastquorum.storage.log.log import Log
from tests.lane.builders import control_batch, crowded_batch, fetch_response, key
from tests.node.rig import Ticket

from .native_rig import NEVER, WAIT_S, Peer, Rig, is_readable, kernels, native, result, until

SESSION = LeaderSession(epoch=5, voters=(key(1),), epoch_start=0, high_watermark=-1, timeouts=LaneTimeouts(NEVER))

FOLLOWER_SESSION = FollowerSession(
    epoch=5, leader_id=2, high_watermark=-1, attempt=1, fetch_bytes_max=1 << 20, fetch_wait_us_max=500_000
)


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
def config() -> QuorumConfig:
    return QuorumConfig()


@pytest.fixture
def driver(rig: Rig, lock: OvertakenLock, config: QuorumConfig, tmp_path: Path) -> Iterator[NativeShell]:
    """It leads epoch 5, alone."""
    disk = RealDisk.open_directory(str(tmp_path / "n1"), kernels, create=True)
    create_log(disk, kernels)
    flusher = NativeFlusher()
    flusher.bind(rig.shell, lambda file: file)
    log = Log.open(disk, kernels, config, flusher)
    log.append_batch(control_batch(0, 5), base_offset=0, next_offset=1, epoch=5, timestamp_ms=1_000)
    driver = NativeShell(
        config=config,
        kernels=kernels,
        log=log,
        lock=lock,
        shell=rig.shell,
        mailbox=native.Mailbox(),
        unwrapped=lambda file: file,
    )
    driver.settle(SESSION, now_us())
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

    loop = Loop()
    callers = loop.callers(driver)
    driver.freeze(now_us())
    lock.overtaker = decide
    for value in ("first", "second"):
        callers.append(value.encode(), value)
    driver.drain(now_us())
    driver.push()
    assert collected(callers, 2) == [("first", 1), ("second", 2)]
    assert loop.refused == []


def collected(callers: Any, count: int) -> list[tuple[str, int]]:
    box, results = callers._mailbox, list[tuple[str, int]]()
    while len(results) < count:
        assert is_readable(box, WAIT_S)
        results += box.collect()
    return results


class Loop:
    """An event loop that never turns, and the bridge to it; its waiters are their names."""

    def __init__(self) -> None:
        self.loop = self
        self.refused: list[tuple[str, FastQuorumError]] = []

    def callers(self, driver: NativeShell) -> Any:
        return NativeLoopCallers(driver, driver._shell, native.Mailbox(), open_gate(), self)  # type: ignore[arg-type]

    def resolve(self, waiter: Any, error: Any) -> None:
        self.refused.append((waiter, error))

    def add_reader(self, *_: object) -> None: ...

    def call_soon(self, *_: object) -> None: ...

    def at_end(self, close: Callable[[], None]) -> None: ...


def open_gate() -> Gate:
    return Gate(is_controlled=False, error=lambda: None)


@pytest.fixture
def threads(driver: NativeShell) -> NativeThreadCallers:
    return NativeThreadCallers(driver, driver._shell, open_gate())


def await_commits(driver: NativeShell) -> None:
    """Wait like the replica's thread: a sync that ends while the log is taken back is its to count."""

    def are_all_committed() -> bool:
        driver.collect()
        for kind, _, _, token, error in driver.take_events():
            assert kind == EVENT_SYNCED
            driver.on_flush(token, error, now_us())
        return driver.waiting() == (0, 0)

    until(are_all_committed, "nothing waits any more")


def test_a_calls_appends_that_find_raft_done_when_they_would_wait_are_in_at_once(
    driver: NativeShell, threads: NativeThreadCallers, lock: OvertakenLock
) -> None:
    callers = Loop().callers(driver)
    driver.freeze(now_us())
    lock.overtaker = lambda: driver.resume(now_us())
    callers.append_each([b"a", b"b"], ["a", "b"])
    await_commits(driver)
    driver.freeze(now_us())
    lock.overtaker = lambda: driver.resume(now_us())
    slots = threads.append_each([b"c"] * 3)
    # No drain: nobody waits for the replica's thread.
    assert collected(callers, 2) == [("a", 1), ("b", 2)]
    assert [result(slot) for slot in slots] == [3, 4, 5]


def test_what_waits_for_raft_goes_in_together_and_in_the_order_in_which_it_came(
    driver: NativeShell, threads: NativeThreadCallers
) -> None:
    callers = Loop().callers(driver)
    driver.freeze(now_us())
    callers.append([b"a", b"a"], "a")
    slots = threads.append_each([b"b"] * 3)
    callers.append_each([b"c", b"d"], ["c", "d"])
    alone = threads.append(b"e", waits=False)
    assert driver.waiting() == (8, 8)
    assert not any(slot.done() for slot in (*slots, alone))
    driver.drain(now_us())
    assert driver.waiting() == (8, 8), "raft/ has not decided"
    driver.resume(now_us())
    driver.drain(now_us())
    callers.append(b"f", "f")
    driver.push()
    assert [result(slot) for slot in slots] == [3, 4, 5]
    assert result(alone) == 8
    assert collected(callers, 4) == [("a", 1), ("c", 6), ("d", 7), ("f", 9)]
    until(lambda: driver.waiting() == (0, 0), "nothing waits any more")


def test_what_waited_is_submitted_again_by_as_many_calls_as_brought_it(
    driver: NativeShell, threads: NativeThreadCallers
) -> None:
    submitted = list[int]()
    driver.freeze(now_us())
    slots = threads.append_each([b"v"] * 100)
    waits = driver._queue.first
    submit = waits.submit

    def counted(values: list[Any], waiting: list[Any]) -> Sequence[int]:
        submitted.append(len(values))
        return submit(values, waiting)

    waits.submit = counted
    driver.resume(now_us())
    driver.drain(now_us())
    assert [result(slot) for slot in slots] == list(range(1, 101))
    assert submitted == [100]


@pytest.mark.parametrize("config", [QuorumConfig(segment_bytes=20_000, preallocate_bytes=20_000)])
def test_a_call_that_fills_segments_goes_on_in_the_next(driver: NativeShell, threads: NativeThreadCallers) -> None:
    driver.freeze(now_us())
    slots = threads.append_each([b"%d" % at * 500 for at in range(50)])
    driver.resume(now_us())
    driver.drain(now_us())

    await_commits(driver)
    assert [result(slot) for slot in slots] == list(range(1, 51))
    assert len(driver.log._segments) > 1


def test_batches_of_few_bytes_and_many_records_fill_segments_too(driver: NativeShell) -> None:
    for number in range(3):
        ticket = Ticket()
        driver.append_encoded(bytearray(crowded_batch(0, 0, 2**30)), 2**30, ticket, now_us())
        driver.drain(now_us())
        await_commits(driver)
        driver.tell(lambda high_watermark: None, lambda: False)
        assert ticket.offsets == [1 + number * 2**30]
    assert [segment.base_offset for segment in driver.log._segments] == [0, 1 + 2**30]


@pytest.mark.parametrize("config", [QuorumConfig(segment_bytes=20_000, preallocate_bytes=20_000)])
def test_which_of_a_call_are_refused_is_told_rightly_when_it_is_tried_again(
    driver: NativeShell, threads: NativeThreadCallers, lock: OvertakenLock
) -> None:
    """The first fill the segment; the others find a decision, and it over when they would wait."""
    values = [b"v" * 4_000] * 9
    values[7] = bytes(2 << 20)
    lock.overtaker = lambda: driver.resume(now_us())
    slots = threads.append_each(values)
    with pytest.raises(RecordTooLarge):
        slots[7].result(WAIT_S)
    await_commits(driver)
    assert [result(slots[at]) for at in (*range(7), 8)] == list(range(1, 9))
    assert len(driver.log._segments) > 1


def test_of_a_calls_appends_those_wait_that_there_is_room_for_and_the_others_are_refused(
    driver: NativeShell, threads: NativeThreadCallers
) -> None:
    driver._config = QuorumConfig(append_queue_records_max=3, append_queue_bytes_max=10)
    driver.freeze(now_us())
    slots = threads.append_each([b"1", b"too many bytes", b"2", b"3", b"too many"])
    assert [slot.done() for slot in slots] == [False, True, False, False, True]
    for at in (1, 4):
        with pytest.raises(Overloaded):
            slots[at].result(WAIT_S)
    assert driver.waiting() == (3, 3)
    driver.resume(now_us())
    driver.drain(now_us())
    driver.push()
    assert [result(slots[at]) for at in (0, 2, 3)] == [1, 2, 3]


def test_who_waits_for_raft_when_the_term_ends_is_refused_by_the_next_decision(
    driver: NativeShell, threads: NativeThreadCallers
) -> None:
    loop = Loop()
    driver.freeze(now_us())
    slots = threads.append_each([b"a", b"b"])
    loop.callers(driver).append(b"c", "c")
    driver.close(now_us())
    driver.drain(now_us())
    driver.tell(lambda high_watermark: None, lambda: False)
    for slot in slots:
        with pytest.raises(NotLeader):
            slot.result()
    ((who, error),) = loop.refused
    assert who == "c"
    assert isinstance(error, NotLeader)
    assert driver.waiting() == (0, 0)


@pytest.fixture
def following(driver: NativeShell, rig: Rig) -> tuple[NativeShell, Peer]:
    """It follows this peer, replica 2, whose first answer is awaited."""
    peer = rig.connect(2)
    driver.settle(FOLLOWER_SESSION, now_us())
    driver.set_fetch_link(FetchLink(2, peer.number, 18), now_us())
    return driver, peer


def follow_anew(driver: NativeShell, attempt: int) -> None:
    driver.freeze(now_us())
    driver.settle(FOLLOWER_SESSION._replace(attempt=attempt), now_us())


def test_a_lane_that_is_closed_while_an_answer_is_to_come_fetches_no_more_there(
    following: tuple[NativeShell, Peer],
) -> None:
    driver, peer = following
    peer.question()
    follow_anew(driver, 2)
    assert not driver.may_fetch_on(peer.number)


def test_a_lane_that_is_closed_behind_an_answer_that_it_did_not_take_fetches_on_there(
    following: tuple[NativeShell, Peer],
) -> None:
    driver, peer = following
    question = peer.question()
    driver.freeze(now_us())
    driver.fetch_answered(fetch_response(question.correlation_id))
    follow_anew(driver, 2)
    assert driver.may_fetch_on(peer.number)
    next_question = peer.question()
    assert next_question.correlation_id != question.correlation_id
    follow_anew(driver, 3)
    assert not driver.may_fetch_on(peer.number), "the former answer is not this one's"
