"""Control records: the key says which kind, the value is a message without a frame.

Kafka writes and reads every kind at version 0, and says so twice: in the key and in the value's own first field.
Source: KIP-98 (control batches); KIP-595, KIP-630, KIP-853 (the kinds of KRaft).
"""

from enum import IntEnum
from types import MappingProxyType
from typing import Final

from fastquorum.errors import WireError
from fastquorum.kernels import Buffer
from fastquorum.wire.codec.codec import decode, encode
from fastquorum.wire.message import Message
from fastquorum.wire.records.control_values import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)

VERSION: Final = 0


class ControlRecordType(IntEnum):
    """The kinds of control records. ABORT and COMMIT end producers' transactions and do not occur in a metadata log."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


CONTROL_MESSAGES: Final = MappingProxyType[ControlRecordType, type[Message]](
    {
        ControlRecordType.LEADER_CHANGE: LeaderChangeMessage,
        ControlRecordType.SNAPSHOT_HEADER: SnapshotHeaderRecord,
        ControlRecordType.SNAPSHOT_FOOTER: SnapshotFooterRecord,
        ControlRecordType.KRAFT_VERSION: KRaftVersionRecord,
        ControlRecordType.KRAFT_VOTERS: VotersRecord,
    }
)
_TYPES: Final = MappingProxyType({cls: kind for kind, cls in CONTROL_MESSAGES.items()})


def control_key(kind: ControlRecordType) -> bytes:
    """The key of a control record: int16 version, int16 kind."""
    return VERSION.to_bytes(2, "big") + kind.to_bytes(2, "big")


def control_type(key: Buffer) -> ControlRecordType:
    """Read a control record's key. Raises WireError."""
    if len(key) != 4:
        raise WireError(f"{len(key)} bytes, expected 4", "ControlRecordKey")
    version = int.from_bytes(key[0:2], "big", signed=True)
    number = int.from_bytes(key[2:4], "big", signed=True)
    if version != VERSION:
        raise WireError(f"version {version} is unknown", "ControlRecordKey", version, "version", 0)
    try:
        return ControlRecordType(number)
    except ValueError as error:
        raise WireError(f"type {number} is unknown", "ControlRecordKey", version, "type", 2) from error


def encode_control_record(message: Message) -> tuple[bytes, bytes]:
    """Key and value of a control record. Raises WireError if `message` is not one of CONTROL_MESSAGES."""
    kind = _TYPES.get(type(message))
    if kind is None:
        raise WireError("is not a control record", type(message).__qualname__)
    return control_key(kind), encode(message, VERSION)


def decode_control_record(key: Buffer, value: Buffer) -> tuple[ControlRecordType, Message]:
    """Kind and value of a control record. Raises WireError, also for a kind that has no message (ABORT, COMMIT)."""
    kind = control_type(key)
    cls = CONTROL_MESSAGES.get(kind)
    if cls is None:
        raise WireError(f"{kind.name} does not occur in a metadata log", "ControlRecordKey", VERSION, "type", 2)
    return kind, decode(cls, VERSION, value)
