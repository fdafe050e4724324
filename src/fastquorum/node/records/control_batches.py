"""Control batches between raft/, which knows their meaning, and the log, which knows their bytes.

raft/ never sees record bytes; the replica encodes what raft/ orders and reads what concerns raft/ (voter sets,
kraft.version) out of what a leader sent. Source: KIP-595 (LeaderChange), KIP-853 (KRaftVersion, KRaftVoters), KIP-98
(control batches).
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fastquorum.errors import CorruptionError, WireError
from fastquorum.kernels import Attribute, BatchFault, Buffer, Kernels, Record, Scan
from fastquorum.raft.events import RecordSpan
from fastquorum.storage.log.log import Log
from fastquorum.storage.log.voter_sets import voter_set
from fastquorum.types import Epoch, Offset, VoterSet
from fastquorum.wire import Message
from fastquorum.wire.records.control import (
    CONTROL_MESSAGES,
    control_type,
    decode_control_record,
    encode_control_record,
)
from fastquorum.wire.records.control_values import KRaftVersionRecord, VotersRecord

VoterSets = tuple[tuple[Offset, VoterSet], ...]
KRaftVersions = tuple[tuple[Offset, int], ...]
RECOVERY_READ_BYTES = 4 * 1024 * 1024


class FetchedRecords(NamedTuple):
    """The good records of a Fetch response, and the control records among them."""

    data: bytes
    scan: Scan
    voter_sets: VoterSets
    kraft_versions: KRaftVersions

    def as_event(self, handle: int) -> RecordSpan:
        """What raft/ may see of it."""
        scan = self.scan
        return RecordSpan(
            handle,
            scan.first_offset,
            scan.next_offset,
            scan.first_epoch,
            scan.last_epoch,
            self.voter_sets,
            self.kraft_versions,
        )


def encode_batch(
    kernels: Kernels, messages: Sequence[Message], base_offset: Offset, epoch: Epoch, timestamp_ms: int
) -> bytes:
    """One control batch."""
    records = []
    for message in messages:
        key, value = encode_control_record(message)
        records.append(Record(value, key))
    return kernels.encode_records(
        records, base_offset=base_offset, leader_epoch=epoch, timestamp_ms=timestamp_ms, attributes=Attribute.CONTROL
    )


def read_span(
    kernels: Kernels, records: bytes, expected_offset: Offset, *, epoch_min: Epoch, epoch_max: Epoch
) -> FetchedRecords | None:
    """The good prefix that continues the log; None if there is none, to be fetched again by raft's will.

    Raises WireError if a good batch holds a control record that does not decode, or a voter set that is none.
    """
    scan = kernels.scan(records, expected_offset=expected_offset, epoch_min=epoch_min, epoch_max=epoch_max)
    if scan.batch_count == 0:
        return None
    data = records[: scan.valid_bytes]
    voter_sets, kraft_versions = _rafts(kernels, data) if scan.control_count else ((), ())
    return FetchedRecords(data, scan, voter_sets, kraft_versions)


def _rafts(kernels: Kernels, data: Buffer) -> tuple[VoterSets, KRaftVersions]:
    """What concerns raft/ among the control records of whole, good batches. Raises WireError."""
    voter_sets: list[tuple[Offset, VoterSet]] = []
    kraft_versions: list[tuple[Offset, int]] = []
    for offset, message in control_records(kernels, data):
        if isinstance(message, VotersRecord):
            voter_sets.append((offset, voter_set(message)))
        elif isinstance(message, KRaftVersionRecord):
            kraft_versions.append((offset, message.kraft_version))
    return tuple(voter_sets), tuple(kraft_versions)


def control_records(kernels: Kernels, data: Buffer) -> Iterator[tuple[Offset, Message]]:
    """Every control record in whole, good batches, with its offset. Raises WireError.

    Transaction markers (COMMIT, ABORT) are none of raft's.
    """
    for info in kernels.batch_headers(data, verify_crc=False):
        if not info.is_control:
            continue
        for record in kernels.decode_records(data, info.position, verify_crc=False):
            if record.key is None or record.value is None:
                raise WireError("a control record without key or value", position=info.position)
            if control_type(record.key) in CONTROL_MESSAGES:
                yield record.offset, decode_control_record(record.key, record.value)[1]


def recovered(kernels: Kernels, log: Log) -> tuple[VoterSets, KRaftVersions]:
    """The voter sets and kraft.versions that a recovered log holds, by offset; what producers have in it is taken in on
    the way. Raises CorruptionError.

    What recovery saw is not read again: that would take longer than the recovery.
    """
    control, offset = log.recovered_control()
    voter_sets: VoterSets = ()
    kraft_versions: KRaftVersions = ()
    for batch in control:
        try:
            more_sets, more_versions = _rafts(kernels, batch)
        except WireError as error:
            (info,) = kernels.batch_headers(batch, verify_crc=False)
            raise CorruptionError(BatchFault.RECORD, offset=info.base_offset, detail=str(error)) from error
        voter_sets += more_sets
        kraft_versions += more_versions
    while offset < log.end_offset:
        data = log.read(offset, RECOVERY_READ_BYTES)
        try:
            span = read_span(kernels, data, offset, epoch_min=0, epoch_max=2**31 - 1)
        except WireError as error:
            raise CorruptionError(BatchFault.RECORD, offset=offset, detail=str(error)) from error
        if span is None:
            raise CorruptionError(BatchFault.OFFSET, offset=offset)
        voter_sets += span.voter_sets
        kraft_versions += span.kraft_versions
        log.producers.read(span.data, offset, span.scan.next_offset)
        offset = span.scan.next_offset
    return voter_sets, kraft_versions


def cut_at(kernels: Kernels, data: bytes, end_offset: Offset) -> bytes:
    """The whole batches that end at or below end_offset: what a reader of committed records may see."""
    if not data:
        return data
    scan = kernels.scan(data, verify_crc=False)
    if scan.next_offset <= end_offset:
        return data
    end = 0
    for info in kernels.batch_headers(data, verify_crc=False):
        if info.last_offset >= end_offset:
            break
        end = info.position + info.size_bytes
    return data[:end]
