"""Requests that raft/ has sent: at most one per node, with timeout and backoff. Source: KIP-595; Kafka
`RequestManager`.

A node is READY, AWAITING one answer (by correlation id, until the request's timeout) or BACKING_OFF. Correlation ids
stay below 2^30 - 1; the others are the lane's and the handshake's.
"""

from typing import Final, NamedTuple

from fastquorum.types import Micros, NodeId

CORRELATION_ID_MAX: Final = 0x3FFF_FFFE


class _Node(NamedTuple):
    ready_at_us: Micros
    """End of the backoff, or when the awaited answer is given up."""
    awaited: int
    """Correlation id; -1 while backing off."""


class InFlight:
    """The requests in flight of one replica. Forgotten altogether at every change of role, so that late answers
    find nobody."""

    def __init__(self, request_timeout_us: Micros, retry_backoff_us: Micros) -> None:
        self._request_timeout_us = request_timeout_us
        self._retry_backoff_us = retry_backoff_us
        self._nodes: dict[NodeId, _Node] = {}
        self._next_id = 0

    def ready_at(self, node_id: NodeId, now_us: Micros) -> Micros:
        """When this node may be asked (again): not later than now_us means now."""
        node = self._nodes.get(node_id)
        return now_us if node is None else max(node.ready_at_us, now_us)

    def busy_until(self, now_us: Micros) -> Micros:
        """When the last awaited answer is given up; now_us if none is awaited."""
        return max((node.ready_at_us for node in self._nodes.values() if node.awaited >= 0), default=now_us)

    def sent(self, node_id: NodeId, now_us: Micros) -> int:
        """A request goes to this node: its correlation id."""
        assert self.ready_at(node_id, now_us) <= now_us, f"node {node_id} has a request in flight"
        correlation_id, self._next_id = self._next_id, (self._next_id + 1) % (CORRELATION_ID_MAX + 1)
        self._nodes[node_id] = _Node(now_us + self._request_timeout_us, correlation_id)
        return correlation_id

    def answered(self, node_id: NodeId, correlation_id: int) -> bool:
        """Take an answer in; False if it is not the one awaited."""
        node = self._nodes.get(node_id)
        if node is None or node.awaited < 0 or node.awaited != correlation_id:
            return False
        del self._nodes[node_id]
        return True

    def back_off(self, node_id: NodeId, now_us: Micros) -> None:
        """Leave this node alone for a moment."""
        self._nodes[node_id] = _Node(now_us + self._retry_backoff_us, -1)

    def reset(self) -> None:
        self._nodes.clear()
