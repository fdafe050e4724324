"""Snapshot files (`*.checkpoint`): reading and writing them.

A checkpoint is v2 batches with offsets of its own, from 0: a control batch with SNAPSHOT_HEADER (at kraft.version 1
also KRAFT_VERSION and KRAFT_VOTERS), data batches, a control batch with SNAPSHOT_FOOTER. Source: KIP-630, KIP-853.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from fastquorum.errors import CorruptionError, WireError
from fastquorum.kernels import (
    BATCH_BYTES_MAX,
    BATCH_HEADER_BYTES,
    Attribute,
    BatchFault,
    Buffer,
    Kernels,
    Record,
    Scan,
    SegmentFile,
)
from fastquorum.raft.messages import kraft_version_record, voters_record
from fastquorum.storage import names
from fastquorum.storage.log.scanning import EPOCH_MAX, SegmentScan, scan_segment
from fastquorum.storage.log.voter_sets import voter_set
from fastquorum.storage.ports import Disk
from fastquorum.types import Epoch, Offset, VoterSet
from fastquorum.wire import Message
from fastquorum.wire.records.control import decode_control_record, encode_control_record
from fastquorum.wire.records.control_values import (
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)

_RECORD_BYTES_MAX: Final = 20
"""What a record takes beside its value: five varints and two bytes."""
_HEADER_BATCH_BYTES: Final = 64 * 1024
"""The header's batch is seldom larger: at kraft.version 1 it holds the voters, too."""


class CheckpointTimes(NamedTuple):
    """The wall-clock times in a checkpoint. Kafka's three differ by a few milliseconds; ours are one."""

    header_ms: int
    """The timestamp of the first batch, in milliseconds."""
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
    return b"".join(
        checkpoint_batches(kernels, times, epoch=epoch, kraft_version=kraft_version, voters=voters, values=values)
    )


def checkpoint_batches(
    kernels: Kernels,
    times: CheckpointTimes,
    *,
    epoch: Epoch = 0,
    kraft_version: int = 0,
    voters: VoterSet | None = None,
    values: Iterable[bytes] = (),
) -> Iterator[bytes]:
    """The same, batch by batch; values are taken as they are wanted, and a batch holds as many as go into 8 MiB."""
    head: list[Message] = [SnapshotHeaderRecord(last_contained_log_timestamp=times.last_contained_ms)]
    if voters is not None:
        head += [kraft_version_record(kraft_version), voters_record(voters)]
    yield _control_batch(kernels, head, 0, epoch, times.header_ms)
    offset = len(head)
    for group in _groups(values):
        yield kernels.encode_values(group, base_offset=offset, leader_epoch=epoch, timestamp_ms=times.data_ms)
        offset += len(group)
    yield _control_batch(kernels, [SnapshotFooterRecord()], offset, epoch, times.footer_ms)


def _groups(values: Iterable[bytes]) -> Iterator[list[bytes]]:
    group: list[bytes] = []
    size = BATCH_HEADER_BYTES
    for value in values:
        needed = len(value) + _RECORD_BYTES_MAX
        if group and size + needed > BATCH_BYTES_MAX:
            yield group
            group, size = [], BATCH_HEADER_BYTES
        group.append(value)
        size += needed
    if group:
        yield group


def _control_batch(
    kernels: Kernels, messages: Sequence[Message], base_offset: Offset, epoch: Epoch, timestamp_ms: int
) -> bytes:
    records = [Record(value, key) for key, value in map(encode_control_record, messages)]
    return kernels.encode_records(
        records, base_offset=base_offset, leader_epoch=epoch, timestamp_ms=timestamp_ms, attributes=Attribute.CONTROL
    )


