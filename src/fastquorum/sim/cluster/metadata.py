"""The true committed metadata, kept outside the nodes, and its promises: they are checked at every committed batch,
when a leader first writes one, and when a change is acknowledged."""

from bisect import bisect_right
from collections.abc import Callable
from typing import NamedTuple

from fastquorum.controller.image import Image
from fastquorum.controller.image.fold import Fold
from fastquorum.errors import FastQuorumError
from fastquorum.kernels import Kernels
from fastquorum.sim.clock import Scheduler
from fastquorum.sim.cluster.quorum import QuorumHistory
from fastquorum.sim.cluster.registrations import Registrations, check_registrations
from fastquorum.sim.cluster.topics import TopicChecks
from fastquorum.sim.invariants.ghost import GhostBatch
from fastquorum.sim.report import Violation
from fastquorum.types import NO_NODE, Micros, NodeId, Offset, Uuid
from fastquorum.wire import Message
from fastquorum.wire.messages.partitions import AlterPartitionRequest
from fastquorum.wire.records.metadata import decode_metadata_record, encode_metadata_record
from fastquorum.wire.records.topics import TopicRecord


class _Stand(NamedTuple):
    """The state of the committed log at some moment."""

    end_offset: Offset
    at_us: Micros
    image: Image


class Metadata:
    """The committed metadata. `registrations`, `topics` and `quorum` have their own memory."""

    def __init__(self, scheduler: Scheduler, kernels: Kernels, session_us: Micros, quorum: QuorumHistory) -> None:
        self._scheduler = scheduler
        self._kernels = kernels
        self._fold = Fold()
        self._stands: list[_Stand] = [_Stand(0, 0, Image())]
        self.registrations = Registrations(scheduler, session_us)
        self.topics = TopicChecks()
        self.quorum = quorum
        self.on_committed: Callable[[Image, Image], None] = _nothing
        """Called with the image before and after each committed batch."""

    # --- looking ------------------------------------------------------------------------------------------------------

    @property
    def image(self) -> Image:
        return self._stands[-1].image

    @property
    def end_offset(self) -> Offset:
        return self._stands[-1].end_offset

    def end_at(self, at_us: Micros) -> Offset:
        """Return the end of the committed log at that time."""
        return self._stands[max(bisect_right(self._stands, at_us, key=lambda stand: stand.at_us) - 1, 0)].end_offset

    def image_at(self, end_offset: Offset) -> Image:
        """Return the image of all below an end of the committed log, or below the end before it."""
        number = bisect_right(self._stands, end_offset, key=lambda stand: stand.end_offset) - 1
        return self._stands[number].image

    # --- what somebody is told ----------------------------------------------------------------------------------------

    def was_registered(self, broker_id: NodeId, epoch: int, incarnation_id: Uuid) -> None:
        """Check S14, C4: an acknowledged registration is committed, or was before the broker was unregistered."""
        number = bisect_right(self._stands, epoch, key=lambda stand: stand.end_offset)
        broker = self._stands[number].image.brokers.get(broker_id) if number < len(self._stands) else None
        if broker is None or broker.epoch < epoch:
            raise Violation("C4", f"registered with epoch {epoch}, and that is not committed", broker_id)
        if broker.epoch == epoch and broker.incarnation_id != incarnation_id:
            raise Violation("C4", f"two incarnations have epoch {epoch}", broker_id)

    def check_let_go(self, broker_id: NodeId, epoch: int) -> None:
        """Check C1: a broker that may stop is fenced and leads nothing, unless it has another registration."""
        broker = self.image.brokers.get(broker_id)
        if broker is not None and broker.epoch == epoch and not broker.fenced:
            raise Violation("C1", "is let go before it is fenced", broker_id)

    def was_altered(self, topic_id: Uuid, change: AlterPartitionRequest.TopicData.PartitionData) -> None:
        """Check S14: an acknowledged ISR is committed."""
        topic = self.image.topics.by_id.get(topic_id)
        partition = None if topic is None else topic.partitions.get(change.partition_index)
        if partition is not None and partition.partition_epoch < change.partition_epoch:
            raise Violation("S14", f"an ISR is acknowledged at partition epoch {change.partition_epoch}, not committed")

    def check_snapshot(self, node_id: NodeId, end_offset: Offset, values: tuple[bytes, ...]) -> None:
        """Check S24: a snapshot holds the committed image at its end."""
        image = self.image_at(end_offset)
        wanted = [encode_metadata_record(record, version) for record, version in image.records()]
        if sorted(values) != sorted(wanted):
            raise Violation("S24", f"the snapshot at {end_offset} is not the image there", node_id)

    # --- when a leader writes -----------------------------------------------------------------------------------------

    def written(self, node_id: NodeId, batch: GhostBatch) -> None:
        """Check a batch when a leader is first seen to hold it."""
        for record in self._records(batch):
            self.registrations.written(node_id, batch.epoch, record, self.image)

    # --- when it is committed -----------------------------------------------------------------------------------------

    def committed(self, batches: list[GhostBatch]) -> None:
        for batch in batches:
            before = self._fold.image
            records = self._records(batch)
            self._take(batch, records)
            after = self._fold.image
            if after is not before:
                if after.brokers is not before.brokers:
                    check_registrations(batch, records, before, after)
                self.topics.check(batch.base, records, before, after)
                self.on_committed(before, after)
            self._stands.append(_Stand(batch.end, self._scheduler.now_us, after))

    def _take(self, batch: GhostBatch, records: list[Message]) -> None:
        if batch.is_control:
            self._fold.skip(batch.end, batch.epoch, 0)
            self.quorum.committed(batch)
            return
        for offset, record in enumerate(records, batch.base):
            if isinstance(record, TopicRecord):
                self.topics.check_name(record)
            try:
                self._fold.add(offset, record, batch.epoch, 0)
            except FastQuorumError as error:
                raise Violation("K57", f"what is committed at {offset} cannot be replayed: {error}") from error

    def _records(self, batch: GhostBatch) -> list[Message]:
        if batch.is_control:
            return []
        return [decode_metadata_record(value or b"")[0] for value in self._kernels.decode_values(batch.data)]

    # --- the end ------------------------------------------------------------------------------------------------------

    def missing(self, alive: dict[NodeId, int]) -> str:
        """Return what breaks L8 or L9 with these brokers alive under these epochs; empty if nothing does."""
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
