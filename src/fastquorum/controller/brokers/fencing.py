"""What a broker's coming and going means for the partitions it holds: ISRs, leaders, eligible replicas.

Each function gives records in order, worked out on the state as it is; with the registration's own they are one batch.
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
    """Out of every ISR, and no leader any more; then fenced."""
    change = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=FENCE)
    return [*leave(state, broker.id, state.index.in_sync(broker.id)), change]


def unfence(state: ControllerState, broker: Broker) -> list[Message]:
    """Unfenced; then it leads what nobody leads, and it may, but not if it was leaving. Where it has no replica
    its coming changes nothing: of those there may be a million, while brokers come back one by one."""
    change = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=UNFENCE)
    if broker.in_controlled_shutdown:  # until it is another incarnation
        return [change]
    found = (state.change(key, back=broker.id).record() for key in state.index.leaderless_on(broker.id))
    return [change, *(record for record in found if record is not None)]


def begin_shutdown(state: ControllerState, broker: Broker) -> list[Message]:
    """No new replicas and no lead for it from now on; out of the ISRs, as long as somebody else is in them."""
    changes = leave(state, broker.id, state.index.in_sync(broker.id))
    if broker.in_controlled_shutdown:
        return list(changes)
    begun = BrokerRegistrationChangeRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, in_controlled_shutdown=IN_CONTROLLED_SHUTDOWN
    )
    return [begun, *changes]


def clean_up(state: ControllerState, broker_id: NodeId, *, is_clean: bool) -> list[Message]:
    """Another incarnation registers: what the former one held it may have lost, unless it went in good order."""
    if is_clean or not state.image.features.is_elr_enabled:
        return list(leave(state, broker_id, state.index.in_sync(broker_id)))
    keys = dict.fromkeys((*state.index.in_sync(broker_id), *state.index.eligible(broker_id)))
    return list(leave(state, broker_id, keys, is_unclean=True))


def unregister(state: ControllerState, broker: Broker) -> list[Message]:
    """Gone for good."""
    keys = dict.fromkeys((*state.index.in_sync(broker.id), *state.index.eligible(broker.id)))
    gone = UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch)
    return [*leave(state, broker.id, keys), gone]


def lose_directories(state: ControllerState, broker: Broker, offline: Iterable[Uuid]) -> list[Message]:
    """Directories of the broker have failed: what lies there is out of sync."""
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
    """The broker leaves the ISR of these partitions, and their lead; unclean: it cannot be elected for them, either."""
    for key in keys:
        change = state.change(key, gone=broker_id)
        change.isr = without(change.isr, broker_id)
        if is_unclean:
            change.unclean_replicas = (broker_id,)
        record = change.record()
        if record is not None:
            yield record
