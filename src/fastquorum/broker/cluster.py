"""The cluster as its clients see it: the brokers that serve, and the leader of each partition. Pure.

A fenced broker is in the image, but not in here. A broker that is shutting down serves until the end, and is in here.
Source: the draft beside KIP-500 ("Fenced brokers should be omitted from the metadata sent to clients"); Kafka
`KRaftMetadataCache`.
"""

from collections.abc import Iterable
from typing import NamedTuple

from fastquorum.controller.image import Image
from fastquorum.controller.image.partition import Partition
from fastquorum.controller.image.registrations import Broker
from fastquorum.controller.state.partition_change import is_online
from fastquorum.types import NO_NODE, NodeId


class ServedPartition(NamedTuple):
    """A partition as clients see it."""

    topic: str
    partition: int
    leader: NodeId
    """The leader, if it serves; else -1."""
    leader_epoch: int
    replicas: tuple[NodeId, ...]
    """All replicas in the order of assignment, whether their brokers serve or not."""
    isr: tuple[NodeId, ...]
    offline_replicas: tuple[NodeId, ...]
    """The replicas whose broker or directory does not serve."""


class Cluster:
    """The serving part of one image; immutable."""

    def __init__(self, image: Image, listener: str | None = None) -> None:
        self._image = image
        self.brokers = {broker.id: broker for broker in _serving(image.brokers.values(), listener)}
        """The brokers that serve, by id."""

    def partitions(self, topic: str) -> tuple[ServedPartition, ...]:
        """Return the topic's partitions by number; empty if there is no such topic."""
        found = self._image.topics.named(topic)
        if found is None:
            return ()
        return tuple(self._served(topic, number, partition) for number, partition in found.partitions.items())

    def _served(self, topic: str, number: int, partition: Partition) -> ServedPartition:
        return ServedPartition(
            topic,
            number,
            partition.leader if partition.leader in self.brokers else NO_NODE,
            partition.leader_epoch,
            partition.replicas,
            partition.isr,
            tuple(replica for replica in partition.replicas if self._is_offline(replica, partition)),
        )

    def _is_offline(self, replica: NodeId, partition: Partition) -> bool:
        broker = self.brokers.get(replica)
        return broker is None or not is_online(partition.directory_of(replica), broker.directories)


def _serving(brokers: Iterable[Broker], listener: str | None) -> list[Broker]:
    found = (each for each in brokers if not each.fenced)
    reached = (each for each in found if listener is None or each.listener(listener) is not None)
    return sorted(reached, key=lambda broker: broker.id)
