"""PartitionRecords to rows."""

import struct
from typing import Any, Final

from fastquorum.kernels.partitions import PARTITION_MEMBERS, PartitionRun
from fastquorum.types import Uuid

_BEGIN: Final = struct.Struct(">BBBi16s")
"""Frame version, key, version, partition id, topic id."""
_FRAME_VERSION, _KEY = 1, 3
_VERSION_MAX, _DIRECTORIES_SINCE, _ELIGIBLE_SINCE = 2, 1, 2
_LEADER: Final = struct.Struct(">iii")
_MIGRATING: Final = Uuid()
_RECOVERY_TAG, _ELIGIBLE_TAG, _LAST_KNOWN_TAG = 0, 1, 2


class _Refused(Exception):
    """It is not as Kafka writes it."""


class _Reader:
    """Reads what is there, and refuses what is not."""

    def __init__(self, value: bytes, at: int) -> None:
        self.value = value
        self.at = at

    def take(self, size: int) -> bytes:
        taken = self.value[self.at : self.at + size]
        if len(taken) != size:
            raise _Refused
        self.at += size
        return taken

    def uvarint(self) -> int:
        read = 0
        for shift in range(0, 35, 7):
            (byte,) = self.take(1)
            read |= (byte & 0x7F) << shift
            if byte < 0x80:
                if read >> 32:
                    raise _Refused
                return read
        raise _Refused

    def count(self, item_bytes: int) -> int:
        count = self.uvarint() - 1
        if count < 0 or count * item_bytes > len(self.value) - self.at:
            raise _Refused
        return count

    def numbers(self) -> tuple[int, ...]:
        count = self.count(4)
        return struct.unpack(f">{count}i", self.take(4 * count))

    def uuids(self) -> tuple[Uuid, ...]:
        return tuple(Uuid(self.take(16)) for _ in range(self.count(16)))


class PartitionRows:
    """Reads PartitionRecords into rows."""

    def __init__(self, row_type: type[Any]) -> None:
        if not issubclass(row_type, tuple) or len(row_type._fields) != PARTITION_MEMBERS:  # type: ignore[attr-defined]
            raise TypeError(f"{row_type!r} is not a tuple of {PARTITION_MEMBERS}")
        self._row_type = row_type

    def read(self, values: list[Any], at: int = 0) -> PartitionRun | None:
        if at < 0:
            raise IndexError(f"position {at}")
        topic_id, end = b"", at
        rows: dict[int, Any] = {}
        for position in range(at, len(values)):  # not a slice: there may be a run for every other value
            try:
                its_topic, partition_id, members = _partition(values[position])
            except _Refused:
                break
            if rows and its_topic != topic_id:
                break
            topic_id, rows[partition_id], end = its_topic, self._row_type(*members), end + 1
        return PartitionRun(end, Uuid(topic_id), rows) if rows else None


def _partition(value: Any) -> tuple[bytes, int, tuple[Any, ...]]:
    """Topic id, partition id, and a row's members."""
    if type(value) is not bytes or len(value) < _BEGIN.size:
        raise _Refused
    frame_version, key, version, partition_id, topic_id = _BEGIN.unpack_from(value)
    if frame_version != _FRAME_VERSION or key != _KEY or version > _VERSION_MAX or partition_id < 0:
        raise _Refused
    reader = _Reader(value, _BEGIN.size)
    replicas, isr, removing, adding = (reader.numbers() for _ in range(4))
    leader, leader_epoch, partition_epoch = _LEADER.unpack(reader.take(_LEADER.size))
    directories = _directories(reader.uuids() if version >= _DIRECTORIES_SINCE else (), len(replicas))
    recovery, eligible, last_known = _tags(reader, version)
    in_sync = replicas if isr == replicas else isr
    members = replicas, directories, in_sync, leader, leader_epoch, partition_epoch, recovery, removing, adding
    return topic_id, partition_id, (*members, eligible, last_known)


def _directories(given: tuple[Uuid, ...], replica_count: int) -> tuple[Uuid, ...]:
    if not any(map(any, given)):
        return (_MIGRATING,) * replica_count
    if len(given) != replica_count:
        raise _Refused
    return given


def _tags(reader: _Reader, version: int) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """Recovery, eligible leader replicas, last known ones; all there is behind them."""
    found: dict[int, Any] = {_RECOVERY_TAG: 0, _ELIGIBLE_TAG: (), _LAST_KNOWN_TAG: ()}
    last = -1
    for _ in range(reader.uvarint()):
        tag, size = reader.uvarint(), reader.uvarint()
        if tag <= last:
            raise _Refused
        found[tag], last = _tag(tag, _Reader(reader.take(size), 0), version), tag
    if reader.at != len(reader.value):
        raise _Refused
    return found[_RECOVERY_TAG], found[_ELIGIBLE_TAG], found[_LAST_KNOWN_TAG]


def _tag(tag: int, reader: _Reader, version: int) -> Any:
    value: Any
    if tag == _RECOVERY_TAG:
        (value,) = reader.take(1)
        if value > 1:
            raise _Refused
    elif tag > _LAST_KNOWN_TAG or version < _ELIGIBLE_SINCE:
        raise _Refused
    elif reader.value == b"\0":  # null
        return ()
    else:
        value = reader.numbers()
    if reader.at != len(reader.value):
        raise _Refused
    return value
