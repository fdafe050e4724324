"""Handles whose event loop is closed: they can be closed still, and what nobody has any more is let go of."""

import asyncio
import gc
import threading
import warnings
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

import fastquorum as fq
from fastquorum.errors import DirectoryError, UsageError
from fastquorum.node.io.running import RunningNode
from tests.api.nodes import QUICK, WAIT_S
from tests.cli.conftest import wait_until

OPTIONS: Any = {**QUICK, "node_id": 1}


def opened(path: Path, kernels: str = "native") -> fq.Quorum:
    """A node whose event loop is closed."""

    async def main() -> fq.Quorum:
        quorum: fq.Quorum = await fq.open(path, **OPTIONS, kernels=kernels)
        await quorum.wait_ready(WAIT_S)
        return quorum

    return asyncio.run(main())


def dropped(path: Path) -> RunningNode:
    """The same, whose handle nobody has any more."""
    node = opened(path)._node
    gc.collect()
    return node


async def append_one(path: Path) -> int:
    async with fq.open(path, **OPTIONS) as quorum:
        await quorum.wait_ready(WAIT_S)
        return await quorum.append(b"x")


@pytest.mark.parametrize("kernels", ["native", "pure"])
def test_any_loop_may_close_a_quorum_whose_own_is_closed(tmp_path: Path, kernels: str) -> None:
    quorum = opened(tmp_path, kernels)
    asyncio.run(quorum.close(timeout=WAIT_S))
    assert quorum._node.is_over
    asyncio.run(quorum.close())  # as often as one likes
    assert asyncio.run(append_one(tmp_path)) > 0


def test_a_block_may_be_left_in_another_loop_once_the_first_is_closed(tmp_path: Path) -> None:
    quorum = opened(tmp_path)

    async def main() -> None:
        async with quorum:
            pass

    asyncio.run(main())
    assert quorum._node.is_over


def test_appends_that_their_loop_left_behind_do_not_keep_it_open(tmp_path: Path) -> None:
    async def main() -> fq.Quorum:
        quorum: fq.Quorum = await fq.open(tmp_path, **OPTIONS)
        await quorum.wait_ready(WAIT_S)
        tasks.extend(asyncio.ensure_future(quorum.append(b"x" * 100)) for _ in range(100))
        await asyncio.sleep(0)
        return quorum

    tasks: list[asyncio.Future[int]] = []
    quorum = asyncio.run(main())
    asyncio.run(quorum.close())
    assert quorum._node.is_over


def test_everything_else_is_refused_there_in_words_that_can_be_followed(tmp_path: Path) -> None:
    quorum = opened(tmp_path)
    with pytest.raises(UsageError, match="the event loop that the quorum belongs to is closed; open another"):
        asyncio.run(quorum.append(b"x"))
    asyncio.run(quorum.close())


def test_while_its_loop_is_open_no_other_may_close_it(tmp_path: Path) -> None:
    with asyncio.Runner() as home:
        quorum = home.run(fq.open(tmp_path, **OPTIONS))
        with pytest.raises(UsageError, match="use it in the loop it was opened in"):
            run_in_a_thread(quorum.close())
        assert quorum._node.is_running
        home.run(quorum.close())


def run_in_a_thread(work: Coroutine[Any, Any, Any]) -> None:
    """In a loop of its own; what it raises is raised here."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            asyncio.run(work)
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    for error in raised:
        raise error


def test_one_that_nobody_has_any_more_is_told_of_and_halted(tmp_path: Path) -> None:
    with pytest.warns(ResourceWarning, match="unclosed"):
        node = dropped(tmp_path)
    wait_until(lambda: node.is_over, WAIT_S)
    assert asyncio.run(append_one(tmp_path)) > 0


def test_its_directory_can_be_opened_again_at_once(tmp_path: Path) -> None:
    for _ in range(5):
        with pytest.warns(ResourceWarning, match="unclosed"):
            dropped(tmp_path)
    assert asyncio.run(append_one(tmp_path)) > 0


def test_one_that_was_dropped_while_its_loop_ran_ends_when_that_is_closed_and_another_is_opened(tmp_path: Path) -> None:
    async def drop() -> None:
        await fq.open(tmp_path, **OPTIONS)
        gc.collect()
        with pytest.raises(DirectoryError, match="is open in this process already"):
            await fq.open(tmp_path, **OPTIONS)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        asyncio.run(drop())
        gc.collect()
    assert asyncio.run(append_one(tmp_path)) > 0
