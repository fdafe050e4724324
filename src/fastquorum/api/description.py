"""What `describe()` returns, for both twins."""

from typing import NamedTuple

from fastquorum.config import SECOND
from fastquorum.node.causes import LeadershipCause, leadership_cause
from fastquorum.node.io.clock import now_us
from fastquorum.node.io.describing import PeerDescription
from fastquorum.node.io.running import RunningNode
from fastquorum.raft.raft import Description
from fastquorum.types import Endpoint, Epoch, NodeId, Offset


class UnreachablePeer(NamedTuple):
    """A node that this one cannot reach."""

    node_id: NodeId
    """Below -1 for a bootstrap server, whose id is not known."""
    endpoint: Endpoint
    reason: str
    """What failed, for people, such as "Connection refused"."""
    unreachable_s: float
    """How long it has been unreachable, in seconds."""


class QuorumDescription(NamedTuple):
    """The quorum as this node sees it at one moment."""

    cluster_id: str
    node_id: NodeId
    directory_id: str
    role: str
    epoch: Epoch
    leader_id: NodeId
    """-1 while nobody is known to lead."""
    leader_endpoint: Endpoint | None
    start_offset: Offset
    high_watermark: Offset
    flushed_end: Offset
    end_offset: Offset
    voters: tuple[NodeId, ...]
    kraft_version: int
    replicas: tuple[PeerDescription, ...]
    """What a leader knows of those who fetch from it; empty elsewhere."""
    unreachable: tuple[UnreachablePeer, ...] = ()
    """Voters, or bootstrap servers, that this node last tried to reach in vain."""
    last_change: LeadershipCause | None = None
    """Why leadership changed last, as seen by this node; None before any change."""


def description_of(node: RunningNode, state: Description, peers: tuple[PeerDescription, ...]) -> QuorumDescription:
    leadership = node.leadership
    return QuorumDescription(
        cluster_id=node.identity.cluster_id,
        node_id=state.node_id,
        directory_id=str(node.identity.directory_id),
        role=state.role,
        epoch=state.epoch,
        leader_id=leadership.leader_id,
        leader_endpoint=leadership.endpoint,
        start_offset=node.log.start_offset,
        high_watermark=node.high_watermark,
        flushed_end=node.log.flushed_end,
        end_offset=node.log.end_offset,
        voters=state.voters.ids,
        kraft_version=state.kraft_version,
        replicas=peers,
        unreachable=tuple(
            UnreachablePeer(each.node_id, each.endpoint, each.reason, max(now_us() - each.since_us, 0) / SECOND)
            for each in node.unreachable
        ),
        last_change=leadership_cause(state.leadership_changes.latest_causes),
    )
