"""What programs test themselves with: quorums in one process, by fixtures, blocking and in an event loop."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Literal

import pytest

import fastquorum
from fastquorum import sync
from fastquorum.errors import AppendTimeout, ClosedError, NotLeader, NotReady, UsageError
from fastquorum.testing import AsyncNodes, BlockingNodes, async_quorum, async_quorum_of, quorum, quorum_of
from tests.api.nodes import WAIT_S
from tests.cli.conftest import wait_until

__all__ = ["async_quorum_of", "quorum_of"]  # the fixtures, as a plugin brings them


def test_it_is_ready_and_each_node_knows_the_leader(quorum_of: Callable[..., BlockingNodes]) -> None:
    nodes = quorum_of(3)
    assert (len(nodes), sorted(nodes.nodes)) == (3, [1, 2, 3])
    assert {node.leader for node in nodes} == {nodes.leader.node_id}
    assert nodes.leader.append(b"x", timeout=WAIT_S) > 0
    assert len(nodes.followers) == 2
    one = quorum_of(1, topic="mine")
    assert one[1].append(b"y", timeout=WAIT_S) > 0


def test_a_node_may_be_stopped_and_started(quorum_of: Callable[..., BlockingNodes]) -> None:
    nodes = quorum_of(3)
    offset, gone = nodes.leader.append(b"x", timeout=WAIT_S), nodes.leader.node_id
    nodes.stop(gone)
    for node in nodes:
        assert node.wait_ready(WAIT_S).leader_id >= 0
    back = nodes.start(gone)
    back.wait_ready(WAIT_S)
    items = (item for item in back.committed(from_offset=offset) if item.records)
    assert next(items).records[0].value == b"x"


def test_the_new_leader_is_waited_for(quorum_of: Callable[..., BlockingNodes]) -> None:
    nodes = quorum_of(3)
    old = nodes.leader
    assert nodes.wait_leader() is old
    nodes.stop(old.node_id)
    new = nodes.wait_leader(timeout=WAIT_S)
    assert new is nodes.leader is not old
    assert new.epoch == max(node.epoch for node in nodes) > old.epoch
    assert new.append(b"x", timeout=WAIT_S) > 0


def test_a_leader_that_comes_with_a_start_is_waited_for(quorum_of: Callable[..., BlockingNodes]) -> None:
    nodes = quorum_of(2)
    gone = nodes.leader.node_id
    nodes.stop(gone)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(nodes.wait_leader, WAIT_S)
        nodes.start(gone)
        assert waiting.result().append(b"x", timeout=WAIT_S) > 0


def test_a_leader_that_does_not_come_is_missed_in_words(quorum_of: Callable[..., BlockingNodes]) -> None:
    nodes = quorum_of(2)
    left = nodes.followers[0].node_id
    nodes.stop(nodes.leader.node_id)
    with pytest.raises(NotReady, match=rf"after 0.2 s, none of the running nodes \({left}\) leads epoch \d+"):
        nodes.wait_leader(timeout=0.2)
    with pytest.raises(UsageError, match="wait for a leader by `wait_leader`"):
        nodes.leader  # noqa: B018
    nodes.stop(left)
    with pytest.raises(UsageError, match="no node of this quorum runs"):
        nodes.wait_leader()


def test_nobody_waits_for_a_leader_behind_the_block() -> None:
    with ThreadPoolExecutor(1) as threads:
        with quorum(2) as nodes:
            nodes.stop(nodes.leader.node_id)
            waiting = threads.submit(nodes.wait_leader, WAIT_S)
        with pytest.raises(ClosedError, match="closed with its block or test"):
            waiting.result()


def test_the_new_leader_is_waited_for_in_an_event_loop() -> None:
    async def main() -> None:
        async with async_quorum(3) as nodes:
            old = nodes.leader
            assert await nodes.wait_leader() is old
            await nodes.stop(old.node_id)
            new = await nodes.wait_leader(timeout=WAIT_S)
            assert new is nodes.leader is not old
            assert await new.append(b"x", timeout=WAIT_S) > 0
            await nodes.stop(new.node_id)
            (left,) = nodes.nodes
            with pytest.raises(NotReady, match=rf"after 0.2 s, none of the running nodes \({left}\) leads epoch"):
                await nodes.wait_leader(timeout=0.2)
            waiting = asyncio.create_task(nodes.wait_leader(timeout=WAIT_S))
            await nodes.start(new.node_id)
            assert await (await waiting).append(b"y", timeout=WAIT_S) > 0
            for node_id in list(nodes.nodes):
                await nodes.stop(node_id)
            with pytest.raises(UsageError, match="no node of this quorum runs"):
                await nodes.wait_leader()
        with pytest.raises(ClosedError):
            await nodes.wait_leader()

    asyncio.run(main())


def test_a_node_that_does_not_run_cannot_be_stopped(quorum_of: Callable[..., BlockingNodes]) -> None:
    nodes = quorum_of(1)
    with pytest.raises(UsageError, match="node 2 of this quorum does not run"):
        nodes.stop(2)


def test_what_cannot_be_meant_is_refused_in_words(quorum_of: Callable[..., BlockingNodes]) -> None:
    nodes = quorum_of(2)
    for act in (nodes.partition, nodes.start):
        with pytest.raises(UsageError, match="this quorum has no node '1'; it has 1 to 2"):
            act("1")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="node 3 of this quorum does not run"):
        nodes[3]
    with pytest.raises(UsageError, match="node 1 of this quorum runs already"):
        nodes.start(1)
    for option in ({"node_id": 9}, {"voters": "7@nowhere:1"}, {"listen": "127.0.0.1:0"}, {"path": "/tmp/x"}):
        with pytest.raises(UsageError, match=f"{next(iter(option))} cannot be set for a quorum made for tests"):
            quorum_of(3, **option)


def test_nothing_begins_behind_its_block() -> None:
    with quorum(1) as nodes:
        nodes.stop(1)
    for act in (lambda: nodes.start(1), nodes.heal):
        with pytest.raises(ClosedError, match="this quorum and its directories were closed with its block or test"):
            act()
    assert not Path(nodes._directory).exists()


@pytest.mark.parametrize("kernels", ["native", "pure"])
def test_a_leader_that_is_cut_off_is_replaced_and_follows_when_it_is_back(
    quorum_of: Callable[..., BlockingNodes], kernels: Literal["native", "pure"]
) -> None:
    nodes = quorum_of(3, kernels=kernels, fetch_timeout_us=500_000, request_timeout_us=500_000)
    lost = nodes.leader
    nodes.partition(lost.node_id)
    others = [node for node in nodes if node is not lost]
    wait_until(lambda: any(node.is_leader for node in others), WAIT_S)
    new = nodes.wait_leader(WAIT_S)
    assert new is not lost
    offset = new.append(b"x", timeout=WAIT_S)
    wait_until(lambda: not lost.is_leader, WAIT_S)
    with pytest.raises((NotLeader, NotReady)):
        lost.append(b"y", timeout=WAIT_S)
    assert lost.high_watermark <= offset
    nodes.heal()
    items = (item for item in lost.committed(from_offset=offset, follow=True) if item.records)
    assert next(items).records[0].value == b"x"
    with pytest.raises(UsageError, match="this quorum has no node 4"):
        nodes.partition(4)
    for nobody in ((), (1, 2, 3)):
        with pytest.raises(UsageError, match="cuts no node off"):
            nodes.partition(*nobody)


def test_a_leader_acknowledges_nothing_from_the_moment_that_it_is_cut_off(
    quorum_of: Callable[..., BlockingNodes],
) -> None:
    for _ in range(3):
        nodes = quorum_of(3)
        leader = nodes.leader
        leader.append(b"before", timeout=WAIT_S)
        nodes.partition(leader.node_id)
        with pytest.raises((AppendTimeout, NotLeader, NotReady)):
            leader.append(b"behind", timeout=0.1)


def test_they_end_with_the_block_even_if_it_fails() -> None:
    kept: list[sync.Quorum] = []

    def fail() -> None:
        with quorum(2) as nodes:
            kept.extend(nodes)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    for node in kept:
        with pytest.raises(ClosedError):
            node.append(b"x")
    with pytest.raises(UsageError, match="a quorum cannot have 0 nodes"), quorum(0):
        pass


class Stuck:
    """A companion that cannot be closed."""

    def __init__(self, node: sync.Quorum | fastquorum.Quorum) -> None:
        self._words = f"node {node.node_id} cannot"
        node._node.accompany(self)

    def close(self) -> None:
        raise OSError(self._words)

    def abandon_in_child(self) -> None:
        pass


def test_all_are_closed_though_some_cannot_be_and_the_first_of_these_is_told() -> None:
    def blocking(kept: list[sync.Quorum | fastquorum.Quorum]) -> None:
        with quorum(3) as nodes:
            kept.extend(nodes)
            stuck.extend(Stuck(node) for node in kept[:2])

    async def in_a_loop(kept: list[sync.Quorum | fastquorum.Quorum]) -> None:
        async with async_quorum(3) as nodes:
            kept.extend(nodes)
            stuck.extend(Stuck(node) for node in kept[:2])

    stuck: list[Stuck] = []
    for run in (blocking, lambda kept: asyncio.run(in_a_loop(kept))):
        kept: list[sync.Quorum | fastquorum.Quorum] = []
        with pytest.raises(OSError, match="cannot") as caught:
            run(kept)
        first, second = (f"node {node.node_id} cannot" for node in kept[:2])
        assert (str(caught.value), caught.value.__notes__) == (first, [f"and then: OSError: {second}"])
        assert [node._node.is_running for node in kept] == [False] * 3


def test_it_is_the_same_in_an_event_loop(
    async_quorum_of: Callable[..., AbstractAsyncContextManager[AsyncNodes]],
) -> None:
    async def main() -> None:
        async with async_quorum_of(3) as nodes:
            assert await nodes.leader.append(b"x", timeout=WAIT_S) > 0
            gone = nodes.leader.node_id
            await nodes.stop(gone)
            for node in nodes:
                await node.wait_ready(WAIT_S)
            await (await nodes.start(gone)).wait_ready(WAIT_S)
            kept = list(nodes)
        for node in kept:
            with pytest.raises(ClosedError):
                await node.append(b"x")

    asyncio.run(main())
    assert async_quorum_of is async_quorum


def test_where_one_node_cannot_start_none_of_those_that_do_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[fastquorum.Quorum] = []
    has_failed = asyncio.Event()
    opens = fastquorum.open

    async def open_or_fail(path: str, **options: Any) -> fastquorum.Quorum:
        if options["node_id"] == 1:
            has_failed.set()
            raise NotReady("no start")
        await has_failed.wait()
        opened.append(await opens(path, **options))
        return opened[-1]

    async def main() -> None:
        with pytest.raises(NotReady, match="no start"):
            async with async_quorum(3):
                pass

    monkeypatch.setattr(fastquorum, "open", open_or_fail)
    asyncio.run(main())
    assert len(opened) == 2
    assert not any(node._node.is_running for node in opened)
