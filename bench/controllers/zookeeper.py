"""ZooKeeper's client protocol, as much as writing znodes takes: a session a connection, one multi a request.

Spoken by the client that also asks the controllers, so that only servers differ. A topic is two znodes, which hold the
bytes of its TopicRecord and of its PartitionRecord; a multi is one transaction, as a request's records are one batch.
Source: ZooKeeper's zookeeper.jute, `MultiOperationRecord`, `MultiResponse`.
"""

import asyncio
import struct
from collections.abc import Sequence
from typing import Final

from bench.compare.workload import BadAnswer
from bench.controllers.loop import Work
from bench.controllers.wire import Connection, Request, framed, unless_lost
from fastquorum.types import Endpoint, Uuid
from fastquorum.wire.records.metadata import encode_metadata_record
from fastquorum.wire.records.topics import PartitionRecord, TopicRecord

ROOT: Final = "/topics"
SESSION_MS: Final = 30_000
PARTITION_VERSION: Final = 2
_CREATE: Final = 1
_MULTI: Final = 14
_CONNECT: Final = struct.pack(">iqiqi16s?", 0, 0, SESSION_MS, 0, 16, bytes(16), False)
_REQUEST: Final = struct.Struct(">ii")
_REPLY: Final = struct.Struct(">iqi")
_LENGTH: Final = struct.Struct(">i")
_OPERATION: Final = struct.Struct(">i?i")
_END: Final = _OPERATION.pack(-1, True, -1)


def _buffer(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


_OPEN_ACL: Final = struct.pack(">ii", 1, 31) + _buffer(b"world") + _buffer(b"anyone")
"""One entry: all permissions, everybody."""
_PERSISTENT: Final = struct.pack(">i", 0)


def _create(path: str, data: bytes) -> bytes:
    return _buffer(path.encode()) + _buffer(data) + _OPEN_ACL + _PERSISTENT


async def connected(endpoint: Endpoint) -> Connection:
    """With a session. OSError, BadAnswer."""
    connection = await Connection.open(endpoint)
    answered: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    connection.send(framed(_CONNECT), answered.set_result)
    await unless_lost(answered, connection)
    return connection


async def make_root(connection: Connection) -> None:
    answered: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    connection.send(framed(_REQUEST.pack(1, _CREATE) + _create(ROOT, b"")), answered.set_result)
    _check(await unless_lost(answered, connection), 1)


def _check(answer: bytes, xid: int) -> None:
    answered_xid, _, code = _REPLY.unpack_from(answer)
    if answered_xid != xid or code:
        raise BadAnswer(f"ZooKeeper answered request {answered_xid}, not {xid}, or with error {code}")


def _check_created(answer: bytes, xid: int, paths: Sequence[str]) -> None:
    """All of a multi's znodes, each where it was to be."""
    _check(answer, xid)
    at = _REPLY.size
    for path in paths:
        kind, is_last, _ = _OPERATION.unpack_from(answer, at)
        if kind != _CREATE or is_last:
            raise BadAnswer(f"ZooKeeper did not create {path}")
        at += _OPERATION.size + _LENGTH.size
        end = at + _LENGTH.unpack_from(answer, at - _LENGTH.size)[0]
        if answer[at:end] != path.encode():
            raise BadAnswer(f"ZooKeeper created {answer[at:end]!r}, not {path}")
        at = end
    if answer[at:] != _END:
        raise BadAnswer("ZooKeeper's answer does not end where it should")


class Znodes(Work):
    """The records of so many topics a request, as znodes."""

    def __init__(self, name: str, batch: int) -> None:
        super().__init__()
        self._name, self._batch = name, batch
        self._next = 0
        self._xid = 1
        self.created = 0

    def encode(self, connection: Connection, slot: int) -> Request:
        numbers = range(self._next, self._next + self._batch)
        self._next += self._batch
        self._xid = xid = (self._xid + 1) & 0x7FFFFFFF
        data = framed(_REQUEST.pack(xid, _MULTI) + b"".join(map(self._topic, numbers)) + _END)

        def check(answer: bytes) -> int:
            paths = [f"{ROOT}/{self._name}-{number}{end}" for number in numbers for end in ("", "/0")]
            _check_created(answer, xid, paths)
            self.created += self._batch
            return self._batch

        return Request(data, check)

    def _topic(self, number: int) -> bytes:
        name, topic_id = (
            f"{self._name}-{number}",
            Uuid(bytes(4) + self._xid.to_bytes(4, "big") + number.to_bytes(8, "big")),
        )
        replicas = [101 + (number + each) % 6 for each in range(3)]
        partition = PartitionRecord(partition_id=0, topic_id=topic_id, replicas=replicas, isr=replicas)
        partition.leader, partition.leader_epoch, partition.partition_epoch = replicas[0], 0, 0
        partition.directories = [Uuid(bytes(14) + each.to_bytes(2, "big")) for each in replicas]
        path = f"{ROOT}/{name}"
        return b"".join(
            _OPERATION.pack(_CREATE, False, -1) + _create(where, data)
            for where, data in (
                (path, encode_metadata_record(TopicRecord(name=name, topic_id=topic_id), 0)),
                (f"{path}/0", encode_metadata_record(partition, PARTITION_VERSION)),
            )
        )


def count_znodes(answer: str) -> int:
    """Return the number of znodes in the output of `mntr`."""
    for line in answer.splitlines():
        name, _, value = line.partition("\t")
        if name == "zk_znode_count":
            return int(value)
    raise BadAnswer("ZooKeeper does not tell how many znodes it has")
