"""Rows of partitions, read many at once: what the records come to when each is decoded, or none of it."""

import gc
import random
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastquorum.controller.image.partition import Partition, partition_of
from fastquorum.errors import WireError
from fastquorum.kernels import Kernels, load
from fastquorum.kernels.partitions import PartitionRun
from fastquorum.types import Uuid
from fastquorum.wire.message import Message
from fastquorum.wire.records.metadata import decode_metadata_record, encode_metadata_record
from fastquorum.wire.records.topics import PartitionRecord, TopicRecord
from tests.wire.strategies import messages

from .conftest import Twins

TOPIC, OTHER = Uuid(b"0123456789abcdef"), Uuid(b"fedcba9876543210")
HOME = Uuid(b"a log directory!")
ANY_RECORD = st.integers(0, 2).flatmap(
    lambda version: messages(PartitionRecord, version, True).map(lambda record: encode_metadata_record(record, version))
)


def record(number: int = 0, topic_id: Uuid = TOPIC, version: int = 2, **fields: Any) -> bytes:
    whole = {"replicas": [1, 2], "isr": [1, 2], "leader": 1, "leader_epoch": 0, "partition_epoch": 0, **fields}
    return encode_metadata_record(PartitionRecord(partition_id=number, topic_id=topic_id, **whole), version)


def one_by_one(value: bytes) -> tuple[Uuid, int, Partition] | None:
    """What the record's own decoder makes of it; None if it does not fit."""
    try:
        message: Message = decode_metadata_record(value)[0]
        if not isinstance(message, PartitionRecord) or message.partition_id < 0:
            return None
        return message.topic_id, message.partition_id, partition_of(message)
    except (ValueError, WireError):
        return None


def same_run(twins: Twins, values: list[Any], at: int = 0) -> PartitionRun | None:
    """Return the run of both kernel sets, which must agree, to the types."""
    pure, native = (kernels.PartitionRows(Partition).read(values, at) for kernels in twins)
    assert native == pure
    assert repr(native) == repr(pure)
    return native


@settings(max_examples=400)
@given(value=ANY_RECORD)
def test_a_row_is_what_the_decoded_record_comes_to(twins: Twins, value: bytes) -> None:
    run = same_run(twins, [value])
    expected = one_by_one(value)
    if run is not None:
        assert expected is not None
        assert (run.end, run.topic_id, run.rows) == (1, expected[0], {expected[1]: expected[2]})


@pytest.mark.parametrize(
    ("version", "fields"),
    [
        (0, {}),
        (1, {"directories": [HOME, OTHER]}),
        (1, {"directories": [Uuid(), Uuid()]}),
        (1, {"directories": []}),
        (1, {"directories": [Uuid(), HOME]}),
        (2, {"isr": [2], "removing_replicas": [1], "adding_replicas": [3, 2**31 - 1], "leader": -1}),
        (2, {"isr": [], "eligible_leader_replicas": [1], "last_known_elr": [2], "leader_recovery_state": 1}),
        (2, {"eligible_leader_replicas": [], "leader_epoch": 2**31 - 1, "partition_epoch": -(2**31)}),
        (2, {"replicas": [], "isr": [], "directories": []}),
        (2, {"replicas": list(range(200)), "isr": list(range(199))}),
    ],
    ids=repr,
)
def test_what_kafka_writes_is_taken(twins: Twins, version: int, fields: dict[str, Any]) -> None:
    value = record(7, version=version, **fields)
    expected = one_by_one(value)
    assert expected is not None
    assert same_run(twins, [value]) == PartitionRun(1, TOPIC, {7: expected[2]})


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"\1\3",
        record(-1),
        record()[:-1],
        record() + b"\0",
        bytearray(record()),
        b"\2" + record()[1:],
        b"\1\5" + record()[2:],
        b"\1\3\3" + record()[3:],
        record(directories=[HOME]),
        record(directories=[Uuid(), HOME, HOME]),
        record(leader_recovery_state=2),
        record(unknown_tags=((9, b"nine"),)),
        encode_metadata_record(TopicRecord(name="t", topic_id=TOPIC), 0),
    ],
    ids=repr,
)
def test_what_is_not_as_kafka_writes_it_is_left_to_who_says_why(twins: Twins, value: Any) -> None:
    assert same_run(twins, [value]) is None
    assert same_run(twins, [record(0), value, record(1)]) == same_run(twins, [record(0)])


