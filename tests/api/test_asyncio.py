"""The asyncio API: its own ways of ending, waiting and failing, and that its twin has the same face."""

import asyncio
import inspect
import threading
from pathlib import Path
from typing import Literal

import pytest

import fastquorum as fq
from fastquorum import sync
from fastquorum.api import quorum as asynchronous
from fastquorum.client.connection import Deadline
from fastquorum.client.quorum import QuorumClient
from fastquorum.errors import AppendTimeout, ClosedError, NotLeader, NotReady, Overloaded, RecordTooLarge, UsageError
from fastquorum.kernels import load
from fastquorum.loopback import free_ports
from fastquorum.node.io.callers.tickets import LoopTicket
from fastquorum.node.io.clock import now_us
from fastquorum.node.io.native.waiters import NativeLoopCallers
from fastquorum.testing import async_quorum
from tests.api.nodes import CLUSTER_ID, QUICK, WAIT_S, stalled, voters


async def open_one(path: Path, **options: object) -> fq.Quorum:
    quorum = await fq.open(str(path), **{**QUICK, "node_id": 1, **options})  # type: ignore[arg-type]
    await quorum.wait_ready(WAIT_S)
    return quorum


def test_many_appends_in_flight_are_all_answered_in_order(tmp_path: Path) -> None:
    async def main() -> None:
        async with await open_one(tmp_path) as quorum:
            offsets = await asyncio.gather(*(quorum.append(b"%d" % number) for number in range(500)))
            assert offsets == sorted(set(offsets))
            values = [record.value async for item in quorum.committed(follow=False) for record in item.records]
            assert values == [b"%d" % number for number in range(500)]

    asyncio.run(main())


@pytest.mark.parametrize("kernels", ["native", "pure"])
def test_appends_of_one_turn_keep_their_order_whichever_way_they_came(tmp_path: Path, kernels: str) -> None:
    async def main() -> None:
        async with await open_one(tmp_path, kernels=kernels) as quorum:
            first = asyncio.ensure_future(quorum.append(b"gathered"))
            await asyncio.sleep(0)
            now = quorum.append_nowait([b"now", b"too"])
            each = quorum.append_each([b"one", b"two"])
            last = asyncio.ensure_future(quorum.append(bytearray(b"copied")))
            offsets = [await first, await now, *[await one for one in each], await last]
            assert [offset - offsets[0] for offset in offsets] == [0, 1, 3, 4, 5]

    asyncio.run(main())


def test_a_watcher_sees_what_is_committed_after_it_began_to_wait(tmp_path: Path) -> None:
    async def main() -> None:
        async with await open_one(tmp_path) as quorum:
            seen: list[bytes | None] = []
            waiting = asyncio.Event()

            async def watch() -> None:
                async for item in quorum.committed(progress=True):
                    seen.extend(record.value for record in item.records)
                    waiting.set()
                    if len(seen) == 3:
                        return

            watcher = asyncio.create_task(watch())
            await waiting.wait()
            for value in (b"a", b"b", b"c"):
                await quorum.append(value)
            await asyncio.wait_for(watcher, WAIT_S)
            assert seen == [b"a", b"b", b"c"]

    asyncio.run(main())


def test_closing_ends_watchers_and_fails_what_comes_after(tmp_path: Path) -> None:
    async def main() -> None:
        quorum = await open_one(tmp_path)

        async def watch_commits() -> int:
            return len([item async for item in quorum.committed()])

        async def watch_leaders() -> int:
            return len([event async for event in quorum.leadership()])

        watchers = [asyncio.create_task(watch_commits()), asyncio.create_task(watch_leaders())]
        await quorum.append(b"x")
        await quorum.close()
        await quorum.close()
        commits, leaders = await asyncio.wait_for(asyncio.gather(*watchers), WAIT_S)
        assert commits <= 2  # the value, and that nothing was there before it
        assert leaders >= 1
        with pytest.raises(ClosedError):
            await quorum.append(b"x")
        with pytest.raises(ClosedError):
            await quorum.wait_ready(1)

    asyncio.run(main())


