"""What comes of a request: records to append, and the answer, which waits for their commit."""

from dataclasses import dataclass, field

from fastquorum.controller.image.features import Level
from fastquorum.wire.message import Message
from fastquorum.wire.records.brokers import BrokerRegistrationChangeRecord, RegisterBrokerRecord
from fastquorum.wire.records.topics import PartitionChangeRecord, PartitionRecord


@dataclass(slots=True)
class Decision:
    """Records in order; none: nothing changes, and the answer waits for nothing but what was decided before it."""

    answer: Message
    records: list[Message] = field(default_factory=list)
    is_atomic: bool = True
    """All in one batch, or refused. Else, if there are many, in several: should only the first of them get into the
    log, what they say is true, and whoever asks again gets the rest."""
    kraft_version: int | None = None
    """To be raised to this one by the quorum, behind the records; None: it stays as it is."""


def record_version(record: Message, level: Level) -> int:
    """The version in which Kafka writes a record at a level of metadata.version."""
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
