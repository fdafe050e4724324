"""One simulated node: the process that runs a replica, and the disk and quorum state that outlive it.

Between two port calls the process may die; wherever the lane lock is free other threads may run: callers, the flusher,
and the lane's own.
"""

from collections.abc import Callable
from functools import partial
from typing import Protocol

from fastquorum.config import QuorumConfig
from fastquorum.controller.image import EMPTY, Image
from fastquorum.errors import CorruptionError, DirectoryError, FastQuorumError, StorageFailed
from fastquorum.node.assembly import Ports, assemble, lane_shell
from fastquorum.node.lane.python_shell import LaneShell
from fastquorum.node.metadata.replay import Replay
from fastquorum.node.replica import Replica
from fastquorum.raft import events as ev
from fastquorum.raft.election import ElectionState
from fastquorum.raft.transitions import RoleName
from fastquorum.sim.environment import SimEnvironment, SimHost
from fastquorum.sim.hazards import ProcessDied
from fastquorum.sim.invariants import state, timers
from fastquorum.sim.invariants.lanes import WatchedLane
from fastquorum.sim.network import Packet
from fastquorum.sim.node.arrivals import ProcessArrivals
from fastquorum.sim.node.build import Build
from fastquorum.sim.node.listener import SimListener
from fastquorum.sim.node.lock import SimLock
from fastquorum.sim.node.process_hazards import ProcessHazards
from fastquorum.sim.node.snapshots import SimSnapshots
from fastquorum.sim.node.threads import LaneThread, ReplicaThread
from fastquorum.sim.node.transport import SimTransport
from fastquorum.sim.node.view import Watcher
from fastquorum.sim.prng import Prng
from fastquorum.sim.report import Violation
from fastquorum.sim.storage.disk import DiskFaults, SimDisk
from fastquorum.sim.storage.flusher import SimFlusher
from fastquorum.sim.storage.state_store import SimStateStore
from fastquorum.sim.storage.watched_log import WatchedLog
from fastquorum.storage.names import LOG_DIRECTORY
from fastquorum.types import Micros, NodeId, Offset


class ProcessSurroundings(Watcher, Protocol):
    """The world around a process: it receives the events of the process, and may act on them."""

    def interrupt(self, process: "SimProcess") -> None:
        """Let other threads call now, between two steps of the replica's."""

    def ended(self, process: "SimProcess") -> None:
        """Note that the process has died."""