def test_a_cancelled_append_leaves_the_quorum_well(tmp_path: Path) -> None:
    async def main() -> None:
        async with await open_one(tmp_path) as quorum:
            task = asyncio.create_task(quorum.append(b"perhaps"))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await quorum.append(b"surely") >= 1

    asyncio.run(main())


def test_appends_of_one_turn_go_together_in_the_order_they_were_made(tmp_path: Path) -> None:
    async def main() -> None:
        async with await open_one(tmp_path) as quorum:
            first = asyncio.create_task(quorum.append(b"a"))
            second = asyncio.create_task(quorum.append(b"b"))
            await asyncio.sleep(0)
            third = quorum.append_nowait(b"c")  # taken at once, so the others were taken before it
            offsets = await asyncio.gather(first, second, third, quorum.append(bytearray(b"d")), quorum.append(b"e"))
            assert offsets == list(range(offsets[0], offsets[0] + 5))
            batches = [item async for item in quorum.committed(offsets[0], follow=False)]
            assert [record.value for record in batches[0].records[:2]] == [b"a", b"b"], "one batch"
            assert [record.value for batch in batches for record in batch.records] == [b"a", b"b", b"c", b"d", b"e"]

    asyncio.run(main())


def test_of_the_appends_of_one_turn_each_that_is_too_much_fails_by_itself(tmp_path: Path) -> None:
    async def main() -> None:
        limits = {"batch_bytes_max": 4096, "append_queue_records_max": 20}
        async with await open_one(tmp_path, **limits) as quorum:
            values = [b"a", b"x" * 5000, b"b", *[b"c"] * 30]
            found = await asyncio.gather(*map(quorum.append, values), return_exceptions=True)
            assert isinstance(found[1], RecordTooLarge)
            taken = [offset for offset in found if isinstance(offset, int)]
            assert taken == list(range(taken[0], taken[0] + 20))
            assert [type(each) for each in found[21:]] == [Overloaded] * 12
            read = [record.value async for item in quorum.committed(taken[0], follow=False) for record in item.records]
            assert read == [b"a", b"b", *[b"c"] * 18]

    asyncio.run(main())


def test_many_appends_in_one_call_each_have_a_fate_of_their_own(tmp_path: Path) -> None:
    async def main() -> None:
        limits = {"batch_bytes_max": 4096, "append_queue_records_max": 20}
        async with await open_one(tmp_path, **limits) as quorum:
            before = asyncio.create_task(quorum.append(b"before"))
            await asyncio.sleep(0)
            with stalled(quorum):
                pending = quorum.append_each([b"a", bytearray(b"x" * 5000), memoryview(b"b"), *[b"c"] * 30])
                assert [each.done() for each in pending] == [False, True, False, *[False] * 17, *[True] * 13]
            found = await asyncio.gather(*pending, return_exceptions=True)
            assert isinstance(found[1], RecordTooLarge)
            assert [type(each) for each in found[20:]] == [Overloaded] * 13
            taken = [each for each in found if isinstance(each, int)]
            assert taken == list(range(await before + 1, await before + 20))
            read = [record.value async for item in quorum.committed(taken[0], follow=False) for record in item.records]
            assert read == [b"a", b"b", *[b"c"] * 17]
            assert quorum.append_each([]) == []
            with pytest.raises(UsageError, match="str"):
                quorum.append_each([b"a", "b"])  # type: ignore[list-item]
            with pytest.raises(UsageError, match="not one"):
                quorum.append_each(b"a")  # type: ignore[arg-type]
            with pytest.raises(UsageError, match="list"):
                await quorum.append([[b"a", b"b"]])  # type: ignore[list-item]
        with pytest.raises(ClosedError):
            quorum.append_each([b"a"])

    asyncio.run(main())


