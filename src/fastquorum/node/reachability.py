"""Which nodes of the quorum this one cannot reach, since when, and why. Sans-IO.

What is known is replaced as a whole, so that any thread may look at it. The listener is told of a node that has been
out of reach for a while, and when it is back: not of every attempt. Belongs to the replica's thread.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from fastquorum.config import SECOND
from fastquorum.node.connections import Connections
from fastquorum.node.ports import Listener, Unreachable
from fastquorum.raft import events as ev
from fastquorum.types import Endpoint, Micros, NodeId
from fastquorum.wire import ErrorCode, Message
from fastquorum.wire.quorum import BeginQuorumEpochResponse, EndQuorumEpochResponse, VoteResponse

TOLD_AFTER_US: Final = 2 * SECOND
"""A node that is started anew is back before anybody is told."""
STALE_US: Final = 10 * SECOND
"""A node that was not tried for so long may be back: nothing is said of it."""
_REASONS: Final[Mapping[int, str]] = {
    ErrorCode.INCONSISTENT_CLUSTER_ID: "it is of another cluster (INCONSISTENT_CLUSTER_ID)",
    ErrorCode.INVALID_VOTER_KEY: (
        "another node, or one with another directory id, answers there (INVALID_VOTER_KEY): compare the voters' "
        "addresses"
    ),
}
"""What a voter's answer says of who it is, if it is not the voter that was asked."""
_NAMES_A_VOTER: Final = (VoteResponse, BeginQuorumEpochResponse, EndQuorumEpochResponse)
"""Answers to requests that say which voter they mean."""


class _Refusal(NamedTuple):
    code: int
    since_us: Micros
    heard_us: Micros


class Reachability:
    """Of one replica."""

    def __init__(
        self, connections: Connections, listener: Listener, endpoint_of: Callable[[NodeId], Endpoint | None]
    ) -> None:
        self.unreachable: tuple[Unreachable, ...] = ()
        """As of the last look."""
        self.looked_us: Micros = 0
        self._refusals: dict[NodeId, _Refusal] = {}
        """Of voters that are reached, and say that they are not the ones that were asked."""
        self._connections = connections
        self._listener = listener
        self._endpoint_of = endpoint_of
        self._told: dict[NodeId, Unreachable] = {}
        self._told_foreign: set[NodeId] = set()

    def look(self, now_us: Micros) -> None:
        """Learn what is so now, and tell what has been so for long enough."""
        self.looked_us = now_us
        failing = {each.node_id: each for each in self._connections.unreachable()}
        for node_id, refusal in self._refusals.items():
            endpoint = self._endpoint_of(node_id)
            if node_id not in failing and endpoint is not None:
                reason = _REASONS[refusal.code]
                failing[node_id] = Unreachable(node_id, endpoint, reason, refusal.since_us, refusal.heard_us)
        found = {node_id: each for node_id, each in failing.items() if now_us - each.tried_us < STALE_US}
        if found or self.unreachable:
            self.unreachable = tuple(found[node_id] for node_id in sorted(found))
        for node_id, peer in found.items():
            is_news = node_id not in self._told and not self._is_foreign(node_id)
            if is_news and now_us - peer.since_us >= TOLD_AFTER_US:
                self._told[node_id] = peer
                self._listener.on_reach(peer, False)
        for node_id in [node_id for node_id in self._told if node_id not in found]:
            peer = self._told.pop(node_id)
            if node_id not in failing:
                self._listener.on_reach(peer, True)

    def on_event(self, event: ev.Event, now_us: Micros) -> None:
        """A voter says that it is of another cluster or another node, or says so no longer."""
        if not isinstance(event, ev.ResponseReceived | ev.FetchResponseReceived):
            return
        source, code = event.source, _error_of(event.message)
        was = self._refusals.get(source)
        if code in _REASONS:
            if was is not None and was.code == code:
                self._refusals[source] = was._replace(heard_us=now_us)
                return
            self._refusals[source] = _Refusal(code, now_us, now_us)
            self._tell_foreign(source)
            self.look(now_us)
        elif was is not None and (was.code != ErrorCode.INVALID_VOTER_KEY or isinstance(event.message, _NAMES_A_VOTER)):
            del self._refusals[source]

    def _tell_foreign(self, node_id: NodeId) -> None:
        if self._is_foreign(node_id) and node_id not in self._told_foreign:
            self._told_foreign.add(node_id)
            self._listener.on_other_cluster(node_id, self._endpoint_of(node_id))

    def _is_foreign(self, node_id: NodeId) -> bool:
        """Does this voter say that it is of another cluster? The listener is told of that by itself."""
        refusal = self._refusals.get(node_id)
        return refusal is not None and refusal.code == ErrorCode.INCONSISTENT_CLUSTER_ID

    def text(self) -> str:
        """All of it, for people; empty if every node that was tried is reached."""
        return unreachable_text(self.unreachable, self.looked_us)


def _error_of(message: Message) -> int:
    """At the top level, or for the partition of a request that names a voter."""
    code: int = getattr(message, "error_code", ErrorCode.NONE)
    if code == ErrorCode.NONE and isinstance(message, _NAMES_A_VOTER):
        return next((each.error_code for topic in message.topics for each in topic.partitions), code)
    return code


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
