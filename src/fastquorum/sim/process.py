"""One simulated node: the process that runs a replica now, the disk and the quorum state that outlive it.

A turn is one call of the replica's thread. Between two port calls the process may die; wherever the lane lock is
free other threads may run: callers, the flusher, and the lane's own thread, which goes on while Python is busy
with something else.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from fastquorum.config import QuorumConfig
from fastquorum.errors import CorruptionError, DirectoryError, FastQuorumError, FatalError, StorageFailed
from fastquorum.kernels import Buffer, Kernels
from fastquorum.kernels.lane import Lane, LaneMode
from fastquorum.node.assembly import Member, Ports, assemble
from fastquorum.node.replica import Replica
from fastquorum.raft import events as ev
from fastquorum.raft.election import ElectionState
from fastquorum.raft.transitions import RoleName
from fastquorum.sim.clock import LocalClock
from fastquorum.sim.disk import DiskFaults, SimDisk
from fastquorum.sim.flusher import SimFlusher
from fastquorum.sim.hazards import ProcessDied
from fastquorum.sim.invariants import emissions, state, timers
from fastquorum.sim.lanes import WatchedLane
from fastquorum.sim.lock import SimLock
from fastquorum.sim.logs import WatchedLog
from fastquorum.sim.network import Packet
from fastquorum.sim.prng import Prng
from fastquorum.sim.report import Violation
from fastquorum.sim.state import SimStateStore
from fastquorum.storage.names import LOG_DIRECTORY
from fastquorum.types import Endpoint, Epoch, Micros, NodeId, Offset

if TYPE_CHECKING:
    from fastquorum.sim.world import World

WALL_CLOCK_MS = 1_700_000_000_000
MAINTENANCE_US = 1_000_000
NEVER_US: Micros = -(2**62)


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """What a node is made of; the same through all its lives."""

    member: Member
    config: QuorumConfig
    kernels: Kernels
    lane_class: Callable[..., Lane]
    clock: LocalClock
    has_lane_thread: bool
    """The steady state goes on while the replica's thread is busy (the native reactor)."""


