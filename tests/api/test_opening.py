"""Opening in an event loop: every way to await it, and that the loop goes on meanwhile."""

import asyncio
import concurrent.futures
import contextlib
import gc
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest

import fastquorum as fq
from fastquorum.errors import ClosedError, ConfigError
from fastquorum.opening import begun
from tests.api.nodes import CLUSTER_ID, QUICK, WAIT_S
from tests.broker.clusters import OFTEN, one_controller

OPTIONS: Any = {**QUICK, "node_id": 1}


async def use(quorum: fq.Quorum) -> None:
    await quorum.wait_ready(WAIT_S)
    assert await quorum.append(b"x") > 0


def test_it_is_entered_awaited_or_both(tmp_path: Path) -> None:
    async def main() -> None:
        async with fq.open(tmp_path, **OPTIONS) as first:
            await use(first)
        with pytest.raises(ClosedError):
            await first.append(b"x")
        async with await fq.open(tmp_path, **OPTIONS) as second:
            await use(second)
        third = await fq.open(tmp_path, **OPTIONS)
        await use(third)
        await third.close()
        fourth = await asyncio.create_task(fq.open(tmp_path, **OPTIONS))
        await use(fourth)
        await fourth.close()
        (fifth,) = await asyncio.gather(fq.open(tmp_path, **OPTIONS))
        await fifth.close()
        sixth = await asyncio.wait_for(fq.open(tmp_path, **OPTIONS), WAIT_S)
        await sixth.close()

    asyncio.run(main())
    seventh: Any = fq.open(tmp_path, **OPTIONS)
    with asyncio.Runner() as runner:
        quorum = runner.run(seventh)
        runner.run(quorum.close())


def test_the_block_ends_as_that_of_the_handle_does(tmp_path: Path) -> None:
    async def main() -> None:
        with pytest.raises(ZeroDivisionError):
            async with fq.open(tmp_path, **OPTIONS) as quorum:
                raise ZeroDivisionError
        assert quorum._node.is_over
        with pytest.raises(ConfigError, match="nonsense"):
            async with fq.open(tmp_path, nonsense=1):  # type: ignore[call-arg]
                pass
        with pytest.raises(ConfigError, match="nonsense"):
            await fq.open(tmp_path, nonsense=1)  # type: ignore[call-arg]

    asyncio.run(main())


