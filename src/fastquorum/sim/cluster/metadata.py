"""What the committed metadata really is, kept outside the nodes, and the promises C1 to C10 and C15 checked on it: at
every committed batch, when a leader first writes one, and when somebody is told that something was done."""

from bisect import bisect_right
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from fastquorum.controller.image import Image
from fastquorum.controller.image.configs import Resource, ResourceType
from fastquorum.controller.image.fold import Fold
from fastquorum.controller.image.partition import Partition, Recovery
from fastquorum.errors import FastQuorumError
from fastquorum.kernels import Kernels
from fastquorum.sim.cluster.quorum import Quorum
from fastquorum.sim.invariants.ghost import GhostBatch
from fastquorum.sim.report import Violation
from fastquorum.types import NO_NODE, Epoch, Micros, NodeId, Offset, Uuid
from fastquorum.wire import Message
from fastquorum.wire.messages.brokers import BrokerHeartbeatRequest
from fastquorum.wire.messages.partitions import AlterPartitionRequest
from fastquorum.wire.records.brokers import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from fastquorum.wire.records.metadata import decode_metadata_record, encode_metadata_record
from fastquorum.wire.records.topics import ClearElrRecord, PartitionChangeRecord, TopicRecord

if TYPE_CHECKING:
    from fastquorum.sim.world import World

INTERNAL: Final = "__cluster_metadata"
SLACK: Final = 80
"""Per cent of a session timeout that count: clocks run up to a tenth faster or slower."""
_Place = tuple[Uuid, int]


class _Stand(NamedTuple):
    """What was committed at some moment."""

    end_offset: Offset
    at_us: Micros
    image: Image


