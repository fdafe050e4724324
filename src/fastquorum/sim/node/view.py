"""A simulated process as its own parts see it, and their reports."""

from collections.abc import Callable
from typing import Protocol

from fastquorum.node.lane.python_shell import LaneShell
from fastquorum.node.metadata.replay import Replay
from fastquorum.node.ports import Transport
from fastquorum.raft.transitions import RoleName
from fastquorum.sim.hazards import ProcessDied
from fastquorum.sim.invariants.ghost import GhostBatch, GhostNode
from fastquorum.sim.invariants.timers import TimedProcess
from fastquorum.sim.network import Host, Packet
from fastquorum.sim.node.build import Build
from fastquorum.sim.storage.disk import SimDisk
from fastquorum.sim.storage.flusher import SimFlusher
from fastquorum.sim.storage.state_store import SimStateStore
from fastquorum.types import Epoch, Micros, OffsetAndEpoch
from fastquorum.wire.messages.brokers import BrokerHeartbeatRequest


class ProcessView(TimedProcess, Host, Protocol):
    """The part of a process (`node.process`) that its threads, connections and listeners use."""

    build: Build
    ghost: GhostNode
    disk: SimDisk
    states: SimStateStore
    is_assembled: bool
    """Whether there is a replica: recovery is over."""
    has_failed: bool
    """Whether a write has failed: the process may make no claim any more."""
    flusher: SimFlusher
    shell: LaneShell

    @property
    def transport(self) -> Transport: ...
    @property
    def role(self) -> RoleName: ...
    @property
    def replay(self) -> Replay:
        """The metadata replay of a controller."""

    def due_us(self) -> list[Micros]:
        """Return when the replica's thread, or the lane's if it is alone, has something to do, in world time."""

    def note(self, text: str) -> None: ...
    def observe(self) -> None:
        """Check the node against the ghost."""

    def later(self, wait_us: Micros, action: Callable[[], None]) -> None:
        """Schedule an action that is dropped if this life ends before."""

    def as_caller(self, action: Callable[[], object]) -> None:
        """Call on a caller's own thread."""

    def port_call(self, label: str) -> None:
        """Note a call to the outside (see `hazards.Hazards`)."""

    def arrive_early(self) -> None:
        """Let a frame to the lane arrive now, while the replica's thread is in a turn."""

    def on_tick(self) -> None: ...
    def on_lane_tick(self) -> None: ...
    def settle(self, role_before: RoleName) -> None:
        """End a turn."""

    def died(self, death: ProcessDied) -> None: ...
    def died_elsewhere(self, death: ProcessDied) -> None:
        """Die on another thread than the replica's."""


class Watcher(Protocol):
    """Reports of processes to the world around them."""

    def sent(self, process: ProcessView, connection: int, packet: Packet) -> None:
        """Note that a process sends this packet."""

    def committed(self, new: list[GhostBatch], process: ProcessView) -> None:
        """Note that a leader has committed these batches."""

    def leads(self, process: ProcessView, epoch: Epoch) -> None: ...
    def got_heartbeat(self, process: ProcessView, heartbeat: BrokerHeartbeatRequest) -> None:
        """Note that a broker's heartbeat has reached a process."""

    def shows(self, process: ProcessView) -> None:
        """Note that a process shows another metadata image than before."""

    def took_snapshot(self, process: ProcessView, snapshot: OffsetAndEpoch) -> None:
        """Note that a process has written a snapshot."""
