"""Directories to read tables of: Kafka's golden ones, and small ones made byte by byte."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from fastquorum.kernels import Attribute, Record, load
from fastquorum.spark.scan import read_table
from fastquorum.storage.names import LOG_DIRECTORY, segment_name
from fastquorum.wire import Message
from fastquorum.wire.records.control import encode_control_record

GOLDEN: Final = Path(__file__).parents[2] / "golden" / "kafka-4.3.0" / "cluster"
KERNELS: Final = load("native")


def batch(base_offset: int, count: int = 1, *, epoch: int = 1, timestamp_ms: int = 1000, **others: int) -> bytes:
    """Records whose values say their offsets."""
    values = [b"record %d" % (base_offset + at) for at in range(count)]
    return KERNELS.encode_values(
        values, base_offset=base_offset, leader_epoch=epoch, timestamp_ms=timestamp_ms, **others
    )


def unsorted(base_offset: int, times_ms: Iterable[int], attributes: int = 0, *, epoch: int = 1) -> bytes:
    """A batch of records of these times, in this order."""
    records = [Record(b"record", timestamp_ms=each) for each in times_ms]
    return KERNELS.encode_records(
        records,
        base_offset=base_offset,
        leader_epoch=epoch,
        timestamp_ms=records[0].timestamp_ms,
        attributes=attributes,
    )


def control(base_offset: int, *messages: Message, epoch: int = 1, timestamp_ms: int = 1000) -> bytes:
    """A batch of control records."""
    records = [Record(value, key) for key, value in map(encode_control_record, messages)]
    return KERNELS.encode_records(
        records,
        base_offset=base_offset,
        leader_epoch=epoch,
        timestamp_ms=timestamp_ms,
        attributes=Attribute.CONTROL,
    )


def write_log(directory: Path, segments: dict[int, Sequence[bytes]]) -> Path:
    """A data directory with these segments, by base offset; its log directory."""
    log = directory / LOG_DIRECTORY
    log.mkdir(parents=True, exist_ok=True)
    for base_offset, batches in segments.items():
        (log / segment_name(base_offset)).write_bytes(b"".join(batches))
    return log


def rows(path: Path | str, table: str, **options: object) -> list[dict[str, Any]]:
    """All of a table."""
    found: list[dict[str, Any]] = read_table(str(path), table, **options).to_pylist()
    return found


def flip(path: Path, position: int) -> None:
    """One bit of one byte."""
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)
