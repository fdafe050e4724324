"""The native shell's waiters and how they are notified: slots, mailboxes, room for what waits."""

import asyncio
import gc
import signal
import subprocess
import sys
import threading
import weakref
from asyncio import AbstractEventLoop, CancelledError, Task, new_event_loop
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from fastquorum.api.barriers import SharedOutcome
from fastquorum.errors import AppendTimeout, FastQuorumError, RecordTooLarge, StorageFailed, UsageError
from fastquorum.kernels import Outcome
from fastquorum.kernels.codes import AppendVerdict
from fastquorum.kernels.pure import batch_headers
from fastquorum.node.io.clock import now_us
from tests.lane.builders import value_batch

from .native_rig import WAIT_S, Rig, is_readable, kernels, native, result

SCRIPTS = Path(__file__).parent


# --- slots ------------------------------------------------------------------------------------------------------------


def test_a_slot_that_nobody_tells_waits_for_its_time_and_no_longer() -> None:
    slot = native.Slot()
    began = now_us()
    assert not slot.wait(0.02)
    assert now_us() - began >= 20_000
    assert not slot.wait(0)
    assert not slot.done()


def test_a_slot_that_is_known_does_not_wait() -> None:
    slot = native.Slot()
    slot.set(-5)
    assert slot.done()
    assert slot.wait()
    assert slot.wait(0)
    assert slot.outcome == -5


def test_every_thread_that_waits_in_a_slot_is_woken() -> None:
    for _ in range(50):
        slot = native.Slot()
        results: list[bool] = []
        threads = [
            threading.Thread(target=lambda slot=slot, results=results: results.append(slot.wait(WAIT_S)))
            for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        slot.set(1)
        for thread in threads:
            thread.join()
        assert results == [True] * 3


@pytest.fixture
def interruptions() -> Iterator[list[int]]:
    """A signal that is dealt with, every 5 ms."""
    seen: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _: seen.append(number))
    signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
    yield seen
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_a_signal_that_is_dealt_with_does_not_shorten_the_wait(interruptions: list[int]) -> None:
    slot = native.Slot()
    began = now_us()
    assert not slot.wait(0.1)
    assert now_us() - began >= 100_000
    assert interruptions


def test_a_signal_whose_handler_raises_ends_the_wait() -> None:
    def interrupt(number: int, _: object) -> None:
        raise KeyboardInterrupt

    slot = native.Slot()
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        with pytest.raises(KeyboardInterrupt):
            slot.wait()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# --- mailboxes --------------------------------------------------------------------------------------------------------


def test_many_letters_are_one_signal_and_come_in_order() -> None:
    box = native.Mailbox()
    assert not is_readable(box)
    letters = [(object(), number - 50) for number in range(100)]
    for waiter, results in letters:
        box.post(waiter, results)
    assert is_readable(box)
    assert box.collect() == letters
    assert not is_readable(box)
    assert box.collect() == []
    box.post(None, 7)
    assert is_readable(box)
    assert box.collect() == [(None, 7)]


def test_a_mailbox_holds_its_waiters_until_they_are_collected() -> None:
    box = native.Mailbox()
    waiter = object()
    count = sys.getrefcount(waiter)
    for number in range(10):
        box.post(waiter, number)
    assert sys.getrefcount(waiter) == count + 10
    letters = box.collect()
    del letters
    assert sys.getrefcount(waiter) == count
    box.post(waiter, 1)
    del box
    assert sys.getrefcount(waiter) == count, "and lets go of them when it goes itself"


def test_a_slot_is_no_work_for_the_garbage_collector() -> None:
    slots = [native.Slot(object()) for _ in range(3)]
    assert not any(map(gc.is_tracked, slots))
    slots[0].set(7)
    slots[1].set(-5)
    assert slots[0].result() == 7
    assert not any(map(gc.is_tracked, slots))


def test_a_slot_that_was_refused_is_collected_with_its_error() -> None:
    class Refused(FastQuorumError):
        pass

    slot, error = native.Slot(), Refused()
    error.slot = slot  # type: ignore[attr-defined]
    slot.fail(error)
    slot.fail(error)
    gone = weakref.ref(error)
    del slot, error
    gc.collect()
    assert gone() is None


