"""A read barrier and `committed()` agree on offsets, whatever the records below them are."""

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

import fastquorum as fq
from fastquorum import sync
from fastquorum.api import committed
from fastquorum.api.committed import MANY_RECORDS, Committed, Progress, read_committed
from fastquorum.kernels import Header, Kernels, Record, load
from tests.api.nodes import QUICK, WAIT_S, trio


def read(items: Iterator[Committed], end_offset: int) -> tuple[list[bytes | None], int]:
    """Values up to an item that reaches end_offset, and where that ends."""
    values: list[bytes | None] = []
    for item in items:
        values += [record.value for record in item.records]
        if item.next_offset >= end_offset:
            return values, item.next_offset
    raise AssertionError("no item reached it")


async def read_soon(items: AsyncIterator[Committed], end_offset: int) -> tuple[list[bytes | None], int]:
    values: list[bytes | None] = []
    async for item in items:
        values += [record.value for record in item.records]
        if item.next_offset >= end_offset:
            return values, item.next_offset
    raise AssertionError("no item reached it")


@pytest.mark.parametrize("kernels", ["native", "pure"])
@pytest.mark.parametrize("follow", [True, False])
@pytest.mark.parametrize("progress", [True, False])
@pytest.mark.timeout(60)
def test_a_reader_reaches_what_a_barrier_returned(tmp_path: Path, kernels: str, follow: bool, progress: bool) -> None:
    values: list[bytes] = []
    for life in range(3):  # each ends in a record of its election that nothing follows
        with sync.open(tmp_path, **QUICK, node_id=1, kernels=kernels) as quorum:  # type: ignore[misc]
            quorum.wait_ready(WAIT_S)
            end_offset = quorum.read_barrier(WAIT_S)
            assert read(quorum.committed(follow=follow, progress=progress), end_offset) == (values, end_offset)
            if life:
                values.append(b"%d" % life)
                quorum.append(values[-1])
            end_offset = quorum.read_barrier(WAIT_S)
            found, position = read(quorum.committed(follow=follow, progress=progress), end_offset)
            assert (found, position) == (values, end_offset)


@pytest.mark.timeout(60)
def test_a_reader_that_resumes_where_nothing_is_new_says_so(tmp_path: Path) -> None:
    with sync.open(tmp_path, **QUICK, node_id=1) as quorum:
        quorum.wait_ready(WAIT_S)
        quorum.append(b"x")
        end_offset = quorum.read_barrier(WAIT_S)
        for from_offset in (end_offset, end_offset + 10):
            assert read(quorum.committed(from_offset=from_offset), end_offset) == ([], from_offset)
        items = quorum.committed(from_offset=end_offset)
        assert next(items) == Progress(end_offset, end_offset)
        quorum.append(b"y")
        assert [record.value for record in next(items).records] == [b"y"]


@pytest.mark.timeout(60)
def test_a_task_that_reads_reaches_what_a_barrier_returned(tmp_path: Path) -> None:
    async def main() -> None:
        for life in range(2):
            async with await fq.open(tmp_path, **QUICK, node_id=1) as quorum:
                await quorum.wait_ready(WAIT_S)
                end_offset = await quorum.read_barrier(WAIT_S)
                wanted = [b"x"] * life
                for follow in (True, False):
                    found = await read_soon(quorum.committed(follow=follow), end_offset)
                    assert found == (wanted, end_offset)
                assert await read_soon(quorum.committed(from_offset=end_offset), end_offset) == ([], end_offset)
                await quorum.append(b"x")

    asyncio.run(main())


@pytest.mark.timeout(60)
def test_followers_say_how_far_they_are_behind_an_election(tmp_path: Path) -> None:
    with trio(tmp_path) as nodes:
        nodes.append(b"x")
        nodes.have_lead(nodes.followers[0])
        end_offset = nodes.leader.read_barrier(WAIT_S)
        for node in nodes.nodes.values():
            found, position = read(node.committed(), end_offset)
            assert found == [b"x"]
            assert position >= end_offset