class Metadata:
    """See the module."""

    def __init__(self, world: "World", kernels: Kernels, session_us: Micros) -> None:
        self._world = world
        self._kernels = kernels
        self._session_us = session_us
        self._fold = Fold()
        self._stands: list[_Stand] = [_Stand(0, 0, Image())]
        self._heard: dict[tuple[NodeId, NodeId, int], Micros] = {}
        """When a node was last reached by a heartbeat of (broker, epoch)."""
        self._reported: dict[tuple[NodeId, int], Offset] = {}
        """How far a broker has said, at most, that it had read."""
        self._wants_out: dict[tuple[NodeId, int], None] = {}
        """Brokers that have asked to be fenced, or to go."""
        self._unregistered: set[tuple[Epoch, NodeId, int]] = set()
        """By leaders of these epochs, as somebody asked for it; whether that is committed yet or not."""
        self._lead_us: dict[Epoch, Micros] = {}
        self._proposed: dict[tuple[_Place, int], list[dict[NodeId, int]]] = {}
        """Broker epochs that leaders gave of members, by partition and partition epoch."""
        self._allowed: dict[_Place, None] = {}
        """Partitions that somebody has asked an unclean election for."""
        self._names: dict[Uuid, str] = {}
        self.quorum = Quorum(world, kernels)
        self.on_committed: Callable[[Image, Image], None] = _nothing
        """Told of the image before and after each committed batch."""

    # --- looking ------------------------------------------------------------------------------------------------------

    @property
    def image(self) -> Image:
        return self._stands[-1].image

    @property
    def end_offset(self) -> Offset:
        return self._stands[-1].end_offset

    def end_at(self, at_us: Micros) -> Offset:
        """What was committed then."""
        return self._stands[max(bisect_right(self._stands, at_us, key=lambda stand: stand.at_us) - 1, 0)].end_offset

    def image_at(self, end_offset: Offset) -> Image:
        """The image of all below an end of the committed log, or of the one before it."""
        number = bisect_right(self._stands, end_offset, key=lambda stand: stand.end_offset) - 1
        return self._stands[number].image

    # --- what is said -------------------------------------------------------------------------------------------------

    def beats(self, request: BrokerHeartbeatRequest) -> None:
        """A broker sends this."""
        key = request.broker_id, request.broker_epoch
        self._reported[key] = max(self._reported.get(key, -1), request.current_metadata_offset)
        if request.want_fence or request.want_shut_down:
            self._wants_out[key] = None

    def heard(self, node_id: NodeId, request: BrokerHeartbeatRequest) -> None:
        """It has reached a node."""
        self._heard[node_id, request.broker_id, request.broker_epoch] = self._world.now_us

    def proposes(self, topic_id: Uuid, number: int, partition: Partition, epochs: dict[NodeId, int]) -> None:
        """A leader proposes an ISR, of members with these epochs."""
        key = (topic_id, number), partition.partition_epoch
        self._proposed.setdefault(key, []).append(epochs)

    def allows_unclean(self, place: _Place) -> None:
        """Somebody asks for an unclean election there."""
        self._allowed[place] = None

    # --- what somebody is told ----------------------------------------------------------------------------------------

    def was_registered(self, broker_id: NodeId, epoch: int, incarnation_id: Uuid) -> None:
        """S14, C4: a registration that is acknowledged is committed, or was before somebody unregistered the broker."""
        number = bisect_right(self._stands, epoch, key=lambda stand: stand.end_offset)
        broker = self._stands[number].image.brokers.get(broker_id) if number < len(self._stands) else None
        if broker is None or broker.epoch < epoch:
            raise Violation("C4", f"registered with epoch {epoch}, and that is not committed", broker_id)
        if broker.epoch == epoch and broker.incarnation_id != incarnation_id:
            raise Violation("C4", f"two incarnations have epoch {epoch}", broker_id)

    def check_let_go(self, broker_id: NodeId, epoch: int) -> None:
        """C1: who is let go is fenced and leads nothing, unless another registration stands."""
        broker = self.image.brokers.get(broker_id)
        if broker is not None and broker.epoch == epoch and not broker.fenced:
            raise Violation("C1", "is let go before it is fenced", broker_id)

    def was_altered(self, topic_id: Uuid, asked: AlterPartitionRequest.TopicData.PartitionData) -> None:
        """S14: an ISR that is acknowledged is committed."""
        topic = self.image.topics.by_id.get(topic_id)
        partition = None if topic is None else topic.partitions.get(asked.partition_index)
        if partition is not None and partition.partition_epoch < asked.partition_epoch:
            raise Violation("S14", f"an ISR is acknowledged at partition epoch {asked.partition_epoch}, not committed")

    def was_created(self, name: str, topic_id: Uuid) -> None:
        """S14, C15: a topic that is acknowledged is committed, or was deleted since; a name of ours is no one's."""
        if name == INTERNAL:
            raise Violation("C15", f"a user has created {name}")
        if self._names.get(topic_id) != name:
            raise Violation("S14", f"topic {name} is acknowledged, and not committed")

    def check_snapshot(self, node_id: NodeId, end_offset: Offset, values: tuple[bytes, ...]) -> None:
        """S24: a snapshot holds the committed image at its end."""
        image = self.image_at(end_offset)
        wanted = [encode_metadata_record(record, version) for record, version in image.records()]
        if sorted(values) != sorted(wanted):
            raise Violation("S24", f"the snapshot at {end_offset} is not the image there", node_id)

    # --- when a leader writes -----------------------------------------------------------------------------------------

    def leads(self, epoch: Epoch) -> None:
        """A node begins to lead an epoch."""
        self._lead_us.setdefault(epoch, self._world.now_us)

    def written(self, node_id: NodeId, batch: GhostBatch) -> None:
        """C8: at the moment of decision."""
        for record in self._records(batch):
            match record:
                case FenceBrokerRecord():
                    self._check_fencing(node_id, batch.epoch, record.id, record.epoch)
                case BrokerRegistrationChangeRecord(fenced=1):
                    self._check_fencing(node_id, batch.epoch, record.broker_id, record.broker_epoch)
                case UnfenceBrokerRecord():
                    self._check_unfencing(record.id, record.epoch)
                case BrokerRegistrationChangeRecord(fenced=-1):
                    self._check_unfencing(record.broker_id, record.broker_epoch)
                case UnregisterBrokerRecord():
                    self._unregistered.add((batch.epoch, record.broker_id, record.broker_epoch))
                case RegisterBrokerRecord():
                    self._check_successor(node_id, batch.epoch, record)

    def _check_successor(self, node_id: NodeId, leader_epoch: Epoch, record: RegisterBrokerRecord) -> None:
        """C7: nobody takes the id of a broker that is heard, unless this leader was asked to unregister it."""
        old = self.image.brokers.get(record.broker_id)
        if old is None or old.incarnation_id == record.incarnation_id or (old.id, old.epoch) in self._wants_out:
            return
        if (leader_epoch, old.id, old.epoch) in self._unregistered:
            return
        if old.fenced:
            return  # whether it was heard is not in the log, and is forgotten with a lead
        heard_us = self._heard.get((node_id, old.id, old.epoch))
        if heard_us is not None and self._world.now_us - heard_us < self._session_us * SLACK // 100:
            ago_us = self._world.now_us - heard_us
            raise Violation(
                "C7", f"takes in another broker {old.id}, {ago_us} us after a heartbeat of the first", node_id
            )

    def _check_fencing(self, node_id: NodeId, leader_epoch: Epoch, broker_id: NodeId, epoch: int) -> None:
        if (broker_id, epoch) in self._wants_out:
            return
        now_us, enough_us = self._world.now_us, self._session_us * SLACK // 100
        lead_us = self._lead_us.get(leader_epoch, 0)
        heard_us = self._heard.get((node_id, broker_id, epoch), -enough_us)
        if now_us - heard_us < enough_us:
            raise Violation("C8", f"fences broker {broker_id}, {now_us - heard_us} us after its heartbeat", node_id)
        if now_us - lead_us < enough_us:
            raise Violation("C8", f"fences broker {broker_id}, {now_us - lead_us} us after it began to lead", node_id)

    def _check_unfencing(self, broker_id: NodeId, epoch: int) -> None:
        if self._reported.get((broker_id, epoch), -1) < epoch:
            raise Violation("C8", f"broker {broker_id} is unfenced, and has not read its registration at {epoch}")

    # --- when it is committed -----------------------------------------------------------------------------------------

    def committed(self, batches: list[GhostBatch]) -> None:
        for batch in batches:
            before = self._fold.image
            records = self._records(batch)
            self._take(batch, records)
            after = self._fold.image
            if after is not before:
                self._check(batch, records, before, after)
                self.on_committed(before, after)
            self._stands.append(_Stand(batch.end, self._world.now_us, after))

    def _take(self, batch: GhostBatch, records: list[Message]) -> None:
        if batch.is_control:
            self._fold.skip(batch.end, batch.epoch, 0)
            self.quorum.committed(batch)
            return
        for offset, record in enumerate(records, batch.base):
            if isinstance(record, TopicRecord):
                self._check_name(record)
            try:
                self._fold.add(offset, record, batch.epoch, 0)
            except FastQuorumError as error:
                raise Violation("K57", f"what is committed at {offset} cannot be replayed: {error}") from error

    def _records(self, batch: GhostBatch) -> list[Message]:
        if batch.is_control:
            return []
        return [decode_metadata_record(value or b"")[0] for value in self._kernels.decode_values(batch.data)]

    def _check_name(self, record: TopicRecord) -> None:
        if record.name == INTERNAL:
            raise Violation("C15", f"topic {record.name} is created")
        if self._names.setdefault(record.topic_id, record.name) != record.name:
            raise Violation("C15", f"two topics have id {record.topic_id}")

    def _check(self, batch: GhostBatch, records: list[Message], before: Image, after: Image) -> None:
        if after.brokers is not before.brokers:
            self._check_brokers(batch, records, before, after)
        changes: dict[_Place, int] = {}
        cleared: list[str] = []
        for record in records:
            if isinstance(record, PartitionChangeRecord):
                place = record.topic_id, record.partition_id
                changes[place] = changes.get(place, 0) + 1
            elif isinstance(record, ClearElrRecord):
                cleared.append(record.topic_name)
        for topic_id, topic in after.topics.by_id.items():
            former = before.topics.by_id.get(topic_id)
            is_same = former is topic and after.brokers is before.brokers
            for number, partition in () if is_same else topic.partitions.items():
                where = f"{topic.name}-{number} at {batch.base}"
                _check_partition(partition, after, where)
                old = None if former is None else former.partitions.get(number)
                if old is not None and old != partition:
                    place = topic_id, number
                    count = changes.get(place, 0)
                    if (old.elr or old.last_known_elr) and {"", topic.name} & set(cleared):
                        count += 1
                    self._check_change(place, old, partition, count, (before, after, where))

    def _check_brokers(self, batch: GhostBatch, records: list[Message], before: Image, after: Image) -> None:
        """C4, C7."""
        for record in records:
            if not isinstance(record, RegisterBrokerRecord):
                continue
            old, new = before.brokers.get(record.broker_id), after.brokers[record.broker_id]
            if old is not None and old.incarnation_id == new.incarnation_id:
                if old.epoch != new.epoch:
                    raise Violation("C4", f"epoch {old.epoch} becomes {new.epoch}, of one incarnation", new.id)
            elif not batch.base <= new.epoch < batch.end:
                raise Violation("C4", f"epoch {new.epoch} is none of {batch.base} to {batch.end - 1}", new.id)
            elif old is not None and new.epoch <= old.epoch:
                raise Violation("C4", f"epoch {new.epoch} follows {old.epoch}", new.id)

    def _check_change(
        self, place: _Place, old: Partition, new: Partition, count: int, at: tuple[Image, Image, str]
    ) -> None:
        before, after, where = at
        if new.partition_epoch != old.partition_epoch + count or new.leader_epoch < old.leader_epoch:
            raise Violation("C5", f"{where}: {count} changes make {new} of {old}")
        if new.leader != old.leader:
            if new.leader_epoch == old.leader_epoch:
                raise Violation("C5", f"{where}: another leader in one epoch: {new} after {old}")
            self._check_election(place, old, new, (before, after), where)
        for member in new.isr:
            if member not in old.isr:
                self._check_joiner(place, old, new, member, (before, after, where))
        _check_move(old, new, where)

    def _check_election(
        self, place: _Place, old: Partition, new: Partition, images: tuple[Image, Image], where: str
    ) -> None:
        """C9."""
        if not new.has_leader or new.leader in old.isr or new.leader in old.elr or place in self._allowed:
            return
        if any(new.leader in each for each in self._proposed.get((place, old.partition_epoch), [])):
            return  # in sync by the very change that lets it lead
        if self._may_be_unclean(place, images):
            return
        if not old.isr and new.leader in old.last_known_elr:
            return
        raise Violation("C9", f"{where}: {new.leader} is elected, and was not in sync: {old}")

    def _may_be_unclean(self, place: _Place, images: tuple[Image, Image]) -> bool:
        """Return whether a configuration, before or after the change, allows unclean elections here."""
        return any(_is_unclean_allowed(image, self._names[place[0]]) for image in images)

    def _check_joiner(
        self, place: _Place, old: Partition, new: Partition, member: NodeId, at: tuple[Image, Image, str]
    ) -> None:
        """C3."""
        before, after, where = at
        broker = after.brokers.get(member)
        former = before.brokers.get(member)
        # Several decisions may share a batch: who joined by one may have been fenced by the next.
        was_active = former is not None and former.is_active
        is_reverted = set(old.isr) <= set(old.adding) and new.isr == new.replicas[:1]
        if is_reverted and _is_unclean_allowed(after, self._names[place[0]]):
            return  # nobody that stays was in sync: Kafka's `PartitionReassignmentRevert`
        if broker is None or not (broker.is_active or was_active):
            raise Violation("C3", f"{where}: {member} joins the ISR as {broker}")
        is_asked_for = place in self._allowed or self._may_be_unclean(place, (before, after))
        if _is_elected_alone(old, new, after, is_asked_for):
            return  # by an election, whatever was proposed of the same ISR before
        said = self._proposed.get((place, old.partition_epoch), [])
        fitting = [each for each in said if set(new.isr) in (set(each), set(each) - set(old.removing))]
        if fitting and not any(each.get(member) in (broker.epoch, -1) for each in fitting):
            raise Violation("C3", f"{where}: {member} joins the ISR by epochs {fitting}, its own is {broker.epoch}")

    # --- the end ------------------------------------------------------------------------------------------------------

    def missing(self, alive: dict[NodeId, int]) -> str:
        """L8, L9: what is not as it should be with these brokers alive under these epochs; empty: nothing."""
        for broker_id, epoch in alive.items():
            broker = self.image.brokers.get(broker_id)
            if epoch < 0 or broker is None or broker.epoch != epoch or not broker.is_active:
                return f"L8: broker {broker_id} lives with epoch {epoch}, and is {broker}"
        for topic in self.image.topics.sorted():
            for number, partition in topic.partitions.items():
                replicas = [each for each in partition.replicas if each in alive]
                known = [each for each in partition.last_known_elr if each != NO_NODE]
                is_lost = not (partition.isr or partition.elr or known)  # KIP-966: somebody has to say whom to elect
                if not is_lost and (not partition.has_leader or set(replicas) - set(partition.isr)):
                    return f"L9: {topic.name}-{number} is {partition}"
        return ""


