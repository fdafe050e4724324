"""The changes of a broker's partitions as it comes and goes: ISRs, leaders, eligible replicas.

Each function returns records in order, computed from the present state; with the registration's own they are one batch.
Source: KIP-631, KIP-841, KIP-858, KIP-966; Kafka `ReplicationControlManager.generateLeaderAndIsrUpdates`.
"""

from collections.abc import Iterable, Iterator

from fastquorum.controller.image.registrations import Broker
from fastquorum.controller.state.controller_state import ControllerState, without
from fastquorum.controller.state.index import PartitionKey
from fastquorum.types import NodeId, Uuid
from fastquorum.wire.message import Message
from fastquorum.wire.records.brokers import BrokerRegistrationChangeRecord, UnregisterBrokerRecord

FENCE = 1
UNFENCE = -1
IN_CONTROLLED_SHUTDOWN = 1


def fence(state: ControllerState, broker: Broker) -> list[Message]:
    """Take a broker out of every ISR and every lead; then fence it."""
    change = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=FENCE)
    return [*leave(state, broker.id, state.index.in_sync(broker.id)), change]


def unfence(state: ControllerState, broker: Broker) -> list[Message]:
    """Unfence a broker; then elect it for partitions without a leader where it may lead, but not if it was leaving.
    Only partitions with a replica on it are looked at: a million may have no leader while brokers come back one by
    one."""
    change = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=UNFENCE)
    if broker.in_controlled_shutdown:  # until it is another incarnation
        return [change]
    found = (state.change(key, back=broker.id).record() for key in state.index.leaderless_on(broker.id))
    return [change, *(record for record in found if record is not None)]


def begin_shutdown(state: ControllerState, broker: Broker) -> list[Message]:
    """Begin a controlled shutdown: no new replicas, no leads; out of the ISRs that have another member."""
    changes = leave(state, broker.id, state.index.in_sync(broker.id))
    if broker.in_controlled_shutdown:
        return list(changes)
    begun = BrokerRegistrationChangeRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, in_controlled_shutdown=IN_CONTROLLED_SHUTDOWN
    )
    return [begun, *changes]


def clean_up(state: ControllerState, broker_id: NodeId, *, is_clean: bool) -> list[Message]:
    """Clean up before another incarnation: it may have lost the former one's data, unless that stopped in good
    order."""
    if is_clean or not state.image.features.is_elr_enabled:
        return list(leave(state, broker_id, state.index.in_sync(broker_id)))
    keys = dict.fromkeys((*state.index.in_sync(broker_id), *state.index.eligible(broker_id)))
    return list(leave(state, broker_id, keys, is_unclean=True))


def unregister(state: ControllerState, broker: Broker) -> list[Message]:
    keys = dict.fromkeys((*state.index.in_sync(broker.id), *state.index.eligible(broker.id)))
    gone = UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch)
    return [*leave(state, broker.id, keys), gone]


def lose_directories(state: ControllerState, broker: Broker, offline: Iterable[Uuid]) -> list[Message]:
    """Note that directories of a broker have failed: the replicas there are out of sync."""
    failed = frozenset(offline)
    lost = [each for each in broker.directories if each in failed] if failed else []
    if not lost:
        return []
    keys = dict.fromkeys(key for directory in lost for key in state.index.in_directory(directory))
    rest = [each for each in broker.directories if each not in failed]
    change = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, log_dirs=rest)
    return [*leave(state, broker.id, keys), change]


def leave(
    state: ControllerState, broker_id: NodeId, keys: Iterable[PartitionKey], *, is_unclean: bool = False
) -> Iterator[Message]:
    """Take a broker out of the ISR and the lead of these partitions; unclean: it cannot be elected for them, either."""
    for key in keys:
        change = state.change(key, gone=broker_id)
        change.isr = without(change.isr, broker_id)
        if is_unclean:
            change.unclean_replicas = (broker_id,)
        record = change.record()
        if record is not None:
            yield record
