"""What becomes of an append, awaited: the twins, and asyncio's own future where it promises the same."""

import asyncio
import contextlib
import contextvars
import gc
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastquorum.errors import FastQuorumError, NotLeader
from fastquorum.kernels import Kernels, Outcome
from tests.kernels.conftest import Twins


def new(kernels: Kernels) -> Outcome:
    return kernels.Outcome(asyncio.get_running_loop())


def in_loop(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(main())


async def turns(count: int = 3) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def in_callback(act: Callable[[], object]) -> None:
    """Act outside every task, as a loop calls the reader of a mailbox."""
    done, failures = asyncio.Event(), list[Exception]()

    def call() -> None:
        done.set()
        try:
            act()
        except Exception as error:  # a loop would only log it, and the test pass
            failures.append(error)

    asyncio.get_running_loop().call_soon(call)
    await done.wait()
    for error in failures:
        raise error


async def value_of(outcome: Outcome) -> int:
    return await outcome


def test_tasks_that_wait_get_the_result_and_so_does_who_comes_later(kernels: Kernels) -> None:
    async def main() -> None:
        outcome = new(kernels)
        waiting = [asyncio.create_task(value_of(outcome)) for _ in range(3)]
        await turns()
        assert outcome.is_awaited()
        assert not outcome.done()
        outcome.set_result(7)
        assert outcome.done()
        assert await asyncio.gather(*waiting) == [7, 7, 7]
        assert await outcome == 7
        assert outcome.result() == 7
        assert not outcome.is_awaited()

    in_loop(main)


def test_an_error_is_raised_by_each_await(kernels: Kernels) -> None:
    async def main() -> None:
        outcome = new(kernels)
        waiting = [asyncio.create_task(value_of(outcome)) for _ in range(2)]
        await turns()
        outcome.set_exception(NotLeader(leader_id=2))
        for each in (*waiting, outcome):
            with pytest.raises(NotLeader):
                await each
        with pytest.raises(NotLeader):
            outcome.result()

    in_loop(main)


def test_it_is_told_once(kernels: Kernels) -> None:
    async def main() -> None:
        outcome = new(kernels)
        with pytest.raises(asyncio.InvalidStateError):
            outcome.result()
        outcome.set_result(1)
        with pytest.raises(asyncio.InvalidStateError):
            outcome.set_result(2)
        with pytest.raises(asyncio.InvalidStateError):
            outcome.set_exception(NotLeader())
        assert outcome.result() == 1

    in_loop(main)


def test_who_looks_is_called_in_the_loop_in_turn_with_who_waits(kernels: Kernels) -> None:
    async def main() -> None:
        outcome, log = new(kernels), list[str]()

        async def wait(name: str) -> None:
            await outcome
            log.append(name)

        first = asyncio.create_task(wait("a task"))
        await turns()
        outcome.add_done_callback(lambda it: log.append(f"a callback {it.result()}"))
        last = asyncio.create_task(wait("another"))
        await turns()
        outcome.set_result(3)
        assert log == []
        await asyncio.gather(first, last)
        outcome.add_done_callback(lambda _: log.append("late"))
        assert log == ["a task", "a callback 3", "another"]
        await turns()
        assert log == ["a task", "a callback 3", "another", "late"]

    in_loop(main)


def test_who_looks_is_called_in_the_context_in_which_it_asked(kernels: Kernels) -> None:
    who = contextvars.ContextVar("who", default="nobody")

    async def main() -> None:
        outcome, seen = new(kernels), list[str]()
        who.set("asker")
        outcome.add_done_callback(lambda _: seen.append(who.get()))
        who.set("teller")
        outcome.set_result(1)
        outcome.add_done_callback(lambda _: seen.append(who.get()))
        await turns()
        assert seen == ["asker", "teller"]

    in_loop(main)


def test_nobody_is_overtaken_by_who_could_go_on_at_once(kernels: Kernels) -> None:
    async def main() -> None:
        three, log = [new(kernels) for _ in range(3)], list[str]()

        async def wait(name: str, outcome: Outcome) -> None:
            await outcome
            log.append(name)

        tasks = [asyncio.create_task(wait("first", three[0]))]
        three[1].add_done_callback(lambda _: log.append("second"))
        tasks.append(asyncio.create_task(wait("third", three[2])))
        await turns()
        await in_callback(lambda: kernels.settle_all(three, 1))
        await asyncio.wait(tasks)
        assert log == ["first", "second", "third"]

    in_loop(main)


def test_an_error_that_was_raised_leaves_no_garbage(kernels: Kernels) -> None:
    async def main() -> None:
        async def fail() -> None:
            outcome = new(kernels)
            asyncio.get_running_loop().call_soon(outcome.set_exception, NotLeader())
            try:
                await outcome
            finally:
                del outcome

        gc.collect()
        gc.disable()
        try:
            with contextlib.suppress(NotLeader):
                await asyncio.create_task(fail())
            assert not [each for each in found_garbage() if isinstance(each, NotLeader)]
        finally:
            gc.enable()

    in_loop(main)


def found_garbage() -> list[object]:
    """What only the collector finds."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
        return gc.garbage[:]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()


def test_who_is_cancelled_leaves_the_others_waiting(kernels: Kernels) -> None:
    async def main() -> None:
        outcome = new(kernels)
        tasks = [asyncio.create_task(value_of(outcome)) for _ in range(3)]
        await turns()
        tasks[0].cancel("enough")
        with pytest.raises(asyncio.CancelledError, match="enough"):
            await tasks[0]
        tasks[1].cancel()
        await turns()
        assert tasks[1].cancelled()
        assert not outcome.done()
        assert outcome.is_awaited()
        outcome.set_result(4)
        assert await tasks[2] == 4

    in_loop(main)


def test_nobody_waits_when_all_are_cancelled(kernels: Kernels) -> None:
    async def main() -> None:
        outcome = new(kernels)
        tasks = [asyncio.create_task(value_of(outcome)) for _ in range(2)]
        await turns()
        for task in tasks:
            task.cancel()
        await turns()
        assert not outcome.is_awaited()
        outcome.set_exception(NotLeader())  # and nobody is told of it

    in_loop(main)


def test_a_task_cancelled_before_it_waits_does_not(kernels: Kernels) -> None:
    async def main() -> None:
        outcome = new(kernels)

        async def cancel_and_wait() -> None:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await outcome

        task = asyncio.create_task(cancel_and_wait())
        await turns()
        assert task.cancelled()
        assert not outcome.is_awaited()

    in_loop(main)


def test_a_time_limit_ends_the_await_alone(kernels: Kernels) -> None:
    async def main() -> None:
        outcome = new(kernels)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                await outcome
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(outcome, 0.001)  # type: ignore[arg-type]
        assert not outcome.done()
        outcome.set_result(1)
        assert await asyncio.wait_for(outcome, 1) == 1  # type: ignore[arg-type]

    in_loop(main)


def test_many_are_told_in_one_call_and_those_that_know_are_left_alone(kernels: Kernels) -> None:
    async def main() -> None:
        known, gone, others = new(kernels), new(kernels), [new(kernels) for _ in range(3)]
        known.set_result(1)
        tasks = [asyncio.create_task(value_of(each)) for each in (known, gone, *others)]
        await turns(1)
        tasks[1].cancel()
        await in_callback(lambda: kernels.settle_all([known, gone, *others], 9))
        await asyncio.wait(tasks)
        assert [task.cancelled() or task.result() for task in tasks] == [1, True, 9, 9, 9]

    in_loop(main)


def test_whoever_goes_on_at_once_does_so_as_its_own_task_in_its_own_context(kernels: Kernels) -> None:
    who = contextvars.ContextVar("who", default="nobody")

    async def main() -> None:
        outcome, seen = new(kernels), list[tuple[str, asyncio.Task[None] | None]]()

        async def wait(name: str) -> None:
            who.set(name)
            await outcome
            seen.append((who.get(), asyncio.current_task()))
            who.set("somebody else")

        task = asyncio.create_task(wait("me"))
        await turns()
        await in_callback(lambda: kernels.settle_all([outcome], 1))
        await task
        assert seen == [("me", task)]
        assert who.get() == "nobody"

    in_loop(main)


def test_what_ends_the_loop_leaves_nobody_untold(kernels: Kernels) -> None:
    loop = asyncio.new_event_loop()
    waiting = [kernels.Outcome(loop) for _ in range(3)]

    async def leave() -> None:
        await waiting[0]
        raise SystemExit(3)

    tasks = [loop.create_task(leave()), *(loop.create_task(value_of(each)) for each in waiting[1:])]
    loop.call_later(0.001, kernels.settle_all, waiting, 5)
    with pytest.raises(SystemExit):
        loop.run_forever()
    assert loop.run_until_complete(asyncio.gather(*tasks[1:])) == [5, 5]
    assert isinstance(tasks[0].exception(), SystemExit)
    loop.close()


def test_a_task_may_wait_again_at_once_and_be_told_in_the_same_callback(kernels: Kernels) -> None:
    async def main() -> None:
        waiting = [new(kernels) for _ in range(100)]

        async def one_after_another() -> int:
            return sum([await each for each in waiting])

        task = asyncio.create_task(one_after_another())
        await turns()
        await in_callback(lambda: kernels.settle_all(waiting, 1))
        assert await task == 100

    in_loop(main)


def test_one_that_nobody_tells_goes_with_the_task_that_waits(kernels: Kernels) -> None:
    gone: list[str] = []

    class Recorder:
        def __del__(self) -> None:
            gone.append("gone")

    async def wait(outcome: Outcome, kept: Recorder) -> None:
        await outcome

    loop = asyncio.new_event_loop()
    task = loop.create_task(wait(kernels.Outcome(loop), Recorder()))
    loop.call_soon(loop.stop)
    loop.run_forever()
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    del task
    loop.close()
    gc.collect()
    assert gone == ["gone"]


def test_awaited_outside_a_task_it_says_so(twins: Twins) -> None:
    loop = asyncio.new_event_loop()
    coroutine = value_of(twins.native.Outcome(loop))
    waiting = coroutine.send(None)
    waiting.add_done_callback(lambda _: None)
    with pytest.raises(RuntimeError, match="asyncio task"):
        coroutine.send(None)
    with pytest.raises(RuntimeError, match="one task"):
        waiting.add_done_callback(lambda _: None)
    loop.close()


def test_the_native_one_goes_on_in_the_callback_itself(twins: Twins) -> None:
    native = twins.native

    async def main() -> None:
        waiting = [new(native) for _ in range(3)]
        tasks = [asyncio.create_task(value_of(each)) for each in waiting]
        await turns()

        def tell() -> None:
            native.settle_all(waiting, 2)
            assert [task.done() for task in tasks] == [True, True, True]

        await in_callback(tell)
        assert [task.result() for task in tasks] == [2, 2, 2]

    in_loop(main)


def test_it_can_be_driven_as_a_generator(kernels: Kernels) -> None:
    loop = asyncio.new_event_loop()
    generator = kernels.Outcome(loop).__await__()
    assert generator.send(None) is not None
    with pytest.raises(KeyError):
        generator.throw(KeyError("x"))
    generator.close()
    loop.close()


def test_a_turn_gathers_bytes_and_submits_everything_else(kernels: Kernels) -> None:
    loop, ended, submitted = asyncio.new_event_loop(), list[int](), list[object]()

    def submit(value: object) -> Outcome:
        submitted.append(value)
        return kernels.Outcome(loop)

    turn = kernels.Turn(loop, lambda: ended.append(1), submit)
    assert not turn
    first, second = turn.gather(b"a"), turn.gather([b"b"])
    others: list[object] = [bytearray(b"c"), [b"d", b"e"], [bytearray(b"f")], [[b"g"]], (b"h",), "i", []]
    for each in others:
        turn.gather(each)
    assert (submitted, ended, len(turn)) == (others, [1], 2)
    values, outcomes = turn.take()
    assert values == [b"a", b"b"]
    assert outcomes[0] is first
    assert outcomes[1] is second
    assert not turn
    turn.gather(b"j")
    assert ended == [1, 1]
    assert turn.take()[0] == [b"j"]
    loop.close()


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("wait"), st.integers(0, 2)),
        st.tuples(st.just("look"), st.integers(0, 2)),
        st.tuples(st.just("cancel"), st.integers(0, 9)),
        st.tuples(st.just("tell"), st.integers(0, 2)),
        st.tuples(st.just("fail"), st.integers(0, 2)),
        st.tuples(st.just("tell all"), st.just(0)),
        st.tuples(st.just("turn"), st.just(0)),
    ),
    max_size=30,
)


async def played(kernels: Kernels, steps: list[tuple[str, int]]) -> list[object]:
    """Everything that can be seen of these steps, in its order."""
    three = [new(kernels) for _ in range(3)]
    tasks: list[asyncio.Task[None]] = []
    log: list[object] = []

    async def wait(name: int, outcome: Outcome) -> None:
        try:
            log.append((name, await outcome))
        except (FastQuorumError, asyncio.CancelledError) as error:
            log.append((name, type(error).__name__))

    for at, (step, which) in enumerate(steps):
        if step == "wait":
            tasks.append(asyncio.create_task(wait(at, three[which])))
        elif step == "look":
            three[which].add_done_callback(lambda it, at=at: log.append((at, it is not None)))
        elif step == "cancel" and which < len(tasks):
            log.append(tasks[which].cancel())
        elif step == "turn":
            await asyncio.sleep(0)
        elif step == "tell all":
            await in_callback(lambda at=at: kernels.settle_all(three, at))  # type: ignore[misc]
            await turns()
        elif step in ("tell", "fail") and not three[which].done():
            if step == "tell":
                three[which].set_result(at)
            else:
                three[which].set_exception(NotLeader())
        log.append([(each.done(), each.is_awaited()) for each in three])
    for each in three:
        if not each.done():
            each.set_result(-1)
    await asyncio.gather(*tasks, return_exceptions=True)
    return log


@given(steps=STEPS)
def test_the_twins_do_the_same_in_the_same_order(twins: Twins, steps: list[tuple[str, int]]) -> None:
    assert asyncio.run(played(twins.native, steps)) == asyncio.run(played(twins.pure, steps))