class SimProcess(SimHost):
    """Implements `network.Host`, and `view.ProcessView` for its parts."""

    def __init__(
        self, environment: SimEnvironment, surroundings: ProcessSurroundings, build: Build, prng: Prng
    ) -> None:
        super().__init__(environment, build.member.key.id)
        self.build = build
        self.is_assembled = False
        """Whether there is a replica: recovery is over."""
        self.has_failed = False
        """Whether a write has failed: the process may make no claim any more."""
        self.timer_events = timers.TimerEvents()
        self.may_resign = False
        self.is_disk_full = False
        """Whether the replica has reported a full disk."""
        self._surroundings = surroundings
        self._prng = prng
        self.disk = SimDisk(self.node_id, prng.fork(), DiskFaults())
        self.disk.make_directory(LOG_DIRECTORY)
        self.ghost = environment.ghost.add(self.node_id, self.disk)
        found = partial(environment.ghost.saved, self.ghost)
        self.states = SimStateStore(self.node_id, prng.fork(), self._saved, found)
        self.thread = ReplicaThread(self, environment.scheduler)
        self.transport = SimTransport(self, self.thread, environment, surroundings, prng)
        self.hazards = ProcessHazards(
            self, self.thread, environment.faults, prng, partial(surroundings.interrupt, self)
        )
        self.lane_thread: LaneThread
        self.replica: Replica
        self.lane: WatchedLane
        self.shell: LaneShell
        self.flusher: SimFlusher
        self._log: WatchedLog | None = None
        self._arrivals: ProcessArrivals
        self._listener: SimListener
        self._shown: Image = EMPTY
        """The image that was checked last."""

    @property
    def voters(self) -> tuple[NodeId, ...]:
        return self._environment.ghost.voters

    @property
    def config(self) -> QuorumConfig:
        return self.build.config

    @property
    def is_behind(self) -> bool:
        return self.thread.is_behind

    def peer_of(self, number: int) -> NodeId:
        """Return the node at the other end of a connection."""
        return self._environment.network.peer_of(self, number)

    @property
    def now_us(self) -> Micros:
        """The node's own clock."""
        return self.build.clock.now_us

    @property
    def role(self) -> RoleName:
        return self.replica.raft.role if self.is_assembled else RoleName.UNATTACHED

    def port_call(self, label: str) -> None:
        self.hazards.port_call(label)

    # --- life and death -----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin a new life: recovery first, which may die or fail, too."""
        assert not self.is_running
        self.incarnation += 1
        self.is_running = self.is_powered = True
        self.may_resign = self.has_failed = self.is_assembled = self.is_disk_full = False
        self._log = None
        self._listener = SimListener(self, self._surroundings)
        self.thread.begin()
        self.transport.begin()
        self.timer_events.begin()
        lock = SimLock(self.hazards)
        self.lane_thread = LaneThread(self, self.thread, lock)
        threads = self.thread, self.lane_thread
        self._arrivals = arrivals = ProcessArrivals(self, self._surroundings, self.transport, threads)
        scheduler = self._environment.scheduler
        self.flusher = SimFlusher(scheduler, self.disk, self._prng.fork(), arrivals.flushed)
        self.disk.attach(self.hazards)
        self.states.attach(self.hazards)
        self.note(f"starts life {self.incarnation}")
        self.thread.turn(lambda: self._begin(lock))

    def _begin(self, lock: SimLock) -> None:
        build = self.build
        try:
            log = WatchedLog.open(self.disk, build.kernels, build.config, self.flusher)
            log.watch(self._truncates)
            self._log = log
            with self.hazards.observing():
                self._environment.ghost.recovered(self.ghost, log)
            ports = Ports(
                transport=self.transport,
                lock=lock,
                states=self.states,
                listener=self._listener,
                clock_ms=build.clock.wall_ms,
                random=self._prng.fork(),
                snapshots=SimSnapshots(self, self.thread, self._prng.fork()),
            )
            self.shell = self._make_shell(log, ports)
            self.replica = assemble(build.member, build.config, build.kernels, self.shell, log, ports)
        except StorageFailed as error:
            self.note(f"cannot start: {error.operation}")
            self._listener.stopped = (error,)
            return
        except (CorruptionError, DirectoryError) as error:
            raise Violation("S25", f"recovery refuses: {error}", self.node_id) from error
        self.is_assembled = True
        self.note(f"recovered {log.end_offset}")
        self.replica.start(self.now_us)

    def _make_shell(self, log: WatchedLog, ports: Ports) -> LaneShell:
        build = self.build
        lane_class = partial(
            WatchedLane,
            lane_class=build.lane_class,
            durable=lambda: self.states.durable,
            keep=self._keep_lane,
            world_us=lambda: self._environment.now_us,
            sent_us=self.transport.sent_us,
        )
        return lane_shell(build.member, build.config, build.kernels, lane_class, log, ports)

    def _keep_lane(self, lane: WatchedLane) -> None:
        self.lane = lane

    def die(self, *, power: bool) -> None:
        """End this life: by a kill, or by a power failure, in which the disk loses what was not synced."""
        if not self.is_running:
            return
        if self._log is not None:
            if self.ghost.truncating_to < 0:
                with self.hazards.observing():
                    self._environment.ghost.observe(self.ghost, self._log)
            self.ghost.kept_end = self.ghost.promised_end
        self.note(f"dies{' without power' if power else ''}, keeps {self.ghost.kept_end} of {self.ghost.end}")
        self.is_running = False
        self.is_powered = not power
        self.hazards.end()
        self.thread.in_turn = False
        self.flusher.end()
        self.disk.attach(None)
        self.states.attach(None)
        self._environment.network.process_ended(self, silently=power)
        if power:
            self.disk.crash()
            self.states.lose_power()
        self._surroundings.ended(self)

    def died(self, death: ProcessDied) -> None:
        self.note(f"died in: {death}")
        self.die(power=self.hazards.loses_power)

    def died_elsewhere(self, death: ProcessDied) -> None:
        """Die on another thread than the replica's; if that one is in a turn, its turn ends here, too."""
        if self.thread.in_turn:
            raise death
        self.died(death)

    # --- turns --------------------------------------------------------------------------------------------------------

    def settle(self, role_before: RoleName) -> None:
        """End a turn: check, plan the next tick, and end if the replica has."""
        if self._listener.stopped is not None:
            self._exit(self._listener.stopped[0])
            return
        self.observe()
        self._look_at_image()
        state.check_settled(self.ghost, self.states.durable, self.replica)
        self.thread.plan_tick()
        self.thread.note_when_due()
        timers.check(self, role_before)

    def _exit(self, error: FastQuorumError | None) -> None:
        if error is None and self._log is not None and not self.has_failed:
            self.flusher.may_finish_now()
            try:
                self._log.close()
            except StorageFailed:
                self.note("failed while closing")
        self.note(f"exits: {type(error).__name__ if error else 'gracefully'}")
        self.die(power=False)

    def due_us(self) -> list[Micros]:
        """Return when the replica's thread, or the lane's if it is alone, has something to do, in world time."""
        if self.lane_thread.is_alone:
            lane_us = self.lane.deadline_us if self.lane_thread.is_going else -1
            return [self.build.clock.world_time(lane_us)] if lane_us >= 0 else []
        due_us = []
        if self.replica.deadline_us >= 0:
            due_us.append(self.build.clock.world_time(self.replica.deadline_us))
        if self.flusher.begun_us >= 0 and not self.flusher.has_stalled:
            due_us.append(self.flusher.begun_us + self.config.disk_stall_us_max + 1)
        return due_us

    def on_lane_tick(self) -> None:
        self.lane_thread.on_tick()

    def on_tick(self) -> None:
        self.replica.on_tick(self.now_us)
        if self.flusher.is_stalled(self.config.disk_stall_us_max):
            self.may_resign = True
            self.note("its disk has stalled")
            self.replica.request(ev.DiskStalled(), self.now_us)

    # --- what arrives -------------------------------------------------------------------------------------------------

    def connected(self, number: int) -> None:
        self.thread.post(lambda: self.replica.on_connected(number, self.now_us))

    def disconnected(self, number: int) -> None:
        is_for_fetches = self.is_assembled and self.replica.connections.is_for_fetches(number)
        self.timer_events.ended(number, self.now_us, is_for_fetches=is_for_fetches)
        self.thread.post(lambda: self.replica.on_disconnected(number, self.now_us))

    def arrived(self, number: int, packet: Packet) -> None:
        self._arrivals.arrived(number, packet)

    def arrive_early(self) -> None:
        early = self._environment.network.early(self, tuple(self.lane.served))
        if early is not None:
            self._arrivals.arrived(*early, early=True)

    # --- what is seen of it -------------------------------------------------------------------------------------------

    @property
    def replay(self) -> Replay:
        """The metadata replay of a controller."""
        controller = self.replica.controller
        assert controller is not None, "no controller"
        return controller.replay

    def _look_at_image(self) -> None:
        """Report each new image, to be checked."""
        if self.replica.controller is not None and self.replay.image is not self._shown:
            self._shown = self.replay.image
            self._surroundings.shows(self)

    @property
    def is_registered(self) -> bool:
        """Whether its own image holds its controller's registration."""
        controller = self.replica.controller
        return controller is not None and controller.is_registered

    def observe(self) -> None:
        """Check the node against the ghost."""
        with self.hazards.observing():
            new = state.check(self._environment.ghost, self.ghost, self.incarnation, self.replica)
        if new:
            self._surroundings.committed(new, self)

    @property
    def is_leading(self) -> bool:
        return self.is_running and self.is_assembled and self.replica.is_leader

    @property
    def takes_calls(self) -> bool:
        """Whether a caller's thread would find a replica to call."""
        return self.is_running and not self.thread.is_frozen and self.is_assembled

    def as_caller(self, action: Callable[[], object]) -> None:
        """Call on a caller's own thread, which may find the process dying under it."""
        try:
            action()
        except ProcessDied as death:
            self.died_elsewhere(death)
            return
        if not self.thread.in_turn:
            self.observe()
            self.thread.plan_tick()

    @property
    def stalled_us(self) -> Micros:
        """How long a sync has been overdue while its thread ran, in microseconds."""
        begun_us = self.flusher.begun_us
        if begun_us < 0:
            return 0
        limit_us = begun_us + self.config.disk_stall_us_max
        return max(self._environment.now_us - max(limit_us, self.thread.busy_until_us, self.thread.back_at_us), 0)

    def describe(self) -> str:
        if not self.is_assembled:
            return f"n{self.node_id} down"
        raft = self.replica.raft
        return f"n{self.node_id} {raft.role} epoch {raft.epoch} end {self.ghost.end} hw {self.replica.high_watermark}"

    def _truncates(self, begins: bool, end_offset: Offset) -> None:
        self.ghost.truncating_to = end_offset if begins else -1
        if begins:
            self.note(f"truncates to {end_offset}")
            if not self.hazards.crash_in and self._prng.chance(self._environment.faults.truncation_crash):
                self.hazards.crash_soon(self._prng)
            if end_offset < self.replica.high_watermark:
                raise Violation("S11", f"truncates to {end_offset}, below {self.replica.high_watermark}", self.node_id)

    def _saved(self, election: ElectionState) -> None:
        self._environment.ghost.saved(self.ghost, election)
        timers.check_candidacy(self, election)
        voted = election.voted_key.id if election.voted_key is not None else -1
        self.note(f"saves epoch {election.epoch} leader {election.leader_id} voted {voted}")

    def request(self, event: ev.Event) -> None:
        def ask() -> None:
            self.may_resign = True
            self.note(f"is asked: {type(event).__name__}")
            self.replica.request(event, self.now_us)

        self.thread.post(ask)
