"""Builds a simulated node by its seed's choices."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from fastquorum.config import QuorumConfig
from fastquorum.kernels import Kernels
from fastquorum.kernels.lane import Lane
from fastquorum.node.assembly import Member
from fastquorum.sim.clock import LocalClock
from fastquorum.sim.environment import CLUSTER_ID, SimEnvironment
from fastquorum.sim.network import endpoint_of
from fastquorum.sim.swarm import ClusterSwarm
from fastquorum.storage.identity import LogKind
from fastquorum.types import ZERO_UUID, NodeId, ReplicaKey, Uuid, Voter, VoterSet


class Twin(NamedTuple):
    """The kernels and lane of a node: both pure, or both native."""

    kernels: Kernels
    lane_class: Callable[..., Lane]


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """The parts of a node that are the same through all its lives."""

    member: Member
    config: QuorumConfig
    kernels: Kernels
    lane_class: Callable[..., Lane]
    clock: LocalClock
    has_lane_thread: bool
    """Whether the steady state goes on while the replica's thread is busy (the native reactor)."""


def key_of(node_id: NodeId) -> ReplicaKey:
    """Return a node's key: its directory never changes."""
    return ReplicaKey(node_id, Uuid(node_id.to_bytes(16, "big")))


def build_node(
    node_id: NodeId, environment: SimEnvironment, twins: tuple[Twin, ...], cluster: ClusterSwarm | None
) -> Build:
    """Return the parts of a node; with a cluster it is one of its controllers."""
    swarm, voters = environment.swarm, environment.ghost.voters
    at = node_id - 1
    member = Member(
        key=key_of(node_id),
        cluster_id=CLUSTER_ID,
        voters=_voter_set(voters, swarm.kraft_version),
        kraft_version=swarm.kraft_version,
        log_kind=LogKind.USER if cluster is None else LogKind.METADATA,
        topic_name="quorum",
        listeners=(endpoint_of(node_id),),
        bootstrap=tuple(endpoint_of(voter) for voter in voters) if node_id not in voters else (),
        first_records=() if cluster is None else cluster.first_records,
        controller=None if cluster is None else cluster.settings(CLUSTER_ID),
    )
    twin = twins[-1 if swarm.native[at] else 0]
    return Build(
        member=member,
        config=swarm.config,
        kernels=twin.kernels,
        lane_class=twin.lane_class,
        clock=LocalClock(environment.scheduler, swarm.clock_zeros[at], swarm.clock_rates[at]),
        has_lane_thread=swarm.lane_threads[at],
    )


def _voter_set(voters: tuple[NodeId, ...], kraft_version: int) -> VoterSet:
    """Return the voters; static voters have no directories."""
    keys = [key_of(voter) if kraft_version else ReplicaKey(voter, ZERO_UUID) for voter in voters]
    return VoterSet([Voter(key, (endpoint_of(key.id),)) for key in keys])