def test_a_run_is_of_one_topic_and_the_later_record_counts(twins: Twins) -> None:
    values = [record(0), record(1), record(0, leader=2), record(2, OTHER), record(3)]
    run = same_run(twins, values)
    assert run is not None
    assert (run.end, run.topic_id, sorted(run.rows)) == (3, TOPIC, [0, 1])
    assert run.rows[0].leader == 2
    run = same_run(twins, values, 3)
    assert run is not None
    assert (run.end, run.topic_id, sorted(run.rows)) == (4, OTHER, [2])
    assert same_run(twins, values, 5) is None
    for kernels in twins:
        with pytest.raises(IndexError):
            kernels.PartitionRows(Partition).read(values, -1)


@settings(max_examples=400)
@given(value=ANY_RECORD, data=st.data())
def test_mutated_records_are_told_as_one_by_one_or_refused(twins: Twins, value: bytes, data: st.DataObject) -> None:
    mutated = bytearray(value)
    for _ in range(data.draw(st.integers(1, 3))):
        mutated[data.draw(st.integers(0, len(mutated) - 1))] = data.draw(st.integers(0, 255))
    size = data.draw(st.integers(0, len(mutated)))
    for changed in (bytes(mutated), bytes(mutated[:size])):
        run = same_run(twins, [changed])
        expected = one_by_one(changed)
        if run is not None:
            assert expected is not None
            assert (run.topic_id, run.rows) == (expected[0], {expected[1]: expected[2]})


def test_ids_are_shared_and_more_of_them_than_are_kept_are_told_apart(kernels: Kernels) -> None:
    rows = kernels.PartitionRows(Partition)
    chosen = random.Random(5)
    homes = [Uuid(chosen.randbytes(16)) for _ in range(10_000)]
    for _ in range(2):
        for number, home in enumerate(homes):
            broker = number * 4_096 + 7  # which all want the same place in a small table
            run = rows.read([record(1, replicas=[broker], isr=[broker], leader=broker, directories=[home])])
            assert run is not None
            assert run.rows[1][:4] == ((broker,), (home,), (broker,), broker)


def test_what_is_alike_is_one_object() -> None:
    rows = load("native").PartitionRows(Partition)
    made = [row for _, _, run in _runs(rows, 3) for row in run.values()]
    assert len({id(row.directories[0]) for row in made}) == 1
    assert len({id(row.leader) for row in made}) == 1
    assert all(row.isr is row.replicas for row in made)
    assert not any(
        gc.is_tracked(each) for row in made for each in (row, row.replicas, row.directories, row.directories[0])
    )


def _runs(rows: Any, count: int) -> Iterator[PartitionRun]:
    for number in range(count):
        run = rows.read([record(number, replicas=[90_000], isr=[90_000], leader=90_000, directories=[HOME])])
        assert run is not None
        yield run


def test_a_tuple_that_is_made_for_keeping_is_not_looked_through() -> None:
    items: list[Any] = [[1], None, "two"]
    for kernels in (load("native"), load("pure")):
        assert kernels.untracked(items) == ([1], None, "two")
        assert kernels.untracked([]) == ()
    assert not gc.is_tracked(load("native").untracked(items))


class _Short(NamedTuple):
    replicas: tuple[int, ...]


@pytest.mark.parametrize("row_type", [_Short, int, list])
def test_a_row_that_has_not_their_shape_is_refused(kernels: Kernels, row_type: type) -> None:
    with pytest.raises(TypeError):
        kernels.PartitionRows(row_type)


def test_nothing_leaks() -> None:
    """Neither rows that are dropped nor rows that were begun and refused."""
    rows = load("native").PartitionRows(Partition)
    values = [record(number, eligible_leader_replicas=[70_000 + number]) for number in range(3)]
    values.append(record(3, replicas=[80_000, 80_001])[:-1])
    rows.read(values)
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(1_000):
        rows.read(values)
        rows.read(values, 3)
    assert sys.getallocatedblocks() - before < 200  # a leak of one object a round would be 1,000


class Kept(tuple[int, ...]):
    """Nothing that it refers to can refer back to it."""


def test_what_is_young_and_of_a_kind_that_is_named_is_not_looked_through() -> None:
    gc.collect()
    made = [Kept((number,)) for number in range(10)]
    other = [[number] for number in range(10)]
    load("pure").untrack_young((Kept,))
    assert all(map(gc.is_tracked, made))
    load("native").untrack_young((Kept, dict))
    assert not any(map(gc.is_tracked, made))
    assert all(map(gc.is_tracked, other))
    assert [*map(tuple, made)] == [(number,) for number in range(10)]
    made.clear()
    gc.collect()
