"""`partitions` and `topics` of the image at an offset, or what changed of them.

A million partitions go through lists of a batch's length, never a dictionary each.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import pyarrow as pa

from fastquorum.controller.image import Image
from fastquorum.controller.image.diff import partition_changes, topic_changes
from fastquorum.controller.image.partition import Partition, Recovery
from fastquorum.controller.image.topics import Topic
from fastquorum.spark.tables.columns import Columns, ObjectColumn, nodes, number, plain, uuid_words, uuids
from fastquorum.spark.tables.images import ImageTable
from fastquorum.types import NO_NODE, Uuid

_RECOVERY: Final = {int(each): each.name for each in Recovery}


class PartitionRowKey(NamedTuple):
    """Which partition."""

    topic: str
    topic_id: Uuid
    partition: int


PARTITION_KEYS: Final[Columns] = {
    "topic": plain(pa.string(), lambda key: key.topic),
    "topic_id": ObjectColumn(pa.string(), lambda keys: uuid_words(key.topic_id for key in keys)),
    "partition": number(pa.int32(), "partition"),
}
PARTITION_VALUES: Final[Columns] = {
    "leader": number(pa.int32(), "leader"),
    "leader_epoch": number(pa.int32(), "leader_epoch"),
    "partition_epoch": number(pa.int32(), "partition_epoch"),
    "replicas": nodes("replicas"),
    "isr": nodes("isr"),
    "elr": nodes("elr"),
    "last_known_elr": nodes("last_known_elr"),
    "adding_replicas": nodes("adding"),
    "removing_replicas": nodes("removing"),
    "leader_recovery_state": plain(pa.string(), lambda partition: _RECOVERY[partition.recovery]),
    "directories": uuids("directories"),
}
"""`leader` is -1 where there is none. `directories`: of each replica."""


class TopicKey(NamedTuple):
    """Which topic."""

    topic: str
    topic_id: Uuid


class TopicState(NamedTuple):
    """Counts of a topic's partitions."""

    partition_count: int
    leaderless_count: int
    under_replicated_count: int
    """Partitions whose ISR lacks a replica."""


def _partitions(image: Image) -> Iterator[tuple[PartitionRowKey, Partition]]:
    for topic in image.topics.sorted():
        for partition_id, partition in topic.partitions.items():
            yield PartitionRowKey(topic.name, topic.id, partition_id), partition


def _partition_changes(before: Image, after: Image) -> Iterator[tuple[Any, ...]]:
    for topic, partition_id, was, now in partition_changes(before.topics, after.topics):
        yield PartitionRowKey(topic.name, topic.id, partition_id), was, now


def _topics(image: Image) -> Iterator[tuple[TopicKey, TopicState]]:
    return ((TopicKey(topic.name, topic.id), _state(topic)) for topic in image.topics.sorted())


def _topic_changes(before: Image, after: Image) -> Iterator[tuple[Any, ...]]:
    """A change of a partition that the columns do not show is none."""
    for was, now in topic_changes(before.topics, after.topics):
        there = now or was
        assert there is not None
        states = [None if each is None else _state(each) for each in (was, now)]
        if states[0] != states[1] or was is None or now is None:
            yield TopicKey(there.name, there.id), *states


def _state(topic: Topic) -> TopicState:
    leaderless = sum(each.leader == NO_NODE for each in topic.partitions)
    return TopicState(
        len(topic.partitions), leaderless, sum(len(each.isr) < len(each.replicas) for each in topic.partitions)
    )


PARTITIONS: Final = ImageTable("partitions", PARTITION_KEYS, PARTITION_VALUES, _partitions, _partition_changes)
TOPICS: Final = ImageTable(
    "topics",
    {name: PARTITION_KEYS[name] for name in ("topic", "topic_id")},
    {name: number(pa.int32(), name) for name in TopicState._fields},
    _topics,
    _topic_changes,
)
