"""Brokers, topics and partitions of an image as rows of a table, the same wherever they are listed."""

from typing import Final

from fastquorum.controller.image.partition import Partition
from fastquorum.controller.image.registrations import Broker, Listener
from fastquorum.controller.image.topics import Topic
from fastquorum.types import NO_NODE, address_text

BROKER_HEADER: Final = ("BROKER", "STATE", "EPOCH", "RACK", "LISTENERS")
TOPIC_HEADER: Final = ("TOPIC", "ID", "PARTITIONS", "LEADERLESS", "UNDER_REPLICATED")
PARTITION_HEADER: Final = ("PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "ELR", "ADDING", "REMOVING")


def broker_row(broker: Broker) -> tuple[object, ...]:
    """Return the cells under BROKER_HEADER."""
    return broker.id, broker_state(broker), broker.epoch, broker.rack or "-", listeners_text(broker.listeners)


def broker_state(broker: Broker) -> str:
    """Return `fenced`, `stopping` (its leaders move away) or `active`."""
    if broker.fenced:
        return "fenced"
    return "stopping" if broker.in_controlled_shutdown else "active"


def listeners_text(listeners: tuple[Listener, ...]) -> str:
    """Return the listeners in the form of `advertised.listeners`, or `-`."""
    return ", ".join(f"{each.name}://{address_text(each.host, each.port)}" for each in listeners) or "-"


def topic_row(topic: Topic) -> tuple[object, ...]:
    """Return the cells under TOPIC_HEADER."""
    leaderless = sum(not each.has_leader for each in topic.partitions)
    behind = sum(len(each.isr) < len(each.replicas) for each in topic.partitions)
    return topic.name, topic.id, len(topic.partitions), leaderless, behind


def partition_rows(topic: Topic) -> list[tuple[object, ...]]:
    """Return the rows under PARTITION_HEADER."""
    return [(number, *_partition_row(each)) for number, each in topic.partitions.items()]


def nodes_text(nodes: tuple[int, ...]) -> str:
    """Return `1,2,3`, or `-` for none."""
    return ",".join(map(str, nodes)) or "-"


def _partition_row(partition: Partition) -> tuple[object, ...]:
    nodes = (partition.replicas, partition.isr, partition.elr, partition.adding, partition.removing)
    leader = "-" if partition.leader == NO_NODE else partition.leader
    return leader, partition.leader_epoch, *map(nodes_text, nodes)
