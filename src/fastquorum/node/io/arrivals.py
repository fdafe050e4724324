"""What has come on a node's connections and waits for the replica's thread: what is urgent is looked at first.

Urgent is whatever keeps a quorum or a broker's session alive: raft's own, answers from other nodes, connections that
come and go, heartbeats. What else clients and brokers ask may wait for it, a slice at a time, so that no request for a
thousand topics fences a broker; it never waits for ever, since each turn ends with a slice. Nothing overtakes what came
before it on its own connection. How much one connection, and all of them, may have waiting is the transport's to
limit. Sans-IO; belongs to the replica's thread. Source: KAFKA-15019.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from fastquorum.kernels import shell as native
from fastquorum.kernels.lane import Connection
from fastquorum.node.inbound import QUORUM_APIS
from fastquorum.wire import ApiKey

Arrival = tuple[int, Connection, bytes, int, int]
"""Kind, connection, frame, a sync's token and errno: see `kernels.shell`."""
SLICE_FRAMES: Final = 32
"""Looked at together: about a millisecond's."""
SLICE_BYTES: Final = 16 * 1024
"""Of what may wait, looked at together: a request for many things takes longer than one for a single thing."""
_URGENT: Final = frozenset(
    key.to_bytes(2, "big") for key in (*QUORUM_APIS, ApiKey.FETCH, ApiKey.BROKER_HEARTBEAT, ApiKey.METADATA_HEARTBEAT)
)


class Arrivals:
    """Two queues, each in the order of arrival."""

    def __init__(self, is_outgoing: Callable[[Connection], bool]) -> None:
        """`is_outgoing`: has this node made the connection? Then what comes on it are answers."""
        self._is_outgoing = is_outgoing
        self._urgent: deque[Arrival] = deque()
        self._others: deque[Arrival] = deque()
        self._behind: dict[Connection, int] = {}
        """How many of the others are of a connection."""

    def __bool__(self) -> bool:
        return bool(self._urgent or self._others)

    def add(self, arrivals: Iterable[Arrival]) -> None:
        for each in arrivals:
            kind, connection, frame, _, _ = each
            may_wait = kind == native.EVENT_FRAME and frame[:2] not in _URGENT and not self._is_outgoing(connection)
            if may_wait or connection in self._behind:
                self._others.append(each)
                self._behind[connection] = self._behind.get(connection, 0) + 1
            else:
                self._urgent.append(each)

    def take_urgent(self) -> list[Arrival]:
        """The next few of what is urgent; empty if nothing is."""
        return [self._urgent.popleft() for _ in range(min(len(self._urgent), SLICE_FRAMES))]

    def take_others(self) -> list[Arrival]:
        """A slice of what may wait, at least one if there is any."""
        taken: list[Arrival] = []
        size_bytes = 0
        while self._others and len(taken) < SLICE_FRAMES and size_bytes < SLICE_BYTES:
            each = self._others.popleft()
            taken.append(each)
            size_bytes += len(each[2])
            self._forget_one(each[1])
        return taken

    def take_all(self) -> list[Arrival]:
        """The end: whatever is left."""
        left = [*self._urgent, *self._others]
        self._urgent.clear()
        self._others.clear()
        self._behind.clear()
        return left

    def _forget_one(self, connection: Connection) -> None:
        left = self._behind[connection] - 1
        if left:
            self._behind[connection] = left
        else:
            del self._behind[connection]