def test_appends_of_the_turn_in_which_it_is_closed_fail(tmp_path: Path) -> None:
    async def main() -> None:
        quorum = await open_one(tmp_path)
        quorum._node.stop()
        errors = await asyncio.gather(quorum.append(b"a"), quorum.append(b"b"), return_exceptions=True)
        assert [type(error) for error in errors] == [ClosedError] * 2
        assert errors[0] is not errors[1]
        await quorum.close()

    asyncio.run(main())


def test_a_pending_append_can_be_looked_at_and_awaited_twice(tmp_path: Path) -> None:
    async def main() -> None:
        async with await open_one(tmp_path, batch_bytes_max=4096) as quorum:
            outcome: list[int] = []
            pending = quorum.append_nowait([b"a", b"b"])
            pending.add_done_callback(lambda done: outcome.append(done.result()))
            offset = await pending
            assert (await pending, pending.done(), pending.result()) == (offset, True, offset)
            assert outcome == [offset]
            with pytest.raises(RecordTooLarge):
                quorum.append_nowait(b"x" * 5000)
            assert await quorum.append([b"y" * 1000] * 20, atomic=False) == offset + 2

    asyncio.run(main())


def test_without_a_majority_waits_end_when_asked_to(tmp_path: Path) -> None:
    async def main() -> None:
        ports = free_ports(3)
        async with await fq.open(
            str(tmp_path), **QUICK, node_id=1, voters=voters(ports), cluster_id=CLUSTER_ID
        ) as quorum:
            with pytest.raises(NotReady, match="no leader"):
                await quorum.wait_ready(timeout=0.3)
            with pytest.raises(NotLeader):
                await quorum.append(b"x", timeout=1)
            with pytest.raises(NotLeader):
                await quorum.read_barrier(timeout=1)

    asyncio.run(main())


def test_barriers_asked_for_together_are_each_ones_own(tmp_path: Path) -> None:
    async def main() -> None:
        async with await open_one(tmp_path) as quorum:
            offset = await quorum.append(b"x")
            tasks = [asyncio.create_task(quorum.read_barrier(timeout)) for timeout in (None, 0.0, WAIT_S, None)]
            await asyncio.sleep(0)
            tasks[3].cancel()
            first, late, patient, cancelled = await asyncio.gather(*tasks, return_exceptions=True)
            assert first == patient
            assert first > offset
            assert isinstance(late, NotReady)
            assert isinstance(cancelled, asyncio.CancelledError)
            assert await quorum.read_barrier() == first

    asyncio.run(main())


def test_appends_of_a_follower_fail_each_even_if_one_of_them_was_cancelled(tmp_path: Path) -> None:
    async def main() -> None:
        node = {**QUICK, "node_id": 1, "voters": voters(free_ports(3)), "cluster_id": CLUSTER_ID}
        async with await fq.open(str(tmp_path), **node) as quorum:
            tasks = [asyncio.create_task(quorum.append(b"x")) for _ in range(3)]
            await asyncio.sleep(0)
            tasks[0].cancel()
            errors = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), WAIT_S)
        assert [type(error) for error in errors] == [asyncio.CancelledError, NotLeader, NotLeader]

    asyncio.run(main())


def test_barriers_of_a_follower_fail_each_with_an_error_of_its_own(tmp_path: Path) -> None:
    async def main() -> None:
        node = {**QUICK, "node_id": 1, "voters": voters(free_ports(3)), "cluster_id": CLUSTER_ID}
        async with await fq.open(str(tmp_path), **node) as quorum:
            errors = await asyncio.gather(*(quorum.read_barrier() for _ in range(3)), return_exceptions=True)
        assert [type(error) for error in errors] == [NotLeader] * 3
        assert len({id(error) for error in errors}) == 3
        with pytest.raises(ClosedError):
            await quorum.read_barrier()

    asyncio.run(main())


