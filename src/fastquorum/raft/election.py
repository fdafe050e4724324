"""What must never be forgotten: KIP-595 "Quorum State"."""

from typing import NamedTuple

from fastquorum.types import NO_NODE, Epoch, NodeId, ReplicaKey


class ElectionState(NamedTuple):
    """The epoch, who leads it, and whom this replica voted for in it. Durable before anything that depends on it is
    sent."""

    epoch: Epoch = 0
    leader_id: NodeId = NO_NODE
    voted_key: ReplicaKey | None = None