class Process:
    """Implements `network.Host`, `hazards.Hazards`, and `node.ports.Transport` and `Listener` for its replica."""

    def __init__(self, world: "World", build: Build, prng: Prng) -> None:
        self.node_id: NodeId = build.member.key.id
        self.build = build
        self.incarnation = 0
        self.is_running = False
        self.is_powered = True
        self.is_frozen = False
        self.busy_until_us: Micros = 0
        self.back_at_us: Micros = 0
        """When it was last thawed."""
        self.crash_in = 0
        """The process dies at this many port calls from now; 0: it does not."""
        self.crash_loses_power = False
        self.stop_wanted = False
        self.pre_votes: dict[Epoch, dict[NodeId, None]] = {}
        self.ended_epochs: dict[Epoch, None] = {}
        self.candidacies: dict[Epoch, None] = {}
        self.may_resign = False
        self._world = world
        self._prng = prng
        self.disk = SimDisk(self.node_id, prng.fork(), DiskFaults())
        self.states = SimStateStore(self.node_id, prng.fork(), self._saved)
        self.disk.make_directory(LOG_DIRECTORY)
        self.ghost = world.add_ghost(self.node_id, self.disk)
        self._backlog: deque[Callable[[], None]] = deque()
        self._drain_at_us: Micros = -1
        self._is_tick_due = False
        """Its timer has fired while its thread was away."""
        self._at_once_since_us: Micros = NEVER_US
        """Since when its timer has been due at once, turn by turn."""
        self._in_turn = False
        self._depth = 0
        self._is_observing = False
        self._is_assembled = False
        self._tick_at_us: Micros = -1
        self._is_wake_planned = False
        self._has_failed = False
        self._stopped: tuple[FastQuorumError | None] | None = None
        self._asked = emissions.Asked()
        self._blocked_us: Micros = 0
        self.replica: Replica
        self.lane: WatchedLane
        self.flusher: SimFlusher
        self._lock: SimLock
        self._log: WatchedLog | None = None

    @property
    def voters(self) -> tuple[NodeId, ...]:
        return self._world.ghost.voters

    def peer_of(self, number: int) -> NodeId:
        """Who is at the other end of a connection."""
        return self._world.network.peer_of(self, number)

    @property
    def now_us(self) -> Micros:
        """The node's own clock."""
        return self.build.clock.now_us

    def note(self, text: str) -> None:
        self._world.note(self.node_id, text)

    # --- life and death -----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """A new life: recovery first, which may die or fail as well."""
        assert not self.is_running
        self.incarnation += 1
        self.is_running = self.is_powered = True
        self.is_frozen = self.stop_wanted = self.may_resign = self._has_failed = False
        self.busy_until_us = 0
        self._backlog.clear()
        self._drain_at_us = -1
        self._is_tick_due = False
        self._stopped = self._log = None
        self._is_assembled = False
        self._asked = emissions.Asked()
        self._tick_at_us = -1
        self.pre_votes.clear()
        self.ended_epochs.clear()
        self._lock = SimLock(self)
        incarnation = self.incarnation
        self.flusher = SimFlusher(
            self._world.scheduler,
            self.disk,
            self._prng.fork(),
            lambda token, code: self._flushed(incarnation, token, code),
        )
        self.disk.attach(self)
        self.states.attach(self)
        self.note(f"starts life {incarnation}")
        self._turn(self._begin)

    def _begin(self) -> None:
        build = self.build
        try:
            log = WatchedLog.open(self.disk, build.kernels, build.config, self.flusher)
            log.watch(self._truncates)
            self._log = log
            self._is_observing = True
            self._world.ghost.recovered(self.ghost, log)
            self._is_observing = False
            self.replica = assemble(
                build.member,
                build.config,
                build.kernels,
                partial(
                    WatchedLane, lane_class=build.lane_class, durable=lambda: self.states.durable, keep=self._keep_lane
                ),
                log,
                Ports(
                    transport=self,
                    lock=self._lock,
                    states=self.states,
                    listener=self,
                    clock_ms=lambda: WALL_CLOCK_MS + self.now_us // 1000,
                    random=self._prng.fork(),
                ),
            )
        except StorageFailed as error:
            self.note(f"cannot start: {error.operation}")
            self._stopped = (error,)
            return
        except (CorruptionError, DirectoryError) as error:
            raise Violation("S25", f"recovery refuses: {error}", self.node_id) from error
        self._is_assembled = True
        self.note(f"recovered {log.end_offset}")
        self.replica.start(self.now_us)

    def _keep_lane(self, lane: WatchedLane) -> None:
        self.lane = lane

    def die(self, *, power: bool) -> None:
        """End here and now: killed, or without power, when the disk loses what was not synced."""
        if not self.is_running:
            return
        if self._log is not None:
            if self.ghost.truncating_to < 0:
                self._is_observing = True
                self._world.ghost.observe(self.ghost, self._log)
                self._is_observing = False
            self.ghost.kept_end = self.ghost.promised_end
        self.note(f"dies{' without power' if power else ''}, keeps {self.ghost.kept_end} of {self.ghost.end}")
        self.is_running = False
        self.is_powered = not power
        self.crash_in = 0
        self._in_turn = False
        self._depth = 0
        self.flusher.end()
        self.disk.attach(None)
        self.states.attach(None)
        self._world.network.process_ended(self, silently=power)
        if power:
            self.disk.crash()
        self._world.process_ended(self)

    def _died(self, death: ProcessDied) -> None:
        self.note(f"died in: {death}")
        self.die(power=self.crash_loses_power)

    def _died_elsewhere(self, death: ProcessDied) -> None:
        """On another thread than the replica's: if that one is in a turn, its turn ends here as well."""
        if self._in_turn:
            raise death
        self._died(death)

    # --- turns --------------------------------------------------------------------------------------------------------

    @property
    def is_busy(self) -> bool:
        return self._world.now_us < self.busy_until_us

    def post(self, action: Callable[[], None]) -> None:
        """The replica's thread does this, now or as soon as it can."""
        if not self.is_running:
            return
        if self._is_away:
            self._backlog.append(action)
            self._plan_drain()
        else:
            self._turn(action)

    def _turn(self, action: Callable[[], None]) -> None:
        self._blocked_us = 0
        self._in_turn = True
        role = self.replica.raft.role if self._is_assembled else RoleName.UNATTACHED
        try:
            action()
            self._in_turn = False
            self._settle(role)
        except ProcessDied as death:
            self._died(death)
        finally:
            self._in_turn = False
        if self._blocked_us:
            self.busy_until_us = max(self.busy_until_us, self._world.now_us + self._blocked_us)

    def _settle(self, role_before: RoleName) -> None:
        """A turn is over: check, plan the next tick, leave if the replica has."""
        if self._stopped is not None:
            self._exit(self._stopped[0])
            return
        self.observe()
        state.check_settled(self.ghost, self.states.durable, self.replica)
        self.plan_tick()
        now_us = self._world.now_us
        if not 0 <= self._tick_at_us <= now_us + 1:
            self._at_once_since_us = NEVER_US
        elif self._at_once_since_us == NEVER_US:
            self._at_once_since_us = now_us
        timers.check(self, role_before)

    def _exit(self, error: FastQuorumError | None) -> None:
        if error is None and self._log is not None and not self._has_failed:
            self.flusher.may_finish_now()
            try:
                self._log.close()
            except StorageFailed:
                self.note("failed while closing")
        self.note(f"exits: {type(error).__name__ if error else 'gracefully'}")
        self.die(power=False)

    def _due_us(self) -> list[Micros]:
        """In world time: when the replica's thread, or the lane's if it is alone, has something to do."""
        if self._is_lane_alone:
            lane_us = self.lane.deadline_us if self._is_lane_going else -1
            return [self.build.clock.world_time(lane_us)] if lane_us >= 0 else []
        due_us = []
        if self.replica.deadline_us >= 0:
            due_us.append(self.build.clock.world_time(self.replica.deadline_us))
        if self.flusher.begun_us >= 0 and not self.flusher.has_stalled:
            due_us.append(self.flusher.begun_us + self.build.config.disk_stall_us_max + 1)
        return due_us

    def plan_tick(self) -> None:
        now_us = self._world.now_us
        wanted = max(min(self._due_us(), default=now_us + MAINTENANCE_US), now_us + 1)
        wanted = min(wanted, now_us + MAINTENANCE_US)
        if self._tick_at_us < 0 or wanted < self._tick_at_us:
            self._tick_at_us = wanted
            incarnation = self.incarnation
            self._world.scheduler.at(wanted, lambda: self._tick(incarnation, wanted))

    def _tick(self, incarnation: int, planned_us: Micros) -> None:
        if incarnation != self.incarnation or not self.is_running or planned_us != self._tick_at_us:
            return
        self._tick_at_us = -1
        if self._is_away:
            # Its loop looks at the sockets first and at its timers then, however long it was away.
            self._is_tick_due = True
            self._at_once_since_us = NEVER_US  # what waited for its turn has not had it
            self._plan_drain()
        else:
            self._turn(self._on_tick)
        if self._is_lane_alone and self._is_lane_going:
            self._in_lane(lambda: self.replica.shell.on_tick(self.now_us))

    def _on_tick(self) -> None:
        self.replica.on_tick(self.now_us)
        if self.flusher.is_stalled(self.build.config.disk_stall_us_max):
            self.may_resign = True
            self.note("its disk has stalled")
            self.replica.request(ev.DiskStalled(), self.now_us)

    def _plan_drain(self) -> None:
        if self._drain_at_us >= 0 or self.is_frozen:
            return
        self._drain_at_us = max(self.busy_until_us, self._world.now_us)
        incarnation = self.incarnation
        self._world.scheduler.at(self._drain_at_us, lambda: self._drain(incarnation))

    def _drain(self, incarnation: int) -> None:
        """Do the first thing of those that wait: what came in before timers."""
        if incarnation != self.incarnation or not self.is_running:
            return
        self._drain_at_us = -1
        if self.is_frozen:
            return
        if not self.is_busy:
            if self._backlog:
                self._turn(self._backlog.popleft())
            elif self._is_tick_due:
                self._is_tick_due = False
                self._turn(self._on_tick)
        if self._has_waiting and self.is_running:
            self._plan_drain()

    def freeze(self) -> None:
        """SIGSTOP."""
        self.is_frozen = True
        self.note("is frozen")

    def thaw(self) -> None:
        self.is_frozen = False
        self.back_at_us = self._world.now_us
        self.note("is thawed")
        if self._has_waiting:
            self._plan_drain()

    def stall(self, duration_us: Micros) -> None:
        """Python is busy with something else; a lane thread is not."""
        self.busy_until_us = max(self.busy_until_us, self._world.now_us + duration_us)
        self.note(f"stalls for {duration_us}")

    # --- hazards ------------------------------------------------------------------------------------------------------

    def port_call(self, label: str) -> None:
        if self._is_observing or not self.crash_in:
            return
        self.crash_in -= 1
        if self.crash_in == 0:
            raise ProcessDied(label)

    def blocked(self, duration_us: Micros) -> None:
        self._blocked_us += duration_us

    def storage_failed(self) -> None:
        if not self._is_observing:
            self._has_failed = True

    def other_threads(self) -> None:
        if not self._in_turn or self._depth or not self._is_assembled or self._is_observing:
            return
        if not self._prng.chance(self._world.faults.interleaving):
            return
        self._depth += 1
        what = self._prng.randrange(4)
        if what == 0:
            self.flusher.may_finish_now()
        elif what == 1 and self.build.has_lane_thread:
            early = self._world.network.early(self, tuple(self.lane.served))
            if early is not None:
                self.arrived(*early, early=True)
        else:
            self._world.callers.interrupt(self)
        self._depth -= 1

    # --- what arrives -------------------------------------------------------------------------------------------------

    def connected(self, number: int) -> None:
        self.post(lambda: self.replica.on_connected(number, self.now_us))

    def disconnected(self, number: int) -> None:
        self.post(lambda: self.replica.on_disconnected(number, self.now_us))

    def arrived(self, number: int, packet: Packet, *, early: bool = False) -> None:
        """A frame. The lane's own thread takes what is the lane's while the replica's is busy."""
        if packet.api is not None:
            self._asked.add(number, packet)
        timers.heard(self, number, packet)
        in_lane = self._is_lane_alone or (early and self.build.has_lane_thread and self._is_assembled)
        if in_lane and number in self.lane.served and self._is_lane_going:
            lane, shell = self.lane, self.replica.shell
            self._in_lane(lambda: shell.perform(lane.on_frame(number, packet.frame, self.now_us)))
            return
        if early:
            self._backlog.append(lambda: self.replica.on_frame(number, packet.frame, self.now_us))
            self._plan_drain()
        else:
            self.post(lambda: self.replica.on_frame(number, packet.frame, self.now_us))

    def _in_lane(self, action: Callable[[], None]) -> None:
        """The lane's thread: never waits for the replica's. What it cannot bear it latches, for the replica to
        carry out."""
        replica = self.replica
        try:
            with self._lock:
                action()
        except (FatalError, CorruptionError) as error:
            with self._lock:
                self.lane.on_flush_failed()
                replica.shell.error = error
        except ProcessDied as death:
            self._died_elsewhere(death)
            return
        self.observe()
        self.wake()
        if not self._in_turn:
            self.plan_tick()

    def _flushed(self, incarnation: int, token: int, code: int) -> None:
        if incarnation != self.incarnation or not self.is_running:
            return
        if self._is_lane_alone and not code:
            if not self.replica.stopped:
                had_stalled = self.flusher.take_report()
                self._in_lane(lambda: self.replica.shell.on_flush(token, code, self.now_us))
                if had_stalled:
                    self.post(lambda: self.replica.request(ev.DiskRecovered(), self.now_us))
            return
        self.post(lambda: self._on_flush(token, code))

    def _on_flush(self, token: int, code: int) -> None:
        had_stalled = self.flusher.take_report()
        self.replica.on_flush(token, code, self.now_us)
        if had_stalled:
            self.replica.request(ev.DiskRecovered(), self.now_us)

    def observe(self) -> None:
        """Hold the node against the ghost."""
        self._is_observing = True
        new = state.check(self._world.ghost, self.ghost, self.incarnation, self.replica)
        self._is_observing = False
        if new:
            self._world.ledger.committed(new, self.build.kernels, self.node_id)

    @property
    def _has_waiting(self) -> bool:
        """Does anything wait for the replica's thread that should have happened by now?"""
        return bool(self._backlog) or self._is_tick_due

    @property
    def is_behind(self) -> bool:
        """As above, or a timer that has its turn at once: not one that would have had it before."""
        return self._has_waiting or self._world.now_us - self._at_once_since_us <= 1

    @property
    def _is_away(self) -> bool:
        """The replica's thread has something else to do first."""
        return self.is_frozen or self.is_busy or self._has_waiting

    @property
    def _is_lane_alone(self) -> bool:
        """The lane's own thread goes on while Python is busy with something else."""
        is_busy_only = self.is_running and self.is_busy and not self.is_frozen
        return is_busy_only and self.build.has_lane_thread and self._is_assembled

    @property
    def is_leading(self) -> bool:
        return self.is_running and self._is_assembled and self.replica.is_leader

    @property
    def takes_calls(self) -> bool:
        """Would a caller's thread find a replica to call?"""
        return self.is_running and not self.is_frozen and self._is_assembled

    @property
    def _is_lane_going(self) -> bool:
        """Nothing waits for raft/ to decide, nor for the end."""
        lane, shell = self.lane, self.replica.shell
        if lane.mode is LaneMode.CLOSED or lane.has_failed or shell.stopped:
            return False
        return not lane.is_frozen and not shell.handed_up

    def as_caller(self, action: Callable[[], object]) -> None:
        """A thread of its own calls, and may find the process dying under it."""
        try:
            action()
        except ProcessDied as death:
            self._died_elsewhere(death)
            return
        if not self._in_turn:
            self.observe()
            self.plan_tick()

    @property
    def stalled_us(self) -> Micros:
        """For how long a sync of its has been longer under way than any may be, while its thread was there to see."""
        begun_us = self.flusher.begun_us
        if begun_us < 0:
            return 0
        limit_us = begun_us + self.build.config.disk_stall_us_max
        return max(self._world.now_us - max(limit_us, self.busy_until_us, self.back_at_us), 0)

    def describe(self) -> str:
        if not self._is_assembled:
            return f"n{self.node_id} down"
        raft = self.replica.raft
        return f"n{self.node_id} {raft.role} epoch {raft.epoch} end {self.ghost.end} hw {self.replica.high_watermark}"

    def _truncates(self, begins: bool, end_offset: Offset) -> None:
        self.ghost.truncating_to = end_offset if begins else -1
        if begins:
            self.note(f"truncates to {end_offset}")
            if not self.crash_in and self._prng.chance(self._world.faults.truncation_crash):
                self.crash_in = self._prng.between(1, 40)
                self.crash_loses_power = self._prng.randrange(3) > 0
            if end_offset < self.replica.high_watermark:
                raise Violation("S11", f"truncates to {end_offset}, below {self.replica.high_watermark}", self.node_id)

    def _saved(self, election: ElectionState) -> None:
        self._world.ghost.saved(self.ghost, election)
        timers.check_candidacy(self, election)
        voted = election.voted_key.id if election.voted_key is not None else -1
        self.note(f"saves epoch {election.epoch} leader {election.leader_id} voted {voted}")

    def request(self, event: ev.Event) -> None:
        def ask() -> None:
            self.may_resign = True
            self.note(f"is asked: {type(event).__name__}")
            self.replica.request(event, self.now_us)

        self.post(ask)

    # --- node.ports.Transport -----------------------------------------------------------------------------------------

    def connect(self, endpoint: Endpoint) -> int:
        return self._world.network.connect(self, endpoint)

    def send(self, connection: int, frame: Buffer) -> None:
        self.port_call("send")
        self.observe()
        data = bytes(frame)
        durable = self.states.durable
        if self._world.network.is_client(self, connection):
            packet = emissions.request(self.ghost, durable, data, failed=self._has_failed)
        else:
            asked = self._asked.find(connection, data)
            packet = emissions.response(
                self.ghost, durable, data, asked, failed=self._has_failed, closed_epoch=self.lane.closed_epoch
            )
        self._world.sent(self, connection, packet)

    def close(self, connection: int) -> None:
        self._world.network.close(self, connection)

    def wake(self) -> None:
        if self._is_wake_planned:
            return
        self._is_wake_planned = True
        incarnation = self.incarnation

        def work() -> None:
            self._is_wake_planned = False
            if incarnation == self.incarnation:
                self.post(lambda: self.replica.work(self.now_us))

        self._world.scheduler.after(self._prng.randrange(50), work)

    # --- node.ports.Listener ------------------------------------------------------------------------------------------

    def on_committed(self, high_watermark: Offset) -> None:
        self.note(f"committed {high_watermark}")

    def on_leadership(self, epoch: Epoch, leader_id: NodeId, endpoint: Endpoint | None, is_self: bool) -> None:
        self.note(f"epoch {epoch} leader {leader_id}{' (self)' if is_self else ''}")

    def on_stopped(self, error: FastQuorumError | None) -> None:
        self._stopped = (error,)
