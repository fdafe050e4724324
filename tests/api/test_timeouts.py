"""Every method that takes a timeout takes any time, and refuses what is none before it has done anything."""

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fastquorum as fq
from fastquorum import sync
from fastquorum.errors import AppendTimeout, NotReady, UsageError
from tests.api.nodes import QUICK, WAIT_S

LONG = (1e300, float("inf"), 10**30, 1e10)
NO_TIMES: tuple[Any, ...] = (float("nan"), "5", b"5", [5])


def waits(quorum: Any, producer: Any) -> tuple[Callable[[Any], Any], ...]:
    """What waits for so long, in both twins of the API."""
    return (
        quorum.wait_ready,
        quorum.read_barrier,
        lambda timeout: quorum.transfer_leadership(1, timeout),
        lambda timeout: quorum.append(b"x", timeout=timeout),
        lambda timeout: quorum.append([b"x"], atomic=False, timeout=timeout),
        lambda timeout: producer.append(b"x", timeout=timeout),
    )


@pytest.mark.parametrize("kernels", ["native", "pure"])
def test_a_thread_may_wait_for_ever_so_long_and_appends_nothing_where_it_names_no_time(
    tmp_path: Path, kernels: Any
) -> None:
    with sync.open(tmp_path, **QUICK, node_id=1, kernels=kernels) as quorum:
        quorum.wait_ready(WAIT_S)
        with quorum.producer("p", timeout=1e300) as producer:
            calls = (
                *waits(quorum, producer),
                lambda timeout: quorum.producer("q", timeout=timeout).__enter__(),
            )
            for call in calls:
                for timeout in LONG:
                    call(timeout)
                end_offset = quorum.end_offset
                for timeout in NO_TIMES:
                    with pytest.raises(UsageError, match="timeout"):
                        call(timeout)
                assert quorum.end_offset == end_offset
        pending = quorum.append_nowait(b"x")
        assert pending.result(1e300) == end_offset
        assert pending.result(-1) == end_offset, "its fate is known: there is nothing to wait for"
        with contextlib.suppress(AppendTimeout):
            quorum.append(b"x", timeout=-1)
        quorum.close(timeout=1e300)


@pytest.mark.parametrize("kernels", ["native", "pure"])
def test_a_task_may_wait_for_ever_so_long_and_appends_nothing_where_it_names_no_time(
    tmp_path: Path, kernels: Any
) -> None:
    async def main() -> None:
        async with fq.open(tmp_path, **QUICK, node_id=1, kernels=kernels) as quorum:
            await quorum.wait_ready(WAIT_S)
            async with quorum.producer("p", timeout=1e300) as producer:
                for call in waits(quorum, producer):
                    for timeout in LONG:
                        await call(timeout)
                    end_offset = quorum.end_offset
                    for timeout in NO_TIMES:
                        with pytest.raises(UsageError, match="timeout"):
                            await call(timeout)
                    assert quorum.end_offset == end_offset
            with contextlib.suppress(NotReady):
                await quorum.read_barrier(timeout=-1)
            await quorum.close(timeout=1e300)

    asyncio.run(main())


def test_the_time_of_a_producers_append_is_that_of_its_turn_too(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            fq.open(tmp_path, **QUICK, node_id=1) as quorum,
            quorum.producer("p", timeout=WAIT_S) as producer,
            producer._turn,  # another append that takes long
        ):
            with pytest.raises(AppendTimeout):
                await producer.append(b"x", timeout=0.01)

    asyncio.run(main())


def test_an_offset_to_read_from_is_a_whole_number(tmp_path: Path) -> None:
    with sync.open(tmp_path, **QUICK, node_id=1) as quorum:
        for offset in (1.5, "1", None):
            with pytest.raises(UsageError, match="offset"):
                list(quorum.committed(offset, follow=False))  # type: ignore[arg-type]
