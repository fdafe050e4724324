"""Builds a replica out of its parts: the one wiring that real nodes and the simulator share."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from fastquorum.config import QuorumConfig
from fastquorum.controller.ids import random_id
from fastquorum.controller.state.controller_state import ControllerSettings
from fastquorum.kernels import Kernels
from fastquorum.kernels.lane import Lane, LaneIdentity
from fastquorum.lease import LeasePromise
from fastquorum.node.clients.context import ClientContext
from fastquorum.node.clients.server import ClientApis
from fastquorum.node.lane.port import Shell
from fastquorum.node.lane.python_shell import LaneShell
from fastquorum.node.metadata.controller import MetadataController
from fastquorum.node.metadata.forwarding import Forwarding
from fastquorum.node.metadata.registration import Registration, registration_request
from fastquorum.node.metadata.replay import Replay
from fastquorum.node.metadata.requests import controller_apis
from fastquorum.node.metadata.snapshots import SnapshotKeeper
from fastquorum.node.network.peers import Peers
from fastquorum.node.network.request_reader import RequestReader
from fastquorum.node.network.requests import UNANSWERED_MAX
from fastquorum.node.ports import LaneLock, ReplicaListener, SnapshotWriter, Transport, WallClock
from fastquorum.node.records import control_batches as control
from fastquorum.node.records.bootstrap_records import first_values
from fastquorum.node.records.no_ops import NoOps
from fastquorum.node.replica import Replica, Services
from fastquorum.node.view import ReplicaView
from fastquorum.raft.ports import Random
from fastquorum.raft.raft import Raft
from fastquorum.storage.identity import LogKind
from fastquorum.storage.log.log import Log
from fastquorum.storage.ports import StateStore
from fastquorum.types import METADATA_TOPIC_ID, Endpoint, ReplicaKey, VoterSet
from fastquorum.version import __version__
from fastquorum.wire import frames_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A replica's identity, and what it knew of the quorum when it was formatted."""

    key: ReplicaKey
    cluster_id: str
    voters: VoterSet
    """Static voters, or those of the (0,0) checkpoint."""
    kraft_version: int
    log_kind: LogKind
    topic_name: str
    listeners: tuple[Endpoint, ...]
    """Advertised."""
    bootstrap: tuple[Endpoint, ...] = field(default=())
    first_records: tuple[bytes, ...] = ()
    """The values in a metadata log's bootstrap checkpoint; empty for another log."""
    controller: ControllerSettings | None = None
    """Settings of the controller that alone writes a metadata log; None if none writes this log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The outside, as one replica sees it."""

    transport: Transport
    lock: LaneLock
    states: StateStore
    listener: ReplicaListener
    clock_ms: WallClock
    random: Random
    snapshots: SnapshotWriter


def lane_identity(member: Member) -> LaneIdentity:
    return LaneIdentity(member.key, member.cluster_id, METADATA_TOPIC_ID)


def lane_shell(
    member: Member,
    config: QuorumConfig,
    kernels: Kernels,
    lane_class: Callable[..., Lane],
    log: Log,
    ports: Ports,
    shell_class: type[LaneShell] = LaneShell,
) -> LaneShell:
    """The shell around a lane that works in the replica's and the callers' threads."""
    return shell_class(
        config=config,
        kernels=kernels,
        lane=lane_class(lane_identity(member), log, kernels, config.batch_bytes_max),
        log=log,
        transport=ports.transport,
        lock=ports.lock,
        clock_ms=ports.clock_ms,
    )


def assemble(member: Member, config: QuorumConfig, kernels: Kernels, shell: Shell, log: Log, ports: Ports) -> Replica:
    """A replica over a recovered log and the shell around it; `Replica.start` sets it going.

    Raises CorruptionError if the log's control records, or the quorum state, cannot be read.
    """
    if member.controller is not None:
        # A voter that waits for records says meanwhile, and often enough, that it follows.
        promise = LeasePromise.of(member.controller.session_timeout_us)
        config = replace(config, fetch_wait_us_max=min(config.fetch_wait_us_max, promise.fetch_wait_us_max))
    voter_sets, kraft_versions = control.recovered(kernels, log)
    snapshot = log.snapshot_state
    voters = snapshot.voters if snapshot is not None and snapshot.voters is not None else member.voters
    kraft_version = snapshot.kraft_version if snapshot is not None else member.kraft_version
    raft = Raft(
        key=member.key,
        cluster_id=member.cluster_id,
        config=config,
        log=log,
        random=ports.random,
        election=ports.states.load(),
        voters=voters,
        voters_offset=log.start_offset - 1,
        kraft_version=kraft_version,
        later_voter_sets=voter_sets,
        later_kraft_versions=kraft_versions,
        tells_leaders=member.log_kind is LogKind.METADATA,
        bootstrap=member.bootstrap,
        listeners=member.listeners,
    )
    writes_no_ops = member.log_kind is LogKind.METADATA and member.controller is None
    frames = frames_of(kernels)
    return Replica(
        raft=raft,
        shell=shell,
        kernels=kernels,
        states=ports.states,
        peers=Peers(ports.transport, shell.send, frames, config, f"raft-client-{member.key.id}", __version__),
        reader=RequestReader(frames, () if member.controller is None else controller_apis(member.controller)),
        serve=lambda replica: _services(replica, member, config, kernels, ports),
        transport=ports.transport,
        listener=ports.listener,
        clock_ms=ports.clock_ms,
        first_values=first_values(
            member.first_records, 1 if member.controller is None else member.controller.min_insync_replicas
        ),
        no_ops=NoOps(shell, kernels, config.idle_us_max) if writes_no_ops else None,
    )


def _services(replica: ReplicaView, member: Member, config: QuorumConfig, kernels: Kernels, ports: Ports) -> Services:
    forwarding = Forwarding(replica, config.request_timeout_us)
    controller = None
    if member.controller is not None:
        controller = _controller(replica, forwarding, member, member.controller, config, kernels, ports)
    context = ClientContext(
        replica, member.cluster_id, member.log_kind, member.topic_name, config=config, kernels=kernels
    )
    fast_path = replica.shell.fast_path
    if fast_path is not None and member.log_kind is not LogKind.METADATA:  # whose records Python reads
        fast_path.serve_produce(context.topic_name, context.topic_id, UNANSWERED_MAX)
    return Services(ClientApis(context, forwarding, controller), controller)


def _controller(
    replica: ReplicaView,
    forwarding: Forwarding,
    member: Member,
    settings: ControllerSettings,
    config: QuorumConfig,
    kernels: Kernels,
    ports: Ports,
) -> MetadataController:
    replay = Replay(kernels, replica.shell, replica.reader)
    keeper = SnapshotKeeper(
        kernels, replica, replay, config, ports.snapshots, ports.clock_ms, ports.listener.on_snapshot
    )
    request = registration_request(member.key.id, random_id(ports.random), member.listeners)
    registration = Registration(request, replay, ports.random, config.request_timeout_us)
    return MetadataController(
        settings, replica, replay, keeper, registration, forwarding, config, ports.random, kernels
    )