def test_what_a_slot_was_told_is_its_offset_or_an_error_of_its_own_for_each_who_asks() -> None:
    verdicts: list[int] = []

    class Errors:
        def error_of(self, results: int) -> FastQuorumError:
            verdicts.append(results)
            return StorageFailed(detail="full")

    good, bad, refused = (native.Slot(Errors()) for _ in range(3))
    with pytest.raises(AppendTimeout, match=r"not committed within 0\.01 s; it may still commit"):
        good.result(0.01)
    good.set(12)
    bad.set(-1003)
    refused.fail(RecordTooLarge(size_bytes=10, limit_bytes=9))
    assert good.result() == good.result(timeout=0) == 12
    with pytest.raises(StorageFailed, match="full"):
        bad.result()
    assert verdicts == [-1003]
    with pytest.raises(RecordTooLarge) as first:
        refused.result()
    with pytest.raises(RecordTooLarge) as second:
        refused.result(1)
    assert first.value is not second.value


@pytest.fixture
def loop() -> Iterator[AbstractEventLoop]:
    loop = new_event_loop()
    yield loop
    loop.close()


def results_in_callback(loop: AbstractEventLoop, box: Any, results: list[int]) -> list[int]:
    """What was told by the end of the callback that resolves the mailbox: later a loop's own turns would have."""
    by_its_end: list[int] = []

    def resolve() -> None:
        box.resolve(lambda it, result: None)
        by_its_end.extend(results)

    loop.call_soon(resolve)
    loop.run_until_complete(asyncio.sleep(0))
    return by_its_end


def test_outcomes_are_resolved_and_failures_told_apart(loop: AbstractEventLoop) -> None:
    box = native.Mailbox()
    good, bad, known = kernels.Outcome(loop), kernels.Outcome(loop), kernels.Outcome(loop)
    known.set_result(9)
    box.post(good, 3)
    box.post(bad, -3)
    box.post(known, 4)
    failed: list[tuple[object, int]] = []
    box.resolve(lambda it, results: failed.append((it, results)))
    assert good.result() == 3
    assert failed == [(bad, -3)]
    assert known.result() == 9


def test_who_shares_a_read_barrier_does_not_overtake_a_callback_of_an_append(loop: AbstractEventLoop) -> None:
    box, results = native.Mailbox(), list[str]()
    appended, late, shared = kernels.Outcome(loop), kernels.Outcome(loop), [kernels.Outcome(loop) for _ in range(2)]

    async def wait(outcome: Outcome, name: str) -> None:
        await outcome
        results.append(name)

    tasks = [loop.create_task(wait(each, name)) for each, name in zip([*shared, late], "bcd", strict=True)]
    loop.run_until_complete(asyncio.sleep(0))
    appended.add_done_callback(lambda _: results.append("a"))
    box.post(appended, 1)
    box.post(SharedOutcome(shared, kernels), 2)
    box.post(late, 3)
    loop.call_soon(box.resolve, lambda it, result: None)
    loop.run_until_complete(asyncio.wait(tasks))
    assert results == ["a", "b", "c", "d"]


def test_who_shares_a_read_barrier_goes_on_at_once_where_nobody_is_overtaken(loop: AbstractEventLoop) -> None:
    box, results = native.Mailbox(), list[int]()
    shared = [kernels.Outcome(loop) for _ in range(2)]

    async def wait(outcome: Outcome) -> None:
        results.append(await outcome)

    tasks = [loop.create_task(wait(each)) for each in shared]
    loop.run_until_complete(asyncio.sleep(0))
    box.post(SharedOutcome(shared, kernels), 2)
    assert results_in_callback(loop, box, results) == results == [2, 2]
    assert all(task.done() for task in tasks)


