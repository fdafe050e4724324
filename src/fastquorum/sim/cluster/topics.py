"""The promises of topics and partitions at every committed batch: C1 to C3, C5, C9, C10, C15."""

from typing import Final, NamedTuple

from fastquorum.controller.image import Image
from fastquorum.controller.image.partition import Partition
from fastquorum.sim.cluster.partition_checks import (
    check_move,
    check_partition,
    is_elected_alone,
    is_unclean_allowed,
)
from fastquorum.sim.report import Violation
from fastquorum.types import NodeId, Uuid
from fastquorum.wire import Message
from fastquorum.wire.records.topics import ClearElrRecord, PartitionChangeRecord, TopicRecord

INTERNAL: Final = "__cluster_metadata"
_Place = tuple[Uuid, int]
"""A topic and the number of one of its partitions."""


class _Change(NamedTuple):
    """The change of one partition by one batch."""

    place: _Place
    old: Partition
    new: Partition
    before: Image
    after: Image
    where: str


class TopicChecks:
    """The proposals and requests for topics, and the checks on their outcome."""

    def __init__(self) -> None:
        self._proposed: dict[tuple[_Place, int], list[dict[NodeId, int]]] = {}
        """Broker epochs of the ISR members that leaders proposed, by partition and partition epoch."""
        self._allowed: dict[_Place, None] = {}
        """Partitions for which an unclean election was requested."""
        self._names: dict[Uuid, str] = {}

    def proposes(self, topic_id: Uuid, number: int, partition: Partition, epochs: dict[NodeId, int]) -> None:
        """Note that a leader proposes an ISR of members with these epochs."""
        key = (topic_id, number), partition.partition_epoch
        self._proposed.setdefault(key, []).append(epochs)

    def allows_unclean(self, place: _Place) -> None:
        """Note a request for an unclean election there."""
        self._allowed[place] = None

    def was_created(self, name: str, topic_id: Uuid) -> None:
        """Check S14, C15: an acknowledged topic is committed, or was deleted since; internal names are refused."""
        if name == INTERNAL:
            raise Violation("C15", f"a user has created {name}")
        if self._names.get(topic_id) != name:
            raise Violation("S14", f"topic {name} is acknowledged, and not committed")

    # --- when it is committed -----------------------------------------------------------------------------------------

    def check_name(self, record: TopicRecord) -> None:
        """Check C15."""
        if record.name == INTERNAL:
            raise Violation("C15", f"topic {record.name} is created")
        if self._names.setdefault(record.topic_id, record.name) != record.name:
            raise Violation("C15", f"two topics have id {record.topic_id}")

    def check(self, base_offset: int, records: list[Message], before: Image, after: Image) -> None:
        """Check all changes of a batch."""
        counts: dict[_Place, int] = {}
        cleared: list[str] = []
        for record in records:
            if isinstance(record, PartitionChangeRecord):
                place = record.topic_id, record.partition_id
                counts[place] = counts.get(place, 0) + 1
            elif isinstance(record, ClearElrRecord):
                cleared.append(record.topic_name)
        for topic_id, topic in after.topics.by_id.items():
            former = before.topics.by_id.get(topic_id)
            is_same = former is topic and after.brokers is before.brokers
            for number, partition in () if is_same else topic.partitions.items():
                where = f"{topic.name}-{number} at {base_offset}"
                check_partition(partition, after, where)
                old = None if former is None else former.partitions.get(number)
                if old is not None and old != partition:
                    place = topic_id, number
                    count = counts.get(place, 0)
                    if (old.elr or old.last_known_elr) and {"", topic.name} & set(cleared):
                        count += 1
                    self._check_change(_Change(place, old, partition, before, after, where), count)

    def _check_change(self, change: _Change, count: int) -> None:
        """Check C5, and the promises of this kind of change."""
        old, new, where = change.old, change.new, change.where
        if new.partition_epoch != old.partition_epoch + count or new.leader_epoch < old.leader_epoch:
            raise Violation("C5", f"{where}: {count} changes make {new} of {old}")
        if new.leader != old.leader:
            if new.leader_epoch == old.leader_epoch:
                raise Violation("C5", f"{where}: another leader in one epoch: {new} after {old}")
            self._check_election(change)
        for member in new.isr:
            if member not in old.isr:
                self._check_joiner(change, member)
        check_move(old, new, where)

    def _check_election(self, change: _Change) -> None:
        """Check C9."""
        place, old, new = change.place, change.old, change.new
        if not new.has_leader or new.leader in old.isr or new.leader in old.elr or place in self._allowed:
            return
        if any(new.leader in each for each in self._proposed.get((place, old.partition_epoch), [])):
            return  # in sync by the very change that lets it lead
        if self._may_be_unclean(change):
            return
        if not old.isr and new.leader in old.last_known_elr:
            return
        raise Violation("C9", f"{change.where}: {new.leader} is elected, and was not in sync: {old}")

    def _may_be_unclean(self, change: _Change) -> bool:
        """Return whether a configuration, before or after the change, allows unclean elections here."""
        name = self._names[change.place[0]]
        return any(is_unclean_allowed(image, name) for image in (change.before, change.after))

    def _check_joiner(self, change: _Change, member: NodeId) -> None:
        """Check C3."""
        place, old, new, before, after, where = change
        broker = after.brokers.get(member)
        former = before.brokers.get(member)
        # Several decisions may share a batch: who joined by one may have been fenced by the next.
        was_active = former is not None and former.is_active
        is_reverted = set(old.isr) <= set(old.adding) and new.isr == new.replicas[:1]
        if is_reverted and is_unclean_allowed(after, self._names[place[0]]):
            return  # nobody that stays was in sync: Kafka's `PartitionReassignmentRevert`
        if broker is None or not (broker.is_active or was_active):
            raise Violation("C3", f"{where}: {member} joins the ISR as {broker}")
        is_allowed = place in self._allowed or self._may_be_unclean(change)
        if is_elected_alone(old, new, after, is_allowed):
            return  # by an election, whatever was proposed of the same ISR before
        proposed = self._proposed.get((place, old.partition_epoch), [])
        fitting = [each for each in proposed if set(new.isr) in (set(each), set(each) - set(old.removing))]
        if fitting and not any(each.get(member) in (broker.epoch, -1) for each in fitting):
            raise Violation("C3", f"{where}: {member} joins the ISR by epochs {fitting}, its own is {broker.epoch}")
