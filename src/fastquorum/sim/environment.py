"""The services of a simulated world: virtual time, the network, the trace, the ghost of what nodes hold, and the rates
of faults. They know none of their users."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from fastquorum.sim.clock import Scheduler
from fastquorum.sim.invariants.ghost import Ghost
from fastquorum.sim.network import Host, Network, Packet
from fastquorum.sim.prng import Prng
from fastquorum.sim.report import Violation
from fastquorum.sim.swarm import Swarm
from fastquorum.sim.trace import SimTrace
from fastquorum.types import Micros, NodeId

CLUSTER_ID: Final = "simulated-quorum-0000A"
EVENTS_MAX: Final = 400_000
"""Most events of a run: more are a message loop."""


@dataclass(slots=True)
class Faults:
    """The rates of faults inside processes."""

    interleaving: int = 0
    recovery_crash: int = 0
    truncation_crash: int = 0
    """How likely a process dies in or soon after a truncation, per million."""
    succession: int = 0
    """How likely a process that stands still does so until another may lead in its place, per million."""


class SimEnvironment:
    """The services of one simulated world."""

    def __init__(self, swarm: Swarm, trace: SimTrace, prng: Prng) -> None:
        self.swarm = swarm
        self.trace = trace
        self.scheduler = Scheduler()
        self.ghost = Ghost(tuple(range(1, swarm.voters + 1)))
        self.faults = Faults()
        self.network = Network(self.scheduler, prng, self.note)

    @property
    def now_us(self) -> Micros:
        return self.scheduler.now_us

    def note(self, node_id: NodeId, text: str) -> None:
        self.trace.add(self.scheduler.now_us, node_id, text)

    def send(self, host: Host, connection: int, packet: Packet) -> None:
        """Send a frame over the network, and note it in the trace."""
        self.trace.add_frame(self.scheduler.now_us, host.node_id, connection, packet.frame)
        self.network.send(host, connection, packet)

    def run_for(self, duration_us: Micros) -> None:
        """Run the world for this time."""
        end_us = self.scheduler.now_us + duration_us
        while 0 <= self.scheduler.next_us <= end_us:
            self.step()
        self.scheduler.now_us = max(self.scheduler.now_us, end_us)

    def step(self) -> None:
        """Run the next event."""
        self.scheduler.run_next()
        if self.scheduler.events > EVENTS_MAX:
            raise Violation("L12", f"more than {EVENTS_MAX} events: a message loop")


class SimHost:
    """A host of the network that lives and dies: what it notes, and what it does later in the same life."""

    def __init__(self, environment: SimEnvironment, node_id: NodeId) -> None:
        self.node_id = node_id
        self.incarnation = 0
        self.is_running = False
        self.is_powered = True
        self._environment = environment

    def note(self, text: str) -> None:
        self._environment.note(self.node_id, text)

    def later(self, wait_us: Micros, action: Callable[[], None]) -> None:
        """Schedule an action that is dropped if this life ends before."""
        scheduler = self._environment.scheduler
        scheduler.in_life(self, scheduler.now_us + wait_us, action)
