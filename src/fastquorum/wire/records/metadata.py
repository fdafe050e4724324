"""Metadata records: what Kafka's controller writes into the metadata log.

A record's value is framed: uvarint frame version 1, uvarint record key, uvarint version, message. Source: KIP-631.
"""

import functools
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from fastquorum.errors import UnsupportedVersion, WireError
from fastquorum.kernels import Buffer
from fastquorum.wire.codec.codec import GENERATED, Codec
from fastquorum.wire.codec.generated import trailing_bytes
from fastquorum.wire.codec.varint import Malformed, read_uvarint, uvarint
from fastquorum.wire.message import Message
from fastquorum.wire.records import access as access_records
from fastquorum.wire.records import brokers as broker_records
from fastquorum.wire.records import cluster as cluster_records
from fastquorum.wire.records import topics as topic_records

FRAME_VERSION: Final = 1
_FRAME: Final = "MetadataRecord"
_SHORT: Final = 3
"""Bytes of a frame whose numbers take one each."""
_CONTINUES: Final = 0x80
"""In a byte of a uvarint: another follows."""


def _registry(modules: Iterable[object]) -> Mapping[int, type[Message]]:
    records: dict[int, type[Message]] = {}
    for module in modules:
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, Message) and value.__wire__.kind == "metadata":
                held = records.setdefault(value.__wire__.api_key, value)
                assert held is value, f"two {value.__wire__}"
    return MappingProxyType(dict(sorted(records.items())))


METADATA_RECORDS: Final = _registry((access_records, broker_records, cluster_records, topic_records))
"""Every metadata record of Kafka 4.3, by its key."""


def encode_metadata_record(record: Message, version: int, codec: Codec = GENERATED) -> bytes:
    """The value of a metadata record, frame included; `codec` is a kernel set's where speed counts. Raises WireError or
    UnsupportedVersion, as `Codec.encode`."""
    return _frame_of(record.__class__, version) + codec.encode(record, version)


@functools.cache
def _frame_of(cls: type[Message], version: int) -> bytes:
    """What stands before the message. WireError."""
    declared = cls.__wire__
    if declared.kind != "metadata":
        raise WireError("is not a metadata record", cls.__qualname__, version)
    return bytes((FRAME_VERSION, declared.api_key)) + uvarint(version)


def decode_metadata_record(value: Buffer, codec: Codec = GENERATED) -> tuple[Message, int]:
    """A metadata record and its version; `codec` is a kernel set's where speed counts.

    Raises:
        WireError: the frame or the message is malformed, or bytes follow it.
        UnsupportedVersion: the key, or this version of it, is unknown.
    """
    data = value if isinstance(value, bytes) else bytes(value)
    if len(data) > _SHORT and data[0] == FRAME_VERSION and data[1] < _CONTINUES and data[2] < _CONTINUES:
        key, version, position = data[1], data[2], _SHORT  # as all are that Kafka writes
    else:
        key, version, position = _frame(data)
    cls = METADATA_RECORDS.get(key)
    if cls is None:
        raise UnsupportedVersion(f"no metadata record has the key {key}", _FRAME, version, api_key=key)
    record, end = codec.decode_prefix(cls, version, data, position)
    if end != len(data):
        raise trailing_bytes(cls, version, end, len(data))
    return record, version


def _frame(data: bytes) -> tuple[int, int, int]:
    """Key and version, and where the message begins. WireError."""
    position = 0
    numbers = []
    for field in ("frame_version", "key", "version"):
        try:
            number, position = read_uvarint(data, position)
        except (IndexError, Malformed) as error:
            detail = "the frame ends early" if isinstance(error, IndexError) else str(error)
            raise WireError(detail, _FRAME, field=field, position=position) from error
        numbers.append(number)
        if field == "frame_version" and number != FRAME_VERSION:
            raise WireError(f"frame version {number} is unknown", _FRAME, field=field, position=0)
    return numbers[1], numbers[2], position


def record_type_name(cls: type[Message]) -> str:
    """A record's name as Kafka's tools print it: `PARTITION_CHANGE_RECORD`."""
    name = cls.__wire__.name
    return "".join("_" + letter if letter.isupper() and at else letter for at, letter in enumerate(name)).upper()
