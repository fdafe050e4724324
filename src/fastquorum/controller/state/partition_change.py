"""The change of a partition: its leader, its ISR, the end of a reassignment; as one record, or none.

A leader is only ever taken from the ISR, or, where that is empty, from the eligible leader replicas; from outside only
in an unclean election, or when the last known leader comes back (KIP-966). Source: KIP-631, KIP-455,
KIP-704, KIP-966; Kafka `PartitionChangeBuilder`, `PartitionReassignmentReplicas`.
"""

from collections.abc import Callable
from enum import Enum, auto
from typing import NamedTuple

from fastquorum.controller.image.features import Level
from fastquorum.controller.image.partition import (
    DIRECTORY_LOST,
    DIRECTORY_MIGRATING,
    DIRECTORY_UNASSIGNED,
    LEADER_UNCHANGED,
    RECOVERY_UNCHANGED,
    Partition,
    Recovery,
)
from fastquorum.types import NO_NODE, NodeId, Uuid
from fastquorum.wire.records.topics import PartitionChangeRecord

Nodes = tuple[NodeId, ...]


class ElectionKind(Enum):
    """The replica that an election looks for."""

    ONLINE = auto()
    """The present leader, as long as it is good."""
    PREFERRED = auto()
    """The first replica, if it is good."""
    UNCLEAN = auto()
    """Any live replica, if none is good: committed records may be lost."""


class Rules(NamedTuple):
    """The rules for a topic's partitions during a change."""

    level: Level
    min_isr: int
    is_elr_enabled: bool
    is_active: Callable[[NodeId], bool]
    """Returns whether a broker may lead: its registration is unfenced and not shutting down."""
    online_directories: Callable[[NodeId], tuple[Uuid, ...]]
    """Returns the online directories of an active broker."""
    default_directory: Callable[[NodeId], Uuid]
    """Returns the directory where a broker puts a replica that was assigned to none."""


def is_online(directory: Uuid, online: tuple[Uuid, ...]) -> bool:
    """Return whether a replica in this directory is online, where the broker reports these as online; if none, all
    are."""
    if directory in (DIRECTORY_UNASSIGNED, DIRECTORY_MIGRATING):
        return True
    return directory != DIRECTORY_LOST and (not online or directory in online)


