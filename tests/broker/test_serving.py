"""What a program does as the broker for others, against real controllers: let begin, ended, and not passed for done."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import fastquorum as fq
from fastquorum import sync
from fastquorum.broker import State, View
from fastquorum.errors import ClosedError, Fenced, UsageError
from tests.api.nodes import CLUSTER_ID, WAIT_S
from tests.broker.clusters import OFTEN, join, one_controller, seen

Program = Callable[[fq.broker.Membership], Awaitable[None]]


def is_state(state: State) -> Callable[[View], bool]:
    return lambda view: view.state is state


def in_a_loop(root: Path, program: Program) -> None:
    """The program, as a member that may act."""

    async def main(bootstrap: str) -> None:
        async with await fq.broker.join(bootstrap=bootstrap, broker_id=7, cluster_id=CLUSTER_ID, **OFTEN) as membership:
            await membership.wait_active(WAIT_S)
            await program(membership)

    with one_controller(root) as bootstrap:
        asyncio.run(asyncio.wait_for(main(bootstrap), 3 * WAIT_S))


async def until(membership: fq.broker.Membership, state: State) -> None:
    async for view in membership.changes():
        if view.state is state:
            return
    raise AssertionError(f"it never was {state}: {membership.view}")


async def fence(membership: fq.broker.Membership) -> None:
    """The controller fences it."""
    membership.set_ready(False)
    await until(membership, State.FENCED)


# --- in threads -------------------------------------------------------------------------------------------------------


def be_fenced(membership: sync.Membership) -> None:
    """By the controller."""
    membership.set_ready(False)
    seen(membership, is_state(State.FENCED))


def be_fenced_for_a_while(membership: sync.Membership) -> None:
    be_fenced(membership)
    membership.set_ready()
    membership.wait_active(WAIT_S)


def serve(membership: sync.Membership, *steps: Callable[[sync.Membership], object]) -> int:
    """A piece of work; the epoch that a client is told it was done under."""
    with membership.serving() as work:
        for step in steps:
            step(membership)
        return work.epoch


def test_a_fenced_broker_ends_what_it_was_asked_before_and_takes_nothing_new(tmp_path: Path) -> None:
    taken: list[str] = []

    def take_more(membership: sync.Membership) -> None:
        with pytest.raises(Fenced) as refused:
            serve(membership, lambda _: taken.append("new"))
        assert not refused.value.maybe_done

    with one_controller(tmp_path) as bootstrap, join(bootstrap) as membership:
        epoch = membership.wait_active(WAIT_S)
        assert serve(membership) == epoch
        with pytest.raises(Fenced) as fenced:
            serve(membership, be_fenced, take_more, lambda _: taken.append("before"))
        assert taken == ["before"], "that came to its end, and nothing else began"
        assert (fenced.value.broker_id, fenced.value.epoch, fenced.value.maybe_done) == (7, epoch, True)


def test_work_hears_of_the_fence_at_any_step(tmp_path: Path) -> None:
    with one_controller(tmp_path) as bootstrap, join(bootstrap) as membership:
        epoch = membership.wait_active(WAIT_S)
        with contextlib.suppress(Fenced), membership.serving() as work:
            assert work.check() == epoch
            be_fenced(membership)
            with pytest.raises(Fenced) as fenced:
                work.check()
            assert fenced.value.maybe_done


def test_what_began_before_a_fence_is_over_though_the_member_may_act_again(tmp_path: Path) -> None:
    with one_controller(tmp_path) as bootstrap, join(bootstrap) as membership:
        epoch = membership.wait_active(WAIT_S)
        with pytest.raises(Fenced, match="fenced since this began"):
            serve(membership, be_fenced_for_a_while)
        assert serve(membership) == membership.check(epoch) == epoch, "nobody else was this broker"


def test_a_stopping_broker_serves_on_until_it_has_gone(tmp_path: Path) -> None:
    with one_controller(tmp_path) as bootstrap:
        membership = join(bootstrap, heartbeat_timeout_us=60_000_000)
        epoch = membership.wait_active(WAIT_S)
    membership.request_stop(1.0)  # nobody is left who could let it go
    seen(membership, is_state(State.STOPPING))
    assert serve(membership) == epoch
    with pytest.raises(ClosedError, match="membership is over"):
        serve(membership, sync.Membership.close)
    with pytest.raises(ClosedError, match="membership is over"):
        serve(membership, lambda _: pytest.fail("it is over"))


def test_an_error_of_the_works_own_goes_first(tmp_path: Path) -> None:
    def fail(_: sync.Membership) -> None:
        raise KeyError("what was asked for")

    with one_controller(tmp_path) as bootstrap, join(bootstrap) as membership:
        membership.wait_active(WAIT_S)
        with pytest.raises(KeyError):
            serve(membership, be_fenced, fail)


def test_before_it_is_a_member_nothing_begins() -> None:
    with join("127.0.0.1:1") as membership:
        with pytest.raises(Fenced, match="under epoch -1"):
            serve(membership, lambda _: pytest.fail("it is no member yet"))
        with pytest.raises(UsageError, match="has not begun"):
            membership.serving().check()


# --- in an event loop -------------------------------------------------------------------------------------------------


def test_in_an_event_loop_work_is_not_torn_off_either(tmp_path: Path) -> None:
    steps = []

    async def program(membership: fq.broker.Membership) -> None:
        async def work() -> None:
            async with membership.serving():
                steps.append("begun")
                await fence(membership)
                steps.append("ended")

        with pytest.raises(Fenced) as fenced:
            await asyncio.create_task(work())
        assert fenced.value.maybe_done
        with pytest.raises(Fenced):
            await work()

    in_a_loop(tmp_path, program)
    assert steps == ["begun", "ended"]


def test_work_that_waits_may_be_given_up_at_the_fence(tmp_path: Path) -> None:
    async def program(membership: fq.broker.Membership) -> None:
        has_begun = asyncio.Event()

        async def wait_for_ever() -> None:
            async with membership.serving(cancel=True):
                has_begun.set()
                await asyncio.Event().wait()

        async def work() -> int:
            with pytest.raises(Fenced) as fenced:
                await wait_for_ever()
            assert fenced.value.maybe_done
            task = asyncio.current_task()
            assert task is not None
            return task.cancelling()

        working = asyncio.create_task(work())
        await has_begun.wait()
        membership.set_ready(False)
        assert await working == 0, "the task itself is not cancelled"

    in_a_loop(tmp_path, program)


def test_who_cancels_the_task_itself_is_heard(tmp_path: Path) -> None:
    async def program(membership: fq.broker.Membership) -> None:
        has_begun = asyncio.Event()

        async def work() -> None:
            async with membership.serving(cancel=True):
                has_begun.set()
                await asyncio.Event().wait()

        working = asyncio.create_task(work())
        await has_begun.wait()
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
        assert membership.is_active

    in_a_loop(tmp_path, program)


def test_a_fenced_broker_answers_no_client(tmp_path: Path) -> None:
    """A client that asks a fenced broker, or asked it before the fence, gets no answer: its connection ends."""

    async def program(membership: fq.broker.Membership) -> None:
        may_answer = asyncio.Event()
        may_answer.set()
        has_request = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                while await reader.readline():
                    async with membership.serving() as work:
                        has_request.set()
                        await may_answer.wait()
                    writer.write(b"under %d\n" % work.epoch)
            except Fenced:
                pass  # which ends the connection
            finally:
                writer.close()

        async def ask(client: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> bytes:
            client[1].write(b"read\n")
            return await client[0].readline()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            at = server.sockets[0].getsockname()
            first, second = await asyncio.open_connection(*at), await asyncio.open_connection(*at)
            assert await ask(first) == b"under %d\n" % membership.epoch
            has_request.clear()
            may_answer.clear()
            asking = asyncio.create_task(ask(first))
            await has_request.wait()
            await fence(membership)
            assert await ask(second) == b""
            may_answer.set()
            assert await asking == b"", "it was asked before, and it is ended: without an answer"
            membership.set_ready()
            await membership.wait_active(WAIT_S)
            third = await asyncio.open_connection(*at)
            assert await ask(third) == b"under %d\n" % membership.epoch
            for _, writer in (first, second, third):
                writer.close()
                await writer.wait_closed()

    in_a_loop(tmp_path, program)
