"""The partitions that each broker leads, is in sync for, or may be elected for, and those without a leader.

Derived from the image, changed with each of its partitions, dropped with the lead: no snapshot holds it. A new lead
begins without it: it is made a piece at a time, so that a million partitions delay no request, and completed by the
first query. Dicts stand for sets, since their order is that of the changes, and the same in every run.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

from fastquorum.controller.image.image import ImageEditor
from fastquorum.controller.image.partition import (
    DIRECTORY_LOST,
    DIRECTORY_MIGRATING,
    DIRECTORY_UNASSIGNED,
    Partition,
)
from fastquorum.controller.image.topics import Topic, Topics
from fastquorum.types import NO_NODE, NodeId, Uuid

PIECE_PARTITIONS: Final = 500
"""Partitions of one piece: about a millisecond's work."""
_RESERVED: Final = frozenset({DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED, DIRECTORY_LOST})
_NUMBER_BITS: Final = 32
_SPREAD: Final = 0x9E3779B1
"""Odd, from the golden ratio. A dict uses the low bits of a number first: the keys of a million topics with one
partition each must not all have the same ones."""
_SPREAD_MASK: Final = (1 << _NUMBER_BITS - 1) - 1
"""A partition's number has as many bits, so that the sum of both stays below the next topic's place."""
M = TypeVar("M")


class PartitionKey(NamedTuple):
    """The key of a partition."""

    topic_id: Uuid
    partition_id: int


_Keys = dict[int, None]
"""Partitions, each as one number: the sum of its topic's place and its own number. Only numbers, since the garbage
collector would scan millions of any other objects."""


