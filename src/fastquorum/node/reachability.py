"""Which nodes of the quorum this one cannot reach, since when, and why. Sans-IO.

What is known is replaced as a whole, so that any thread may look at it. The listener is told of a node that has been
out of reach for a while, and when it is back: not of every attempt. Belongs to the replica's thread.
"""

from collections.abc import Callable, Iterable
from typing import Final

from fastquorum.config import SECOND
from fastquorum.node.connections import Connections
from fastquorum.node.ports import Listener, Unreachable
from fastquorum.raft import events as ev
from fastquorum.types import Endpoint, Micros, NodeId
from fastquorum.wire import ErrorCode

TOLD_AFTER_US: Final = 2 * SECOND
"""A node that is started anew is back before anybody is told."""
STALE_US: Final = 10 * SECOND
"""A node that was not tried for so long may be back: nothing is said of it."""
_FOREIGN: Final = "it is of another cluster (INCONSISTENT_CLUSTER_ID)"


class Reachability:
    """Of one replica."""

    def __init__(
        self, connections: Connections, listener: Listener, endpoint_of: Callable[[NodeId], Endpoint | None]
    ) -> None:
        self.unreachable: tuple[Unreachable, ...] = ()
        """As of the last look."""
        self.looked_us: Micros = 0
        self.foreign: dict[NodeId, Micros] = {}
        """Voters that say they are of another cluster, and when they first did."""
        self._connections = connections
        self._listener = listener
        self._endpoint_of = endpoint_of
        self._told: dict[NodeId, Unreachable] = {}
        self._told_foreign: set[NodeId] = set()

    def look(self, now_us: Micros) -> None:
        """Learn what is so now, and tell what has been so for long enough."""
        self.looked_us = now_us
        failing = {each.node_id: each for each in self._connections.unreachable()}
        found = {node_id: each for node_id, each in failing.items() if now_us - each.tried_us < STALE_US}
        for node_id, since_us in self.foreign.items():
            endpoint = self._endpoint_of(node_id)
            if node_id not in found and endpoint is not None:
                found[node_id] = Unreachable(node_id, endpoint, _FOREIGN, since_us, now_us)
        if found or self.unreachable:
            self.unreachable = tuple(found[node_id] for node_id in sorted(found))
        for node_id, peer in found.items():
            is_news = node_id not in self._told and node_id not in self.foreign  # the listener knows of these
            if is_news and now_us - peer.since_us >= TOLD_AFTER_US:
                self._told[node_id] = peer
                self._listener.on_reach(peer, False)
        for node_id in [node_id for node_id in self._told if node_id not in found]:
            peer = self._told.pop(node_id)
            if node_id not in failing:
                self._listener.on_reach(peer, True)

    def on_event(self, event: ev.Event, now_us: Micros) -> None:
        """A voter says that it is of another cluster, or says so no longer."""
        if not isinstance(event, ev.ResponseReceived | ev.FetchResponseReceived):
            return
        if getattr(event.message, "error_code", ErrorCode.NONE) != ErrorCode.INCONSISTENT_CLUSTER_ID:
            self.foreign.pop(event.source, None)
        elif event.source not in self.foreign:
            self.foreign[event.source] = now_us
            if event.source not in self._told_foreign:
                self._told_foreign.add(event.source)
                self._listener.on_other_cluster(event.source, self._endpoint_of(event.source))
            self.look(now_us)

    def text(self) -> str:
        """All of it, for people; empty if every node that was tried is reached."""
        return unreachable_text(self.unreachable, self.looked_us)


def name_of(peer: Unreachable) -> str:
    """A bootstrap server has no id of a node."""
    who = f"node {peer.node_id}" if peer.node_id >= 0 else "the bootstrap server"
    return f"{who} at {peer.endpoint.address}"


def unreachable_text(peers: Iterable[Unreachable], now_us: Micros) -> str:
    """Whom this node cannot reach, for how long, and why."""
    return "; ".join(
        f"{name_of(peer)} cannot be reached for {max(now_us - peer.since_us, 0) / SECOND:.1f} s: {peer.reason}"
        for peer in peers
    )
