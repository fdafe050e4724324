"""Snapshot files (`*.checkpoint`): reading any, writing the two that formatting makes.

A checkpoint is v2 batches with offsets of its own, from 0: a control batch with SNAPSHOT_HEADER (at kraft.version 1
also KRAFT_VERSION and KRAFT_VOTERS), data batches, a control batch with SNAPSHOT_FOOTER. Source: KIP-630, KIP-853.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fastquorum.errors import CorruptionError
from fastquorum.kernels import Attribute, BatchFault, Kernels, Record
from fastquorum.raft.messages import kraft_version_record, voters_record
from fastquorum.storage.ports import Disk
from fastquorum.types import Endpoint, Epoch, Offset, ReplicaKey, Voter, VoterSet
from fastquorum.wire import Message
from fastquorum.wire.control_messages import (
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from fastquorum.wire.control_records import decode_control_record, encode_control_record


class CheckpointTimes(NamedTuple):
    """The wall-clock times in a checkpoint. Kafka's three differ by a few milliseconds; ours are one."""

    header_ms: int
    """Of the first batch."""
    data_ms: int
    footer_ms: int
    last_contained_ms: int = 0
    """Timestamp of the last record that the snapshot covers; 0 if it covers none."""

    @classmethod
    def at(cls, now_ms: int) -> "CheckpointTimes":
        return cls(now_ms, now_ms, now_ms)


class CheckpointState(NamedTuple):
    """What a checkpoint says of the quorum itself."""

    last_contained_ms: int
    kraft_version: int
    """0 if it has no KRAFT_VERSION record."""
    voters: VoterSet | None


def encode_checkpoint(
    kernels: Kernels,
    times: CheckpointTimes,
    *,
    epoch: Epoch = 0,
    kraft_version: int = 0,
    voters: VoterSet | None = None,
    values: Sequence[bytes] = (),
) -> bytes:
    """A whole checkpoint file, byte for byte as Kafka writes one with the same times."""
    head: list[Message] = [SnapshotHeaderRecord(last_contained_log_timestamp=times.last_contained_ms)]
    if voters is not None:
        head += [kraft_version_record(kraft_version), voters_record(voters)]
    batches = [_control_batch(kernels, head, 0, epoch, times.header_ms)]
    offset = len(head)
    if values:
        batches.append(
            kernels.encode_values(values, base_offset=offset, leader_epoch=epoch, timestamp_ms=times.data_ms)
        )
        offset += len(values)
    batches.append(_control_batch(kernels, [SnapshotFooterRecord()], offset, epoch, times.footer_ms))
    return b"".join(batches)


def _control_batch(
    kernels: Kernels, messages: Sequence[Message], base_offset: Offset, epoch: Epoch, timestamp_ms: int
) -> bytes:
    records = [Record(value, key) for key, value in map(encode_control_record, messages)]
    return kernels.encode_records(
        records, base_offset=base_offset, leader_epoch=epoch, timestamp_ms=timestamp_ms, attributes=Attribute.CONTROL
    )


def control_messages(kernels: Kernels, data: bytes, path: str = "") -> Iterator[tuple[Offset, Message]]:
    """The control records of a whole file of batches, checked. CorruptionError if a byte of it is damaged."""
    scan = kernels.scan(data)
    if scan.fault is not None:
        raise CorruptionError(*scan.fault, path=path)
    for info in kernels.batch_headers(data, verify_crc=False):
        if not info.is_control:
            continue
        for record in kernels.decode_records(data, info.position, verify_crc=False):
            if record.key is None or record.value is None:
                raise CorruptionError(BatchFault.RECORD, info.position, info.base_offset, path=path)
            yield record.offset, decode_control_record(record.key, record.value)[1]


def read_checkpoint(disk: Disk, kernels: Kernels, name: str) -> CheckpointState:
    """Read a finished checkpoint. CorruptionError, also if it has no header or does not end with its footer."""
    path = f"{disk.root}/{name}"
    messages = [message for _, message in control_messages(kernels, disk.read_file(name), path)]
    if len(messages) < 2 or not isinstance(messages[0], SnapshotHeaderRecord):
        raise CorruptionError("checkpoint_header", 0, path=path)
    if not isinstance(messages[-1], SnapshotFooterRecord):
        raise CorruptionError("checkpoint_footer", path=path)
    state = CheckpointState(messages[0].last_contained_log_timestamp, 0, None)
    for message in messages:
        if isinstance(message, KRaftVersionRecord):
            state = state._replace(kraft_version=message.kraft_version)
        elif isinstance(message, VotersRecord):
            state = state._replace(voters=voter_set(message))
    return state


def voter_set(record: VotersRecord) -> VoterSet:
    """The voter set that a KRAFT_VOTERS record describes."""
    return VoterSet(
        [
            Voter(
                ReplicaKey(each.voter_id, each.voter_directory_id),
                tuple(Endpoint(end.name, end.host, end.port) for end in each.endpoints),
                each.kraft_version_feature.min_supported_version,
                each.kraft_version_feature.max_supported_version,
            )
            for each in record.voters
        ]
    )
