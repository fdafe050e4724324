"""Named producers: exactly once through retries, changes of the lead and restarts of whoever produces."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fastquorum
from fastquorum import sync
from fastquorum.errors import (
    AppendTimeout,
    NotLeader,
    NotReady,
    OutOfOrderSequence,
    ProducerFenced,
    RecordTooLarge,
    SequenceReused,
    UsageError,
)
from tests.api.nodes import QUICK, WAIT_S, Trio, values_of


@pytest.fixture
def one(tmp_path: Path) -> Iterator[sync.Quorum]:
    with sync.open(str(tmp_path), **QUICK, node_id=1) as quorum:
        quorum.wait_ready(WAIT_S)
        yield quorum


@pytest.fixture
def trio(tmp_path: Path) -> Iterator[Trio]:
    nodes = Trio(tmp_path)
    nodes.open(1, 2, 3)
    nodes.ready()
    yield nodes
    nodes.close()


def test_sequences_count_records_and_go_on_where_they_were(one: sync.Quorum) -> None:
    with one.producer("p") as producer:
        assert producer.next_sequence == 0
        first = producer.append([b"a", b"b"], timeout=WAIT_S)
        assert producer.append(b"c", timeout=WAIT_S) == first + 2
        assert producer.next_sequence == 3
    with one.producer("p") as again:
        assert again.next_sequence == 3
        again.append(b"d", timeout=WAIT_S)
    with one.producer("q") as other:
        assert other.next_sequence == 0
    assert values_of(one) == [b"a", b"b", b"c", b"d"]


def test_an_append_said_again_by_its_sequence_is_the_same_append(one: sync.Quorum) -> None:
    with one.producer("p") as producer:
        offsets = [producer.append(b"%d" % number, timeout=WAIT_S) for number in range(4)]
    with one.producer("p") as again:
        assert [again.append(b"%d" % number, sequence=number, timeout=WAIT_S) for number in range(4)] == offsets
        assert again.next_sequence == 4
    assert len(values_of(one)) == 4


@pytest.mark.parametrize("sequence", [1, 5, 2**31 - 1])
def test_a_gap_and_what_is_long_past_are_refused(one: sync.Quorum, sequence: int) -> None:
    with one.producer("p") as producer:
        for number in range(3):
            producer.append([b"%d" % number] * (1 if number else 7), timeout=WAIT_S)
        with pytest.raises(OutOfOrderSequence) as caught:
            producer.append(b"x", sequence=sequence, timeout=WAIT_S)
        assert caught.value.expected_sequence == 9
        producer.append(b"next", timeout=WAIT_S)
    assert values_of(one)[-1] == b"next"


@pytest.mark.parametrize("sequence", [-1, 2**31, "0", 1.0, True])
def test_what_is_no_sequence_is_refused(one: sync.Quorum, sequence: Any) -> None:
    with one.producer("p") as producer, pytest.raises(UsageError, match="sequence"):
        producer.append(b"x", sequence=sequence)


def test_of_two_who_produce_under_one_name_the_last_that_opened_has_it(one: sync.Quorum) -> None:
    with one.producer("p") as former:
        former.append([b"a", b"b"], timeout=WAIT_S)
        with one.producer("p") as newer:
            assert newer.next_sequence == 2
            for _ in range(2):
                with pytest.raises(ProducerFenced, match=r"producer 'p' \(id \d+\) is over.*another instance"):
                    former.append(b"x", timeout=WAIT_S)
            newer.append(b"c", timeout=WAIT_S)
    assert values_of(one) == [b"a", b"b", b"c"]


def test_an_append_of_unknown_fate_is_there_once_though_its_block_was_left(one: sync.Quorum) -> None:
    producer = one.producer(id="orders")
    for value in (b"a", b"b"):
        with producer, pytest.raises(AppendTimeout):
            producer.append(value, timeout=0)
        with producer:
            producer.append(value)
            assert producer.append(b"after " + value) >= 0
    assert values_of(one) == [b"a", b"after a", b"b", b"after b"]


def test_an_append_of_unknown_fate_is_there_once_though_the_name_was_taken_meanwhile(one: sync.Quorum) -> None:
    producer = one.producer(id="orders")
    with producer:
        with pytest.raises(AppendTimeout):
            producer.append(b"a", timeout=0)
        one.read_barrier(WAIT_S)
        with one.producer(id="orders"):
            pass
        for _ in range(2):
            with pytest.raises(ProducerFenced):
                producer.append(b"a")
    with producer:
        producer.append(b"a")
    assert values_of(one) == [b"a"]


def test_an_append_that_was_fenced_off_at_once_is_the_next_one_when_the_name_is_had_again(one: sync.Quorum) -> None:
    producer, other = one.producer(id="orders"), one.producer(id="orders")
    with producer:
        with other:
            other.append(b"theirs")
        with pytest.raises(ProducerFenced):
            producer.append(b"ours")
    with producer:
        producer.append(b"ours")
    assert values_of(one) == [b"theirs", b"ours"]


def test_the_last_that_opened_has_the_name_though_the_log_has_forgotten_it(one: sync.Quorum) -> None:
    with one.producer("p") as former:
        former.append(b"a", timeout=WAIT_S)
        shell = one._node._shell
        with shell.lock:  # as where a snapshot took the place of all that it appended
            shell.log.producers.begin_anew(shell.log.end_offset)
        with one.producer("p") as newer:
            newer.append(b"b", timeout=WAIT_S)
            with pytest.raises(ProducerFenced):
                former.append(b"c", timeout=WAIT_S)
    assert values_of(one) == [b"a", b"b"]


def test_other_values_under_a_sequence_that_is_taken_are_refused(one: sync.Quorum) -> None:
    with one.producer("p") as producer:
        first = producer.append([b"a", b"b"], timeout=WAIT_S)
        for again in (producer, one.producer("p")):
            with again, pytest.raises(SequenceReused, match=rf"producer 'p' \(id \d+\) .*at offset {first}") as caught:
                again.append([b"a", b"c"], sequence=0, timeout=WAIT_S)
            assert caught.value.expected_sequence == 2
    assert values_of(one) == [b"a", b"b"]


def test_a_producer_needs_a_name_and_a_with_block(one: sync.Quorum) -> None:
    for nameless in ("", 5, b"p", None):
        with pytest.raises(UsageError, match="not a name"):
            one.producer(nameless)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="with"):
        one.producer("p").append(b"x")
    with one.producer("\udcff") as producer:
        producer.append(b"x", timeout=WAIT_S)
    with pytest.raises(UsageError, match="with"):
        producer.append(b"x", timeout=WAIT_S)


def test_what_does_not_fit_is_refused_and_not_owed(one: sync.Quorum) -> None:
    with one.producer("p") as producer:
        with pytest.raises(RecordTooLarge):
            producer.append(b"x" * (9 << 20), timeout=WAIT_S)
        producer.append(b"small", timeout=WAIT_S)
        assert producer.next_sequence == 1


def test_a_follower_names_the_leader(trio: Trio) -> None:
    leader = trio.leader
    follower = next(node for node in trio.nodes.values() if node is not leader)
    with pytest.raises(NotLeader) as caught, follower.producer("p", timeout=WAIT_S):
        pass
    assert caught.value.leader_id == leader.node_id


def test_without_a_majority_an_append_times_out_and_is_there_once_when_it_is_tried_again(trio: Trio) -> None:
    leader = trio.leader
    with leader.producer("p") as producer:
        producer.append(b"before", timeout=WAIT_S)
        others = [node_id for node_id in trio.nodes if node_id != leader.node_id]
        for node_id in others:
            trio.crash(node_id)
        with pytest.raises((AppendTimeout, NotLeader, NotReady)):
            producer.append(b"unsure", timeout=0.3)
        trio.open(*others)
        while True:
            try:
                now = trio.leader
                with now.producer("p", timeout=WAIT_S) as anywhere:
                    anywhere.append(b"unsure", sequence=1, timeout=WAIT_S)
                break
            except (NotLeader, NotReady, AppendTimeout):
                continue
    assert values_of(trio.leader) == [b"before", b"unsure"]


def test_another_append_after_an_unsure_one_does_not_take_its_place(trio: Trio) -> None:
    """What was not known to be committed is settled first: the next append never passes for it."""
    leader = trio.leader
    with leader.producer("p") as producer:
        with pytest.raises(AppendTimeout):
            producer.append(b"unsure", timeout=0)
        second = producer.append(b"other", timeout=WAIT_S)
        assert producer.next_sequence == 2
    found = values_of(leader)
    assert found == [b"unsure", b"other"]
    assert second == producer_offset(leader, b"other")


def producer_offset(quorum: sync.Quorum, value: bytes) -> int:
    (offset,) = [
        record.offset
        for batch in quorum.committed(follow=False)
        for record in getattr(batch, "records", ())
        if record.value == value
    ]
    return offset


def test_every_record_is_there_once_and_in_order_though_leaders_are_killed(trio: Trio) -> None:
    wanted = [b"%d" % number for number in range(60)]
    kills = {15, 35}
    number = 0
    while number < len(wanted):
        leader = trio.leader
        try:
            with leader.producer("counter", timeout=WAIT_S) as producer:
                number = producer.next_sequence
                while number < len(wanted):
                    if number in kills:
                        kills.remove(number)
                        trio.crash(leader.node_id)
                        trio.open(leader.node_id)
                    producer.append(wanted[number], sequence=number, timeout=WAIT_S)
                    number += 1
        except (NotLeader, NotReady, AppendTimeout, fastquorum.ClosedError, fastquorum.FatalError):
            continue
    assert values_of(trio.leader) == wanted


def test_the_asyncio_producer_retries_settles_and_takes_turns(tmp_path: Path) -> None:
    async def main() -> None:
        async with await fastquorum.open(str(tmp_path), **QUICK, node_id=1) as quorum:
            await quorum.wait_ready(timeout=WAIT_S)
            async with quorum.producer(id="p", timeout=WAIT_S) as producer:
                with pytest.raises(AppendTimeout):
                    await producer.append(b"a", timeout=0)
                first = await producer.append(b"a", timeout=WAIT_S)  # the same append, or the first that is sent
                offsets = await asyncio.gather(*(producer.append(b"%d" % each, timeout=WAIT_S) for each in range(20)))
                assert offsets == list(range(first + 1, first + 21))
                assert await producer.append(b"19", sequence=20, timeout=WAIT_S) == offsets[-1]
                with pytest.raises(OutOfOrderSequence):
                    await producer.append(b"x", sequence=40, timeout=WAIT_S)
                assert producer.next_sequence == 21
            found = [
                record.value
                async for batch in quorum.committed(follow=False)
                for record in getattr(batch, "records", ())
            ]
            assert found == [b"a", *(b"%d" % each for each in range(20))]

    asyncio.run(main())
