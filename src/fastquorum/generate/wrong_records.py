"""Records that no controller writes: each breaks one invariant of the log, in all replicas, and what follows is sound.

Each is written past the controller's decisions, into its log and its image, and put right seconds later by the real
controller where that is how such a thing ends. What a batch in between leaves standing is wrong only in the one way.
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
from fastquorum.generate.life import SESSION_US, Life
from fastquorum.generate.planted import Planted, begun, ended
from fastquorum.raft.messages import leader_change
from fastquorum.wire.message import Message
from fastquorum.wire.records.brokers import RegisterBrokerRecord
from fastquorum.wire.records.topics import PartitionChangeRecord

EPOCH_JUMP: Final = 5
WRONG_BROKER_EPOCH: Final = 3
"""So much above its offset."""
REPAIR_US: Final = 5 * SECOND


def _whole(life: Life) -> PartitionKey:
    key = life.pick_whole()
    assert key is not None, "in a calm time partitions are whole"
    return key


def _planted(life: Life, kind: Kind, key: PartitionKey) -> Planted:
    planted = begun(life.lead, kind)
    planted.name(life.lead, key)
    return planted


def leader_not_in_isr(life: Life) -> Planted:
    """A follower leads, and is not in the ISR."""
    key = _whole(life)
    planted, partition = _planted(life, Kind.LEADER_NOT_IN_ISR, key), life.herd.partition(key)
    planted.broker = leader = partition.replicas[-1]
    isr = [each for each in partition.isr if each != leader]
    wrong = PartitionChangeRecord(partition_id=key.partition_id, topic_id=key.topic_id, leader=leader, isr=isr)
    life.lead.append([wrong])
    ended(life.lead, planted)
    life.calendar.after(REPAIR_US, lambda: life.herd.propose(leader, {key: partition.isr}))
    return planted


def isr_outside_replicas(life: Life) -> Planted:
    """One more is in the ISR, who holds no replica."""
    key = _whole(life)
    planted, partition = _planted(life, Kind.ISR_OUTSIDE_REPLICAS, key), life.herd.partition(key)
    planted.broker = next(each for each in life.herd.ids if each not in partition.replicas)
    isr = [*partition.isr, planted.broker]
    life.lead.append([PartitionChangeRecord(partition_id=key.partition_id, topic_id=key.topic_id, isr=isr)])
    ended(life.lead, planted)
    life.calendar.after(REPAIR_US, lambda: life.herd.propose(partition.leader, {key: partition.isr}))
    return planted


def partition_epoch_jump(life: Life) -> Planted:
    """The partition as it is, said once more, with an epoch far above."""
    key = _whole(life)
    planted, state = _planted(life, Kind.PARTITION_EPOCH_JUMP, key), life.lead.state
    partition = life.herd.partition(key)
    later = partition._replace(partition_epoch=partition.partition_epoch + EPOCH_JUMP)
    record = partition_record(
        key.topic_id, key.partition_id, later, state.level, with_elr=state.image.features.is_elr_enabled
    )
    assert record_version(record, state.level) == state.level.partition_version
    life.lead.append([record])
    ended(life.lead, planted)
    return planted


def broker_epoch_not_offset(life: Life) -> Planted:
    """A broker is restarted, and its registration has another epoch than the record's offset."""
    planted = begun(life.lead, Kind.BROKER_EPOCH_NOT_OFFSET)
    planted.broker = broker_id = life.prng.pick(life.herd.ids)

    def tamper(records: Sequence[Message]) -> Sequence[Message]:
        registration = records[-1]
        assert isinstance(registration, RegisterBrokerRecord), registration
        planted.offset = life.lead.end_offset + len(records) - 1
        planted.end_offset, planted.epoch = planted.offset + 1, life.lead.epoch
        planted.time_ms = planted.end_ms = life.lead.now_ms
        registration.broker_epoch = planted.offset + WRONG_BROKER_EPOCH
        return records

    life.restart(broker_id, 2 * MINUTE, is_crash=False, before_return=lambda: life.lead.tamper_with_next(tamper))
    return planted


def fenced_leads(life: Life) -> Planted:
    """A broker dies and is fenced, and one partition that it leads has another leader only a second later."""
    key = _whole(life)
    planted, broker_id = _planted(life, Kind.FENCED_LEADS, key), life.herd.partition(key).leader
    planted.broker = broker_id
    left: list[Message] = []

    def tamper(records: Sequence[Message]) -> Sequence[Message]:
        kept = [each for each in records if not _elects(each, key)]
        left.extend(each for each in records if _elects(each, key))
        assert len(left) == 1, f"{broker_id} led {key}"
        planted.offset, planted.epoch = life.lead.end_offset + len(kept) - 1, life.lead.epoch
        planted.time_ms = life.lead.now_ms
        return kept

    def repair() -> None:
        planted.end_offset, planted.end_ms = life.lead.end_offset, life.lead.now_ms
        life.lead.append(left)

    life.calendar.after(SESSION_US + SECOND, lambda: life.lead.tamper_with_next(tamper))  # just before the fencing
    life.restart(broker_id, 2 * MINUTE, is_crash=True)
    life.calendar.after(SESSION_US + 2 * SECOND, repair)
    return planted


def _elects(record: Message, key: PartitionKey) -> bool:
    if not isinstance(record, PartitionChangeRecord) or record.leader == LEADER_UNCHANGED:
        return False
    return (record.topic_id, record.partition_id) == key


def two_leaders(life: Life) -> Planted:
    """An epoch has begun, and is said to have another leader seconds later. (Of one that began long ago the log may
    not say any more who led it.)"""
    lead, planted = life.lead, begun(life.lead, Kind.TWO_LEADERS)
    life.change_leader()

    def contradict() -> None:
        other = next((each for each in lead.voters.ids if each != lead.leader_id), lead.leader_id + 1)
        granting = [other, *(each for each in lead.voters.ids if each != other)][: lead.voters.majority]
        planted.offset, planted.epoch, planted.time_ms = lead.end_offset, lead.epoch, lead.now_ms
        lead.append_control([leader_change(other, lead.voters, granting)])
        ended(lead, planted)

    life.calendar.after(REPAIR_US, contradict)
    return planted


def epoch_backwards(life: Life) -> Planted:
    """A no-op, whose batch is given an earlier epoch when the log is closed: that is under no checksum."""
    planted = begun(life.lead, Kind.EPOCH_BACKWARDS)
    planted.epoch = life.lead.epoch - 1
    life.lead.no_op()
    ended(life.lead, planted)
    return planted


PLANTS: Final[Mapping[Kind, Callable[[Life], Planted]]] = MappingProxyType(
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
"""Each is to be called in the calm time of its own."""
