"""Appends between acceptance and their fate: bounded, in log order. Every method is called with the lane lock held.

Knows counts and offsets, nothing of bytes. An append is `queued` while raft/ decides (lane rule 2), `pending` from its
write until the high watermark passes it, and then its ticket is told - by the caller of these methods, after the lock
is released.
"""

import heapq
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from fastquorum.errors import FastQuorumError, Overloaded
from fastquorum.kernels import Buffer
from fastquorum.kernels.producers import ProducedBatch, Stamp
from fastquorum.node.lane.tallies import Refusals
from fastquorum.node.ports import AppendTicket
from fastquorum.types import Offset

RETRY_AFTER_S = 0.01
UNDECIDED: Final = "appends that came before have not been decided about yet"
"""What Overloaded suggests: about the time of a few flushes."""


class Queued(NamedTuple):
    """An append accepted while the lane was frozen. `encoded` is a client's own batch, else `values` are set."""

    ticket: AppendTicket
    values: Sequence[Buffer]
    encoded: bytearray | None
    record_count: int
    size_bytes: int
    stamp: Stamp | None = None
    """Set if a producer vouches for it: then it goes into the log at most once."""


class UncommittedAppend(NamedTuple):
    """An append in the log, not known to be committed."""

    ticket: AppendTicket
    base_offset: Offset
    record_count: int
    size_bytes: int


class Fate(NamedTuple):
    """What to tell a ticket once the lock is released: committed at an offset, or an error."""

    ticket: AppendTicket
    base_offset: Offset
    error: FastQuorumError | None

    def tell(self) -> None:
        if self.error is None:
            self.ticket.committed(self.base_offset)
        else:
            self.ticket.failed(self.error)


class AppendQueues:
    """The two queues and their bounds."""

    def __init__(self, records_max: int, bytes_max: int, refusals: Refusals) -> None:
        self._refusals = refusals
        self._records_max = records_max
        self._bytes_max = bytes_max
        self.records = 0
        self.size_bytes = 0
        self.queued: deque[Queued] = deque()
        self._pending: deque[UncommittedAppend] = deque()
        self._joined: list[tuple[Offset, int, AppendTicket, Offset]] = []
        """A heap of repeated appends, which share the fate of a batch that is in the log: its end, a number that breaks
        ties, the ticket, its base offset. They take no room."""
        self._joined_count = 0
        self._fates: list[Fate] = []
        """Decided, and not told yet."""

    def __len__(self) -> int:
        return len(self._pending) + len(self.queued)

    def reserve(self, record_count: int, size_bytes: int) -> None:
        """Take room for an append, or raise Overloaded and take none. One append alone always fits."""
        reason = ""
        if self.records and self.records + record_count > self._records_max:
            reason = f"{self.records} records wait for their commit (at most {self._records_max})"
        elif self.size_bytes and self.size_bytes + size_bytes > self._bytes_max:
            reason = f"{self.size_bytes} bytes wait for their commit (at most {self._bytes_max})"
        if reason:
            raise self._refusals.counted(Overloaded(reason, RETRY_AFTER_S))
        self.records += record_count
        self.size_bytes += size_bytes

    def release(self, record_count: int, size_bytes: int) -> None:
        self.records -= record_count
        self.size_bytes -= size_bytes

    def add(self, ticket: AppendTicket, base_offset: Offset, record_count: int, size_bytes: int) -> None:
        """In the log now. Offsets ascend."""
        self._pending.append(UncommittedAppend(ticket, base_offset, record_count, size_bytes))

    def join(self, ticket: AppendTicket, batch: ProducedBatch) -> None:
        """Its batch is in the log already; the ticket is told when that is committed."""
        self._joined_count += 1
        heapq.heappush(self._joined, (batch.end_offset, self._joined_count, ticket, batch.base_offset))

    def committed(self, high_watermark: Offset) -> None:
        """So are all whose records lie wholly below the high watermark."""
        pending = self._pending
        while pending and pending[0].base_offset + pending[0].record_count <= high_watermark:
            first = pending.popleft()
            self.release(first.record_count, first.size_bytes)
            self._fates.append(Fate(first.ticket, first.base_offset, None))
        while self._joined and self._joined[0][0] <= high_watermark:
            _, _, ticket, base_offset = heapq.heappop(self._joined)
            self._fates.append(Fate(ticket, base_offset, None))

    def fail_pending(self, error: FastQuorumError) -> None:
        self._fates += [Fate(each.ticket, -1, error) for each in self._pending]
        self._fates += [Fate(ticket, -1, error) for _, _, ticket, _ in sorted(self._joined, key=lambda each: each[1])]
        for each in self._pending:
            self.release(each.record_count, each.size_bytes)
        self._pending.clear()
        self._joined.clear()

    def fail_queued(self, error: FastQuorumError) -> None:
        while self.queued:
            self.fail_first(error)

    def fail_first(self, error: FastQuorumError) -> None:
        """Fail the first of the queued appends."""
        self.fail(self.queued.popleft(), error)

    def fail(self, append: Queued, error: FastQuorumError) -> None:
        """One that was accepted, and is not queued any more."""
        self.release(append.record_count, append.size_bytes)
        self._fates.append(Fate(append.ticket, -1, error))

    def take_fates(self) -> list[Fate]:
        """All that have to be told now."""
        fates, self._fates = self._fates, []
        return fates
