"""The batch by which an instance of a named producer takes the next epoch: whoever had the name before is fenced.

It changes nothing for readers. In a user log it is a transaction marker, as Kafka fences producers by one: consumers
pass over it, and `kafka-dump-log` shows it. A metadata log has no markers: there it is a no-op record. Either holds a
number that its instance draws, so that two that take the same epoch do not take each other's fence for their own.
Source: KIP-98 (control batches, EndTransactionMarker); KIP-360 (a newer epoch fences); KIP-835 (NoOpRecord).
"""

import struct
from typing import Final

from fastquorum.kernels import Attribute, Kernels, Record
from fastquorum.kernels.producers import EPOCHS
from fastquorum.storage.identity import LogKind
from fastquorum.wire.records.cluster import NoOpRecord
from fastquorum.wire.records.control import VERSION, ControlRecordType, control_key
from fastquorum.wire.records.metadata import encode_metadata_record

FENCE_NUMBERS: Final = 1 << 31
"""What the number is drawn from."""
FIRST_EPOCHS: Final = range(EPOCHS // 2, EPOCHS)
"""What an instance draws its epoch from, where nothing is known of its name: a former holder may append on, though all
that it appended was removed or forgotten, and is not to have the same epoch."""
NOTE_EPOCH: Final = 0
"""The epoch of a name that notes a number, and has nothing else: whoever notes it takes the same."""
MARKER_BATCH_BYTES_MAX: Final = 128
"""A batch that is larger holds more than a marker."""
_MARKER: Final = struct.Struct(">hi")
"""Value of a transaction marker: version, and the coordinator's epoch, where the number stands."""
_TAG: Final = 1 << 20
"""The tag of the no-op's number: no version of the record knows it."""


def is_marker(record: Record) -> bool:
    """Is this record of a control batch the marker of a fence in a user log?"""
    value, key = record.value, record.key
    return key == control_key(ControlRecordType.ABORT) and value is not None and len(value) == _MARKER.size


def fence_batch(
    kernels: Kernels, kind: LogKind, *, producer_id: int, epoch: int, number: int, timestamp_ms: int
) -> bytes:
    """One batch, without a sequence."""
    if kind is LogKind.METADATA:
        no_op = NoOpRecord(unknown_tags=((_TAG, number.to_bytes(4, "big")),))
        record, attributes = Record(encode_metadata_record(no_op, 0)), 0
    else:
        record = Record(_MARKER.pack(VERSION, number), control_key(ControlRecordType.ABORT))
        attributes = Attribute.CONTROL | Attribute.TRANSACTIONAL
    return kernels.encode_records(
        [record],
        base_offset=0,
        leader_epoch=0,
        timestamp_ms=timestamp_ms,
        attributes=attributes,
        producer_id=producer_id,
        producer_epoch=epoch,
    )