class PartitionIndex:
    """Sets of partitions by broker; mutable; belongs to the active controller."""

    def __init__(self, topics: Callable[[], Topics], partitions: int = PIECE_PARTITIONS) -> None:
        """Take the present topics, about so many of their partitions at once; `take` reports each later change."""
        self._now = topics
        self._topics: dict[int, Uuid] = {}
        """The topics by their turn."""
        self._places: dict[Uuid, int] = {}
        self._turns = 0
        """The number of turns given out. None is given twice, so a copied key never means another topic."""
        self._pending = dict.fromkeys(topic_id for _, topic_id in sorted(topics().ids.items(), reverse=True))
        """Topics whose partitions are not in here yet, the next one last."""
        self._in_sync: dict[NodeId, _Keys] = {}
        self._led: dict[NodeId, _Keys] = {}
        self._eligible: dict[NodeId, _Keys] = {}
        self._in_directory: dict[Uuid, _Keys] = {}
        self._leaderless: _Keys = {}
        self._leaderless_on: dict[NodeId, _Keys] = {}
        self._imbalanced: _Keys = {}
        self._moving: _Keys = {}
        self.advance(partitions)

    @property
    def is_whole(self) -> bool:
        """Whether every partition is indexed. The first query completes the index."""
        return not self._pending

    def advance(self, partitions: int = PIECE_PARTITIONS) -> None:
        """Index some more of the initial topics: at least so many partitions, if there are any."""
        topics = self._now()
        while self._pending and partitions > 0:
            topic_id, _ = self._pending.popitem()
            topic = topics.by_id[topic_id]
            place = self._place(topic_id)
            for number, partition in topic.partitions.items():
                self._add(place + number, partition)
            partitions -= len(topic.partitions)

    def in_sync(self, broker: NodeId) -> tuple[PartitionKey, ...]:
        """Return the partitions with the broker in their ISR."""
        return self._keys(self._in_sync, broker)

    def eligible(self, broker: NodeId) -> tuple[PartitionKey, ...]:
        """Return the partitions with the broker among their eligible leader replicas."""
        return self._keys(self._eligible, broker)

    def led(self, broker: NodeId) -> tuple[PartitionKey, ...]:
        return self._keys(self._led, broker)

    def leads(self, broker: NodeId) -> bool:
        self._finish()
        return bool(self._led.get(broker))

    def in_directory(self, directory: Uuid) -> tuple[PartitionKey, ...]:
        """Return the partitions with a replica in the directory."""
        return self._keys(self._in_directory, directory)

    def leaderless(self) -> Iterator[PartitionKey]:
        """Yield the partitions without a leader at the first step; skip those that get one meanwhile."""
        return self._marked(self._leaderless)

    def leaderless_on(self, broker: NodeId) -> tuple[PartitionKey, ...]:
        """Return the partitions without a leader of which the broker has a replica."""
        return self._keys(self._leaderless_on, broker)

    def imbalanced(self) -> Iterator[PartitionKey]:
        """Yield the partitions that their first replica does not lead, as `leaderless` does."""
        return self._marked(self._imbalanced)

    def moving(self) -> Iterator[PartitionKey]:
        """Yield the partitions with a reassignment under way, as `leaderless` does."""
        return self._marked(self._moving)

    def take(self, editor: ImageEditor) -> None:
        """Take the changes of an editor, which began with the former image."""
        for topic in editor.topics.removed():
            self._forget(topic)
        pending, last, place = self._pending, None, 0
        for topic_id, number, before, after in editor.topics.partition_changes():
            if topic_id is not last:
                if topic_id in pending:
                    continue  # it is looked at as it is by then
                last, place = topic_id, self._place(topic_id)
            if before is not None:
                self._remove(place + number, before)
            self._add(place + number, after)

    def _forget(self, topic: Topic) -> None:
        self._pending.pop(topic.id, None)
        place = self._places.pop(topic.id, None)
        if place is None:
            return
        for number, partition in topic.partitions.items():
            self._remove(place + number, partition)
        del self._topics[place >> _NUMBER_BITS]

    def _marked(self, keys: _Keys) -> Iterator[PartitionKey]:
        self._finish()
        for key in list(keys):  # while they change; numbers alone, and nothing is made of them before its turn
            if key in keys:
                yield self._key(key)

    def _finish(self) -> None:
        while self._pending:
            self.advance()

    def _place(self, topic_id: Uuid) -> int:
        place = self._places.get(topic_id)
        if place is None:
            turn = self._turns
            self._turns = turn + 1
            self._topics[turn] = topic_id
            place = self._places[topic_id] = (turn << _NUMBER_BITS) + (turn * _SPREAD & _SPREAD_MASK)
        return place

    def _key(self, key: int) -> PartitionKey:
        topic_id = self._topics[key >> _NUMBER_BITS]
        return PartitionKey(topic_id, key - self._places[topic_id])

    def _keys(self, table: dict[M, _Keys], member: M) -> tuple[PartitionKey, ...]:
        self._finish()
        return tuple(map(self._key, table.get(member, ())))

    def _add(self, key: int, partition: Partition) -> None:
        """Add a partition. Written out for speed: a lead begins with all partitions."""
        replicas, directories, isr, leader, _, _, _, removing, adding, elr, _ = partition
        in_sync, in_directory = self._in_sync, self._in_directory
        for broker in isr:
            keys = in_sync.get(broker)
            if keys is None:
                keys = in_sync[broker] = {}
            keys[key] = None
        for directory in directories:
            if directory not in _RESERVED:
                keys = in_directory.get(directory)
                if keys is None:
                    keys = in_directory[directory] = {}
                keys[key] = None
        for broker in elr:
            self._eligible.setdefault(broker, {})[key] = None
        if leader == NO_NODE:
            self._leaderless[key] = None
            for broker in replicas:
                self._leaderless_on.setdefault(broker, {})[key] = None
        else:
            keys = self._led.get(leader)
            if keys is None:
                keys = self._led[leader] = {}
            keys[key] = None
        if leader != (replicas[0] if replicas else NO_NODE):
            self._imbalanced[key] = None
        if removing or adding:
            self._moving[key] = None

    def _remove(self, key: int, partition: Partition) -> None:
        """Remove a partition. A broker that is named twice counts once."""
        _drop(self._in_sync, partition.isr, key)
        directories = partition.directories
        if not _RESERVED.isdisjoint(directories):
            directories = tuple([each for each in directories if each not in _RESERVED])
        _drop(self._in_directory, directories, key)
        if partition.elr:
            _drop(self._eligible, partition.elr, key)
        if partition.leader != NO_NODE:
            _drop(self._led, (partition.leader,), key)
        else:
            _drop(self._leaderless_on, partition.replicas, key)
            del self._leaderless[key]
        self._imbalanced.pop(key, None)
        self._moving.pop(key, None)


def _drop(table: dict[M, _Keys], members: Sequence[M], key: int) -> None:
    for member in members if len(members) < 2 or len(set(members)) == len(members) else dict.fromkeys(members):
        keys = table[member]
        del keys[key]
        if not keys:
            del table[member]
