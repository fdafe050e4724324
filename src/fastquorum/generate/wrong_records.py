"""Records that no controller writes: each breaks one invariant of the log, in all replicas, and the rest is sound.

Each is written into the controller's log and image without a decision, and seconds later the real controller repairs
it, where it would. Between the two only this one invariant is broken.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from fastquorum.config import SECOND
from fastquorum.controller.decisions import record_version
from fastquorum.controller.image.partition import LEADER_UNCHANGED, partition_record
from fastquorum.controller.state.index import PartitionKey
from fastquorum.generate.calendar import MINUTE
from fastquorum.generate.kinds import Kind
from fastquorum.generate.life import SESSION_US, OrdinaryLife
from fastquorum.generate.planted import Planted, begun, ended
from fastquorum.raft.messages import leader_change
from fastquorum.wire.message import Message
from fastquorum.wire.records.brokers import RegisterBrokerRecord
from fastquorum.wire.records.topics import PartitionChangeRecord

EPOCH_JUMP: Final = 5
WRONG_BROKER_EPOCH: Final = 3
"""How far the wrong epoch is above the record's offset."""
REPAIR_US: Final = 5 * SECOND


def leader_not_in_isr(life: OrdinaryLife) -> Planted:
    """Let a follower lead that is not in the ISR."""
    key = life.whole()
    planted, partition = begun(life.controller, Kind.LEADER_NOT_IN_ISR, key), life.sim_brokers.partition(key)
    planted.broker = leader = partition.replicas[-1]
    isr = [each for each in partition.isr if each != leader]
    wrong = PartitionChangeRecord(partition_id=key.partition_id, topic_id=key.topic_id, leader=leader, isr=isr)
    life.controller.append([wrong])
    ended(life.controller, planted)
    life.calendar.after(REPAIR_US, lambda: life.sim_brokers.propose(leader, {key: partition.isr}))
    return planted


def isr_outside_replicas(life: OrdinaryLife) -> Planted:
    """Add a broker without a replica to an ISR."""
    key = life.whole()
    planted, partition = begun(life.controller, Kind.ISR_OUTSIDE_REPLICAS, key), life.sim_brokers.partition(key)
    planted.broker = next(each for each in life.sim_brokers.ids if each not in partition.replicas)
    isr = [*partition.isr, planted.broker]
    life.controller.append([PartitionChangeRecord(partition_id=key.partition_id, topic_id=key.topic_id, isr=isr)])
    ended(life.controller, planted)
    life.calendar.after(REPAIR_US, lambda: life.sim_brokers.propose(partition.leader, {key: partition.isr}))
    return planted


def partition_epoch_jump(life: OrdinaryLife) -> Planted:
    """Repeat a partition's record with an epoch far above."""
    key = life.whole()
    planted, state = begun(life.controller, Kind.PARTITION_EPOCH_JUMP, key), life.controller.state
    partition = life.sim_brokers.partition(key)
    later = partition._replace(partition_epoch=partition.partition_epoch + EPOCH_JUMP)
    record = partition_record(
        key.topic_id, key.partition_id, later, state.level, with_elr=state.image.features.is_elr_enabled
    )
    assert record_version(record, state.level) == state.level.partition_version
    life.controller.append([record])
    ended(life.controller, planted)
    return planted


def broker_epoch_not_offset(life: OrdinaryLife) -> Planted:
    """Restart a broker, and give its registration another epoch than the record's offset."""
    planted = begun(life.controller, Kind.BROKER_EPOCH_NOT_OFFSET)
    planted.broker = broker_id = life.prng.pick(life.sim_brokers.ids)

    def tamper(records: Sequence[Message]) -> Sequence[Message]:
        registration = records[-1]
        assert isinstance(registration, RegisterBrokerRecord), registration
        planted.offset = life.controller.end_offset + len(records) - 1
        planted.end_offset, planted.epoch = planted.offset + 1, life.controller.epoch
        planted.time_ms = planted.end_ms = life.controller.now_ms
        registration.broker_epoch = planted.offset + WRONG_BROKER_EPOCH
        return records

    life.restart(broker_id, 2 * MINUTE, is_crash=False, before_return=lambda: life.controller.tamper_with_next(tamper))
    return planted


def fenced_leads(life: OrdinaryLife) -> Planted:
    """Kill and fence a broker; one partition that it leads gets another leader only a second later."""
    key = life.whole()
    planted, broker_id = begun(life.controller, Kind.FENCED_LEADS, key), life.sim_brokers.partition(key).leader
    planted.broker = broker_id
    left: list[Message] = []

    def tamper(records: Sequence[Message]) -> Sequence[Message]:
        kept = [each for each in records if not _elects(each, key)]
        left.extend(each for each in records if _elects(each, key))
        assert len(left) == 1, f"{broker_id} led {key}"
        planted.offset, planted.epoch = life.controller.end_offset + len(kept) - 1, life.controller.epoch
        planted.time_ms = life.controller.now_ms
        return kept

    def repair() -> None:
        planted.end_offset, planted.end_ms = life.controller.end_offset, life.controller.now_ms
        life.controller.append(left)

    # Just before the fencing.
    life.calendar.after(SESSION_US + SECOND, lambda: life.controller.tamper_with_next(tamper))
    life.restart(broker_id, 2 * MINUTE, is_crash=True)
    life.calendar.after(SESSION_US + 2 * SECOND, repair)
    return planted


def _elects(record: Message, key: PartitionKey) -> bool:
    if not isinstance(record, PartitionChangeRecord) or record.leader == LEADER_UNCHANGED:
        return False
    return (record.topic_id, record.partition_id) == key


def two_leaders(life: OrdinaryLife) -> Planted:
    """Name another leader of an epoch seconds after it began. (The log may no longer hold the leader of an epoch that
    began long ago.)"""
    controller, planted = life.controller, begun(life.controller, Kind.TWO_LEADERS)
    life.change_leader()

    def contradict() -> None:
        other = next((each for each in controller.voters.ids if each != controller.leader_id), controller.leader_id + 1)
        granting = [other, *(each for each in controller.voters.ids if each != other)][: controller.voters.majority]
        planted.offset, planted.epoch, planted.time_ms = controller.end_offset, controller.epoch, controller.now_ms
        controller.append_control([leader_change(other, controller.voters, granting)])
        ended(controller, planted)

    life.calendar.after(REPAIR_US, contradict)
    return planted


def epoch_backwards(life: OrdinaryLife) -> Planted:
    """Write a no-op whose batch gets an earlier epoch when the log is closed: the epoch is under no checksum."""
    planted = begun(life.controller, Kind.EPOCH_BACKWARDS)
    planted.epoch = life.controller.epoch - 1
    life.controller.no_op()
    ended(life.controller, planted)
    return planted


PLANTS: Final[Mapping[Kind, Callable[[OrdinaryLife], Planted]]] = MappingProxyType(
    {
        Kind.EPOCH_BACKWARDS: epoch_backwards,
        Kind.TWO_LEADERS: two_leaders,
        Kind.LEADER_NOT_IN_ISR: leader_not_in_isr,
        Kind.ISR_OUTSIDE_REPLICAS: isr_outside_replicas,
        Kind.PARTITION_EPOCH_JUMP: partition_epoch_jump,
        Kind.BROKER_EPOCH_NOT_OFFSET: broker_epoch_not_offset,
        Kind.FENCED_LEADS: fenced_leads,
    }
)
"""The function of each wrong record, to be called in its own calm time."""
