"""One file of batches, printed byte for byte as `kafka-dump-log` of Apache Kafka 4.3.0 prints it.

Metadata records as with --cluster-metadata-decoder, others as with --print-data-log. One deviation, on purpose: Kafka's
tool dies at the zero tail of a segment in use, this one stops there. Source: Kafka `DumpLogSegments`.
"""

import posixpath
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

from fastquorum.cli.log.stored import Leftover, read_batches
from fastquorum.cli.terminal.json_text import jackson_text
from fastquorum.errors import CorruptionError, FastQuorumError, UsageError, WireError
from fastquorum.kernels import Attribute, BatchFault, BatchInfo, Compression, Kernels, Record
from fastquorum.storage.names import BOOTSTRAP_CHECKPOINT, parse_checkpoint
from fastquorum.wire import to_json
from fastquorum.wire.codec.codec import decode_prefix
from fastquorum.wire.codec.varint import Malformed, read_uvarint
from fastquorum.wire.records.control import CONTROL_MESSAGES, ControlRecordType
from fastquorum.wire.records.metadata import FRAME_VERSION, METADATA_RECORDS, record_type_name

_INT_MAX: Final = 2**31 - 1
_SHORT_MAX: Final = 2**15 - 1
_LOOK_BYTES: Final = 17
"""Up to and including magic: with fewer bytes left Kafka does not look for a batch, not even to find zeros."""
_CONTROL_TITLES: Final = {
    ControlRecordType.LEADER_CHANGE: "LeaderChange: ",
    ControlRecordType.SNAPSHOT_HEADER: "SnapshotHeader ",
    ControlRecordType.SNAPSHOT_FOOTER: "SnapshotFooter ",
    ControlRecordType.KRAFT_VERSION: "KRaftVersion ",
    ControlRecordType.KRAFT_VOTERS: "KRaftVoters ",
}

Print = Callable[[str], None]


def dump_file(path: str, kernels: Kernels, *, as_metadata: bool, out: Print) -> None:
    """Print one `.log` or `.checkpoint` file, line by line.

    Raises CorruptionError where Kafka's tool gives up too, after everything before it was printed.
    """
    name = path.rstrip("/").rpartition("/")[2]
    heading = _heading(name, path)
    out(f"Dumping {re.sub('/+', '/', path)}")
    out(heading)
    gaps: list[tuple[int, int]] = []
    last_offset = -1
    for found in read_batches(path, kernels):
        if isinstance(found, Leftover):
            if not found.is_zero or found.size_bytes < _LOOK_BYTES:
                out(f"Found {found.size_bytes} invalid bytes at the end of {name}")
            break
        info, data = found
        out(_batch_line(info))
        for record in _records(kernels, info, data, path):
            if record.offset != last_offset + 1:
                gaps.append((last_offset, record.offset))
            last_offset = record.offset
            out(_record_line(info, record, as_metadata))
    if gaps:
        print(f"Non-consecutive offsets in {posixpath.abspath(path)}", file=sys.stderr)
        for before, after in sorted(dict(gaps).items()):
            print(f"  {before} is followed by {after}", file=sys.stderr)


def _heading(name: str, path: str) -> str:
    stem, _, suffix = name.rpartition(".")
    first = name.split(".")[0]
    if suffix == "log" and first.isdecimal():
        return f"Log starting offset: {int(first)}"
    if name == BOOTSTRAP_CHECKPOINT:
        return "KRaft bootstrap snapshot"
    snapshot = parse_checkpoint(name)
    if snapshot is not None and stem:
        return f"Snapshot end offset: {snapshot.offset}, epoch: {snapshot.epoch}"
    raise UsageError(
        f"{path}: is not named like a segment or checkpoint",
        "segments are 20 digits and .log, checkpoints 20 digits, -, 10 digits and .checkpoint; --format json reads any",
    )


def _records(kernels: Kernels, info: BatchInfo, data: bytes, path: str) -> Iterator[Record]:
    try:
        yield from kernels.decode_records(data, verify_crc=False)
    except CorruptionError as error:
        raise CorruptionError(error.reason, info.position, info.base_offset, path=path) from error


def _batch_line(info: BatchInfo) -> str:
    is_idempotent = info.base_sequence != -1
    last_sequence = _sequence(info.base_sequence, info.last_offset - info.base_offset) if is_idempotent else -1
    horizon = info.attributes & Attribute.DELETE_HORIZON
    return (
        f"baseOffset: {info.base_offset} lastOffset: {info.last_offset} count: {info.records_count} "
        f"baseSequence: {info.base_sequence} lastSequence: {last_sequence} producerId: {info.producer_id} "
        f"producerEpoch: {info.producer_epoch} partitionLeaderEpoch: {info.leader_epoch} "
        f"isTransactional: {_java(info.is_transactional)} isControl: {_java(info.is_control)} "
        f"deleteHorizonMs: {f'OptionalLong[{info.base_timestamp_ms}]' if horizon else 'OptionalLong.empty'} "
        f"position: {info.position} {_timestamp_type(info)}: {info.max_timestamp_ms} size: {info.size_bytes} "
        f"magic: {info.magic} compresscodec: {Compression(info.compression).name.lower()} crc: {info.crc} "
        f"isvalid: {_java(bool(info.crc_valid))}"
    )


