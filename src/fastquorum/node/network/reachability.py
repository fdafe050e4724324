"""Which nodes of the quorum this one cannot reach, since when, and why. Sans-IO.

What is known is replaced as a whole, so that any thread may look at it. The listener is told of a node that has been
out of reach for a while, and when it is back: not of every attempt. Belongs to the replica's thread.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from fastquorum.config import SECOND
from fastquorum.node.network.connections import Connections
from fastquorum.node.ports import ReplicaListener, Unreachable
from fastquorum.raft import events as ev
from fastquorum.types import Endpoint, Micros, NodeId
from fastquorum.wire import ErrorCode, Message
from fastquorum.wire.messages.quorum import BeginQuorumEpochResponse, VoteResponse

REPORT_AFTER_US: Final = 2 * SECOND
"""A node that is started anew is back before anybody is told."""
STALE_US: Final = 10 * SECOND
"""A node that was not tried for so long may be back: nothing is said of it."""
_FOREIGN: Final = "it is of another cluster (INCONSISTENT_CLUSTER_ID)"
_REASONS: Final[Mapping[int, str]] = {
    ErrorCode.INCONSISTENT_CLUSTER_ID: _FOREIGN,
    ErrorCode.INVALID_VOTER_KEY: (
        "another node, or one with another directory id, answers there (INVALID_VOTER_KEY): compare the voters' "
        "addresses and directory ids"
    ),
}
"""What a voter's answer says of who it is, if it is not the voter that was asked."""
_NAMES_A_VOTER: Final = (VoteResponse, BeginQuorumEpochResponse)
"""Answers to requests that say which voter they mean: without an error they come from that voter."""


class Reachability:
    """Finds and reports the nodes that one replica cannot reach."""

    def __init__(
        self, connections: Connections, listener: ReplicaListener, endpoint_of: Callable[[NodeId], Endpoint | None]
    ) -> None:
        self.unreachable: tuple[Unreachable, ...] = ()
        """The nodes that could not be reached at the last look."""
        self.looked_us: Micros = 0
        self._refusals: dict[NodeId, Unreachable] = {}
        """The last refusal of each voter that is reached, but says that it is not the one that was asked."""
        self._connections = connections
        self._listener = listener
        self._endpoint_of = endpoint_of
        self._reported: dict[NodeId, Unreachable] = {}
        self._reported_foreign: set[NodeId] = set()

    def look(self, now_us: Micros) -> None:
        """Learn what is so now, and tell what has been so for long enough."""
        self.looked_us = now_us
        links = {each.node_id: each for each in self._connections.unreachable()}
        failing = {**self._refusals, **links}
        found = {
            node_id: each
            for node_id, each in failing.items()
            if now_us - each.tried_us < STALE_US and (node_id in links or each.endpoint == self._endpoint_of(node_id))
        }
        if found or self.unreachable:
            self.unreachable = tuple(found[node_id] for node_id in sorted(found))
        for node_id, peer in found.items():
            is_news = node_id not in self._reported and peer.reason != _FOREIGN  # the listener knows of these
            if is_news and now_us - peer.since_us >= REPORT_AFTER_US:
                self._reported[node_id] = peer
                self._listener.on_reach(peer, False)
        for node_id in [node_id for node_id in self._reported if node_id not in found]:
            peer = self._reported.pop(node_id)
            if node_id not in failing:
                self._listener.on_reach(peer, True)

    def on_event(self, event: ev.Event, now_us: Micros) -> None:
        """A voter says that it is of another cluster or another node, or says so no longer."""
        if not isinstance(event, ev.ResponseReceived | ev.FetchResponseReceived):
            return
        source, code = event.source, _error_of(event.message)
        was, reason, endpoint = self._refusals.get(source), _REASONS.get(code), self._endpoint_of(source)
        if reason == _FOREIGN and source not in self._reported_foreign:
            self._reported_foreign.add(source)
            self._listener.on_other_cluster(source, endpoint)
        if reason is None or endpoint is None:
            if was is not None and (was.reason == _FOREIGN or _is_of_the_voter(event.message)):
                del self._refusals[source]
        elif was is not None and (was.reason, was.endpoint) == (reason, endpoint) and now_us - was.tried_us < STALE_US:
            self._refusals[source] = was._replace(tried_us=now_us)
        else:
            self._refusals[source] = Unreachable(source, endpoint, reason, now_us, now_us)
            self.look(now_us)

    def text(self) -> str:
        """All of it, for people; empty if every node that was tried is reached."""
        return unreachable_text(self.unreachable, self.looked_us)


def _error_of(message: Message) -> int:
    """Return the top-level error, or else the partition's if the request names a voter."""
    code: int = getattr(message, "error_code", ErrorCode.NONE)
    if code == ErrorCode.NONE and isinstance(message, _NAMES_A_VOTER):
        return next((each.error_code for topic in message.topics for each in topic.partitions), code)
    return code


def _is_of_the_voter(message: Message) -> bool:
    """Return whether only the voter that was asked gives this answer: errors come before it looks who is meant."""
    return isinstance(message, _NAMES_A_VOTER) and _error_of(message) == ErrorCode.NONE


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
