"""How many partitions there are is kept up with every change, and is as if they were counted one by one."""

from hypothesis import given
from hypothesis import strategies as st

from fastquorum.controller.image.counts import PartitionCounts
from fastquorum.controller.image.fold import Fold
from fastquorum.errors import ImageFailed
from fastquorum.types import NO_NODE, Uuid
from fastquorum.wire.message import Message
from fastquorum.wire.records.cluster import AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord
from fastquorum.wire.records.topics import PartitionChangeRecord, PartitionRecord, RemoveTopicRecord, TopicRecord

TOPICS = [Uuid(bytes([number]) * 16) for number in (1, 2)]
LEADERS = st.sampled_from([1, 2, NO_NODE])


def partition(topic_id: Uuid, number: int, leader: int) -> PartitionRecord:
    return PartitionRecord(
        partition_id=number, topic_id=topic_id, replicas=[1, 2], isr=[1, 2], leader=leader, partition_epoch=0
    )


RECORDS: st.SearchStrategy[Message] = st.one_of(
    st.builds(lambda at: TopicRecord(name=f"t{at}", topic_id=TOPICS[at]), st.integers(0, 1)),
    st.builds(partition, st.sampled_from(TOPICS), st.integers(0, 40), LEADERS),
    st.builds(
        lambda topic_id, number, leader: PartitionChangeRecord(partition_id=number, topic_id=topic_id, leader=leader),
        st.sampled_from(TOPICS),
        st.integers(0, 40),
        LEADERS,
    ),
    st.builds(lambda topic_id: RemoveTopicRecord(topic_id=topic_id), st.sampled_from(TOPICS)),
    st.sampled_from([BeginTransactionRecord(), EndTransactionRecord(), AbortTransactionRecord()]),
)


@given(st.lists(st.tuples(RECORDS, st.booleans()), max_size=60))
def test_whatever_comes_the_counts_are_those_of_the_image(records: list[tuple[Message, bool]]) -> None:
    """Whether an image is asked for after each record or after many."""
    kept: list[Message] = []
    for record, _ in records:
        try:
            folded(*kept, record)
        except ImageFailed:
            continue
        kept.append(record)
    counts = PartitionCounts()
    fold = Fold(counts=counts)
    for offset, record in enumerate(kept):
        fold.add(offset, record, 1, 0)
        if records[offset][1]:
            topics = fold.image.topics
            assert counts == PartitionCounts.of(topics)
    topics = fold.image.topics
    assert counts == PartitionCounts.of(topics)


def test_an_id_may_come_again_at_once_after_its_topic_was_removed() -> None:
    """And go again. No controller makes an id twice, but the image may not depend on where a log is cut."""
    records = [
        TopicRecord(name="t0", topic_id=TOPICS[0]),
        partition(TOPICS[0], 0, 1),
        RemoveTopicRecord(topic_id=TOPICS[0]),
        TopicRecord(name="another", topic_id=TOPICS[0]),
        RemoveTopicRecord(topic_id=TOPICS[0]),
        TopicRecord(name="t0", topic_id=TOPICS[0]),
    ]
    counts = PartitionCounts()
    pieces = Fold(counts=counts)
    for offset, record in enumerate(records):
        pieces.add(offset, record, 1, 0)
        if offset == 1:
            assert pieces.image.topics.named("t0") is not None
    assert pieces.image == folded(*records).image
    assert counts == PartitionCounts.of(pieces.image.topics) == PartitionCounts()


def folded(*records: Message) -> Fold:
    fold = Fold()
    for offset, record in enumerate(records):
        fold.add(offset, record, 1, 0)
    return fold


def test_offline_and_imbalanced_partitions_are_told_apart() -> None:
    counts = PartitionCounts()
    fold = Fold(counts=counts)
    topic_id = TOPICS[0]
    fold.add(0, TopicRecord(name="t", topic_id=topic_id), 1, 0)
    for number, leader in enumerate((1, 2, NO_NODE, 1)):
        fold.add(number + 1, partition(topic_id, number, leader), 1, 0)
    assert len(fold.image.topics.by_id) == 1
    assert counts == PartitionCounts(partitions=4, offline=1, imbalanced=2)
    fold.add(5, PartitionChangeRecord(partition_id=0, topic_id=topic_id, leader=NO_NODE), 1, 0)
    fold.add(6, PartitionChangeRecord(partition_id=1, topic_id=topic_id, leader=1), 1, 0)
    assert len(fold.image.topics.by_id) == 1
    assert counts == PartitionCounts(partitions=4, offline=2, imbalanced=2)
    fold.add(7, RemoveTopicRecord(topic_id=topic_id), 1, 0)
    assert len(fold.image.topics.by_id) == 0
    assert counts == PartitionCounts()
