"""The state of a partition, and its changes by records.

Source: KIP-631, KIP-858, KIP-966; Kafka `PartitionRegistration`.
"""

from enum import IntEnum
from typing import Final, NamedTuple

from fastquorum.controller.image.features import Level
from fastquorum.types import NO_NODE, NodeId, Uuid
from fastquorum.wire.records.topics import PartitionChangeRecord, PartitionRecord

DIRECTORY_MIGRATING: Final = Uuid(bytes(16))
"""Stands for an unknown directory: the broker has not reported it, or the level has no directories."""
DIRECTORY_UNASSIGNED: Final = Uuid(bytes(15) + b"\x01")
DIRECTORY_LOST: Final = Uuid(bytes(15) + b"\x02")
LEADER_UNCHANGED: Final = -2
RECOVERY_UNCHANGED: Final = -1


class Recovery(IntEnum):
    """Whether the leader has to recover from an unclean election first (KIP-704)."""

    RECOVERED = 0
    RECOVERING = 1


class Partition(NamedTuple):
    """The state of a partition; immutable."""

    replicas: tuple[NodeId, ...]
    """The replicas in the order of assignment: the first is the preferred leader."""
    directories: tuple[Uuid, ...]
    """The directory of each replica, in the order of `replicas`."""
    isr: tuple[NodeId, ...]
    leader: NodeId
    """The leader; NO_NODE if there is none."""
    leader_epoch: int
    partition_epoch: int
    recovery: int = Recovery.RECOVERED.value
    """A plain number, as in records: the native codec leaves an enumeration to its slower twin."""
    removing: tuple[NodeId, ...] = ()
    adding: tuple[NodeId, ...] = ()
    elr: tuple[NodeId, ...] = ()
    """Eligible leader replicas: out of the ISR, but known to hold everything committed (KIP-966)."""
    last_known_elr: tuple[NodeId, ...] = ()

    @property
    def has_leader(self) -> bool:
        return self.leader != NO_NODE

    @property
    def preferred_leader(self) -> NodeId:
        return self.replicas[0] if self.replicas else NO_NODE

    @property
    def is_reassigning(self) -> bool:
        return bool(self.removing or self.adding)

    def directory_of(self, replica: NodeId) -> Uuid:
        """Return the directory of a broker's replica. ValueError if it holds none."""
        return self.directories[self.replicas.index(replica)]


def partition_of(record: PartitionRecord) -> Partition:
    """Return the partition of a PartitionRecord. ValueError if it contradicts itself."""
    replicas = tuple(record.replicas)
    return Partition(
        replicas,
        _directories(record.directories, len(replicas)),
        replicas if record.isr == record.replicas else tuple(record.isr),  # shared: most partitions are in sync
        record.leader,
        record.leader_epoch,
        record.partition_epoch,
        _recovery(record.leader_recovery_state),
        tuple(record.removing_replicas),
        tuple(record.adding_replicas),
        tuple(record.eligible_leader_replicas or ()),
        tuple(record.last_known_elr or ()),
    )


def changed(partition: Partition, record: PartitionChangeRecord) -> Partition:
    """Return the partition after a change: its partition epoch grows, and if a leader is named, even the same one, its
    leader epoch. ValueError if the record contradicts itself."""
    replicas, directories = partition.replicas, partition.directories
    if record.replicas is not None or record.directories is not None:
        replicas = replicas if record.replicas is None else tuple(record.replicas)
        directories = _directories(directories if record.directories is None else record.directories, len(replicas))
    is_election = record.leader != LEADER_UNCHANGED
    isr, recovery = record.isr, record.leader_recovery_state
    removing, adding = record.removing_replicas, record.adding_replicas
    elr, last_known_elr = record.eligible_leader_replicas, record.last_known_elr
    members = (
        replicas,
        directories,
        partition.isr if isr is None else tuple(isr),
        record.leader if is_election else partition.leader,
        partition.leader_epoch + is_election,
        partition.partition_epoch + 1,
        partition.recovery if recovery == RECOVERY_UNCHANGED else _recovery(recovery),
        partition.removing if removing is None else tuple(removing),
        partition.adding if adding is None else tuple(adding),
        partition.elr if elr is None else tuple(elr),
        partition.last_known_elr if last_known_elr is None else tuple(last_known_elr),
    )
    return tuple.__new__(Partition, members)  # what its own __new__ does, without a call in between


def partition_record(
    topic_id: Uuid, partition_id: int, partition: Partition, level: Level, *, with_elr: bool
) -> PartitionRecord:
    """Return the PartitionRecord of a snapshot. ValueError if the level cannot express the partition."""
    record = PartitionRecord(
        partition_id=partition_id,
        topic_id=topic_id,
        replicas=list(partition.replicas),
        isr=list(partition.isr),
        removing_replicas=list(partition.removing),
        adding_replicas=list(partition.adding),
        leader=partition.leader,
        leader_recovery_state=partition.recovery,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
    )
    if with_elr:
        record.eligible_leader_replicas = list(partition.elr) or None
        record.last_known_elr = list(partition.last_known_elr) or None
    if level.has_directories:
        record.directories = list(partition.directories)
    elif any(directory != DIRECTORY_MIGRATING for directory in partition.directories):
        raise ValueError(f"metadata.version {level} cannot hold the directories of partition {partition_id}")
    return record


def _recovery(state: int) -> int:
    if state not in (0, 1):  # an enumeration's call takes as long as all the rest of a partition
        raise ValueError(f"{state} is not a valid Recovery")
    return state


def _directories(given: "list[Uuid] | tuple[Uuid, ...]", replica_count: int) -> tuple[Uuid, ...]:
    """Return a directory for each replica. Without any, or with only migrating ones, all are migrating."""
    if given and len(given) == replica_count and given[0] != DIRECTORY_MIGRATING:
        return tuple(given)
    if all(directory == DIRECTORY_MIGRATING for directory in given):
        return _MIGRATING[replica_count] if replica_count < len(_MIGRATING) else (DIRECTORY_MIGRATING,) * replica_count
    if len(given) != replica_count:
        raise ValueError(f"{len(given)} directories for {replica_count} replicas")
    return tuple(given)


_MIGRATING: Final = tuple((DIRECTORY_MIGRATING,) * count for count in range(8))