def _nothing(before: Image, after: Image) -> None:
    pass


def _check_partition(partition: Partition, image: Image, where: str) -> None:
    """C1, C2, C9."""
    replicas, leader = partition.replicas, partition.leader
    if not replicas or len(set(replicas)) < len(replicas):
        raise Violation("C2", f"{where}: replicas {replicas}")
    if not set(partition.isr) <= set(replicas):
        raise Violation("C2", f"{where}: ISR {partition.isr} of replicas {replicas}")
    if not partition.isr and not image.features.is_elr_enabled:
        raise Violation("C2", f"{where}: nobody is in sync: {partition}")
    if not set(partition.elr) <= set(replicas):
        raise Violation("C9", f"{where}: {partition.elr} are eligible, of replicas {replicas}")
    if not partition.has_leader:
        return
    broker = image.brokers.get(leader)
    if leader not in partition.isr or broker is None or broker.fenced:
        raise Violation("C1", f"{where}: {leader} leads, and is {broker}: {partition}")
    if broker.in_controlled_shutdown and len(partition.isr) > 1:
        raise Violation("C1", f"{where}: {leader} leads in its shutdown: {partition}")


def _check_move(old: Partition, new: Partition, where: str) -> None:
    """C10."""
    if not (set(new.adding) <= set(new.replicas) and set(new.removing) <= set(new.replicas)):
        raise Violation("C10", f"{where}: {new}")
    gone = set(old.replicas) - set(new.replicas)
    if not gone:
        return
    if gone <= set(old.adding):  # taken back, or another target
        return
    target = set(new.replicas)
    is_shrinking = len(target) < len(set(old.replicas) - set(old.adding))
    awaited = target if is_shrinking else set(old.adding) & target  # as Kafka 4.3: KAFKA-15665
    # Who is elected from outside the ISR is so after that, and may be in the same change.
    is_from_outside = new.isr == (new.leader,) and new.leader not in old.isr + old.elr
    were_in_sync = awaited <= set(new.isr) or (is_from_outside and awaited <= set(old.isr))
    if not were_in_sync and not new.is_reassigning:
        raise Violation("C10", f"{where}: {sorted(gone)} go before {sorted(awaited)} are in sync: {new} after {old}")


def _is_elected_alone(old: Partition, new: Partition, after: Image, may_be_unclean: bool) -> bool:
    """Return whether an election made a new leader the whole ISR: an unclean one (KIP-704), or one from the ELR, which
    comes when nobody of the ISR is left (KIP-966)."""
    if new.leader == old.leader or new.isr != (new.leader,):
        return False
    if new.recovery == Recovery.RECOVERING:
        return may_be_unclean
    return new.leader in old.elr and not any(_is_active(after, member) for member in old.isr)


def _is_active(image: Image, broker_id: NodeId) -> bool:
    broker = image.brokers.get(broker_id)
    return broker is not None and broker.is_active


def _is_unclean_allowed(image: Image, topic_name: str) -> bool:
    for resource in (Resource(ResourceType.TOPIC, topic_name), Resource(ResourceType.BROKER, "")):
        values = image.configs.get(resource)
        if values is not None and (said := values.get("unclean.leader.election.enable")) is not None:
            return said == "true"
    return False
