"""Logs for `audit-invariants`: real bytes on a real disk, made by the wire encoders, true or with one thing wrong."""

from pathlib import Path
from typing import Any

from fastquorum.controller.image.fold import Fold
from fastquorum.kernels import Attribute, Record, load
from fastquorum.raft.election import ElectionState
from fastquorum.storage.images import snapshot_batches
from fastquorum.storage.kafka_state import encode_kafka_state
from fastquorum.storage.log.checkpoint import CheckpointTimes
from fastquorum.storage.names import KAFKA_STATE, LOG_DIRECTORY, checkpoint_name, segment_name
from fastquorum.types import OffsetAndEpoch, Uuid, VoterSet
from fastquorum.wire.message import Message
from fastquorum.wire.records.brokers import (
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from fastquorum.wire.records.cluster import FeatureLevelRecord, NoOpRecord
from fastquorum.wire.records.control import encode_control_record
from fastquorum.wire.records.control_values import LeaderChangeMessage
from fastquorum.wire.records.metadata import encode_metadata_record
from fastquorum.wire.records.topics import PartitionChangeRecord, PartitionRecord, RemoveTopicRecord, TopicRecord

KERNELS = load("native")
LEVEL = 30
_EPOCH_LAST = 99
"""At least that of any of these logs."""
_VERSIONS = {PartitionRecord: 2, PartitionChangeRecord: 2, RegisterBrokerRecord: 4, BrokerRegistrationChangeRecord: 3}


def uuid(number: int) -> Uuid:
    return Uuid((1000 + number).to_bytes(16, "big"))


TOPIC = uuid(1)


class Log:
    """One log as it grows: each call is one batch, a second after the one before."""

    def __init__(self, *, node_id: int = 1, cluster_id: str = "c") -> None:
        self.node_id, self.cluster_id = node_id, cluster_id
        self.epoch = 0
        self.fold = Fold()
        self._batches: list[tuple[int, bytes]] = []
        self._snapshots: dict[str, bytes] = {}
        self._now_ms = 1_000_000

    @property
    def next_offset(self) -> int:
        return self.fold.next_offset

    def leads(self, leader: int, epoch: int) -> "Log":
        key, value = encode_control_record(LeaderChangeMessage(leader_id=leader))
        self.epoch = epoch
        offset = self.next_offset
        batch = KERNELS.encode_records(
            [Record(value, key)],
            base_offset=offset,
            leader_epoch=epoch,
            timestamp_ms=self._tick(),
            attributes=Attribute.CONTROL,
        )
        self._batches.append((offset, batch))
        self.fold.skip(offset + 1, epoch, self._now_ms)
        return self

    def add(self, *messages: Message, folds: bool = True) -> "Log":
        """`folds`: it fits; else only the bytes are written."""
        offset = self.next_offset
        values = [encode_metadata_record(each, _VERSIONS.get(type(each), 0)) for each in messages]
        batch = KERNELS.encode_values(values, base_offset=offset, leader_epoch=self.epoch, timestamp_ms=self._tick())
        self._batches.append((offset, batch))
        for at, message in enumerate(messages, offset):
            if folds:
                self.fold.add(at, message, self.epoch, self._now_ms)
            else:
                self.fold.skip(at + 1, self.epoch, self._now_ms)
        return self

    def begun(self) -> "Log":
        """With a leader, a metadata.version and brokers 1 to 3, active; a topic t of one partition, led by 1."""
        self.leads(1, 1).add(FeatureLevelRecord(name="metadata.version", feature_level=LEVEL))
        for broker_id in (1, 2, 3):
            self.add(registration(broker_id, self.next_offset))
            self.add(change_of(broker_id, self.next_offset - 1, fenced=-1))
        return self.add(TopicRecord(name="t", topic_id=TOPIC), partition(0, [1, 2, 3]))

    def snapshot(self, image: Any = None, epoch: int | None = None) -> "Log":
        """Add a snapshot of all there is, or of something else that passes for it."""
        place = self.fold.place if epoch is None else self.fold.place._replace(epoch=epoch)
        image = self.fold.image if image is None else image
        times = CheckpointTimes.at(self._now_ms)
        data = b"".join(snapshot_batches(KERNELS, image, place, times, 0, None))
        name = checkpoint_name(OffsetAndEpoch(place.end_offset, place.epoch))
        self._snapshots[name] = data
        return self

    def write(self, root: Path, *, roll_at: tuple[int, ...] = (), begin: int = 0, without: int | None = None) -> Path:
        """A data directory with segments from these offsets on, all from `begin`; one of them may be missing. Its
        node knows its epoch, and voted for nobody."""
        log = root / LOG_DIRECTORY
        log.mkdir(parents=True)
        owner = f"cluster.id={self.cluster_id}\nnode.id={self.node_id}\ndirectory.id={uuid(self.node_id)}\n"
        (root / "meta.properties").write_text(f"version=1\n{owner}")
        state = encode_kafka_state(ElectionState(_EPOCH_LAST), kraft_version=1, voters=VoterSet(()))
        (root / KAFKA_STATE).write_bytes(state)
        bases = sorted({begin, *roll_at})
        for at, base in enumerate(bases):
            end = bases[at + 1] if at + 1 < len(bases) else self.next_offset
            if base != without:
                data = b"".join(batch for offset, batch in self._batches if base <= offset < end)
                (log / segment_name(base)).write_bytes(data)
        for name, data in self._snapshots.items():
            (log / name).write_bytes(data)
        return root

    def _tick(self) -> int:
        self._now_ms += 1000
        return self._now_ms


# --- records ----------------------------------------------------------------------------------------------------------


def registration(broker_id: int, epoch: int, incarnation: int = 1, **more: Any) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=broker_id, broker_epoch=epoch, incarnation_id=uuid(100 * incarnation + broker_id), **more
    )


def change_of(broker_id: int, epoch: int, *, fenced: int = 0, shutting: int = 0) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(
        broker_id=broker_id, broker_epoch=epoch, fenced=fenced, in_controlled_shutdown=shutting
    )


def gone(broker_id: int, epoch: int) -> UnregisterBrokerRecord:
    return UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=epoch)


def partition(number: int, replicas: list[int], **more: Any) -> PartitionRecord:
    """Led by its first replica, all in sync, as it is created."""
    fields = {
        "isr": replicas,
        "leader": replicas[0],
        "leader_epoch": 0,
        "partition_epoch": 0,
        "directories": [uuid(900 + each) for each in replicas],
    }
    return PartitionRecord(partition_id=number, topic_id=TOPIC, replicas=replicas, **{**fields, **more})


def change(number: int = 0, **fields: Any) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=number, topic_id=TOPIC, **fields)


def removal() -> RemoveTopicRecord:
    return RemoveTopicRecord(topic_id=TOPIC)


def noop() -> NoOpRecord:
    return NoOpRecord()
