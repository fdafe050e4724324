"""Topics and their partitions. Source: KIP-631, KIP-966; Kafka `TopicsImage`, `TopicsDelta`."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from immutables import Map

from fastquorum.controller.image.partition import Partition, changed, partition_of
from fastquorum.controller.image.vector import Make, Vector
from fastquorum.types import Uuid
from fastquorum.wire.records.topics import (
    ClearElrRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)


class Topic(NamedTuple):
    """A topic; immutable."""

    name: str
    id: Uuid
    partitions: Vector[Partition]


class Topics(NamedTuple):
    """Every topic, by id; immutable."""

    by_id: Map[Uuid, Topic] = Map()
    ids: Map[str, Uuid] = Map()
    """The topics' ids by name."""

    def named(self, name: str) -> Topic | None:
        topic_id = self.ids.get(name)
        return None if topic_id is None else self.by_id[topic_id]

    def partition(self, topic_id: Uuid, partition_id: int) -> Partition | None:
        topic = self.by_id.get(topic_id)
        return None if topic is None else topic.partitions.get(partition_id)

    def sorted(self) -> Iterator[Topic]:
        """Return the topics by name."""
        return (self.by_id[topic_id] for _, topic_id in sorted(self.ids.items()))


_EMPTY: Final[Vector[Partition]] = Vector()


class _Changes:
    """The changes of one topic."""

    __slots__ = ("partitions", "topic")

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self.partitions: dict[int, Partition] = {}

    def partition(self, partition_id: int) -> Partition:
        """Return a partition that was not changed yet."""
        found = self.topic.partitions.get(partition_id)
        if found is None:
            raise ValueError(f"topic {self.topic.name} has no partition {partition_id}")
        return found

    def applied(self, make: Make) -> Topic:
        name, topic_id, partitions = self.topic
        return tuple.__new__(
            Topic, (name, topic_id, partitions.updated(self.partitions, make))
        )  # without a call between


class TopicsEditor:
    """Applies records, and makes the resulting topics: a partition costs the same among ten and a million.

    Each method raises ValueError if its record does not fit.
    """

    def __init__(self, topics: Topics, make: Make = tuple) -> None:
        """Begin with these topics; `make` as in `Vector.updated`."""
        self._before = topics
        self._make = make
        self._changed: dict[Uuid, _Changes] = {}
        self._removed: dict[Uuid, str] = {}
        self._created: dict[str, Uuid] = {}

    def create(self, record: TopicRecord) -> None:
        topic_id, name = record.topic_id, record.name
        if (name in self._created or name in self._before.ids) and (before := self._name_owner(name)) is not None:
            raise ValueError(f"topic {name} exists, with id {before}")
        if topic_id in self._changed or (topic_id in self._before.by_id and topic_id not in self._removed):
            raise ValueError(f"a topic with id {topic_id} exists")
        self._changed[topic_id] = _Changes(Topic(name, topic_id, _EMPTY))
        self._created[name] = topic_id

    def remove(self, record: RemoveTopicRecord) -> str:
        """Remove a topic; return its name."""
        topic = self._changes(record.topic_id).topic
        del self._changed[record.topic_id]
        if self._created.get(topic.name) == record.topic_id:
            del self._created[topic.name]
        if record.topic_id in self._before.by_id:
            self._removed.setdefault(record.topic_id, topic.name)  # the name it had before all changes
        return topic.name

    def create_partition(self, record: PartitionRecord) -> None:
        if record.partition_id < 0:
            raise ValueError(f"partition {record.partition_id}")
        changes = self._changed.get(record.topic_id) or self._changes(record.topic_id)
        changes.partitions[record.partition_id] = partition_of(record)

    def create_partitions(self, topic_id: Uuid, partitions: Mapping[int, Partition]) -> None:
        """Create each of these partitions (see `create_partition`)."""
        self._changes(topic_id).partitions.update(partitions)

    def change_partition(self, record: PartitionChangeRecord) -> None:
        changes = self._changed.get(record.topic_id) or self._changes(record.topic_id)
        at = record.partition_id
        changes.partitions[at] = changed(changes.partitions.get(at) or changes.partition(at), record)

    def clear_elr(self, record: ClearElrRecord) -> None:
        """Clear the eligible replicas of one topic, or of all: each partition that had some changes."""
        if record.topic_name:
            topic_id = self._name_owner(record.topic_name)
            if topic_id is None:
                raise ValueError(f"there is no topic {record.topic_name}")
            self._clear_elr(topic_id)
            return
        for topic_id in sorted({*self._before.by_id, *self._changed}):
            if topic_id not in self._removed:
                self._clear_elr(topic_id)

    def removed(self) -> Iterator[Topic]:
        """Return the removed topics, as they were."""
        return map(self._before.by_id.__getitem__, self._removed)

    def partition_changes(self) -> Iterator[tuple[Uuid, int, Partition | None, Partition]]:
        """Yield every existing partition that changed: topic id, number, before (None: new) and after. A partition is
        only removed with its topic; if that id exists again, its partitions are new."""
        for topic_id, changes in self._changed.items():
            before = changes.topic.partitions
            is_new = not before
            for number, partition in changes.partitions.items():
                yield topic_id, number, None if is_new else before.get(number), partition

    def name_changes(self) -> tuple[Iterable[str], Iterable[str]]:
        """Return the names of removed topics, and of created ones."""
        return self._removed.values(), self._created

    def finish(self) -> Topics:
        if not self._changed and not self._removed:
            return self._before
        by_id, ids = self._before.by_id.mutate(), self._before.ids.mutate()
        for topic_id, name in self._removed.items():
            del by_id[topic_id]
            del ids[name]
        for topic_id, changes in self._changed.items():
            by_id[topic_id] = changes.applied(self._make)
        for name, topic_id in self._created.items():
            ids[name] = topic_id
        return Topics(by_id.finish(), ids.finish())

    def _clear_elr(self, topic_id: Uuid) -> None:
        changes = self._changes(topic_id)
        clearing = PartitionChangeRecord(topic_id=topic_id, eligible_leader_replicas=[], last_known_elr=[])
        for at, partition in {**dict(changes.topic.partitions.items()), **changes.partitions}.items():
            if partition.elr or partition.last_known_elr:
                changes.partitions[at] = changed(partition, clearing)

    def _name_owner(self, name: str) -> Uuid | None:
        if name in self._created:
            return self._created[name]
        topic_id = self._before.ids.get(name)
        return None if topic_id in self._removed else topic_id

    def _changes(self, topic_id: Uuid) -> _Changes:
        changes = self._changed.get(topic_id)
        if changes is None:
            topic = None if topic_id in self._removed else self._before.by_id.get(topic_id)
            if topic is None:
                raise ValueError(f"there is no topic with id {topic_id}")
            changes = self._changed[topic_id] = _Changes(topic)
        return changes
