"""Closing: how long it waits, and for whom."""

import asyncio
import concurrent.futures
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import fastquorum as fq
from fastquorum import sync
from fastquorum.api.committed import MANY_RECORDS
from fastquorum.errors import FatalError, UsageError
from fastquorum.loopback import free_ports
from fastquorum.node.io.running import GRACE_S
from tests.api.nodes import CLUSTER_ID, QUICK, WAIT_S, trio, voters
from tests.cli.conftest import wait_until

FOLLOWER = """
import sys
from fastquorum import sync
node = sync.open(sys.argv[1], node_id=int(sys.argv[2]), voters=sys.argv[3], cluster_id="AAAAAAAAAAAAAAAAAAAAAQ",
                 election_timeout_us=5_000_000, fetch_timeout_us=30_000_000)
print("open", flush=True)
sys.stdin.read()
"""


def grace_of(quorum: sync.Quorum | fq.Quorum) -> list[float]:
    """How long its node is given, as it is asked to."""
    graces: list[float] = []
    stop = quorum._node.stop

    def noted(grace_s: float) -> None:
        graces.append(grace_s)
        stop(grace_s)

    quorum._node.stop = noted  # type: ignore[method-assign]
    return graces


def waited_for_its_deadline(quorum: sync.Quorum) -> bool:
    """A closed node: was it over only when raft gives up to wait for another leader?"""
    core = quorum._node._replica.raft._core
    assert core.is_shut_down
    return core.now_us >= core.shutdown_deadline_us


@pytest.mark.parametrize("stands", [False, True])
def test_who_never_led_waits_for_nobody(tmp_path: Path, stands: bool) -> None:
    names = voters(free_ports(3))
    quorum = sync.open(tmp_path, **QUICK, node_id=1, voters=names, cluster_id=CLUSTER_ID)
    wait_until(lambda: not stands or quorum.role == "prospective", WAIT_S)
    quorum.close()
    assert not waited_for_its_deadline(quorum)


def test_the_last_leader_does_not_wait_for_those_that_are_gone(tmp_path: Path) -> None:
    with trio(tmp_path, fetch_timeout_us=30_000_000) as nodes:
        leader = nodes.leader
        for follower in nodes.followers:
            nodes.crash(follower.node_id)
        assert leader.is_leader
        leader.close()
        assert not waited_for_its_deadline(leader)


def test_closing_waits_for_those_that_do_not_answer_no_longer_than_asked(tmp_path: Path) -> None:
    names = voters(free_ports(2))
    options = {**QUICK, "node_id": 1, "voters": names, "cluster_id": CLUSTER_ID, "fetch_timeout_us": 30_000_000}
    other = subprocess.Popen(
        [sys.executable, "-c", FOLLOWER, str(tmp_path / "2"), "2", names], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        quorum = sync.open(tmp_path / "1", **options)  # type: ignore[arg-type]
        wait_until(lambda: quorum.is_leader, WAIT_S)  # the other one waits longer before it stands
        os.kill(other.pid, signal.SIGSTOP)
        quorum.close(timeout=0)
        assert not quorum._node._replica.raft._core.is_shut_down, "it was halted, and waited for nobody"
    finally:
        other.kill()
        other.communicate()


def test_both_twins_hand_the_time_on(tmp_path: Path) -> None:
    quorum = sync.open(tmp_path / "sync", **QUICK, node_id=1)
    graces = grace_of(quorum)
    for timeout in (-1, float("nan"), "3"):
        with pytest.raises(UsageError, match="timeout"):
            quorum.close(timeout=timeout)
    quorum.close(timeout=0.5)
    quorum.close()
    assert graces == [0.5, GRACE_S]

    async def main() -> None:
        quorum = await fq.open(tmp_path / "asyncio", **QUICK, node_id=1)
        graces = grace_of(quorum)
        with pytest.raises(UsageError, match="timeout"):
            await quorum.close(timeout=-1)
        await quorum.close(timeout=0)
        await quorum.close()
        assert graces == [0, GRACE_S]

    asyncio.run(main())


@contextmanager
def busy_executor() -> Iterator[None]:
    """Every thread of the running loop's executor is at work while the block lasts."""
    may_end = threading.Event()
    with concurrent.futures.ThreadPoolExecutor(1) as only:
        asyncio.get_running_loop().set_default_executor(only)
        only.submit(may_end.wait, WAIT_S)
        try:
            yield
        finally:
            may_end.set()


def test_it_waits_for_no_other_work_of_the_program(tmp_path: Path) -> None:
    async def main() -> None:
        quorum = await fq.open(tmp_path, **QUICK, node_id=1)
        await quorum.wait_ready(WAIT_S)
        with busy_executor():
            began_s = time.monotonic()
            await quorum.close(timeout=0.5)
            assert quorum._node.is_over
            assert time.monotonic() - began_s < WAIT_S / 2

    asyncio.run(main())


def test_a_backlog_is_read_while_the_program_s_threads_are_at_work(tmp_path: Path) -> None:
    async def main() -> None:
        async with fq.open(tmp_path, **QUICK, node_id=1) as quorum:
            await quorum.wait_ready(WAIT_S)
            await quorum.append([b"x"] * (MANY_RECORDS + 1))
            with busy_executor():
                began_s = time.monotonic()
                found = [len(item.records) async for item in quorum.committed(follow=False)]
                assert sum(found) == MANY_RECORDS + 1
                assert time.monotonic() - began_s < WAIT_S / 2

    asyncio.run(main())


def test_it_works_where_the_loop_s_executor_is_shut_down(tmp_path: Path) -> None:
    async def main() -> None:
        quorum = await fq.open(tmp_path, **QUICK, node_id=1)
        await asyncio.get_running_loop().shutdown_default_executor()
        await quorum.close()
        assert quorum._node.is_over

    asyncio.run(main())


def test_it_works_where_the_system_has_no_more_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def main() -> None:
        quorum = await fq.open(tmp_path, **QUICK, node_id=1)
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refuse)
            await quorum.close()
        assert quorum._node.is_over

    asyncio.run(main())


def test_it_goes_on_when_its_task_is_cancelled_and_leaves_no_thread(tmp_path: Path) -> None:
    async def main() -> None:
        quorum = await fq.open(tmp_path, **QUICK, node_id=1)
        closing = asyncio.create_task(quorum.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        await quorum.close()
        assert quorum._node.is_over

    asyncio.run(main())
    wait_until(lambda: not any(each.name == "fastquorum-work" for each in threading.enumerate()), WAIT_S)


def test_what_it_raises_is_raised_in_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: float) -> None:
        raise FatalError("its disk does not answer")

    async def main() -> None:
        quorum = await fq.open(tmp_path, **QUICK, node_id=1)
        with monkeypatch.context() as patched:
            patched.setattr(quorum._node, "stop", fail)
            with pytest.raises(FatalError, match="does not answer"):
                await quorum.close()
        await quorum.close()

    asyncio.run(main())