def test_an_append_times_out_with_its_fate_open(tmp_path: Path) -> None:
    async def main() -> None:
        async with await open_one(tmp_path) as quorum:
            with stalled(quorum), pytest.raises(AppendTimeout) as timeout:
                await quorum.append(b"x", timeout=0.05)
            assert timeout.value.maybe_committed
            await quorum.append(b"y")
            values = [record.value async for item in quorum.committed(follow=False) for record in item.records]
            assert values == [b"x", b"y"]

    asyncio.run(main())


def test_another_loop_is_refused(tmp_path: Path) -> None:
    async def main() -> None:
        async with await open_one(tmp_path) as quorum:
            errors: list[BaseException] = []

            def elsewhere() -> None:
                try:
                    asyncio.run(quorum.append(b"x", timeout=1))
                except BaseException as error:
                    errors.append(error)

            thread = threading.Thread(target=elsewhere)
            thread.start()
            await asyncio.get_running_loop().run_in_executor(None, thread.join)
            assert isinstance(errors[0], UsageError)

    asyncio.run(main())


def test_what_ends_the_loop_while_the_node_stops_keeps_nobody_from_hearing_of_it(tmp_path: Path) -> None:
    loop = asyncio.new_event_loop()
    quorum = loop.run_until_complete(open_one(tmp_path))
    bridge = quorum._bridge
    callers = quorum._appends._callers
    assert isinstance(callers, NativeLoopCallers)
    outcome = quorum._node.kernels.Outcome(loop)

    async def leave() -> None:
        await outcome
        raise SystemExit(3)

    leaving = loop.create_task(leave())
    watching = loop.create_task(bridge.change(lambda: False))
    loop.run_until_complete(asyncio.sleep(0))
    loop.remove_reader(callers._mailbox.fileno())  # as if the end were heard of first
    callers._mailbox.post(outcome, 1)
    bridge.on_stopped(None)
    with pytest.raises(SystemExit):
        loop.run_forever()
    assert isinstance(leaving.exception(), SystemExit)
    loop.run_until_complete(asyncio.wait_for(watching, 10))
    loop.run_until_complete(quorum.close())
    loop.close()


@pytest.mark.parametrize("kernels", ["native", "pure"])
def test_a_callback_that_hangs_in_the_loop_holds_up_no_replica(kernels: Literal["native", "pure"]) -> None:
    """What clients send to this leader is committed by a majority all the same: all three nodes are in this process."""

    async def main() -> None:
        async with async_quorum(3, kernels=kernels) as nodes:
            leader = nodes.leader
            endpoints = [leader.endpoint]
            committed: list[int] = []

            def hang(_: object) -> None:
                def ask() -> None:
                    with QuorumClient(endpoints, load("native")) as client:
                        committed.extend(client.append([b"%d" % number], Deadline(WAIT_S)) for number in range(5))

                thread = threading.Thread(target=ask)
                thread.start()
                thread.join()

            hanging = asyncio.ensure_future(leader.append(b"x"))
            hanging.add_done_callback(hang)
            assert await hanging < await leader.append(b"y")
            assert len(committed) == 5 == len(set(committed))

    asyncio.run(main())


def test_a_loop_that_ends_without_closing_harms_nobody(tmp_path: Path) -> None:
    quorum = asyncio.run(open_one(tmp_path))
    quorum._node._shell.append([b"x"], LoopTicket(quorum._bridge, None), now_us())  # type: ignore[arg-type]
    quorum._node.stop()
    with sync.open(str(tmp_path), **QUICK) as again:
        again.wait_ready(WAIT_S)


def test_the_twins_have_the_same_names_and_parameters() -> None:
    def face(cls: type) -> dict[str, list[str]]:
        public = {name: member for name, member in vars(cls).items() if not name.startswith("_")}
        return {
            name: list(inspect.signature(member).parameters) if inspect.isfunction(member) else []
            for name, member in public.items()
        }

    assert face(sync.Quorum) == face(asynchronous.Quorum)
    assert list(inspect.signature(sync.open).parameters) == list(inspect.signature(fq.open).parameters)
