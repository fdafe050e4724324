"""Batches are folded into the image that their records make one by one, wherever partitions are read many at once."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastquorum.controller.image.fold import Fold, Place
from fastquorum.errors import ImageFailed
from fastquorum.kernels import Kernels, Record, load
from fastquorum.node.metadata.folding import MetadataFolder
from fastquorum.types import Uuid
from fastquorum.wire.message import Message
from fastquorum.wire.records.cluster import AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord
from fastquorum.wire.records.metadata import encode_metadata_record
from fastquorum.wire.records.topics import PartitionChangeRecord, PartitionRecord, TopicRecord

TOPICS = [Uuid(bytes([number]) * 16) for number in (1, 2, 3)]


@pytest.fixture(scope="module", params=["native", "pure"])
def kernels(request: pytest.FixtureRequest) -> Kernels:
    return load(request.param)


def partition(topic: int, number: int, leader: int = 1) -> PartitionRecord:
    return PartitionRecord(
        partition_id=number, topic_id=TOPICS[topic], replicas=[1, 2], isr=[1, 2], leader=leader, leader_epoch=0
    )


def value(record: Message) -> bytes:
    return encode_metadata_record(record, 0)


def created() -> list[Message]:
    return [TopicRecord(name=f"topic-{number}", topic_id=topic_id) for number, topic_id in enumerate(TOPICS[:2])]


def batch(kernels: Kernels, base_offset: int, records: list[Message]) -> bytes:
    values = [value(record) for record in records]
    return bytes(kernels.encode_values(values, base_offset=base_offset, leader_epoch=3, timestamp_ms=base_offset))


PLACES = st.tuples(st.integers(0, 1), st.integers(0, 3))
RECORDS: st.SearchStrategy[Message] = st.one_of(
    st.builds(partition, st.integers(0, 1), st.integers(0, 70), st.integers(1, 2)),
    PLACES.map(lambda at: PartitionChangeRecord(partition_id=at[1], topic_id=TOPICS[at[0]], leader=2)),
    st.sampled_from([BeginTransactionRecord(), EndTransactionRecord(), AbortTransactionRecord()]),
)


@settings(max_examples=60, deadline=None)
@given(rest=st.lists(RECORDS, max_size=80), cut=st.integers(1, 80))
def test_batches_come_to_what_their_records_come_to(kernels: Kernels, rest: list[Message], cut: int) -> None:
    alone, kept = Fold(), []
    for record in [*created(), *rest]:
        tried = Fold()
        try:
            for offset, each in enumerate([*kept, record]):
                tried.add(offset, each, 3, 0)
        except ImageFailed:
            continue
        kept.append(record)
    fold = Fold()
    for begin in range(0, len(kept), cut):
        MetadataFolder(kernels).take(batch(kernels, begin, kept[begin : begin + cut]), fold)
    for offset, each in enumerate(kept):
        alone.add(offset, each, 3, offset // cut * cut)
    assert fold.image == alone.image
    assert (fold.place, fold.next_offset, fold.is_in_transaction) == (
        alone.place,
        alone.next_offset,
        alone.is_in_transaction,
    )


def test_a_batch_is_folded_from_where_the_fold_stands(kernels: Kernels) -> None:
    data = batch(kernels, 0, [*created(), partition(0, 0), partition(0, 1), partition(0, 2)])
    fold = Fold()
    for offset, record in enumerate([*created(), partition(0, 0, leader=2)]):
        fold.add(offset, record, 3, 0)
    MetadataFolder(kernels).take(data, fold)
    topic = fold.image.topics.named("topic-0")
    assert topic is not None
    assert [each.leader for each in topic.partitions] == [2, 1, 1]
    assert fold.place == Place(5, 3, 0)
    MetadataFolder(kernels).take(data, fold)
    assert fold.place == Place(5, 3, 0)


def test_partitions_without_a_topic_are_named_by_their_offset(kernels: Kernels) -> None:
    data = batch(kernels, 0, [*created(), partition(0, 0), partition(2, 0), partition(2, 1)])
    with pytest.raises(ImageFailed, match=r"PARTITION_RECORD at offset 3 .* there is no topic with id"):
        MetadataFolder(kernels).take(data, Fold())


def test_offsets_that_leave_some_out_are_those_of_the_records(kernels: Kernels) -> None:
    """No controller writes such offsets; a cleaned log would have them."""
    records: list[Message] = [*created(), partition(0, 0), partition(0, 1), partition(2, 0)]
    spread = [Record(value(record), offset=10 + 2 * at) for at, record in enumerate(records)]
    data = kernels.encode_records(spread, base_offset=10, leader_epoch=3, timestamp_ms=0)
    with pytest.raises(ImageFailed, match=r"PARTITION_RECORD at offset 18 "):
        MetadataFolder(kernels).take(data, Fold())
    good = kernels.encode_records(spread[:4], base_offset=10, leader_epoch=3, timestamp_ms=0)
    fold = Fold()
    MetadataFolder(kernels).take(good, fold)
    assert fold.place.end_offset == 17


def test_a_record_that_is_none_is_named_by_its_offset(kernels: Kernels) -> None:
    values = [*map(value, created()), value(partition(0, 0)), value(partition(0, 1))[:-1]]
    data = kernels.encode_values(values, base_offset=0, leader_epoch=3, timestamp_ms=0)
    with pytest.raises(ImageFailed, match="offset 3"):
        MetadataFolder(kernels).take(bytes(data), Fold())
