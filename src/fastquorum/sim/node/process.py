"""One simulated node: the process that runs a replica now, the disk and the quorum state that outlive it.

Between two port calls the process may die; wherever the lane lock is free other threads may run: callers, the flusher,
and the lane's own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from fastquorum.config import QuorumConfig
from fastquorum.controller.image import EMPTY, Image
from fastquorum.errors import CorruptionError, DirectoryError, FastQuorumError, StorageFailed
from fastquorum.kernels import Kernels
from fastquorum.kernels.lane import Lane
from fastquorum.node.assembly import Member, Ports, assemble, lane_shell
from fastquorum.node.lane.python_shell import LaneShell
from fastquorum.node.metadata.replay import Replay
from fastquorum.node.ports import SnapshotReport, Unreachable
from fastquorum.node.replica import Replica
from fastquorum.raft import events as ev
from fastquorum.raft.election import ElectionState
from fastquorum.raft.transitions import RoleName
from fastquorum.sim.clock import LocalClock
from fastquorum.sim.faults.strangers import STRANGER_ID
from fastquorum.sim.hazards import ProcessDied
from fastquorum.sim.invariants import state, timers
from fastquorum.sim.invariants.lanes import WatchedLane
from fastquorum.sim.network import Packet
from fastquorum.sim.node.lock import SimLock
from fastquorum.sim.node.snapshots import SimSnapshots
from fastquorum.sim.node.threads import LaneThread, ReplicaThread
from fastquorum.sim.node.transport import SimTransport
from fastquorum.sim.prng import Prng
from fastquorum.sim.report import Violation
from fastquorum.sim.storage.disk import DiskFaults, SimDisk
from fastquorum.sim.storage.flusher import SimFlusher
from fastquorum.sim.storage.state_store import SimStateStore
from fastquorum.sim.storage.watched_log import WatchedLog
from fastquorum.storage.log.checkpoint import data_values, read_checkpoint
from fastquorum.storage.names import LOG_DIRECTORY, checkpoint_name, join
from fastquorum.types import Endpoint, Epoch, Micros, NodeId, Offset
from fastquorum.wire.messages.brokers import BrokerHeartbeatRequest

if TYPE_CHECKING:
    from fastquorum.sim.world import World

_OF_STRANGERS: Final = ("epoch_not_believed", "leader_not_believed")
"""What is told of one that leaps, or is heard and not believed, where no leader is found."""


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
    """Implements `network.Host`, `hazards.Hazards`, and `node.ports.Listener` for its replica."""

    def __init__(self, world: "World", build: Build, prng: Prng) -> None:
        self.node_id: NodeId = build.member.key.id
        self.build = build
        self.incarnation = 0
        self.is_running = False
        self.is_powered = True
        self.is_assembled = False
        """There is a replica: recovery is over."""
        self.has_failed = False
        """Something could not be stored: nothing may be claimed any more."""
        self.crash_in = 0
        """The process dies at this many port calls from now; 0: it does not."""
        self.crash_loses_power = False
        self.heard = timers.Heard()
        self.may_resign = False
        self.is_disk_full = False
        """As the replica has said."""
        self._world = world
        self._prng = prng
        self.disk = SimDisk(self.node_id, prng.fork(), DiskFaults())
        self.states = SimStateStore(self.node_id, prng.fork(), self._saved)
        self.disk.make_directory(LOG_DIRECTORY)
        self.ghost = world.add_ghost(self.node_id, self.disk)
        self.thread = ReplicaThread(self, world.scheduler)
        self.transport = SimTransport(self, world, prng)
        self._depth = 0
        self._is_observing = False
        self._stopped: tuple[FastQuorumError | None] | None = None
        self.lane_thread: LaneThread
        self.replica: Replica
        self.lane: WatchedLane
        self.shell: LaneShell
        self.flusher: SimFlusher
        self._log: WatchedLog | None = None
        self._waiting: dict[int, int] = {}
        """Frames that came on a connection, and that the replica has not seen."""
        self._shown: Image = EMPTY
        """The image that was checked last."""

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

    @property
    def role(self) -> RoleName:
        return self.replica.raft.role if self.is_assembled else RoleName.UNATTACHED

    def note(self, text: str) -> None:
        self._world.note(self.node_id, text)

    # --- life and death -----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """A new life: recovery first, which may die or fail as well."""
        assert not self.is_running
        self.incarnation += 1
        self.is_running = self.is_powered = True
        self.may_resign = self.has_failed = self.is_assembled = self.is_disk_full = False
        self._stopped = self._log = None
        self._waiting = {}
        self.thread.begin()
        self.transport.begin()
        self.heard.begin()
        lock = SimLock(self)
        self.lane_thread = LaneThread(self, self.thread, lock)
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
        self.thread.turn(lambda: self._begin(lock))

    def _begin(self, lock: SimLock) -> None:
        build = self.build
        try:
            log = WatchedLog.open(self.disk, build.kernels, build.config, self.flusher)
            log.watch(self._truncates)
            self._log = log
            self._is_observing = True
            self._world.ghost.recovered(self.ghost, log)
            self._is_observing = False
            ports = Ports(
                transport=self.transport,
                lock=lock,
                states=self.states,
                listener=self,
                clock_ms=build.clock.wall_ms,
                random=self._prng.fork(),
                snapshots=SimSnapshots(self, self._prng.fork()),
            )
            self.shell = self._make_shell(log, ports)
            self.replica = assemble(build.member, build.config, build.kernels, self.shell, log, ports)
        except StorageFailed as error:
            self.note(f"cannot start: {error.operation}")
            self._stopped = (error,)
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
            world_us=lambda: self._world.now_us,
            sent_us=self.transport.sent_us,
        )
        return lane_shell(build.member, build.config, build.kernels, lane_class, log, ports)

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
        self.thread.in_turn = False
        self._depth = 0
        self.flusher.end()
        self.disk.attach(None)
        self.states.attach(None)
        self._world.network.process_ended(self, silently=power)
        if power:
            self.disk.crash()
        self._world.process_ended(self)

    def died(self, death: ProcessDied) -> None:
        self.note(f"died in: {death}")
        self.die(power=self.crash_loses_power)

    def died_elsewhere(self, death: ProcessDied) -> None:
        """On another thread than the replica's: if that one is in a turn, its turn ends here as well."""
        if self.thread.in_turn:
            raise death
        self.died(death)

    # --- turns --------------------------------------------------------------------------------------------------------

    def settle(self, role_before: RoleName) -> None:
        """A turn is over: check, plan the next tick, leave if the replica has."""
        if self._stopped is not None:
            self._exit(self._stopped[0])
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
        """In world time: when the replica's thread, or the lane's if it is alone, has something to do."""
        if self.lane_thread.is_alone:
            lane_us = self.lane.deadline_us if self.lane_thread.is_going else -1
            return [self.build.clock.world_time(lane_us)] if lane_us >= 0 else []
        due_us = []
        if self.replica.deadline_us >= 0:
            due_us.append(self.build.clock.world_time(self.replica.deadline_us))
        if self.flusher.begun_us >= 0 and not self.flusher.has_stalled:
            due_us.append(self.flusher.begun_us + self.build.config.disk_stall_us_max + 1)
        return due_us

    def on_tick(self) -> None:
        self.replica.on_tick(self.now_us)
        if self.flusher.is_stalled(self.build.config.disk_stall_us_max):
            self.may_resign = True
            self.note("its disk has stalled")
            self.replica.request(ev.DiskStalled(), self.now_us)

    # --- hazards ------------------------------------------------------------------------------------------------------

    def port_call(self, label: str) -> None:
        if self._is_observing or not self.crash_in:
            return
        self.crash_in -= 1
        if self.crash_in == 0:
            raise ProcessDied(label)

    def blocked(self, duration_us: Micros) -> None:
        self.thread.blocked(duration_us)

    def storage_failed(self) -> None:
        if not self._is_observing:
            self.has_failed = True

    def other_threads(self) -> None:
        if not self.thread.in_turn or self._depth or not self.is_assembled or self._is_observing:
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
            self._world.interrupt(self)
        self._depth -= 1

    # --- what arrives -------------------------------------------------------------------------------------------------

    def connected(self, number: int) -> None:
        self.thread.post(lambda: self.replica.on_connected(number, self.now_us))

    def disconnected(self, number: int) -> None:
        is_for_fetches = self.is_assembled and self.replica.connections.is_for_fetches(number)
        self.heard.ended(number, self.now_us, is_for_fetches=is_for_fetches)
        self.thread.post(lambda: self.replica.on_disconnected(number, self.now_us))

    def arrived(self, number: int, packet: Packet, *, early: bool = False) -> None:
        """A frame. The lane's own thread takes what is the lane's while the replica's is busy."""
        self.transport.arrived(number, packet)
        timers.heard(self, number, packet)
        if self._world.population is not None and isinstance(packet.message, BrokerHeartbeatRequest):
            self._world.population.metadata.heard(self.node_id, packet.message)
        in_lane = self.lane_thread.is_alone or (early and self.lane_thread.is_there)
        if in_lane and self.lane_thread.is_going and number in self.lane.served:
            self.lane_thread.run(lambda: self._to_lane(number, packet, early=early))
        elif in_lane and self.lane_thread.is_going and isinstance(packet.message, BrokerHeartbeatRequest):
            self.lane_thread.run(lambda: self._answer_beat(number, packet))
        else:
            self._to_replica(number, packet, early=early)

    def _to_lane(self, number: int, packet: Packet, *, early: bool) -> None:
        """On the lane's own thread, lock held. What there is no room for is the replica's."""
        if self.shell.make_room_for_frame(packet.frame):
            self.shell.perform(self.lane.on_frame(number, packet.frame, self.now_us))
        else:
            self._to_replica(number, packet, early=early)

    def _answer_beat(self, number: int, packet: Packet) -> None:
        """On the lane's own thread, lock held. It is the replica's if something before it is to be answered first."""
        is_pythons = self._waiting.get(number, 0) > 0 or self.replica.connections.owes(number)
        if is_pythons or not self.shell.answer_beat(number, packet.frame, self.now_us):
            self._to_replica(number, packet, early=False)

    def _to_replica(self, number: int, packet: Packet, *, early: bool) -> None:
        self._waiting[number] = self._waiting.get(number, 0) + 1

        def take() -> None:
            self._waiting[number] -= 1
            self.replica.on_frame(number, packet.frame, self.now_us)

        if early:
            self.thread.post_later(take)
        else:
            self.thread.post(take)

    def _flushed(self, incarnation: int, token: int, code: int) -> None:
        if incarnation != self.incarnation or not self.is_running:
            return
        if self.lane_thread.is_alone and not code:
            if not self.replica.stopped:
                had_stalled = self.flusher.take_report()
                self.lane_thread.run(lambda: self.replica.shell.on_flush(token, code, self.now_us))
                if had_stalled:
                    self.thread.post(lambda: self.replica.request(ev.DiskRecovered(), self.now_us))
            return
        self.thread.post(lambda: self._on_flush(token, code))

    def _on_flush(self, token: int, code: int) -> None:
        had_stalled = self.flusher.take_report()
        self.replica.on_flush(token, code, self.now_us)
        if had_stalled:
            self.replica.request(ev.DiskRecovered(), self.now_us)

    @property
    def replay(self) -> Replay:
        """Of a controller."""
        controller = self.replica.controller
        assert controller is not None, "no controller"
        return controller.replay

    def _look_at_image(self) -> None:
        """Have every other image than the last one checked."""
        if self.replica.controller is not None and self.replay.image is not self._shown:
            self._shown = self.replay.image
            self._world.shows(self)

    @property
    def is_registered(self) -> bool:
        """Its controller is, in the metadata that it shows."""
        controller = self.replica.controller
        return controller is not None and controller.is_registered

    def observe(self) -> None:
        """Hold the node against the ghost."""
        self._is_observing = True
        new = state.check(self._world.ghost, self.ghost, self.incarnation, self.replica)
        self._is_observing = False
        if new:
            self._world.committed(new, self)

    @property
    def is_leading(self) -> bool:
        return self.is_running and self.is_assembled and self.replica.is_leader

    @property
    def takes_calls(self) -> bool:
        """Would a caller's thread find a replica to call?"""
        return self.is_running and not self.thread.is_frozen and self.is_assembled

    def as_caller(self, action: Callable[[], object]) -> None:
        """A thread of its own calls, and may find the process dying under it."""
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
        """For how long a sync of its has been longer under way than any may be, while its thread was there to see."""
        begun_us = self.flusher.begun_us
        if begun_us < 0:
            return 0
        limit_us = begun_us + self.build.config.disk_stall_us_max
        return max(self._world.now_us - max(limit_us, self.thread.busy_until_us, self.thread.back_at_us), 0)

    def describe(self) -> str:
        if not self.is_assembled:
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

    def later(self, wait_us: Micros, action: Callable[[], None]) -> None:
        """In this life, if it lasts so long."""
        scheduler = self._world.scheduler
        scheduler.in_life(self, scheduler.now_us + wait_us, action)

    def request(self, event: ev.Event) -> None:
        def ask() -> None:
            self.may_resign = True
            self.note(f"is asked: {type(event).__name__}")
            self.replica.request(event, self.now_us)

        self.thread.post(ask)

    # --- node.ports.Listener ------------------------------------------------------------------------------------------

    @property
    def watches_commits(self) -> bool:
        return True

    def on_committed(self, high_watermark: Offset) -> None:
        self.note(f"committed {high_watermark}")

    def on_leadership(
        self, epoch: Epoch, leader_id: NodeId, endpoint: Endpoint | None, is_self: bool, reason: str
    ) -> None:
        self.note(f"epoch {epoch} leader {leader_id}{' (self)' if is_self else ''}")
        if is_self and self._world.population is not None:
            self._world.population.metadata.leads(epoch)

    def on_disk_full(self, hindrance: str) -> None:
        self.is_disk_full = bool(hindrance)
        self.note("its disk is full" if hindrance else "its disk has room again")

    def on_other_cluster(self, node_id: NodeId, endpoint: Endpoint | None) -> None:
        self.note(f"node {node_id} is of another cluster")

    def on_notice(self, event: str, sentence: str) -> None:
        self.note(f"{event}: {sentence}")
        is_of_stranger = event in _OF_STRANGERS and sentence.startswith(f"node {STRANGER_ID} ")
        if not is_of_stranger and event != "answer_refused":  # in harsh mode one to the handshake may come twice
            raise Violation("S32", f"{event}: {sentence}", self.node_id)

    def on_reach(self, peer: Unreachable, is_reached: bool) -> None:
        pass  # says nothing of what the quorum does

    def on_snapshot(self, report: SnapshotReport) -> None:
        if report.error is None and self._world.population is not None:
            name = join(LOG_DIRECTORY, checkpoint_name(report.snapshot))
            values = data_values(self.disk, self.build.kernels, name)
            metadata, offset = self._world.population.metadata, report.snapshot.offset
            metadata.check_snapshot(self.node_id, offset, values)
            state = read_checkpoint(self.disk, self.build.kernels, name)
            metadata.quorum.check_snapshot(self.node_id, offset, state)
        what = f"fails: {report.error}" if report.error is not None else f"of {report.size_bytes} bytes is taken"
        self.note(f"snapshot {report.snapshot.offset} {what}")

    def on_stopped(self, error: FastQuorumError | None) -> None:
        self._stopped = (error,)
