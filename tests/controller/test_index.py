"""The index of partitions is made a piece at a time, and says the same as one that was made at once."""

import gc
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fastquorum.controller.image import EMPTY, Image
from fastquorum.controller.image.image import ImageEditor
from fastquorum.controller.state.index import PartitionIndex, PartitionKey
from fastquorum.types import NO_NODE, Uuid
from fastquorum.wire.message import Message
from fastquorum.wire.records.topics import PartitionChangeRecord, PartitionRecord, RemoveTopicRecord, TopicRecord

from .rig import uuid

TOPICS, LATER = range(6), range(6, 8)
BROKERS = [1, 2, 3]


def home(broker: int) -> Uuid:
    return uuid(1_000 + broker)


def topic(number: int, partitions: int) -> list[Message]:
    made: list[Message] = [TopicRecord(name=f"topic-{number}", topic_id=uuid(number))]
    for each in range(partitions):
        replicas = [BROKERS[(number + each + at) % len(BROKERS)] for at in range(2)]
        record = PartitionRecord(
            partition_id=each, topic_id=uuid(number), replicas=replicas, isr=replicas, leader_epoch=0
        )
        record.leader, record.directories = replicas[0], [home(broker) for broker in replicas]
        made.append(record)
    return made


def before() -> Image:
    return EMPTY.apply(record for number in TOPICS for record in topic(number, number + 1))


class Kept:
    """An image, and the index that is told what becomes of it."""

    def __init__(self, image: Image) -> None:
        self.image = image
        self.index = PartitionIndex(lambda: self.image.topics, 0)

    def apply(self, *records: Message) -> None:
        editor = ImageEditor(self.image)
        for record in records:
            editor.apply(record)
        self.index.take(editor)
        self.image = editor.finish()


def contents(index: PartitionIndex) -> dict[str, Any]:
    """Return all that the index holds."""
    by_broker = {
        f"{name} {broker}": set(getattr(index, name)(broker))
        for name in ("in_sync", "led", "eligible", "leaderless_on")
        for broker in BROKERS
    }
    by_directory = {f"in {broker}": set(index.in_directory(home(broker))) for broker in BROKERS}
    marked = {name: set(getattr(index, name)()) for name in ("leaderless", "imbalanced", "moving")}
    return by_broker | by_directory | marked


CHANGES = st.tuples(
    st.sampled_from(["advance", "create", "remove", "leader", "isr", "elr", "move", "directory"]),
    st.integers(0, len(TOPICS) + len(LATER) - 1),
    st.sampled_from([*BROKERS, NO_NODE]),
)


@settings(max_examples=300, deadline=None)
@given(steps=st.lists(CHANGES, max_size=30))
def test_whatever_changes_meanwhile_it_says_what_one_made_at_once_says(steps: list[tuple[str, int, int]]) -> None:
    kept = Kept(before())
    for what, number, broker in steps:
        there = kept.image.topics.partition(uuid(number), 0) is not None
        change = PartitionChangeRecord(partition_id=0, topic_id=uuid(number))
        match what:
            case "advance":
                kept.index.advance(1)
                continue
            case "create":
                if number in LATER and not there:
                    kept.apply(*topic(number, 2))
                continue
            case "remove":
                if there:
                    kept.apply(RemoveTopicRecord(topic_id=uuid(number)))
                continue
            case "leader":
                change.leader = broker
            case "isr":
                change.isr = [] if broker == NO_NODE else [broker]
            case "elr":
                change.eligible_leader_replicas = [] if broker == NO_NODE else [broker]
            case "move":
                change.adding_replicas = [] if broker == NO_NODE else [broker]
            case "directory":
                change.directories = [home(BROKERS[0]), home(max(broker, 1))]
        if there:
            kept.apply(change)
    assert contents(kept.index) == contents(PartitionIndex(lambda: kept.image.topics))
    assert kept.index.is_whole


def test_a_piece_is_some_topics_and_the_first_is_there_at_once() -> None:
    image = EMPTY.apply(record for number in range(3) for record in topic(number, 400))
    index = PartitionIndex(lambda: image.topics)
    assert not index.is_whole
    index.advance()
    assert index.is_whole
    assert len(index.led(1)) == 400


def test_a_question_makes_it_whole() -> None:
    image = EMPTY.apply(record for number in range(3) for record in topic(number, 400))
    index = PartitionIndex(lambda: image.topics)
    assert index.in_sync(1)[0] == PartitionKey(uuid(0), 0)
    assert index.is_whole


def test_the_collector_has_nothing_to_look_through() -> None:
    image = EMPTY.apply(topic(1, 200))
    index = PartitionIndex(lambda: image.topics)
    gc.collect()
    assert not any(gc.is_tracked(keys) for keys in index._in_sync.values())


def test_of_a_topic_that_is_gone_nothing_is_kept() -> None:
    kept = Kept(before())
    kept.index.advance()
    for number in TOPICS:
        kept.apply(RemoveTopicRecord(topic_id=uuid(number)))
    for _ in range(3):
        kept.apply(*topic(7, 4))
        kept.apply(RemoveTopicRecord(topic_id=uuid(7)))
    assert contents(kept.index) == contents(PartitionIndex(lambda: EMPTY.topics))
    assert (kept.index._topics, kept.index._places, kept.index._pending) == ({}, {}, {})


def test_a_topic_that_is_made_anew_in_the_same_breath_is_another() -> None:
    kept = Kept(before())
    kept.index.advance()
    kept.apply(RemoveTopicRecord(topic_id=uuid(5)), *topic(5, 2))
    assert contents(kept.index) == contents(PartitionIndex(lambda: kept.image.topics))


def test_what_is_marked_is_told_one_by_one_and_as_it_is_then() -> None:
    kept = Kept(before())
    for number in range(3):
        kept.apply(PartitionChangeRecord(partition_id=0, topic_id=uuid(number), leader=NO_NODE))
    leaderless = kept.index.leaderless()
    assert next(leaderless) == PartitionKey(uuid(0), 0)
    kept.apply(PartitionChangeRecord(partition_id=0, topic_id=uuid(1), leader=1))
    kept.apply(PartitionChangeRecord(partition_id=0, topic_id=uuid(3), leader=NO_NODE))
    assert list(leaderless) == [PartitionKey(uuid(2), 0)]
    assert len(list(kept.index.leaderless())) == 3


def test_keys_of_many_topics_do_not_meet_in_a_dict() -> None:
    """It looks at the low bits of a number first, and one at a time at those of another that has the same."""
    image = EMPTY.apply(record for number in range(1_000) for record in topic(number, 1))
    index = PartitionIndex(lambda: image.topics, 1_000)
    keys = [key for kept in index._led.values() for key in kept]
    assert len(keys) == 1_000
    assert len({key & 4_095 for key in keys}) > 800


def test_the_largest_number_of_a_partition_stays_its_topics() -> None:
    last = (1 << 31) - 1
    kept = Kept(EMPTY.apply(record for number in range(40) for record in topic(number, 1)))
    kept.index.advance()
    for number in range(40):
        kept.apply(
            PartitionRecord(
                partition_id=last, topic_id=uuid(number), replicas=[9], isr=[9], leader=9, directories=[home(9)]
            )
        )
    assert set(kept.index.led(9)) == {PartitionKey(uuid(number), last) for number in range(40)}
