"""The batch by which an instance of a named producer takes the next epoch: whoever had the name before is fenced.

It changes nothing for readers. In a user log it is a transaction marker, as Kafka fences producers by one: consumers
pass over it, and `kafka-dump-log` shows it. A metadata log has no markers: there it is a no-op record. Either holds a
number drawn by chance, so that two instances that take the same epoch do not take each other's fence for their own.
Source: KIP-98 (control batches, EndTransactionMarker); KIP-360 (a newer epoch fences); KIP-835 (NoOpRecord).
"""

import secrets
import struct
from typing import Final

from fastquorum.kernels import Attribute, Kernels, Record
from fastquorum.storage.identity import LogKind
from fastquorum.wire.cluster_records import NoOpRecord
from fastquorum.wire.control_records import VERSION, ControlRecordType, control_key
from fastquorum.wire.metadata_records import encode_metadata_record

_MARKER: Final = struct.Struct(">hi")
"""Value of a transaction marker: version, and the coordinator's epoch, where the number by chance is."""
_TAG: Final = 1 << 20
"""Of the no-op's number: one that no version of the record knows."""
_NUMBER_BITS: Final = 31


def fence_batch(kernels: Kernels, kind: LogKind, producer_id: int, epoch: int, timestamp_ms: int) -> bytes:
    """One batch, without a sequence."""
    number = secrets.randbits(_NUMBER_BITS)
    stamp = {"producer_id": producer_id, "producer_epoch": epoch}
    place = {"base_offset": 0, "leader_epoch": 0, "timestamp_ms": timestamp_ms}
    if kind is LogKind.METADATA:
        no_op = NoOpRecord(unknown_tags=((_TAG, number.to_bytes(4, "big")),))
        return kernels.encode_values([encode_metadata_record(no_op, 0)], **place, **stamp)
    marker = Record(_MARKER.pack(VERSION, number), control_key(ControlRecordType.ABORT))
    attributes = Attribute.CONTROL | Attribute.TRANSACTIONAL
    return kernels.encode_records([marker], **place, **stamp, attributes=attributes)