def _record_line(info: BatchInfo, record: Record, as_metadata: bool) -> str:
    sequence = -1 if info.base_sequence == -1 else _sequence(info.base_sequence, record.offset - info.base_offset)
    line = (
        f"| offset: {record.offset} {_timestamp_type(info)}: {record.timestamp_ms} keySize: {_size(record.key)} "
        f"valueSize: {_size(record.value)} sequence: {sequence} "
        f"headerKeys: [{','.join(header.key for header in record.headers)}]"
    )
    if info.is_control:
        return line + _control(info, record)
    if as_metadata:
        return f"{line} payload: {_metadata(record)}"
    if record.key is not None:
        line += f" key: {record.key.decode('utf-8', 'replace')}"
    if record.value is not None:
        line += f" payload: {record.value.decode('utf-8', 'replace')}"
    return line


def _control(info: BatchInfo, record: Record) -> str:
    key, value = record.key or b"", record.value or b""
    number = int.from_bytes(key[2:4], "big", signed=True)
    try:
        kind = ControlRecordType(number)
    except ValueError:
        return f" controlType: UNKNOWN({number})"
    message_type = CONTROL_MESSAGES.get(kind)
    if message_type is None:
        return f" endTxnMarker: {kind.name} coordinatorEpoch: {int.from_bytes(value[2:6], 'big', signed=True)}"
    try:
        message, _ = decode_prefix(message_type, 0, value)
        version: Any = getattr(message, "version", 0)
        return f" {_CONTROL_TITLES[kind]}{jackson_text(to_json(message, version))}"
    except WireError as error:
        raise CorruptionError(BatchFault.RECORD, info.position, record.offset) from error


def _metadata(record: Record) -> str:
    """The record as JSON, or what Kafka says of one that it cannot read."""
    try:
        value = record.value or b""
        frame_version, position = _short(value, 0, "frame version")
        if frame_version == 0:
            raise _Unreadable(
                "Could not deserialize metadata record with frame version 0. Note that upgrades from the preview "
                "release of KRaft in 2.8 to newer versions are not supported."
            )
        if frame_version != FRAME_VERSION:
            raise _Unreadable(
                f"Could not deserialize metadata record due to unknown frame version {frame_version}"
                f"(only frame version {FRAME_VERSION} is supported)"
            )
        key, position = _short(value, position, "type")
        version, position = _short(value, position, "version")
        message_type = METADATA_RECORDS.get(key)
        if message_type is None:
            raise _Unreadable(f"org.apache.kafka.common.errors.UnsupportedVersionException: Unknown metadata id {key}")
        try:
            message, end = decode_prefix(message_type, version, value, position)
        except FastQuorumError as error:
            raise _Unreadable(f"Failed to deserialize record with type {key}") from error
        if end != len(value):
            raise _Unreadable(f"Found {len(value) - end} byte(s) of garbage after {key}")
        shown = {"type": record_type_name(message_type), "version": version, "data": to_json(message, version)}
        return jackson_text(shown)
    except _Unreadable as error:
        return f"Error at {record.offset}, skipping. {error}"


class _Unreadable(Exception):
    """Kafka's decoder would say so."""


def _short(value: bytes, position: int, what: str) -> tuple[int, int]:
    try:
        number, position = read_uvarint(value, position)
    except (IndexError, Malformed) as error:
        raise _Unreadable(f"Error while reading {what}") from error
    number = _signed(number, 32)
    if number > _SHORT_MAX:
        raise _Unreadable(f"Value for {what} was too large.")
    return _signed(number, 16), position


def _signed(number: int, bits: int) -> int:
    """What Java's cast makes of it."""
    number &= (1 << bits) - 1
    return number - (1 << bits) if number >> (bits - 1) else number


def _sequence(base: int, delta: int) -> int:
    """Sequences wrap around to 0 behind the largest int32."""
    return delta - (_INT_MAX - base) - 1 if base > _INT_MAX - delta else base + delta


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _java(flag: bool) -> str:
    return "true" if flag else "false"


def _timestamp_type(info: BatchInfo) -> str:
    return "LogAppendTime" if info.attributes & Attribute.LOG_APPEND_TIME else "CreateTime"
