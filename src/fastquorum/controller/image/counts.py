"""The number of partitions, and of faulty ones: updated with every change, never counted again.

Source: Kafka `ControllerMetricsChanges`.
"""

from dataclasses import dataclass

from fastquorum.controller.image.image import ImageEditor
from fastquorum.controller.image.partition import Partition
from fastquorum.controller.image.topics import Topics
from fastquorum.types import NO_NODE


@dataclass(slots=True)
class PartitionCounts:
    """The partition counts of one image."""

    partitions: int = 0
    offline: int = 0
    """Partitions without a leader."""
    imbalanced: int = 0
    """Partitions that another replica than the first leads."""

    @classmethod
    def of(cls, topics: Topics) -> "PartitionCounts":
        """Count the partitions of an image, one by one."""
        counts = cls()
        for topic in topics.by_id.values():
            for partition in topic.partitions:
                counts._count(partition, 1)
        return counts

    def take(self, editor: ImageEditor) -> None:
        """Update the counts by the changes of an editor, which began with that image."""
        for topic in editor.topics.removed():
            for partition in topic.partitions:
                self._count(partition, -1)
        for _, _, before, after in editor.topics.partition_changes():
            if before is not None:
                if before.leader == after.leader and before.replicas is after.replicas:
                    continue  # it counts as it did
                self._count(before, -1)
            self._count(after, 1)

    def _count(self, partition: Partition, by: int) -> None:
        self.partitions += by
        leader, replicas = partition.leader, partition.replicas
        if leader == NO_NODE:
            self.offline += by
        if leader != (replicas[0] if replicas else NO_NODE):
            self.imbalanced += by
