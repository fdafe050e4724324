"""Metadata records of topics and partitions. Keys and versions as in Kafka 4.3.

Source: KIP-631; KIP-858 (directories), KIP-966 (eligible leader replicas).
"""

from fastquorum.types import Uuid
from fastquorum.wire.message import Message
from fastquorum.wire.types import INT8, INT32, STRING, UUID, array, field


class TopicRecord(Message, api_key=2, kind="metadata", versions="0", flexible="0+"):
    """A topic was created."""

    name: str = field(STRING, "0+")
    topic_id: Uuid = field(UUID, "0+")


class PartitionRecord(Message, api_key=3, kind="metadata", versions="0-2", flexible="0+"):
    """A partition was created."""

    partition_id: int = field(INT32, "0+", default=-1)
    topic_id: Uuid = field(UUID, "0+")
    replicas: list[int] = field(array(INT32), "0+")
    isr: list[int] = field(array(INT32), "0+")
    removing_replicas: list[int] = field(array(INT32), "0+")
    adding_replicas: list[int] = field(array(INT32), "0+")
    leader: int = field(INT32, "0+", default=-1)
    leader_recovery_state: int = field(INT8, "0+", tag=0)
    leader_epoch: int = field(INT32, "0+", default=-1)
    partition_epoch: int = field(INT32, "0+", default=-1)
    directories: list[Uuid] = field(array(UUID), "1+")
    eligible_leader_replicas: list[int] | None = field(array(INT32), "2+", nullable="2+", default=None, tag=1)
    last_known_elr: list[int] | None = field(array(INT32), "2+", nullable="2+", default=None, tag=2)


class PartitionChangeRecord(Message, api_key=5, kind="metadata", versions="0-2", flexible="0+"):
    """What changed in a partition; null, -2 (leader) and -1 (recovery state) mean unchanged."""

    partition_id: int = field(INT32, "0+", default=-1)
    topic_id: Uuid = field(UUID, "0+")
    isr: list[int] | None = field(array(INT32), "0+", nullable="0+", default=None, tag=0)
    leader: int = field(INT32, "0+", default=-2, tag=1)
    replicas: list[int] | None = field(array(INT32), "0+", nullable="0+", default=None, tag=2)
    removing_replicas: list[int] | None = field(array(INT32), "0+", nullable="0+", default=None, tag=3)
    adding_replicas: list[int] | None = field(array(INT32), "0+", nullable="0+", default=None, tag=4)
    leader_recovery_state: int = field(INT8, "0+", default=-1, tag=5)
    directories: list[Uuid] | None = field(array(UUID), "1+", nullable="1+", default=None, tag=8)
    eligible_leader_replicas: list[int] | None = field(array(INT32), "2+", nullable="2+", default=None, tag=6)
    last_known_elr: list[int] | None = field(array(INT32), "2+", nullable="2+", default=None, tag=7)


class RemoveTopicRecord(Message, api_key=9, kind="metadata", versions="0", flexible="0+"):
    """A topic was deleted, with its partitions."""

    topic_id: Uuid = field(UUID, "0+")


class ClearElrRecord(Message, api_key=28, kind="metadata", versions="0", flexible="0+"):
    """The eligible leader replicas of a topic (an empty name: of all) were cleared."""

    topic_name: str = field(STRING, "0+")