def test_a_mailbox_is_told_of_commits_with_one_reference_to_each_waiter(rig: Rig) -> None:
    rig.shell.hold_syncs(True)
    rig.lead([1])
    box, waiter = native.Mailbox(), object()
    count = sys.getrefcount(waiter)
    assert [rig.shell.append_mail(b"value", box, waiter) for _ in range(5)] == [1, 2, 3, 4, 5]
    assert sys.getrefcount(waiter) == count + 5
    rig.shell.freeze()
    assert rig.shell.append_mail(b"value", box, waiter) == AppendVerdict.FROZEN
    assert sys.getrefcount(waiter) == count + 5, "a refused one is let go of"
    rig.shell.release_appends()
    rig.shell.resume(now_us())
    rig.shell.hold_syncs(False)
    results: list[int] = []
    while len(results) < 5:
        assert is_readable(box, 20)
        results += [offset for _, offset in box.collect()]
    assert results == [1, 2, 3, 4, 5]
    assert sys.getrefcount(waiter) == count


def test_a_child_that_lets_go_of_a_mailbox_leaves_its_parents_signal_alone() -> None:
    subprocess.run([sys.executable, SCRIPTS / "forked_mailbox.py"], check=True, timeout=60)


def test_outcomes_are_told_and_who_waits_goes_on_in_the_same_callback(loop: AbstractEventLoop) -> None:
    box, results = native.Mailbox(), list[int]()
    outcomes = [kernels.Outcome(loop) for _ in range(3)]

    async def wait(outcome: Outcome) -> None:
        results.append(await outcome)

    tasks = [loop.create_task(wait(each)) for each in outcomes]
    for number, each in enumerate(outcomes):
        box.post(each, number)

    assert results_in_callback(loop, box, results) == results == [0, 1, 2]
    assert all(task.done() for task in tasks)


def test_what_ends_the_loop_in_the_midst_leaves_the_rest_in_the_mailbox(loop: AbstractEventLoop) -> None:
    box, results, failed = native.Mailbox(), list[int](), list[int]()
    outcomes = [kernels.Outcome(loop) for _ in range(4)]

    async def wait(outcome: Outcome) -> None:
        results.append(await outcome)
        if results == [0, 1]:
            raise SystemExit(3)

    tasks = [loop.create_task(wait(each)) for each in outcomes]
    loop.add_reader(box.fileno(), box.resolve, lambda it, result: failed.append(result))
    for number, each in enumerate(outcomes[:3]):
        box.post(each, number)
    with pytest.raises(SystemExit):
        loop.run_forever()
    assert results == [0, 1]
    assert is_readable(box)
    box.post(outcomes[3], -5)
    assert [result for _, result in box.collect()] == [2, -5], "in the order in which they came"
    assert not is_readable(box)
    box.post(outcomes[2], 2)
    box.post(outcomes[3], -5)
    loop.run_until_complete(tasks[2])
    assert (results, failed) == ([0, 1, 2], [-5])
    assert not is_readable(box)
    loop.remove_reader(box.fileno())
    tasks[3].cancel()
    loop.run_until_complete(wait_closed(tasks[3]))
    assert tasks[1].done()
    tasks[1].exception()


async def wait_closed(task: Task[None]) -> None:
    with suppress(CancelledError):
        await task


# --- appends ----------------------------------------------------------------------------------------------------------


def test_a_batch_of_values_is_told_its_first_offset(rig: Rig) -> None:
    rig.lead([1])
    slot = native.Slot()
    assert rig.shell.append_slot([b"a", bytearray(b"b"), memoryview(b"c")], slot) == 1
    assert result(slot) == 1
    assert result(rig.append()) == 4
    with pytest.raises(UsageError, match="no value"):
        rig.shell.append_slot([], native.Slot())


def test_a_clients_batch_is_stamped_and_told_as_values_are(rig: Rig) -> None:
    rig.lead([1])
    box = native.Mailbox()
    assert rig.shell.append_encoded(bytearray(value_batch(0, 0, 3)), 3, 1_000, box, "waiting") == 1
    assert is_readable(box, 20)
    assert box.collect() == [("waiting", 1)]
    header = batch_headers(rig.stored())[-1]
    assert (header.base_offset, header.last_offset, header.leader_epoch, header.crc_valid) == (1, 3, 5, True)


