"""Which partitions a broker leads, is in sync for, may be elected for, and which have no leader: kept while active.

Derived from the image, changed with each of its partitions, thrown away with the lead: no snapshot holds it. Dicts
stand for sets, since their order is that of what happened, and the same in every run.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from fastquorum.controller.image.partition import (
    DIRECTORY_LOST,
    DIRECTORY_MIGRATING,
    DIRECTORY_UNASSIGNED,
    Partition,
)
from fastquorum.controller.image.topics import Topics
from fastquorum.types import NodeId, Uuid

_RESERVED: Final = (DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED, DIRECTORY_LOST)


class PartitionKey(NamedTuple):
    """Which partition."""

    topic_id: Uuid
    partition_id: int


_Keys = dict[PartitionKey, None]


class PartitionIndex:
    """Mutable; belongs to the active controller."""

    def __init__(self) -> None:
        self._in_sync: dict[NodeId, _Keys] = {}
        self._led: dict[NodeId, _Keys] = {}
        self._eligible: dict[NodeId, _Keys] = {}
        self._in_directory: dict[Uuid, _Keys] = {}
        self._leaderless: _Keys = {}
        self._imbalanced: _Keys = {}
        self._moving: _Keys = {}

    @classmethod
    def of(cls, topics: Topics) -> "PartitionIndex":
        index = cls()
        for topic in topics.sorted():
            for number, partition in topic.partitions.items():
                index.update(PartitionKey(topic.id, number), None, partition)
        return index

    def in_sync(self, broker: NodeId) -> tuple[PartitionKey, ...]:
        """With the broker in their ISR."""
        return tuple(self._in_sync.get(broker, ()))

    def eligible(self, broker: NodeId) -> tuple[PartitionKey, ...]:
        """With the broker among their eligible leader replicas."""
        return tuple(self._eligible.get(broker, ()))

    def led(self, broker: NodeId) -> tuple[PartitionKey, ...]:
        return tuple(self._led.get(broker, ()))

    def leads(self, broker: NodeId) -> bool:
        return bool(self._led.get(broker))

    def in_directory(self, directory: Uuid) -> tuple[PartitionKey, ...]:
        """With a replica in the directory."""
        return tuple(self._in_directory.get(directory, ()))

    @property
    def leaderless(self) -> tuple[PartitionKey, ...]:
        return tuple(self._leaderless)

    @property
    def imbalanced(self) -> tuple[PartitionKey, ...]:
        """Not led by their first replica."""
        return tuple(self._imbalanced)

    @property
    def moving(self) -> tuple[PartitionKey, ...]:
        """With a reassignment under way."""
        return tuple(self._moving)

    def update(self, key: PartitionKey, before: Partition | None, after: Partition | None) -> None:
        """A partition was made (before is None), changed, or removed (after is None)."""
        if before is not None:
            for table, member in _places(self, before):
                keys = table[member]
                del keys[key]
                if not keys:
                    del table[member]
            for kept, is_kept in _marks(self, before):
                if is_kept:
                    del kept[key]
        if after is not None:
            for table, member in _places(self, after):
                table.setdefault(member, {})[key] = None
            for kept, is_kept in _marks(self, after):
                if is_kept:
                    kept[key] = None


def _places(index: PartitionIndex, partition: Partition) -> Iterator[tuple[dict[NodeId | Uuid, _Keys], NodeId | Uuid]]:
    """Each table that has the partition, and under whom; a broker that is named twice counts once."""
    tables: Iterable[tuple[object, Iterable[NodeId | Uuid]]] = (
        (index._in_sync, dict.fromkeys(partition.isr)),
        (index._eligible, dict.fromkeys(partition.elr)),
        (index._led, (partition.leader,) if partition.has_leader else ()),
        (index._in_directory, dict.fromkeys(each for each in partition.directories if each not in _RESERVED)),
    )
    for table, members in tables:
        for member in members:
            yield table, member  # type: ignore[misc]  # the four differ in whom they are by


def _marks(index: PartitionIndex, partition: Partition) -> Iterator[tuple[_Keys, bool]]:
    yield index._leaderless, not partition.has_leader
    yield index._imbalanced, partition.leader != partition.preferred_leader
    yield index._moving, partition.is_reassigning