def test_one_that_nobody_awaits_is_told_of(tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fq.open(tmp_path / "n", **OPTIONS)
    assert [str(each.message) for each in caught] == ["coroutine 'open' was never awaited"]
    assert not (tmp_path / "n").exists()


def test_an_opening_that_is_cancelled_leaves_no_node_behind(tmp_path: Path) -> None:
    async def main() -> None:
        opening = asyncio.create_task(fq.open(tmp_path, **OPTIONS))
        await asyncio.sleep(0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening

    asyncio.run(main())  # its end waits for the executor, and so for the stop
    asyncio.run(opened_again(tmp_path))


@pytest.mark.parametrize("turns", range(8))
def test_what_was_cancelled_is_over_when_that_is_told(tmp_path: Path, turns: int) -> None:
    """Whatever it had come to: the same directory can be opened at once."""

    async def main() -> None:
        async with fq.open(tmp_path / "other", **OPTIONS):
            pass  # all modules are there, so that it comes further
        opening = asyncio.create_task(fq.open(tmp_path / "n", **OPTIONS))
        for _ in range(turns):
            await asyncio.to_thread(str)
        opening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await (await opening).close()
        await opened_again(tmp_path / "n")

    asyncio.run(main())
    assert not [each.name for each in threading.enumerate() if each.name == "fastquorum-1"]


@pytest.mark.parametrize("moment", ["before it is made", "when it is made"])
def test_what_is_begun_for_a_task_that_is_cancelled_is_ended_once(moment: str) -> None:
    may_go_on, is_made, ended = threading.Event(), threading.Event(), []

    def begin() -> str:
        assert may_go_on.wait(WAIT_S)
        is_made.set()
        return "made"

    async def main() -> None:
        task = asyncio.create_task(begun(begin, ended.append))
        await asyncio.sleep(0)
        if moment == "when it is made":
            may_go_on.set()
            assert is_made.wait(WAIT_S)  # the loop stands still: nobody has it yet
        task.cancel()
        await asyncio.sleep(0)
        may_go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended == ["made"]

    asyncio.run(main())
    assert ended == ["made"]


def test_a_task_that_is_cancelled_twice_waits_no_longer_and_what_it_began_is_ended_once() -> None:
    may_go_on, ended = threading.Event(), []

    def begin() -> str:
        assert may_go_on.wait(WAIT_S)
        return "made"

    async def main() -> None:
        task = asyncio.create_task(begun(begin, ended.append))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not ended
        may_go_on.set()

    asyncio.run(main())  # its end waits for the executor
    assert ended == ["made"]


def test_what_no_thread_has_begun_when_it_is_cancelled_is_never_begun(tmp_path: Path) -> None:
    async def main() -> None:
        may_go_on = threading.Event()
        with concurrent.futures.ThreadPoolExecutor(1) as only:
            loop = asyncio.get_running_loop()
            loop.set_default_executor(only)
            loop.run_in_executor(None, may_go_on.wait, WAIT_S)
            opening = asyncio.create_task(begun(lambda: (tmp_path / "n").mkdir(), lambda _: None))
            await asyncio.sleep(0)
            opening.cancel()
            await asyncio.sleep(0)
            may_go_on.set()
            with pytest.raises(asyncio.CancelledError):
                await opening

    asyncio.run(main())
    assert not (tmp_path / "n").exists()


@pytest.mark.parametrize("moment", ["before it is made", "when it is made"])
def test_what_cannot_be_ended_is_told_to_the_loop(moment: str) -> None:
    may_go_on, results = threading.Event(), []

    def begin() -> str:
        assert may_go_on.wait(WAIT_S)
        is_made.set()
        return "made"

    def end(_: str) -> None:
        raise OSError("its disk does not answer")

    is_made = threading.Event()

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: results.append(str(context.get("exception")))
        )
        task = asyncio.create_task(begun(begin, end))
        await asyncio.sleep(0)
        if moment == "when it is made":
            may_go_on.set()
            assert is_made.wait(WAIT_S)
        task.cancel()
        await asyncio.sleep(0)
        may_go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    gc.collect()
    assert results == ["its disk does not answer"]


async def opened_again(path: Path) -> None:
    async with fq.open(path, **OPTIONS) as quorum:
        await use(quorum)


def test_joining_is_entered_or_awaited(tmp_path: Path) -> None:
    with one_controller(tmp_path) as bootstrap:

        async def main() -> None:
            options: Any = {"bootstrap": bootstrap, "broker_id": 7, "cluster_id": CLUSTER_ID, **OFTEN}
            async with fq.broker.join(**options) as membership:
                assert await membership.wait_active(WAIT_S) >= 0
            async with await fq.broker.join(**options) as membership:
                assert await membership.wait_active(WAIT_S) >= 0

        asyncio.run(main())


LOOP = """
import asyncio, concurrent.futures.thread, sys, threading
import fastquorum as fq

main = threading.get_ident()
seen = []

def note(event, arguments):
    if event in ("import", "open") and threading.get_ident() == main and watching:
        seen.append((event, str(arguments[0])))

async def run(path):
    global watching
    watching = True
    async with fq.open(path, node_id=1, election_timeout_us=100_000, config_file=path + ".properties") as quorum:
        await quorum.wait_ready(timeout=30)
        await quorum.append(b"x")
        quorum.append_nowait(b"y")
        await quorum.read_barrier()
        await quorum.describe()
        await quorum.metrics()
        quorum.stage_histograms()
        async with quorum.producer(id="p") as producer:
            await producer.append(b"z")
        async for item in quorum.committed():
            break
    watching = False

watching = False
open(sys.argv[1] + ".properties", "w").close()
fq.open  # what this loads is next to nothing
sys.addaudithook(note)
asyncio.run(run(sys.argv[1]))
print([each for each in seen if "fastquorum" in each[1] or each[0] == "open"])
"""


def test_the_loop_s_thread_neither_imports_nor_reads_files(tmp_path: Path) -> None:
    """Either may take half a second, in which no other task of the loop would go on."""
    done = subprocess.run(
        [sys.executable, "-c", LOOP, str(tmp_path / "n")], capture_output=True, text=True, timeout=120
    )
    assert done.stderr == ""
    assert done.stdout == "[]\n"


def test_what_is_loaded_before_it_is_awaited_is_next_to_nothing() -> None:
    code = (
        "import asyncio, sys, fastquorum as fq; before = set(sys.modules); fq.open; fq.broker.join\n"
        "print(sorted(each for each in set(sys.modules) - before))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    names = ("api", "api.opening", "broker", "broker.io", "broker.io.opening", "opening")
    assert shown == f"{[f'fastquorum.{name}' for name in names]}\n"
