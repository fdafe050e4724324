"""What a node knows of itself at one moment, as plain numbers: for whoever watches over it.

Taken on the replica's thread while its lane goes on. Nothing is counted for it on the way of a commit: offsets tell how
much was appended, fetched and committed. Source of the raft group's meaning: Kafka `KafkaRaftMetrics`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fastquorum.node.causes import counts_by_name
from fastquorum.node.lane.tallies import Moved, RefusedAppends
from fastquorum.node.metadata.metrics import ControllerMetrics, measure_controller
from fastquorum.node.ports import Unreachable
from fastquorum.raft.tally import Elections
from fastquorum.types import NO_NODE, Epoch, Micros, NodeId, Offset

if TYPE_CHECKING:
    from fastquorum.node.replica import Replica

NEVER: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaMetrics:
    """What a leader knows of one replica that fetches from it. Times are how long ago, in microseconds; -1 never."""

    node_id: NodeId
    is_voter: bool
    end_offset: Offset
    lag: int
    """Records that it lacks."""
    since_contact_us: Micros
    since_caught_up_us: Micros


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeMetrics:
    """Times are in microseconds, sizes in bytes; counts are since the node was started."""

    at_us: Micros
    """When this was true, on the monotonic clock."""
    node_id: NodeId
    cluster_id: str
    directory_id: str
    kernels: str

    role: str
    """unattached, prospective, candidate, leader, follower or resigned."""
    is_voter: bool
    epoch: Epoch
    leader_id: NodeId
    """-1 while nobody is known to lead."""
    voted_id: NodeId
    """Whom this replica voted for in this epoch; -1 nobody."""
    voted_directory_id: str
    voter_count: int
    is_voter_change_pending: bool
    """A voter set lies in the log beyond the high watermark."""
    unreachable_voters: int
    """Voters of which no endpoint is known."""
    since_leader_contact_us: Micros
    """A follower: since the leader's last good answer; -1 never in this epoch, and on a leader."""
    elections: Elections
    leadership_changes: Mapping[str, int]
    """By what began them: every name of `node.causes.CAUSES`."""

    high_watermark: Offset
    """-1 unknown."""
    log_start: Offset
    log_end: Offset
    log_end_epoch: Epoch
    flushed_end: Offset
    log_bytes: int
    segment_count: int
    sync_count: int
    """Syncs begun."""
    syncing_us: Micros
    """How long the sync under way has lasted; -1 if none is."""
    is_disk_full: bool
    """The log's file system has no room for what is appended: this replica does not lead meanwhile."""
    moved: Moved
    replicas: tuple[ReplicaMetrics, ...]
    """On a leader: those that fetch from it."""

    waiting_records: int
    waiting_bytes: int
    """Bytes of the appends that wait for their commit."""
    refused: RefusedAppends

    connections: int
    accepted: int
    """Connections taken in."""
    replica_cpu_us: Micros
    """Processor time of the replica's thread."""

    controller: ControllerMetrics | None = None
    """The controller's metrics; None unless a controller writes this log."""
    unreachable: tuple[Unreachable, ...] = ()
    """Nodes of the quorum that this one cannot reach."""

    @property
    def is_leader(self) -> bool:
        return self.role == "leader"

    @property
    def observer_count(self) -> int:
        """The number of observers, as far as the leader knows; 0 elsewhere."""
        return sum(not each.is_voter for each in self.replicas)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the core of a replica does not know of its node."""

    at_us: Micros
    directory_id: str
    kernels: str
    cluster_id: str
    sync_began_us: Micros
    connections: int
    accepted: int
    replica_cpu_us: Micros


def measure(replica: "Replica", around: Surroundings) -> NodeMetrics:
    """Everything, at one moment. On the replica's thread."""
    now_us = around.at_us
    shell, raft, log = replica.shell, replica.raft.describe(), replica.log
    with shell.lock:
        state = shell.look(now_us)
        sizes = log.sizes()
        end_offset, flushed_end, start_offset = log.end_offset, log.flushed_end, log.start_offset
        moved = shell.progress.so_far(end_offset)
        last_epoch, is_disk_full = log.last_epoch, log.is_full
        waiting_records, waiting_bytes = shell.waiting()
    contact_us = state.leader_contact_us if state is not None else NEVER
    voted = raft.voted_key
    return NodeMetrics(
        at_us=now_us,
        node_id=raft.node_id,
        cluster_id=around.cluster_id,
        directory_id=around.directory_id,
        kernels=around.kernels,
        role=str(replica.raft.role),
        is_voter=raft.is_voter,
        epoch=raft.epoch,
        leader_id=raft.leader_id,
        voted_id=voted.id if voted is not None else NO_NODE,
        voted_directory_id=str(voted.directory_id) if voted is not None else "",
        voter_count=len(raft.voters),
        is_voter_change_pending=raft.voters_offset >= shell.high_watermark >= 0,
        unreachable_voters=raft.unreachable_voters,
        since_leader_contact_us=_since(contact_us, now_us),
        elections=raft.elections,
        leadership_changes=counts_by_name(raft.leadership_changes.counts),
        high_watermark=shell.high_watermark,
        log_start=start_offset,
        log_end=end_offset,
        log_end_epoch=last_epoch,
        flushed_end=flushed_end,
        log_bytes=sizes.size_bytes,
        segment_count=sizes.segment_count,
        sync_count=sizes.sync_count,
        syncing_us=_since(around.sync_began_us, now_us),
        is_disk_full=is_disk_full,
        moved=moved,
        replicas=tuple(
            ReplicaMetrics(
                node_id=peer.key.id,
                is_voter=peer.is_voter,
                end_offset=peer.end_offset,
                lag=max(end_offset - peer.end_offset, 0),
                since_contact_us=_since(peer.last_contact_us, now_us),
                since_caught_up_us=_since(peer.last_caught_up_us, now_us),
            )
            for peer in (state.peers if state is not None else ())
        ),
        waiting_records=waiting_records,
        waiting_bytes=waiting_bytes,
        refused=shell.refusals.so_far,
        connections=around.connections,
        accepted=around.accepted,
        replica_cpu_us=around.replica_cpu_us,
        unreachable=replica.reachability.unreachable,
        controller=None if replica.controller is None else measure_controller(replica.controller, now_us),
    )


def _since(at_us: Micros, now_us: Micros) -> Micros:
    return max(now_us - at_us, 0) if at_us >= 0 else NEVER
