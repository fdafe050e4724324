"""Whoever opens a producer has its name: the former one is fenced, on every node, and what is final is true."""

import asyncio
import queue
from pathlib import Path
from typing import Any, Literal

import pytest

import fastquorum
from fastquorum import sync
from fastquorum.errors import (
    AppendTimeout,
    FastQuorumError,
    NotLeader,
    NotReady,
    OutOfOrderSequence,
    ProducerFenced,
    SequenceReused,
)
from fastquorum.kernels.producers import Stamp
from fastquorum.node.io.clock import now_us
from fastquorum.node.lane.confirming import FINAL_REFUSALS
from fastquorum.wire.records.cluster import NoOpRecord
from fastquorum.wire.records.metadata import encode_metadata_record
from tests.api.nodes import QUICK, WAIT_S, Trio, values_of

KERNELS = pytest.mark.parametrize("kernels", ["native", "pure"])
Name = Literal["native", "pure"]


@KERNELS
def test_the_last_of_two_asyncio_producers_has_the_name(tmp_path: Path, kernels: Name) -> None:
    async def main() -> list[bytes | None]:
        async with await fastquorum.open(str(tmp_path), **QUICK, node_id=1, kernels=kernels) as quorum:
            await quorum.wait_ready(timeout=WAIT_S)
            async with quorum.producer(id="orders") as former, quorum.producer(id="orders") as newer:
                first = await newer.append(b"A", timeout=WAIT_S)
                with pytest.raises(ProducerFenced):
                    await former.append(b"B", timeout=WAIT_S)
                with pytest.raises(SequenceReused, match="producer 'orders'"):
                    await newer.append(b"B", sequence=0, timeout=WAIT_S)
                assert await newer.append(b"A", sequence=0, timeout=WAIT_S) == first
                with pytest.raises(OutOfOrderSequence):
                    await newer.append(b"C", sequence=2, timeout=WAIT_S)
                opened = await asyncio.gather(*(self_opened(quorum) for _ in range(3)))
                assert sorted(opened) == [False, False, True], "of those that open together one has it"
            return [r.value async for each in quorum.committed(follow=False) for r in getattr(each, "records", ())]

    async def self_opened(quorum: fastquorum.Quorum) -> bool:
        producer = await quorum.producer(id="shared").__aenter__()
        await asyncio.sleep(0)
        all_open.append(producer)
        while len(all_open) < 3:
            await asyncio.sleep(0.001)
        try:
            await producer.append(b"shared", timeout=WAIT_S)
        except ProducerFenced:
            return False
        return True

    all_open: list[fastquorum.Producer] = []
    assert asyncio.run(main()) == [b"A", b"shared"]


@KERNELS
def test_without_a_majority_nothing_final_is_said(tmp_path: Path, kernels: Name) -> None:
    """Another leader may have what this one lacks."""
    trio = Trio(tmp_path, kernels=kernels)
    trio.open(1, 2, 3)
    try:
        trio.ready()
        leader = trio.leader
        with leader.producer("p", timeout=WAIT_S) as former, leader.producer("p", timeout=WAIT_S) as newer:
            newer.append(b"0", timeout=WAIT_S)
            for node_id in [node_id for node_id in trio.nodes if node_id != leader.node_id]:
                trio.crash(node_id)
            for producer, sequence in ((newer, 7), (newer, 0), (former, None)):
                with pytest.raises((AppendTimeout, NotLeader, NotReady)):
                    producer.append(b"other", sequence=sequence, timeout=0.1)
    finally:
        trio.close()


def test_a_name_moves_with_its_fence_from_leader_to_leader(tmp_path: Path) -> None:
    trio = Trio(tmp_path, fetch_timeout_us=5_000_000)
    trio.open(1, 2, 3)
    try:
        trio.ready()
        one, other = trio.leader, trio.followers[0]
        with one.producer("p", timeout=WAIT_S) as former:
            offset = former.append(b"a", timeout=WAIT_S)
            trio.have_lead(other)
            with other.producer("p", timeout=WAIT_S) as newer:
                assert newer.append(b"a", sequence=0, timeout=WAIT_S) == offset
                newer.append(b"b", timeout=WAIT_S)
            with pytest.raises(NotLeader):
                former.append(b"x", timeout=WAIT_S)
            trio.have_lead(one)
            with pytest.raises(ProducerFenced):
                former.append(b"x", timeout=WAIT_S)
        assert values_of(trio.leader) == [b"a", b"b"]
    finally:
        trio.close()


def test_in_a_metadata_log_a_fence_is_a_no_op(tmp_path: Path) -> None:
    value = encode_metadata_record(NoOpRecord(), 0)
    with sync.open(str(tmp_path), **QUICK, node_id=1, log="metadata") as quorum:
        quorum.wait_ready(WAIT_S)
        with quorum.producer("p") as former, quorum.producer("p") as newer:
            first = newer.append(value, timeout=WAIT_S)
            assert newer.append(value, sequence=0, timeout=WAIT_S) == first
            with pytest.raises(ProducerFenced):
                former.append(value, timeout=WAIT_S)


class Recorder:
    """Waits for what becomes of an append."""

    def __init__(self) -> None:
        self.fates: queue.SimpleQueue[int | FastQuorumError] = queue.SimpleQueue()

    def committed(self, base_offset: int) -> None:
        self.fates.put(base_offset)

    def failed(self, error: FastQuorumError) -> None:
        self.fates.put(error)


def test_what_a_second_look_forbids_is_no_more_final_than_what_the_first_one_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where raft/ decides while an append comes, and is done when that is tried again."""
    with sync.open(str(tmp_path), **QUICK, node_id=1, kernels="native") as quorum:
        quorum.wait_ready(timeout=WAIT_S)
        shell: Any = quorum._node._shell
        wait_for_raft = shell._wait_for_raft
        tried: list[object] = []

        def decided(*arguments: Any) -> None:
            with shell.lock:
                shell.resume(now_us())
            tried.append(arguments)
            wait_for_raft(*arguments)

        monkeypatch.setattr(shell, "_wait_for_raft", decided)
        gap = Stamp(producer_id=7, epoch=0, first_sequence=5, record_count=1)
        batch = quorum._node.kernels.encode_values(
            [b"gap"],
            base_offset=0,
            leader_epoch=0,
            timestamp_ms=1,
            producer_id=gap.producer_id,
            producer_epoch=gap.epoch,
            base_sequence=gap.first_sequence,
        )
        while not tried:  # the replica's thread may have let the lane go on before
            with shell.lock:
                shell.freeze(now_us())
            recorder = Recorder()
            shell.append_encoded(bytearray(batch), 1, recorder, now_us(), gap)
            assert isinstance(recorder.fates.get(timeout=WAIT_S), FINAL_REFUSALS)