def a_producers_batch(sequence: int, count: int = 1, *, epoch: int = 0) -> bytearray:
    stamp = {"producer_id": 7, "producer_epoch": epoch, "base_sequence": sequence}
    batch = kernels.encode_values([b"v"] * count, base_offset=0, leader_epoch=0, timestamp_ms=1_000, **stamp)
    return bytearray(batch)


def test_a_batch_that_comes_again_is_told_what_the_first_one_is_and_not_appended(rig: Rig) -> None:
    rig.lead()
    peer, box = rig.voter(2), native.Mailbox()

    def append(batch: bytearray, count: int, waiting: str) -> int:
        offset: int = rig.shell.append_encoded(batch, count, 1_000, box, waiting, False, True)
        return offset

    new = a_producers_batch(0, 2)
    assert rig.shell.append_encoded(new, 2, 1_000, box, "of whom nothing is known") == AppendVerdict.NOT_NEXT
    assert append(new, 2, "first") == 1
    assert append(a_producers_batch(2), 1, "second") == 3
    assert append(a_producers_batch(0, 2), 2, "first again") == 1
    assert append(a_producers_batch(4), 1, "a gap") == AppendVerdict.NOT_NEXT
    assert append(a_producers_batch(1, epoch=1), 1, "a later epoch begins at 0") == AppendVerdict.NOT_NEXT
    assert rig.shell.end_offset == 4
    peer.answer()
    peer.fetch(3)
    assert is_readable(box, 20)
    assert box.collect() == [("first", 1), ("first again", 1)]
    assert append(a_producers_batch(0, 2), 2, "when it is committed") == 1
    assert box.collect() == [("when it is committed", 1)]
    assert append(a_producers_batch(0, epoch=1), 1, "a later epoch") == 4
    assert append(a_producers_batch(3), 1, "an epoch that is over") == AppendVerdict.NOT_NEXT
    known = rig.producers.get(7)
    assert known is not None
    assert (known.epoch, [batch.base_offset for batch in known.batches]) == (1, [4])


def test_what_is_not_known_of_producers_is_read_before_they_append(rig: Rig) -> None:
    rig.producers.begin_anew(0)
    rig.lead([1])
    box = native.Mailbox()
    assert rig.shell.append_encoded(a_producers_batch(0), 1, 1_000, box, "too early") == AppendVerdict.PRODUCERS_BEHIND
    assert rig.shell.append_encoded(bytearray(value_batch(0, 0, 1)), 1, 1_000, box, "nobody's") == 1
    rig.producers.read(rig.stored(), 0, 2)
    assert rig.shell.append_encoded(a_producers_batch(0), 1, 1_000, box, "now", False, True) == 2
    assert rig.producers.end_offset == 3


def test_more_records_than_may_wait_are_refused_until_others_are_told(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(records_max=3)
    rig.shell.hold_syncs(True)
    rig.lead([1])
    first = native.Slot()
    assert rig.shell.append_slot([b"v"] * 5, first) == 1, "the first is taken whatever it is"
    assert rig.shell.append_slot(b"v", native.Slot()) == AppendVerdict.RECORDS_OVERLOADED
    assert rig.shell.waiting() == (5, 5)
    rig.shell.hold_syncs(False)
    assert result(first) == 1
    slots = [rig.append() for _ in range(2)]
    assert [result(slot) for slot in slots] == [6, 7]
    assert rig.shell.waiting() == (0, 0)


def test_more_bytes_than_may_wait_are_refused_until_others_are_told(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(bytes_max=100)
    rig.shell.hold_syncs(True)
    rig.lead([1])
    first = rig.append(b"v" * 90)
    assert rig.shell.append_slot(b"v" * 11, native.Slot()) == AppendVerdict.BYTES_OVERLOADED
    second = rig.append(b"v" * 10)
    rig.shell.hold_syncs(False)
    assert (result(first), result(second)) == (1, 2)


def test_whoever_watches_is_told_of_the_next_commit_as_news(rig: Rig) -> None:
    rig.lead([1])
    rig.collect()
    assert rig.shell.watch_commit() == rig.shell.high_watermark
    assert not is_readable(rig.shell)
    slot = rig.append()
    assert is_readable(rig.shell, 20)
    assert result(slot) == 1
