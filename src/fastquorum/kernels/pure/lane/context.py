"""What the lane's roles share: who this replica is, its log and kernels, the latch, and what outlives a role.

Everything here is read and written under the shell's lane lock only. Source: KIP-595.
"""

import struct
from typing import Final

from fastquorum.errors import StorageFailed
from fastquorum.kernels import Buffer, Kernels
from fastquorum.kernels.lane import LaneIdentity, LaneLog
from fastquorum.kernels.pure.lane.barriers import Barriers
from fastquorum.types import Epoch, Offset

CORRELATION_FIRST: Final = 0x4000_0000
"""The lane numbers its requests from here on, raft/ below."""
CORRELATION_LAST: Final = 0x7FFF_FFFF
CORRELATION_AHEAD_MAX: Final = CORRELATION_FIRST + 1
"""How far a Fetch's number may be ahead of the one before: from a lane's last number to its first is one step."""

_CORRELATION: Final = struct.Struct(">i")
_BATCH_HEAD: Final = struct.Struct(">qii7xi")
"""baseOffset, batchLength, partitionLeaderEpoch, lastOffsetDelta."""


def correlation_of(frame: bytes) -> int:
    """The first four bytes: a response's correlation id (a request's API key and version: below CORRELATION_FIRST)."""
    value: int = _CORRELATION.unpack_from(frame)[0] if len(frame) >= 4 else -1
    return value


def is_ahead(correlation_id: int, other: int) -> bool:
    """Did a Fetch come after the other? Ids rise on each connection, and begin anew after the last."""
    return 0 < (correlation_id - other) & CORRELATION_LAST <= CORRELATION_AHEAD_MAX


def end_of(batches: bytes) -> tuple[Offset, Epoch]:
    """Where whole batches end: the offset after the last one, and its epoch."""
    at, size = 0, len(batches)
    while True:
        base_offset, length, epoch, last_delta = _BATCH_HEAD.unpack_from(batches, at)
        at += 12 + length
        if at >= size:
            return base_offset + last_delta + 1, epoch


class LaneContext:
    """One lane's fixed surroundings and its state across roles."""

    def __init__(self, identity: LaneIdentity, log: LaneLog, kernels: Kernels, batch_bytes_max: int) -> None:
        self.identity = identity
        self.log = log
        self.kernels = kernels
        self.batch_bytes_max = batch_bytes_max
        self.barriers = Barriers()
        self.has_failed = False
        self.client_id = f"raft-client-{identity.key.id}".encode()
        self.cluster_id = identity.cluster_id.encode()
        self.topic_id = bytes(identity.topic_id)
        self._correlation_id = CORRELATION_FIRST - 1

    def next_correlation_id(self) -> int:
        """Never reused while an answer to the last one could be under way."""
        self._correlation_id += 1
        if self._correlation_id > CORRELATION_LAST:
            self._correlation_id = CORRELATION_FIRST
        return self._correlation_id

    def write(self, batch: Buffer, base_offset: Offset, next_offset: Offset, epoch: Epoch, timestamp_ms: int) -> None:
        """Write whole batches at the log's end and have them synced. A failure latches before it is told (rule 5)."""
        try:
            self.log.append_batch(
                batch, base_offset=base_offset, next_offset=next_offset, epoch=epoch, timestamp_ms=timestamp_ms
            )
            self.log.request_flush()
        except StorageFailed:
            self.has_failed = True
            raise

    def flush_rest(self) -> None:
        """Have synced what somebody else wrote, or what a sync from before a truncation does not count for."""
        if self.log.flushed_end < self.log.end_offset:
            self.log.request_flush()