class PartitionChange:
    """A change of one partition; `record` computes it. Fields that are not set stay as they are."""

    __slots__ = (
        "_elr",
        "adding",
        "before",
        "directories",
        "election",
        "isr",
        "partition_id",
        "recovery",
        "removing",
        "replicas",
        "rules",
        "topic_id",
        "unclean_replicas",
    )

    def __init__(
        self,
        topic_id: Uuid,
        partition_id: int,
        before: Partition,
        rules: Rules,
        election: ElectionKind = ElectionKind.ONLINE,
    ) -> None:
        self.topic_id, self.partition_id, self.before = topic_id, partition_id, before
        self.rules, self.election = rules, election
        self.isr: Nodes = before.isr
        self.replicas: Nodes = before.replicas
        self.removing: Nodes = before.removing
        self.adding: Nodes = before.adding
        self.recovery: int = before.recovery
        self.unclean_replicas: Nodes = ()
        """Replicas that came back without their data: they are not eligible."""
        self.directories: dict[NodeId, Uuid] = {}
        """The new directories of replicas that move."""
        self._elr: Nodes = before.elr

    def record(self) -> PartitionChangeRecord | None:
        """Return the change, or None if there is none. Call it once."""
        before = self.before
        if self.removing or self.adding:
            self._complete_reassignment()
        self._derive_elr()
        record = PartitionChangeRecord(topic_id=self.topic_id, partition_id=self.partition_id)
        self._elect(record)
        if self.replicas is not before.replicas and not _holds(self.replicas, before.replicas):
            self._bump_leader_epoch(record)  # who was taken away must notice
        if self._elr or before.elr:
            self._set_elr(record)
        if record.isr is None and (self.isr or self.rules.is_elr_enabled) and self.isr != before.isr:
            record.isr = list(self.isr)
        if self.rules.level.bumps_leader_epoch_on_isr_shrink and self._is_shrinking(record):  # KAFKA-15021
            self._bump_leader_epoch(record)
        if record.leader != LEADER_UNCHANGED:
            self._set_last_known_leader(record)
        if self.replicas is not before.replicas or self.directories:
            self._set_replicas(record)
        if self.removing != before.removing:
            record.removing_replicas = list(self.removing)
        if self.adding != before.adding:
            record.adding_replicas = list(self.adding)
        if self.recovery != before.recovery:
            record.leader_recovery_state = self.recovery
        return None if _is_nothing(record) else record

    def _is_shrinking(self, record: PartitionChangeRecord) -> bool:
        return record.isr is not None and not _holds(tuple(record.isr), self.before.isr)

    # --- reassignment -------------------------------------------------------------------------------------------------

    def _complete_reassignment(self) -> None:
        """End a reassignment once all added replicas are in sync, and, where fewer remain, all remaining
        (KAFKA-15665)."""
        isr = tuple(each for each in self.isr if each not in self.removing)
        replicas = tuple(each for each in self.replicas if each not in self.removing)
        if self.removing and not (isr and replicas):
            return
        if not _holds(isr, self.adding):
            return
        if len(self.adding) < len(self.removing) and not _holds(isr, replicas):
            return
        self.isr, self.replicas, self.removing, self.adding = isr, replicas, (), ()

    def _set_replicas(self, record: PartitionChangeRecord) -> None:
        before = self.before
        if not self.replicas:
            return
        if self.rules.level.has_directories:
            known = {**dict(zip(before.replicas, before.directories, strict=True)), **self.directories}
            directories = [known.get(each) or self.rules.default_directory(each) for each in self.replicas]
            if tuple(directories) != before.directories:
                record.directories = directories
        if self.replicas != before.replicas:
            record.replicas = list(self.replicas)

    # --- election -----------------------------------------------------------------------------------------------------

    def _elect(self, record: PartitionChangeRecord) -> None:
        leader, is_unclean = self._leader()
        if leader == self.before.leader:
            return
        record.leader = leader
        if leader in self._elr:
            self.isr = (leader,)
            self._elr = tuple(each for each in self._elr if each != leader)
        if is_unclean:
            record.isr = [leader]
            if self.before.recovery != Recovery.RECOVERING:
                record.leader_recovery_state = Recovery.RECOVERING

    def _leader(self) -> tuple[NodeId, bool]:
        """Return the new leader, and whether that election is unclean."""
        present = self.before.leader
        if self.election is not ElectionKind.PREFERRED and self._is_good(present):
            return present, False
        first = (self.replicas[0],) if self.election is ElectionKind.PREFERRED else ()
        for each in (*first, present, *self.replicas):
            if self._is_good(each):
                return each, False
        if self._last_known_leader_is_back():
            return self.before.last_known_elr[0], True
        if self.election is ElectionKind.UNCLEAN:
            for each in self.replicas:
                if self._is_alive(each):
                    return each, True
        return NO_NODE, False

    def _is_good(self, replica: NodeId) -> bool:
        return replica in (self.isr or self._elr) and self._is_alive(replica)

    def _is_alive(self, replica: NodeId) -> bool:
        """Return whether a replica's broker is active, and its directory online."""
        if replica not in self.before.replicas or not self.rules.is_active(replica):
            return False
        return is_online(self.before.directory_of(replica), self.rules.online_directories(replica))

    def _last_known_leader_is_back(self) -> bool:
        if not self.rules.is_elr_enabled or self.isr or self._elr:
            return False
        known = self.before.last_known_elr
        return len(known) == 1 and self._is_alive(known[0])

    def _bump_leader_epoch(self, record: PartitionChangeRecord) -> None:
        if record.leader == LEADER_UNCHANGED:
            record.leader = self.before.leader

    # --- eligible leader replicas -------------------------------------------------------------------------------------

    def _derive_elr(self) -> None:
        """Update the eligible replicas: below the least ISR, a replica that leaves holds all that is committed; at or
        above it none is needed.

        A broker without a replica, now or before, is not eligible: a new replica there would be empty. (Kafka leaves a
        replica that was moved away eligible, and elects it when it is back, without any committed records.)
        """
        if not self.rules.is_elr_enabled:
            if self.before.isr:
                self._elr = ()  # who was, when that was given up, may lack what was committed since
            return
        if len(self.isr) >= self.rules.min_isr:
            self._elr = ()
            return
        left_out = {*self.isr, *self.unclean_replicas}
        held = {*self._elr, *self.before.isr}.intersection(self.before.replicas, self.replicas)
        self._elr = tuple(sorted(held - left_out))

    def _set_elr(self, record: PartitionChangeRecord) -> None:
        """Set the eligible replicas: none after an unclean election, which made their data void, or where they are
        disabled."""
        is_clean = record.isr is None
        elr = self._elr if is_clean and self.rules.is_elr_enabled else ()
        if elr != self.before.elr:
            record.eligible_leader_replicas = list(elr)

    def _set_last_known_leader(self, record: PartitionChangeRecord) -> None:
        """Keep the last known leader while a partition has no leader."""
        if not self.rules.is_elr_enabled:
            return
        known = self.before.last_known_elr
        if record.leader == NO_NODE and not known:
            record.last_known_elr = [self.before.leader]
        elif record.leader >= 0 and known:
            record.last_known_elr = []


def _holds(nodes: Nodes, others: Nodes) -> bool:
    """Return whether the nodes include all of the others."""
    return set(nodes).issuperset(others)


def _is_nothing(record: PartitionChangeRecord) -> bool:
    return (
        record.isr is None
        and record.leader == LEADER_UNCHANGED
        and record.leader_recovery_state == RECOVERY_UNCHANGED
        and record.replicas is None
        and record.removing_replicas is None
        and record.adding_replicas is None
        and record.directories is None
        and record.eligible_leader_replicas is None
        and record.last_known_elr is None
    )
