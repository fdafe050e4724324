"""A running node: a data directory, a replica over it, and the thread it lives in. What the public API and the
command line drive.

Methods may be called from any thread, unless they say otherwise. An `Observer` hears on the replica's thread and must
not block.
"""

import secrets
import socket
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from fastquorum.closing import end_all
from fastquorum.config import QuorumConfig
from fastquorum.errors import FastQuorumError, FatalError, UsageError
from fastquorum.kernels import Kernels
from fastquorum.kernels.producers import ProducerState
from fastquorum.kernels.stages import StageHistogram, TraceRead
from fastquorum.node.assembly import Member, Ports, assemble
from fastquorum.node.causes import LeadershipCause, leadership_cause
from fastquorum.node.io import directory as directories
from fastquorum.node.io import handles
from fastquorum.node.io.callers.gate import Gate
from fastquorum.node.io.callers.port import LoopBridge
from fastquorum.node.io.callers.tickets import LoopCallers
from fastquorum.node.io.chance import Chance
from fastquorum.node.io.clock import wall_clock_ms
from fastquorum.node.io.describing import PeerDescription, peer_descriptions
from fastquorum.node.io.machines import Machine
from fastquorum.node.io.observing import Leadership, Observer, ObserverBridge
from fastquorum.node.io.snapshot_thread import SnapshotThread
from fastquorum.node.metrics import NodeMetrics, Surroundings, measure
from fastquorum.node.ports import Unreachable
from fastquorum.node.replica import Replica
from fastquorum.raft import events as ev
from fastquorum.raft.raft import Description
from fastquorum.storage.identity import Identity
from fastquorum.types import Endpoint, Epoch, Micros, NodeId, Offset

GRACE_S: Final = 3.5
"""What a graceful stop may take before the replica is halted; the whole stays under 5 s."""
HALT_S: Final = 1.0


