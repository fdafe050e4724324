"""Decisions on requests: records to append, and the answer, which waits for their commit."""

from dataclasses import dataclass, field

from fastquorum.controller.image.features import Level
from fastquorum.wire.message import Message
from fastquorum.wire.records.brokers import BrokerRegistrationChangeRecord, RegisterBrokerRecord
from fastquorum.wire.records.topics import PartitionChangeRecord, PartitionRecord


@dataclass(slots=True)
class Decision:
    """A decision: records in order, and the answer. Without records, the answer waits for earlier decisions only."""

    answer: Message
    records: list[Message] = field(default_factory=list)
    is_atomic: bool = True
    """Whether all records must be in one batch. Otherwise many go into several batches: if only the first ones get into
    the log, they are valid, and a repeated request writes the rest."""
    kraft_version: int | None = None
    """The version to which the quorum raises kraft.version, behind the records; None: it stays as it is."""


def record_version(record: Message, level: Level) -> int:
    """Return the version in which Kafka writes a record at a level of metadata.version."""
    match record:
        case PartitionRecord() | PartitionChangeRecord():  # first, as most are these
            return level.partition_version
        case RegisterBrokerRecord():
            return level.register_broker_version
        case BrokerRegistrationChangeRecord():
            if record.cordoned_log_dirs is not None:
                return 3
            return 2 if record.log_dirs else int(record.in_controlled_shutdown != 0)
        case _:
            return 0
