"""A simulated process as its own parts see it, and what it and they report."""

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
    """What threads, connections and listeners use of their process (`node.process`)."""

    build: Build
    ghost: GhostNode
    disk: SimDisk
    states: SimStateStore
    is_assembled: bool
    """There is a replica: recovery is over."""
    has_failed: bool
    """Something could not be stored: nothing may be claimed any more."""
    flusher: SimFlusher
    shell: LaneShell

    @property
    def transport(self) -> Transport: ...
    @property
    def role(self) -> RoleName: ...
    @property
    def replay(self) -> Replay:
        """Of a controller."""

    def due_us(self) -> list[Micros]:
        """In world time: when the replica's thread, or the lane's if it is alone, has something to do."""

    def note(self, text: str) -> None: ...
    def observe(self) -> None:
        """Hold the node against the ghost."""

    def later(self, wait_us: Micros, action: Callable[[], None]) -> None:
        """In this life, if it lasts so long."""

    def as_caller(self, action: Callable[[], object]) -> None:
        """A thread of its own calls."""

    def port_call(self, label: str) -> None:
        """As in `hazards.Hazards`."""

    def arrive_early(self) -> None:
        """A frame that is under way to the lane comes now, while the replica's thread is in a turn."""

    def on_tick(self) -> None: ...
    def on_lane_tick(self) -> None: ...
    def settle(self, role_before: RoleName) -> None:
        """A turn is over."""

    def died(self, death: ProcessDied) -> None: ...
    def died_elsewhere(self, death: ProcessDied) -> None:
        """On another thread than the replica's."""


class Watcher(Protocol):
    """What is reported of processes to the world around them."""

    def sent(self, process: ProcessView, connection: int, packet: Packet) -> None:
        """It sends this."""

    def committed(self, new: list[GhostBatch], process: ProcessView) -> None:
        """A leader was seen to have committed these."""

    def leads(self, process: ProcessView, epoch: Epoch) -> None: ...
    def got_heartbeat(self, process: ProcessView, heartbeat: BrokerHeartbeatRequest) -> None:
        """A broker's heartbeat has reached it."""

    def shows(self, process: ProcessView) -> None:
        """It shows another image of the metadata than before."""

    def took_snapshot(self, process: ProcessView, snapshot: OffsetAndEpoch) -> None:
        """A snapshot of its is written."""
