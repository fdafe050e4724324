"""A batch damaged or cut at every byte, or checksummed nonsense: refused, or harmless; the leader stays."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from fastquorum.client.connection import Connection, Deadline
from fastquorum.errors import CorruptionError
from fastquorum.types import Endpoint
from fastquorum.wire import ErrorCode
from tests.process.cluster import Cluster
from tests.process.load import batch_of, fetch_committed, produce

REFUSALS = {ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD, ErrorCode.UNKNOWN_SERVER_ERROR}
BASE_OFFSET = range(8)
LEADER_EPOCH = range(12, 16)
MAGIC = 16
CRC = slice(17, 21)
COVERED = 21
"""Where what the checksum covers begins."""


@contextmanager
def leader_of(quorum: Cluster) -> Iterator[tuple[Connection, Endpoint]]:
    endpoint = quorum.endpoint(quorum.leader())
    connection = Connection(endpoint, Deadline(10))
    try:
        yield connection, endpoint
    finally:
        connection.close()


def end_of(quorum: Cluster, connection: Connection) -> int:
    """The offset that a marker gets; everything before it is settled."""
    answer, _ = produce(connection, batch_of(quorum.kernels, [b"marker"]))
    assert answer.error_code == 0
    return answer.base_offset


def test_a_flip_at_every_byte_is_refused_unless_the_node_sets_those_bytes_itself(steady: Cluster) -> None:
    with leader_of(steady) as (connection, endpoint):
        batch = batch_of(steady.kernels, [b"one", b"two"])
        first = end_of(steady, connection)
        accepted = []
        for position in range(len(batch)):
            for mask in (0x01, 0x80, 0xFF):
                damaged = bytearray(batch)
                damaged[position] ^= mask
                answer, _ = produce(connection, bytes(damaged))
                if answer.error_code == 0:
                    accepted.append(position)
                else:
                    assert ErrorCode(answer.error_code) in REFUSALS, (position, mask)
                    assert answer.base_offset == -1
        assert set(accepted) == {*BASE_OFFSET, *LEADER_EPOCH}
        values = [value for _, value in fetch_committed(steady.kernels, endpoint, first + 1)]
        assert values == [b"one", b"two"] * len(accepted)


def test_a_batch_cut_at_every_byte_is_refused(steady: Cluster) -> None:
    with leader_of(steady) as (connection, endpoint):
        batch = batch_of(steady.kernels, [b"one", b"two"])
        first = end_of(steady, connection)
        for size in range(len(batch)):
            answer, _ = produce(connection, batch[:size])
            assert ErrorCode(answer.error_code) in REFUSALS, size
        for longer in (batch + b"\0", batch + batch, batch + batch[:30]):
            answer, _ = produce(connection, longer)
            assert ErrorCode(answer.error_code) in REFUSALS
        assert fetch_committed(steady.kernels, endpoint, first + 1) == []


@pytest.mark.parametrize("mask", [0x01, 0x02, 0x80, 0xFF])
def test_checksummed_nonsense_is_refused_or_can_be_read_by_everybody(steady: Cluster, mask: int) -> None:
    """The checksum is right and what it covers is not: counts, deltas, lengths, attributes, varints."""
    with leader_of(steady) as (connection, endpoint):
        batch = batch_of(steady.kernels, [b"one", b"two", b"three"])
        first = end_of(steady, connection)
        accepted = 0
        for position in range(COVERED, len(batch)):
            damaged = bytearray(batch)
            damaged[position] ^= mask
            damaged[CRC] = struct.pack(">I", steady.kernels.crc32c(bytes(damaged[COVERED:])))
            answer, _ = produce(connection, bytes(damaged))
            if answer.error_code == 0:
                accepted += 1
            else:
                assert ErrorCode(answer.error_code) in REFUSALS, (position, ErrorCode(answer.error_code))
        last = end_of(steady, connection)
        try:
            read = fetch_committed(steady.kernels, endpoint, first + 1)
        except CorruptionError as error:
            pytest.fail(f"a batch that was taken cannot be read: {error}")
        # Offsets without gaps: every batch taken counts as many records as it holds.
        assert [offset for offset, _ in read] == list(range(first + 1, last + 1))
        assert len(read) == 3 * accepted + 1
