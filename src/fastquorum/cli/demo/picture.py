"""A metadata log folded into what it says about the cluster that wrote it. Source: KIP-631 (the records)."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from fastquorum.types import NodeId, Uuid
from fastquorum.wire.records.brokers import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from fastquorum.wire.records.metadata import decode_metadata_record
from fastquorum.wire.records.topics import PartitionChangeRecord, PartitionRecord, RemoveTopicRecord, TopicRecord

_UNCHANGED: Final = -2
"""PartitionChangeRecord's leader where that stays as it is."""
_FENCED: Final = {-1: False, 1: True}
"""BrokerRegistrationChangeRecord's `fenced`; 0 is no change."""


@dataclass(slots=True)
class Picture:
    """Topics by id, the leader of each partition, and which brokers there are and whether they are fenced."""

    topics: dict[Uuid, str] = field(default_factory=dict)
    leaders: dict[tuple[Uuid, int], NodeId] = field(default_factory=dict)
    fenced: dict[NodeId, bool] = field(default_factory=dict)

    def apply(self, value: bytes) -> None:
        """Replay one record. WireError if it is none."""
        record, _ = decode_metadata_record(value)
        match record:
            case TopicRecord():
                self.topics[record.topic_id] = record.name
            case RemoveTopicRecord():
                self.topics.pop(record.topic_id, None)
                self.leaders = {key: leader for key, leader in self.leaders.items() if key[0] != record.topic_id}
            case PartitionRecord():
                self.leaders[record.topic_id, record.partition_id] = record.leader
            case PartitionChangeRecord() if record.leader != _UNCHANGED:
                self.leaders[record.topic_id, record.partition_id] = record.leader
            case RegisterBrokerRecord():
                self.fenced[record.broker_id] = record.fenced
            case UnregisterBrokerRecord():
                self.fenced.pop(record.broker_id, None)
            case FenceBrokerRecord():
                self.fenced[record.id] = True
            case UnfenceBrokerRecord():
                self.fenced[record.id] = False
            case BrokerRegistrationChangeRecord() if record.fenced in _FENCED:
                self.fenced[record.broker_id] = _FENCED[record.fenced]

    @classmethod
    def of(cls, values: Iterable[bytes]) -> "Picture":
        picture = cls()
        for value in values:
            picture.apply(value)
        return picture

    def led_by(self) -> Counter[NodeId]:
        """How many partitions each broker leads."""
        return Counter(self.leaders.values())

    def as_json(self) -> dict[str, object]:
        return {"topics": len(self.topics), "partitions": len(self.leaders), "brokers": len(self.fenced)}