class _ControlReader:
    """Takes in what the control records of a checkpoint say, as its batches pass by, and where they stand."""

    def __init__(self, kernels: Kernels, path: str) -> None:
        self.state = CheckpointState(0, 0, None)
        self.has_header = False
        """It has one, and that comes first."""
        self.footer_offset: Offset = -1
        self._kernels = kernels
        self._path = path

    def visit(self, batches: Buffer, scan: Scan) -> None:
        if not scan.control_count:
            return
        for info in self._kernels.batch_headers(batches, verify_crc=False):
            if info.is_control:
                try:
                    for record in self._kernels.decode_records(batches, info.position, verify_crc=False):
                        self._take(record)
                except (CorruptionError, WireError, ValueError) as error:
                    raise CorruptionError(
                        BatchFault.RECORD, offset=info.base_offset, path=self._path, detail=str(error)
                    ) from error

    def _take(self, record: Record) -> None:
        if record.key is None or record.value is None:
            raise WireError("a control record without key or value")
        match decode_control_record(record.key, record.value)[1]:
            case SnapshotHeaderRecord() as header:
                self.has_header = record.offset == 0  # a second one is no header, either
                self.state = self.state._replace(last_contained_ms=header.last_contained_log_timestamp)
            case SnapshotFooterRecord():
                if self.footer_offset >= 0:
                    raise WireError("a second footer")
                self.footer_offset = record.offset
            case KRaftVersionRecord() as version:
                self.state = self.state._replace(kraft_version=version.kraft_version)
            case VotersRecord() as voters:
                self.state = self.state._replace(voters=voter_set(voters))


def check_checkpoint(kernels: Kernels, file: SegmentFile, epoch: Epoch | None = None) -> CheckpointState:
    """Check every byte of a checkpoint, a window at a time; `epoch` is the one that all its batches must have.

    CorruptionError, also if it does not begin with its header and end with its footer; StorageFailed.
    """
    return scan_checkpoint(kernels, file, epoch)[0]


def scan_checkpoint(
    kernels: Kernels, file: SegmentFile, epoch: Epoch | None = None
) -> tuple[CheckpointState, SegmentScan]:
    """The same, and what there is in it."""
    end = file.size_bytes
    reader = _ControlReader(kernels, file.path)
    low, high = (0, EPOCH_MAX) if epoch is None else (epoch, epoch)
    scan = scan_segment(kernels, file, 0, end, expected_offset=0, epoch_min=low, epoch_max=high, visit=reader.visit)
    if scan.fault is not None:
        raise CorruptionError(*scan.fault, path=file.path)
    if not reader.has_header:
        raise CorruptionError("checkpoint_header", 0, path=file.path)
    if reader.footer_offset != scan.next_offset - 1:
        raise CorruptionError("checkpoint_footer", path=file.path)
    return reader.state, scan


def header_of(kernels: Kernels, file: SegmentFile) -> SnapshotHeaderRecord:
    """The first record of a checkpoint, which was checked when it was finished. CorruptionError."""
    data = file.read(0, min(_HEADER_BATCH_BYTES, file.size_bytes))
    scan = kernels.scan(data)
    if not scan.batch_count:
        data = file.read(0, min(BATCH_BYTES_MAX, file.size_bytes))
        scan = kernels.scan(data)
    try:
        first = next(iter(kernels.decode_records(data))) if scan.batch_count else None
        header = decode_control_record(first.key or b"", first.value or b"")[1] if first is not None else None
    except WireError:
        header = None
    if not isinstance(header, SnapshotHeaderRecord):
        raise CorruptionError("checkpoint_header", 0, path=file.path)
    return header


def data_values(disk: Disk, kernels: Kernels, name: str) -> tuple[bytes, ...]:
    """The records of a small checkpoint, in order, without the control records. CorruptionError."""
    data = disk.read_file(name)
    scan = kernels.scan(data)
    if scan.fault is not None:
        raise CorruptionError(*scan.fault, path=f"{disk.root}/{name}")
    found: list[bytes] = []
    for info in kernels.batch_headers(data, verify_crc=False):
        if not info.is_control:
            found += [value or b"" for value in kernels.decode_values(data, info.position)]
    return tuple(found)


def read_checkpoint(disk: Disk, kernels: Kernels, name: str) -> CheckpointState:
    """Read a finished checkpoint. CorruptionError if a byte of it is damaged."""
    snapshot = names.parse_checkpoint(name.rpartition("/")[2])
    file = disk.open(name, "read")
    try:
        return check_checkpoint(kernels, file, None if snapshot is None else snapshot.epoch)
    finally:
        file.close()
