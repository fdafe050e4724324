"""What a partition's creation comes to, read from many records at once: most of a large image are partitions.

Must not know what an image is: it fills the rows that it is told of. Source: KIP-631 (PartitionRecord), KIP-858,
KIP-966.
"""

from typing import Any, Final, NamedTuple, Protocol

from fastquorum.types import Uuid

PARTITION_MEMBERS: Final = 11
"""Members of a row: replicas, directories, isr, leader, leader epoch, partition epoch, recovery, removing, adding,
eligible leader replicas, last known ones. Numbers, and tuples of numbers; directories are Uuids, one a replica."""


class PartitionRun(NamedTuple):
    """Records that follow on one another, all of them partitions of one topic."""

    end: int
    """Behind the last of them, in the values that they were read from."""
    topic_id: Uuid
    rows: dict[int, Any]
    """By partition id; of two records for one the later."""


class PartitionRows(Protocol):
    """Reads PartitionRecords into rows. Not thread-safe beyond the GIL."""

    def __init__(self, row_type: type[Any]) -> None:
        """`row_type`: a NamedTuple of PARTITION_MEMBERS fields. TypeError if it is none."""

    def read(self, values: list[Any], at: int = 0) -> PartitionRun | None:
        """The run of plain PartitionRecords that begins at `values[at]`, frames included; None if there is none.

        It ends before whatever is no such record of the same topic, or is not as Kafka writes it (an unknown tag, a
        negative id, a length that does not fit): that is for whoever reads every record, and says what is wrong.
        IndexError if `at` is negative.
        """
