"""Which syncs are under way, and what they will have made durable.

One sync at a time; the end is sampled before it begins, and a truncation makes every ticket drawn before it worthless
(a flushed end taken from a sync that raced a truncation is how logs come to claim bytes they lost).
"""

from collections.abc import Sequence
from typing import NamedTuple

from fastquorum.errors import FsyncFailed
from fastquorum.kernels import SegmentFile
from fastquorum.storage.log.mark import LogPosition
from fastquorum.storage.ports import FlushPort
from fastquorum.types import Offset


class FlushTicket(NamedTuple):
    """A sync under way: everything below `at`, written before it began, is durable if it succeeds."""

    token: int
    generation: int
    at: LogPosition


class FlushResult(NamedTuple):
    """A sync ended: the log's flushed end, and the generation it is true in."""

    generation: int
    end: Offset


class LogSizes(NamedTuple):
    """How much there is of a log: bytes of batches, files, and syncs begun since it was opened."""

    size_bytes: int
    segment_count: int
    sync_count: int


class Flushing:
    """The one sync under way, and whether another is wanted."""

    def __init__(self, port: FlushPort) -> None:
        self._port = port
        self._next_token = 1
        self._path = ""
        self.ticket: FlushTicket | None = None
        self.wanted = False

    @property
    def has_failed(self) -> bool:
        """A sync has failed, though its end may not be reported yet."""
        return self._port.failed

    def submit(self, generation: int, at: LogPosition, files: Sequence[SegmentFile]) -> None:
        assert self.ticket is None, "one sync at a time"
        self.ticket = FlushTicket(self._next_token, generation, at)
        self._next_token += 1
        self._path = files[-1].path
        self.wanted = False
        self._port.submit(self.ticket.token, files)

    @property
    def next_token(self) -> int:
        return self._next_token

    def resume(self, ticket: FlushTicket | None, *, wanted: bool, next_token: int) -> None:
        """Go on where a borrower of the log has stopped."""
        self.ticket = ticket
        self.wanted = wanted
        self._next_token = next_token

    def take(self, token: int, errno: int) -> FlushTicket:
        """The ticket of a sync that ended. FsyncFailed if it did not succeed."""
        ticket = self.ticket
        assert ticket is not None, f"sync {token} ended, none was under way"
        assert ticket.token == token, f"sync {token} ended, {ticket.token} was under way"
        self.ticket = None
        if errno:
            raise FsyncFailed(detail=f"errno {errno}", operation="sync", path=self._path, errno_code=errno)
        return ticket
