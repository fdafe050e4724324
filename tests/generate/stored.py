"""A small reader of what was generated, of its own: files, batch headers and records by hand, and a dumb judge of what
they say. It shares with the product only the declarations of metadata and control records."""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import crc32c

from fastquorum.wire.message import Message
from fastquorum.wire.records.brokers import (
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
)
from fastquorum.wire.records.control import decode_control_record
from fastquorum.wire.records.control_values import LeaderChangeMessage
from fastquorum.wire.records.metadata import decode_metadata_record
from fastquorum.wire.records.topics import PartitionChangeRecord, PartitionRecord, RemoveTopicRecord

HEADER = struct.Struct(">qiibIhiqqqhii")
LOG = "__cluster_metadata-0"
SNAPSHOTS_FROM = 1
"""Checkpoint (0, 0) holds no record."""


class Batch(NamedTuple):
    base_offset: int
    last_offset: int
    epoch: int
    timestamp_ms: int
    is_control: bool
    is_whole: bool
    data: bytes
    position: int

    def records(self) -> Iterator[tuple[int, Message]]:
        """Offset and what it says."""
        for offset, key, value in _records(self):
            if self.is_control:
                yield offset, decode_control_record(key, value)[1]
            else:
                yield offset, decode_metadata_record(value)[0]


def batches(data: bytes) -> Iterator[Batch]:
    """Up to the first that is cut off; damaged ones are told."""
    at = 0
    while len(data) - at >= HEADER.size:
        base, length, epoch, _, crc, attributes, delta, _, latest, *_ = HEADER.unpack_from(data, at)
        end = at + 12 + length
        if end > len(data):
            return
        whole = crc32c.crc32c(data[at + 21 : end]) == crc
        yield Batch(base, base + delta, epoch, latest, bool(attributes & 0x20), whole, data[at:end], at)
        at = end


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at


def _records(batch: Batch) -> Iterator[tuple[int, bytes, bytes]]:
    data, at = batch.data, HEADER.size
    while at < len(data):
        length, at = _varint(data, at)
        end = at + length
        _, inner = _varint(data, at + 1)
        delta, inner = _varint(data, inner)
        parts = []
        for _ in range(2):
            size, inner = _varint(data, inner)
            parts.append(data[inner : inner + max(size, 0)])
            inner += max(size, 0)
        yield batch.base_offset + delta, parts[0], parts[1]
        at = end


def segments(replica: Path) -> list[Path]:
    return sorted((replica / LOG).glob("*.log"))


def log_batches(replica: Path) -> list[Batch]:
    return [batch for path in segments(replica) for batch in batches(path.read_bytes())]


def checkpoints(replica: Path) -> dict[int, Path]:
    """By the offset where they end."""
    found = {int(path.name[:20]): path for path in sorted((replica / LOG).glob("*.checkpoint"))}
    return {offset: path for offset, path in found.items() if offset >= SNAPSHOTS_FROM}


class Violation(NamedTuple):
    offset: int
    kind: str
    about: Any


class World:
    """What the records say, batch by batch, and what of it cannot be."""

    def __init__(self) -> None:
        self.fenced: dict[int, bool] = {}
        self.partitions: dict[tuple[Any, int], dict[str, Any]] = {}
        self.leaders: dict[int, int] = {}
        self.violations: list[Violation] = []
        self.epoch = -1

    def load(self, checkpoint: Path) -> None:
        for batch in batches(checkpoint.read_bytes()):
            if not batch.is_control:
                for _, record in batch.records():
                    self._take(-1, record, -1)

    def take(self, batch: Batch) -> None:
        if batch.epoch < self.epoch:
            self._find(batch.base_offset, "epoch-backwards", None)
        self.epoch = max(batch.epoch, self.epoch)
        touched = set()
        for offset, record in batch.records():
            if isinstance(record, LeaderChangeMessage):
                if self.leaders.setdefault(batch.epoch, record.leader_id) != record.leader_id:
                    self._find(offset, "two-leaders", None)
            elif not batch.is_control:
                touched |= self._take(offset, record, batch.base_offset)
        for key in sorted(touched):
            self._judge(batch.last_offset, key)

    def _find(self, offset: int, kind: str, about: Any) -> None:
        self.violations.append(Violation(offset, kind, about))

    def _take(self, offset: int, record: Message, base_offset: int) -> set[tuple[Any, int]]:
        match record:
            case RegisterBrokerRecord():
                self.fenced[record.broker_id] = record.fenced
                # What its former life leaves behind comes first, in one batch, and the epoch is that batch's offset.
                if offset >= 0 and record.broker_epoch not in (offset, base_offset):
                    self._find(offset, "broker-epoch-not-offset", record.broker_id)
            case BrokerRegistrationChangeRecord():
                if record.fenced:
                    self.fenced[record.broker_id] = record.fenced > 0
                if record.fenced > 0:
                    return {key for key, each in self.partitions.items() if each["leader"] == record.broker_id}
            case PartitionRecord():
                key = record.topic_id, record.partition_id
                before = self.partitions.get(key)
                wanted = 0 if before is None else before["epoch"] + 1
                if offset >= 0 and record.partition_epoch != wanted:
                    self._find(offset, "partition-epoch-jump", key)
                self.partitions[key] = {
                    "replicas": set(record.replicas),
                    "isr": set(record.isr),
                    "leader": record.leader,
                    "epoch": record.partition_epoch,
                }
                return {key}
            case PartitionChangeRecord():
                key = record.topic_id, record.partition_id
                partition = self.partitions[key]
                partition["epoch"] += 1
                if record.replicas is not None:
                    partition["replicas"] = set(record.replicas)
                if record.isr is not None:
                    partition["isr"] = set(record.isr)
                if record.leader != -2:
                    partition["leader"] = record.leader
                return {key}
            case RemoveTopicRecord():
                self.partitions = {key: each for key, each in self.partitions.items() if key[0] != record.topic_id}
        return set()

    def _judge(self, offset: int, key: tuple[Any, int]) -> None:
        partition = self.partitions.get(key)
        if partition is None:
            return
        leader = partition["leader"]
        if leader >= 0 and leader not in partition["isr"]:
            self._find(offset, "leader-not-in-isr", key)
        if not partition["isr"] <= partition["replicas"]:
            self._find(offset, "isr-outside-replicas", key)
        if leader >= 0 and self.fenced[leader]:
            self._find(offset, "fenced-leads", key)


def judged(replica: Path) -> World:
    """The whole log of a replica, from the checkpoint that it begins behind."""
    found = log_batches(replica)
    world = World()
    first = min(checkpoints(replica))
    world.load(checkpoints(replica)[first])
    for batch in found:
        if batch.base_offset >= first:
            world.take(batch)
    return world


def image_of(records: World) -> dict[tuple[Any, int], tuple[Any, ...]]:
    """Comparable."""
    return {
        key: (frozenset(each["replicas"]), frozenset(each["isr"]), each["leader"], each["epoch"])
        for key, each in records.partitions.items()
    }


def wrong_checkpoints(replica: Path) -> list[int]:
    """Return the ends of checkpoints that differ from the image of the records before them."""
    ends = checkpoints(replica)
    world, wrong = World(), []
    world.load(ends[min(ends)])
    for batch in log_batches(replica):
        if batch.base_offset in ends and batch.base_offset > min(ends):
            held = World()
            held.load(ends[batch.base_offset])
            if image_of(held) != image_of(world) or held.fenced != world.fenced:
                wrong.append(batch.base_offset)
        if batch.base_offset >= min(ends):
            world.take(batch)
    return wrong
