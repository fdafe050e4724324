"""A node that is one of the cluster's controllers: its log is the controller's, and nobody else appends to it."""

import asyncio
from pathlib import Path

import pytest

import fastquorum as fq
from fastquorum import sync
from fastquorum.errors import ConfigError, UsageError
from tests.api.nodes import CLUSTER_ID, QUICK, WAIT_S

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
    with pytest.raises(ConfigError, match="a controller keeps Kafka's metadata"):
        sync.open(tmp_path / "n", **{**options("native"), "log": "user"})  # type: ignore[arg-type]
