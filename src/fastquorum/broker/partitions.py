"""The partitions that a broker holds by the metadata: those it leads, and those it follows. Pure."""

from collections.abc import Iterator
from typing import NamedTuple

from fastquorum.controller.image.topics import Topics
from fastquorum.types import NodeId, Uuid


class HeldPartition(NamedTuple):
    """A partition with a replica on this broker, in one image."""

    topic: str
    partition: int
    is_leader: bool
    leader: NodeId
    """-1 if there is none."""
    leader_epoch: int
    """The partition's own fencing token: it grows with every change of its leader."""
    isr: tuple[NodeId, ...]
    replicas: tuple[NodeId, ...]
    topic_id: Uuid


def held_partitions(topics: Topics, broker_id: NodeId) -> Iterator[HeldPartition]:
    """Return a broker's partitions, by topic and number. It looks at every partition of the image."""
    for topic in topics.sorted():
        for number, partition in topic.partitions.items():
            if broker_id in partition.replicas:
                yield HeldPartition(
                    topic.name,
                    number,
                    partition.leader == broker_id,
                    partition.leader,
                    partition.leader_epoch,
                    partition.isr,
                    partition.replicas,
                    topic.id,
                )