def test_a_backlog_is_made_outside_of_the_event_loop_and_what_comes_soon_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []

    def noting(*arguments: Any) -> Any:
        threads.append(threading.get_ident())
        return read_committed(*arguments)

    monkeypatch.setattr(committed, "read_committed", noting)

    async def main() -> None:
        async with fq.open(tmp_path, **QUICK, node_id=1) as quorum:
            await quorum.wait_ready(WAIT_S)
            first = await quorum.append([b"x"] * (MANY_RECORDS + 1))
            found = [len(item.records) async for item in quorum.committed(follow=False)]
            assert sum(found) == MANY_RECORDS + 1
            assert threading.get_ident() not in threads
            threads.clear()
            assert [item async for item in quorum.committed(first + MANY_RECORDS, follow=False)]
            assert set(threads) == {threading.get_ident()}

    asyncio.run(main())


class Log:
    """What `read_committed` asks of a node, over one batch."""

    def __init__(self, kernels: Kernels, batch: bytes) -> None:
        self.kernels = kernels
        self._batch = batch

    def read(self, offset: int, bytes_max: int, end_offset: int) -> bytes:
        return self._batch


@pytest.mark.parametrize("compression", [0, 1])
@pytest.mark.parametrize("name", ["native", "pure"])
def test_a_large_batch_is_made_of_the_same_records_as_a_small_one(
    name: Literal["native", "pure"], compression: int
) -> None:
    kernels = load(name)
    headers = ((), (Header("a", b"b"),), (Header("c", None), Header("", b"")))
    written = [
        Record([b"v%d" % at, b"", None][at % 3], [None, b"k", b""][at // 3 % 3], headers[at // 9 % 3], 1000 + at)
        for at in range(MANY_RECORDS + 77)
    ]
    batch = kernels.encode_records(written, base_offset=500, leader_epoch=7, timestamp_ms=1000, attributes=compression)
    for from_offset in (0, 500, 501, 500 + MANY_RECORDS, 500 + len(written)):
        (found,), position = read_committed(Log(kernels, batch), from_offset, 10_000)  # type: ignore[arg-type]
        wanted = [
            (each.offset, 7, each.timestamp_ms, each.value, each.key, each.headers)
            for each in kernels.decode_records(batch)
            if each.offset >= from_offset
        ]
        assert list(found.records) == wanted
        assert position == 500 + len(written)


def test_names_of_headers_that_are_no_utf_8_are_replaced_in_a_large_batch_too() -> None:
    kernels = load("native")
    count = MANY_RECORDS + 1
    good = kernels.encode_records(
        [Record(b"v", None, (Header("ab", b"x"),), 5)] * count, base_offset=0, leader_epoch=1, timestamp_ms=5
    )
    batch = good.replace(b"ab", b"a\xff")  # the checksum is not looked at again
    (found,), _ = read_committed(Log(kernels, batch), 0, count)  # type: ignore[arg-type]
    assert {each.headers for each in found.records} == {(Header("a\ufffd", b"x"),)}


def test_a_large_batch_is_not_made_in_one_call_nor_looked_through_by_the_garbage_collector() -> None:
    """Either would hold the interpreter for as long as it takes, and whatever else runs in the event loop's thread."""
    kernels = load("native")
    count = 20 * MANY_RECORDS
    batch = kernels.encode_values([b"x"] * count, base_offset=0, leader_epoch=1, timestamp_ms=5)

    class Watched:
        def __getattr__(self, name: str) -> Any:
            assert name not in ("decode_records", "decode_values")
            return getattr(kernels, name)

    log = Log(Watched(), batch)  # type: ignore[arg-type]
    (found,), _ = read_committed(log, 0, count)  # type: ignore[arg-type]
    assert gc.isenabled()
    assert len(found.records) == count
    assert not any(gc.is_tracked(each) for each in (found.records, *found.records))
