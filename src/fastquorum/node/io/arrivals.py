"""What has come on a node's connections and waits for the replica's thread: what the quorum lives by goes first.

| rank | what comes | looked at |
|---|---|---|
| quorum | answers to this node, voters' frames, their connections' ends, syncs | before anything else |
| urgent | raft's requests from others, first Fetches, brokers' heartbeats, others' ends | some slices a turn |
| first | what clients and brokers ask, consumers' Fetches and DescribeQuorum too | one slice a turn |
| again | the same, of connections where it had to wait behind another such request | what the slice has left |

Within a rank connections take turns, a frame at a time, and a connection that asks one thing comes before those that
ask many at once: a thousand of these may have a second's work each. Nothing overtakes what came before it on its own
connection, and nothing waits for ever: each turn ends with a slice of the last two ranks, in which each of them comes
first by turns. How much
one connection, and all of them, may have waiting is the transport's to limit. Sans-IO; belongs to the replica's thread.
Source: KAFKA-15019.
"""

from collections import deque
from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import Final

from fastquorum.kernels import codes
from fastquorum.kernels.lane import Connection
from fastquorum.node.network.request_reader import QUORUM_APIS
from fastquorum.wire import ApiKey

Arrival = tuple[int, Connection, bytes, int, int]
"""Kind, connection, frame, a sync's token and errno: see `kernels.codes`."""
SLICE_FRAMES: Final = 32
"""Looked at together: about a millisecond's."""
SLICE_BYTES: Final = 16 * 1024
"""Bytes of what may wait, looked at together: a request for many things takes longer than one for a single thing."""
URGENT_SLICES: Final = 2
"""Looked at in one turn: timers, and what may wait, come in between, however many strangers hurry."""
_FETCH: Final = ApiKey.FETCH.to_bytes(2, "big")
_URGENT: Final = frozenset(
    key.to_bytes(2, "big")
    for key in (*(QUORUM_APIS - {ApiKey.DESCRIBE_QUORUM}), ApiKey.BROKER_HEARTBEAT, ApiKey.METADATA_HEARTBEAT)
)


class Rank(IntEnum):
    """How soon something is looked at."""

    QUORUM = 0
    URGENT = 1
    FIRST = 2
    AGAIN = 3


class Arrivals:
    """A queue for each connection; and of each rank the connections whose first arrival has it, in turn."""

    def __init__(
        self, is_voters: Callable[[Connection], bool], is_consumers: Callable[[Connection], bool] = lambda _: False
    ) -> None:
        """`is_voters`: does a voter fetch on the connection, or has this node made it? `is_consumers`: does a consumer
        fetch on it?"""
        self._is_voters = is_voters
        self._is_consumers = is_consumers
        self._queues: dict[Connection, deque[Arrival]] = {}
        self._turns: tuple[deque[Connection], ...] = tuple(deque() for _ in Rank)
        self._next_slice: tuple[Rank, Rank] = (Rank.FIRST, Rank.AGAIN)
        """The rank that the next slice of what may wait begins with, and the other one."""

    def __bool__(self) -> bool:
        return bool(self._queues)

    def add(self, arrivals: Iterable[Arrival]) -> None:
        for each in arrivals:
            queue = self._queues.get(each[1])
            if queue is None:
                self._queues[each[1]] = deque([each])
                self._turns[self._rank(each, Rank.FIRST)].append(each[1])
            else:
                queue.append(each)

    def take_urgent(self) -> list[Arrival]:
        """The next few of what may not wait, the quorum's first; empty if there is nothing."""
        taken: list[Arrival] = []
        for rank in (Rank.QUORUM, Rank.URGENT):
            while self._turns[rank] and len(taken) < SLICE_FRAMES:
                taken.append(self._take(rank))
        return taken

    def take_others(self) -> list[Arrival]:
        """A slice of what may wait, at least one if there is any."""
        taken: list[Arrival] = []
        size_bytes = 0
        ranks = self._next_slice
        self._next_slice = ranks[1], ranks[0]
        while len(taken) < SLICE_FRAMES and size_bytes < SLICE_BYTES:
            rank = next((each for each in ranks if self._turns[each]), None)
            if rank is None:
                break
            taken.append(self._take(rank))
            size_bytes += len(taken[-1][2])
            ranks = (Rank.FIRST, Rank.AGAIN)
        return taken

    def take_all(self) -> list[Arrival]:
        """The end: whatever is left, in its ranks."""
        left = [each for turns in self._turns for connection in turns for each in self._queues[connection]]
        self._queues.clear()
        for turns in self._turns:
            turns.clear()
        return left

    def _take(self, rank: Rank) -> Arrival:
        """The first of the connection whose turn it is; whoever is behind it waits for a turn of its own."""
        connection = self._turns[rank].popleft()
        queue = self._queues[connection]
        taken = queue.popleft()
        if queue:
            self._turns[self._rank(queue[0], Rank.AGAIN)].append(connection)
        else:
            del self._queues[connection]
        return taken

    def _rank(self, arrival: Arrival, waiting: Rank) -> Rank:
        """`waiting`: the rank of what may wait."""
        kind, connection, frame, _, _ = arrival
        if kind == codes.EVENT_SYNCED or self._is_voters(connection):
            return Rank.QUORUM
        if kind != codes.EVENT_FRAME:
            return Rank.URGENT
        key = frame[:2]
        if key in _URGENT or (key == _FETCH and not self._is_consumers(connection)):
            return Rank.URGENT
        return waiting
