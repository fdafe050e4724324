"""A node that is one of the cluster's controllers: its log is the controller's, and nobody else appends to it."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import fastquorum as fq
from fastquorum import sync
from fastquorum.controller.image.registrations import Controller
from fastquorum.errors import ConfigError, UsageError
from tests.api.nodes import CLUSTER_ID, QUICK, WAIT_S, trio

NOBODY_ELSE = "the controller of this cluster writes this log, and nobody else may"


def options(kernels: str) -> dict[str, object]:
    return {
        **QUICK,
        "node_id": 1,
        "cluster_id": CLUSTER_ID,
        "log": "metadata",
        "controller": True,
        "kernels": kernels,
    }


@pytest.mark.parametrize("kernels", ["native", "pure"])
def test_nobody_appends_beside_it(tmp_path: Path, kernels: str) -> None:
    with sync.open(tmp_path / "n", **options(kernels)) as quorum:  # type: ignore[arg-type]
        quorum.wait_ready(WAIT_S)
        for attempt in (
            lambda: quorum.append(b"x", timeout=WAIT_S),
            lambda: quorum.append([b"x", b"y"], atomic=False, timeout=WAIT_S),
            lambda: quorum.append_nowait(b"x"),
            lambda: quorum.append_each([b"x"]),
        ):
            with pytest.raises(UsageError, match=NOBODY_ELSE):
                attempt()
        with pytest.raises(UsageError, match=NOBODY_ELSE), quorum.producer("p", WAIT_S) as producer:
            producer.append(b"x", timeout=WAIT_S)
        assert quorum.role == "leader"
    with pytest.raises(UsageError, match="closed"):
        quorum.append(b"x")


@pytest.mark.parametrize("kernels", ["native", "pure"])
def test_nor_in_an_event_loop(tmp_path: Path, kernels: str) -> None:
    async def main() -> None:
        async with await fq.open(tmp_path / "n", **options(kernels)) as quorum:  # type: ignore[arg-type]
            await asyncio.wait_for(quorum.wait_ready(), WAIT_S)
            with pytest.raises(UsageError, match=NOBODY_ELSE):
                await quorum.append(b"x")
            with pytest.raises(UsageError, match=NOBODY_ELSE):
                await quorum.append([b"x", b"y"], atomic=False)
            with pytest.raises(UsageError, match=NOBODY_ELSE):
                await quorum.append_nowait(b"x")
            with pytest.raises(UsageError, match=NOBODY_ELSE):
                quorum.append_each([b"x"])
            assert quorum.role == "leader"

    asyncio.run(main())


def test_a_user_log_has_no_controller(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match="controller: it keeps Kafka's metadata, and this is a user log; format another directory"
    ):
        sync.open(tmp_path / "n", **{**options("native"), "log": "user"})  # type: ignore[arg-type]


SMALL = {
    "log": "metadata",
    "controller": True,
    "idle_us_max": 2_000,  # a no-op whenever nothing else is appended
    "snapshot_log_bytes": 4_000,
    "segment_bytes": 8_192,
    "preallocate_bytes": 8_192,
    "retention_bytes": 40_000,
}


def moved_on(node: sync.Quorum, start_offset: int) -> None:
    """Return once its log begins above start_offset."""
    for _ in node.committed(from_offset=node.high_watermark, progress=True):
        if node._node.log.start_offset > start_offset:
            return


@pytest.mark.parametrize("kernels", ["native", "pure"])
def test_a_log_stays_small_and_whoever_lost_it_begins_with_a_snapshot(tmp_path: Path, kernels: str) -> None:
    """Each node takes snapshots of its own and forgets what they cover; a restart, and an empty directory, begin with
    one."""
    with trio(tmp_path, **SMALL, kernels=kernels) as nodes:
        for node in nodes.nodes.values():
            moved_on(node, 0)
        nodes.crash(1)
        nodes.open(1)
        nodes.ready()
        moved_on(nodes.nodes[1], nodes.nodes[1]._node.log.start_offset)
        nodes.crash(2)
        shutil.rmtree(nodes.path(2))
        nodes.open(2)
        nodes.ready()
        assert nodes.nodes[2]._node.log.start_offset > 0, "it was sent a snapshot"
        moved_on(nodes.nodes[2], nodes.nodes[2]._node.log.start_offset)
    logs = [fq.log.open(nodes.path(node_id)) for node_id in (1, 2, 3)]
    assert all(log.verify().is_sound for log in logs)
    first, *others = [log.image() for log in logs]
    assert all(image.features == first.features for image in others)
    assert [sorted(image.controllers) for image in (first, *others)] == [[1, 2, 3]] * 3


def registered(node: sync.Quorum) -> dict[int, Controller]:
    """Return the controllers in the committed metadata that the node shows."""
    role = node._node._replica.controller
    assert role is not None
    return dict(role.replay.image.controllers)


def until(node: sync.Quorum, is_so: Callable[[dict[int, Controller]], bool]) -> dict[int, Controller]:
    """The registrations, once they are so. No-ops keep the node telling of commits."""
    for _ in node.committed(progress=True):
        if is_so(found := registered(node)):
            return found
    raise AssertionError("the node is closed")


@pytest.mark.parametrize("kernels", ["native", "pure"])
def test_every_controller_registers_and_a_restart_as_another_incarnation(tmp_path: Path, kernels: str) -> None:
    with trio(tmp_path, log="metadata", controller=True, idle_us_max=20_000, kernels=kernels) as nodes:
        seen = [until(node, lambda found: len(found) == 3) for node in nodes.nodes.values()]
        assert seen[0] == seen[1] == seen[2]
        before = seen[0]
        assert sorted(before) == [1, 2, 3]
        for node_id, port in enumerate(nodes.ports, start=1):
            (listener,) = before[node_id].listeners
            assert (listener.host, listener.port) == ("127.0.0.1", port)
            assert before[node_id].features == before[1].features
        for node_id in (1, 2, 3):  # whoever leads is among them
            nodes.crash(node_id)
            nodes.open(node_id)
            nodes.ready()
            after = until(
                nodes.nodes[node_id],
                lambda found, node_id=node_id: (
                    node_id in found and found[node_id].incarnation_id != before[node_id].incarnation_id
                ),
            )
            assert after[node_id]._replace(incarnation_id=before[node_id].incarnation_id) == before[node_id]


def test_the_directory_remembers_it_and_begins_with_the_features_of_a_formatted_one(tmp_path: Path) -> None:
    with sync.open(tmp_path / "n", **options("native")) as quorum:  # type: ignore[arg-type]
        quorum.wait_ready(WAIT_S)
    assert len(fq.log.open(tmp_path / "n").image().features.by_name()) == 6
    with sync.open(tmp_path / "n", **QUICK) as quorum:  # type: ignore[arg-type]
        quorum.wait_ready(WAIT_S)
        with pytest.raises(UsageError, match=NOBODY_ELSE):
            quorum.append(b"x", timeout=WAIT_S)
    with sync.open(tmp_path / "n", **QUICK, controller=False) as quorum:  # type: ignore[arg-type]
        quorum.wait_ready(WAIT_S)
        assert quorum.append(b"x", timeout=WAIT_S)
