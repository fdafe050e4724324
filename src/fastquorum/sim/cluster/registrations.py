"""The promises of brokers: C4 of their epochs when one is committed; C7 and C8 when a leader decides, by the heartbeats
that reached it."""

from typing import Final

from fastquorum.controller.image import Image
from fastquorum.sim.clock import Scheduler
from fastquorum.sim.invariants.ghost import GhostBatch
from fastquorum.sim.report import Violation
from fastquorum.types import Epoch, Micros, NodeId, Offset
from fastquorum.wire import Message
from fastquorum.wire.messages.brokers import BrokerHeartbeatRequest
from fastquorum.wire.records.brokers import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)

SLACK: Final = 80
"""Per cent of a session timeout that count: clocks run up to a tenth fast or slow."""


class Registrations:
    """The messages between brokers and controllers, and the checks on them."""

    def __init__(self, scheduler: Scheduler, session_us: Micros) -> None:
        self._scheduler = scheduler
        self._enough_us = session_us * SLACK // 100
        """Time after a heartbeat during which its broker must not count as silent."""
        self._contacts: dict[tuple[NodeId, NodeId, int], Micros] = {}
        """When a node was last reached by a heartbeat of (broker, epoch)."""
        self._reported: dict[tuple[NodeId, int], Offset] = {}
        """The highest metadata offset that a broker has reported."""
        self._wants_out: dict[tuple[NodeId, int], None] = {}
        """Brokers that have asked to be fenced, or to stop."""
        self._unregistered: set[tuple[Epoch, NodeId, int]] = set()
        """Brokers that leaders of these epochs unregistered on request, committed or not."""
        self._lead_us: dict[Epoch, Micros] = {}

    def beats(self, request: BrokerHeartbeatRequest) -> None:
        """Note a heartbeat that a broker sends."""
        key = request.broker_id, request.broker_epoch
        self._reported[key] = max(self._reported.get(key, -1), request.current_metadata_offset)
        if request.want_fence or request.want_shut_down:
            self._wants_out[key] = None

    def arrived(self, node_id: NodeId, request: BrokerHeartbeatRequest) -> None:
        """Note a heartbeat that has reached a node."""
        self._contacts[node_id, request.broker_id, request.broker_epoch] = self._scheduler.now_us

    # --- when a leader writes -----------------------------------------------------------------------------------------

    def leads(self, epoch: Epoch) -> None:
        """Note that a node begins to lead an epoch."""
        self._lead_us.setdefault(epoch, self._scheduler.now_us)

    def written(self, node_id: NodeId, leader_epoch: Epoch, record: Message, image: Image) -> None:
        """Check C8 at the moment of decision, against what is committed."""
        match record:
            case FenceBrokerRecord():
                self._check_fencing(node_id, leader_epoch, record.id, record.epoch)
            case BrokerRegistrationChangeRecord(fenced=1):
                self._check_fencing(node_id, leader_epoch, record.broker_id, record.broker_epoch)
            case UnfenceBrokerRecord():
                self._check_unfencing(record.id, record.epoch)
            case BrokerRegistrationChangeRecord(fenced=-1):
                self._check_unfencing(record.broker_id, record.broker_epoch)
            case UnregisterBrokerRecord():
                self._unregistered.add((leader_epoch, record.broker_id, record.broker_epoch))
            case RegisterBrokerRecord():
                self._check_successor(node_id, leader_epoch, record, image)

    def _check_successor(
        self, node_id: NodeId, leader_epoch: Epoch, record: RegisterBrokerRecord, image: Image
    ) -> None:
        """Check C7: no process takes the id of a broker in contact, unless this leader was asked to unregister it."""
        old = image.brokers.get(record.broker_id)
        if old is None or old.incarnation_id == record.incarnation_id or (old.id, old.epoch) in self._wants_out:
            return
        if (leader_epoch, old.id, old.epoch) in self._unregistered:
            return
        if old.fenced:
            return  # whether it was heard is not in the log, and is forgotten with a lead
        contact_us = self._contacts.get((node_id, old.id, old.epoch))
        if contact_us is None:
            return
        ago_us = self._scheduler.now_us - contact_us
        if ago_us < self._enough_us:
            text = f"takes in another broker {old.id}, {ago_us} us after a heartbeat of the first"
            raise Violation("C7", text, node_id)

    def _check_fencing(self, node_id: NodeId, leader_epoch: Epoch, broker_id: NodeId, epoch: int) -> None:
        if (broker_id, epoch) in self._wants_out:
            return
        now_us, enough_us = self._scheduler.now_us, self._enough_us
        lead_us = self._lead_us.get(leader_epoch, 0)
        contact_us = self._contacts.get((node_id, broker_id, epoch), -enough_us)
        if now_us - contact_us < enough_us:
            raise Violation("C8", f"fences broker {broker_id}, {now_us - contact_us} us after its heartbeat", node_id)
        if now_us - lead_us < enough_us:
            raise Violation("C8", f"fences broker {broker_id}, {now_us - lead_us} us after it began to lead", node_id)

    def _check_unfencing(self, broker_id: NodeId, epoch: int) -> None:
        if self._reported.get((broker_id, epoch), -1) < epoch:
            raise Violation("C8", f"broker {broker_id} is unfenced, and has not read its registration at {epoch}")


def check_registrations(batch: GhostBatch, records: list[Message], before: Image, after: Image) -> None:
    """Check C4 and C7 for the registrations of a committed batch."""
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
