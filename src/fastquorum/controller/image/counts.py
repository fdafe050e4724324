"""How many partitions there are, and how many are not as they should be: kept up with every change, never counted anew.

Source: Kafka `ControllerMetricsChanges`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fastquorum.controller.image.partition import Partition
from fastquorum.controller.image.topics import Topics
from fastquorum.types import NO_NODE


@dataclass(slots=True)
class PartitionCounts:
    """Of one image."""

    partitions: int = 0
    offline: int = 0
    """Nobody leads them."""
    imbalanced: int = 0
    """Not led by their first replica."""

    @classmethod
    def of(cls, topics: Topics) -> "PartitionCounts":
        """One by one."""
        counts = cls()
        for topic in topics.by_id.values():
            for partition in topic.partitions:
                counts._count(partition, 1)
        return counts

    def take(self, changes: Iterable[tuple[Any, int, Partition | None, Partition | None]]) -> None:
        """As `TopicsEditor.partition_changes` yields them."""
        for _, _, before, after in changes:
            if before and after and before.leader == after.leader and before.replicas is after.replicas:
                continue  # it counts as it did
            if before is not None:
                self._count(before, -1)
            if after is not None:
                self._count(after, 1)

    def _count(self, partition: Partition, by: int) -> None:
        self.partitions += by
        leader = partition.leader
        if leader == NO_NODE:
            self.offline += by
        if leader != partition.preferred_leader:
            self.imbalanced += by