class RunningNode(handles.Guarded):
    """Made by `starting.start_node`."""

    _CHILD_MAY = frozenset(("abort", "name", "request_stop", "stop"))

    def __init__(
        self,
        *,
        config: QuorumConfig,
        kernels: Kernels,
        opened: directories.OpenDirectory,
        machine: Machine,
        listening: socket.socket,
        advertised: Endpoint,
        listening_note: str,
        member: Member,
    ) -> None:
        super().__init__()
        identity = opened.identity
        self.config = config
        self.kernels = kernels
        self.identity: Identity = identity
        self.advertised = advertised
        self.listening_note = listening_note
        """What people have to be told of where it listens; empty if nothing."""
        self.metrics_endpoint: Endpoint | None = None
        """Where its metrics are served, if they are."""
        self._companion: handles.Companion | None = None
        self._opened = opened
        self._lock = threading.Lock()
        self.is_controller = member.controller is not None
        """It is one of the cluster's controllers, which alone write its log."""
        self._gate = Gate(is_controlled=self.is_controller, error=lambda: self.error)
        self._end_error: FastQuorumError | None = None
        self.is_over = False
        """Its thread has ended, and its directory is closed."""
        self._listening = listening
        self._machine = machine
        self._transport = machine.transport
        self._telling = ObserverBridge(
            opened.log, self._lock, lambda: self.high_watermark, lambda error: self._reactor.on_stopped(error)
        )
        self._snapshots = SnapshotThread(opened.disk, kernels, self._later)
        ports = Ports(
            transport=machine.transport,
            lock=self._lock,
            states=opened.states,
            listener=self._telling,
            clock_ms=wall_clock_ms,
            random=Chance(secrets.randbits(64)),
            snapshots=self._snapshots,
        )
        self._shell = machine.make_shell(member, opened.log, ports)
        self.thread_callers = machine.thread_callers(self._gate)
        self._replica: Replica = assemble(member, config, kernels, self._shell, opened.log, ports)
        self._reactor = machine.make_reactor(self._lock, listening, f"fastquorum-{identity.node_id}", self._on_end)
        self.log = opened.log
        """Offsets may be looked at from any thread; everything else goes through `read`."""

    def start(self, observer: Observer) -> None:
        """Set it going. Once. FatalError if it cannot be: whoever made it then closes what it was made of."""
        self._telling.begin(observer)
        handles.watch(self)
        try:
            self._reactor.start(self._replica)
        except FatalError:
            handles.forget(self)
            raise

    def accompany(self, companion: handles.Companion) -> None:
        """Close it when this handle is closed; a node that ends by itself leaves it to tell so. Once."""
        self._companion = companion

    # --- appends and reads --------------------------------------------------------------------------------------------

    def loop_callers(self, bridge: LoopBridge) -> LoopCallers:
        """Return the way in for one event loop, in which this is called."""
        return self._machine.loop_callers(self._gate, bridge)

    def producer(self, producer_id: int) -> ProducerState | None:
        """What a producer has in this leader's log, committed or not. Raises NotLeader, Overloaded, ClosedError."""
        self.check_open()
        return self._shell.producer(producer_id)

    def watch_commit(self) -> None:
        """Have the observer told when the high watermark moves next. Look at it after this, and before waiting."""
        self._shell.watch_commit()

    def read(self, offset: Offset, bytes_max: int, end_offset: Offset) -> bytes:
        """Whole batches from `offset` on, below end_offset. OffsetOutOfRange, CorruptionError."""
        self.check_open()
        return self._replica.reader.read(offset, bytes_max, end_offset)

    @property
    def leadership(self) -> Leadership:
        """The leadership as far as it is known here."""
        return self._telling.leadership

    @property
    def last_change(self) -> LeadershipCause | None:
        """Why leadership changed last, as seen here."""
        return leadership_cause(self._replica.raft.latest_causes)

    @property
    def is_ready(self) -> bool:
        """A leader is known, and the high watermark is valid in its epoch."""
        return self._telling.is_ready

    @property
    def high_watermark(self) -> Offset:
        return self._shell.high_watermark

    @property
    def is_leader(self) -> bool:
        """True while appends are accepted here."""
        return self._shell.is_leader

    def stage_histograms(self) -> dict[str, StageHistogram]:
        """How long commits took here since it was opened, by the names of `kernels.stages.STAGES`."""
        return self._shell.stage_histograms()

    def trace_start(self, capacity: int) -> None:
        """Record the latest `capacity` batches from now on. ClosedError, UsageError."""
        self.check_open()
        self._shell.trace_start(capacity)

    def trace_stop(self) -> None:
        self._shell.trace_stop()

    def trace_read(self) -> TraceRead:
        """Return what was recorded so far."""
        return self._shell.trace_read()

    @property
    def error(self) -> FastQuorumError | None:
        """What stopped it; None while it runs, and after a graceful stop."""
        return self._end_error or self._shell.error

    @property
    def role(self) -> str:
        """The role at this moment; it may have changed when this returns."""
        raft = self._replica.raft
        return str(raft.role) if raft.is_voter else "observer"

    @property
    def unreachable(self) -> tuple[Unreachable, ...]:
        """Nodes of the quorum that this one cannot reach."""
        return self._replica.reachability.unreachable

    def not_leader(self) -> FastQuorumError:
        """The error that names who leads."""
        return self._replica.not_leader()

    # --- asking the replica's thread ----------------------------------------------------------------------------------

    def describe(self, done: Callable[[Description, tuple[PeerDescription, ...]], None]) -> None:
        """Have `done` called on the replica's thread with what it knows."""
        self.check_open()

        def command(replica: Replica, now: Micros) -> None:
            with self._lock:
                state = self._shell.look(now)
            done(replica.raft.describe(), peer_descriptions(state, now))

        self._reactor.post(command)

    def measure(self, done: Callable[[NodeMetrics], None]) -> None:
        """Have `done` called on the replica's thread with its numbers, while the lane goes on. Never, if it is over."""
        self._reactor.post(lambda replica, now: done(measure(replica, self._surroundings(now))))

    def _surroundings(self, now: Micros) -> Surroundings:
        identity = self.identity
        return Surroundings(
            at_us=now,
            cluster_id=identity.cluster_id,
            directory_id=str(identity.directory_id),
            kernels=self.kernels.NAME,
            sync_began_us=self._opened.flusher.began_us,
            connections=len(self._transport),
            accepted=self._reactor.accepted,
            replica_cpu_us=time.thread_time_ns() // 1000,
        )

    @property
    def is_running(self) -> bool:
        """Nobody has asked it to stop, and it has not ended by itself."""
        return not self._gate.is_closed

    @property
    def name(self) -> str:
        """For people."""
        return f"node {self.identity.node_id} at {self._opened.root}"

    @property
    def has_disk_failed(self) -> bool:
        """Known at once, before anybody was told."""
        return not self.log.may_claim

    def _later(self, action: Callable[[], None]) -> None:
        """On the replica's thread, which then looks what is due."""
        self._reactor.post(lambda replica, now: action())

    def resign(self, preferred: NodeId, epoch: Epoch) -> None:
        """Give up the lead of this epoch in favour of `preferred`. UsageError if that is no voter."""
        self.check_open()
        if preferred not in self._replica.raft.voters.ids:
            raise UsageError(f"node {preferred} is not among the voters {list(self._replica.raft.voters.ids)}")
        self._reactor.post(lambda replica, now: replica.request(ev.ResignRequested(preferred, epoch), now))

    # --- the end ------------------------------------------------------------------------------------------------------

    def request_stop(self) -> None:
        """Begin a graceful stop; `on_stopped` follows. Idempotent."""
        if not self._gate.is_closed and not self._is_in_child:
            self._gate.close()
            self._reactor.post(lambda replica, now: replica.request(ev.ShutdownRequested(), now))

    def stop(self, grace_s: float = GRACE_S) -> None:
        """Stop, gracefully within `grace_s`, else at once. Blocks until the directory is closed.

        Raises FatalError if the disk does not answer: the directory then stays locked until the process ends.
        """
        if self._is_in_child:
            return
        self.request_stop()
        try:
            if self._reactor.join(grace_s):
                return
            self._reactor.post(lambda replica, now: replica.halt(None, now))
            if not self._reactor.join(HALT_S):
                raise FatalError(
                    f"node {self.identity.node_id} does not stop, as its disk does not answer: its directory stays "
                    "locked until the process ends"
                )
        finally:
            self._part()

    def abort(self) -> None:
        """Stop without a word to the peers, as a crash would, but close the directory. For exits, and tests."""
        if self._is_in_child:
            return
        self._gate.close()
        self._reactor.post(lambda replica, now: replica.halt(None, now))
        self._reactor.join(HALT_S)
        self._part()

    def _part(self) -> None:
        if self._companion is not None:
            self._companion.close()

    def check_open(self) -> None:
        """ClosedError if it was closed, or the error that stopped it."""
        self._gate.check_open()

    def before_fork(self) -> None:
        self._transport.before_fork()

    def after_fork(self) -> None:
        self._transport.after_fork()

    def abandon_in_child(self) -> None:
        """After fork, in the child: let go of the descriptors."""
        self._transport.abandon_in_child()
        self._listening.close()
        if self._companion is not None:
            self._companion.abandon_in_child()

    def _on_end(self, error: FastQuorumError | None) -> None:
        """Nothing runs any more: close the directory, then tell."""
        self._end_error = error
        try:
            end_all((self._snapshots.close, partial(self._opened.close, error)))
        except FastQuorumError as failed:
            self._end_error = self._end_error or failed
        finally:
            # Whatever happened: nobody may wait for ever.
            self._gate.close()
            self.is_over = True
            handles.forget(self)
            self._telling.observer.on_stopped(self._end_error)
