"""Consumers' Fetches that wait: by how many bytes each lacks, by when each is answered whatever there is, and by
connection. Sans-IO; must not know what a Fetch asks for, nor where bytes come from.

What is committed counts once for all of them: a Fetch that lacks so many bytes lies in a heap under the count at which
it has them. So a commit costs those that it is enough for, however many wait.
"""

import heapq
from collections.abc import Iterable
from typing import Final, Generic, Protocol, TypeVar

from fastquorum.kernels.lane import Connection
from fastquorum.raft.events import Token
from fastquorum.types import Micros

STALE_MIN: Final = 256
"""Entries of Fetches that are answered which a heap may have before it is made anew."""


class WaitingFetch(Protocol):
    """The part of a parked Fetch that is used here."""

    @property
    def token(self) -> Token: ...
    @property
    def connection(self) -> Connection: ...
    @property
    def deadline_us(self) -> Micros: ...


F = TypeVar("F", bound=WaitingFetch)


class ParkedFetches(Generic[F]):
    """All of one replica."""

    def __init__(self) -> None:
        self._fetches: dict[Token, F] = {}
        self._of: dict[Connection, set[Token]] = {}
        self._by_size: list[tuple[int, Token]] = []
        self._by_deadline: list[tuple[Micros, Token]] = []
        self._counted_bytes = 0

    def __len__(self) -> int:
        return len(self._fetches)

    @property
    def deadline_us(self) -> Micros:
        """When the next one is to be answered whatever there is, or earlier; -1 if none is."""
        return self._by_deadline[0][0] if self._fetches and self._by_deadline else -1

    def add(self, fetch: F, missing_bytes: int) -> None:
        """It waits for so many more bytes to be committed."""
        token = fetch.token
        self._fetches[token] = fetch
        self._of.setdefault(fetch.connection, set()).add(token)
        heapq.heappush(self._by_size, (self._counted_bytes + missing_bytes, token))
        heapq.heappush(self._by_deadline, (fetch.deadline_us, token))
        self._by_size = self._without_stale(self._by_size)
        self._by_deadline = self._without_stale(self._by_deadline)

    def get(self, token: Token) -> F | None:
        """None if it does not wait any more."""
        return self._fetches.get(token)

    def take(self, token: Token) -> F | None:
        """It waits no longer; None if it did not."""
        fetch = self._fetches.pop(token, None)
        if fetch is not None:
            tokens = self._of[fetch.connection]
            tokens.discard(token)
            if not tokens:
                del self._of[fetch.connection]
        return fetch

    def forget(self, connection: Connection) -> None:
        """The connection is gone."""
        for token in self._of.pop(connection, ()):
            del self._fetches[token]

    def tokens(self) -> Iterable[Token]:
        return tuple(self._fetches)

    def committed(self, size_bytes: int) -> list[Token]:
        """So many more bytes are: those that have now what they lacked."""
        self._counted_bytes += size_bytes
        return _popped(self._by_size, self._counted_bytes)

    def overdue(self, now_us: Micros) -> list[Token]:
        """Return the Fetches whose time to wait is over."""
        return _popped(self._by_deadline, now_us)

    def _without_stale(self, heap: list[tuple[int, Token]]) -> list[tuple[int, Token]]:
        if len(heap) <= 2 * len(self._fetches) + STALE_MIN:
            return heap
        kept = [each for each in heap if each[1] in self._fetches]
        heapq.heapify(kept)
        return kept


def _popped(heap: list[tuple[int, Token]], limit: int) -> list[Token]:
    found = []
    while heap and heap[0][0] <= limit:
        found.append(heapq.heappop(heap)[1])
    return found
