"""A simulated process that joins as a member: `broker/` as it ships, from its lifecycle to its connections, over the
network and the clocks of the simulator. Its own work is not simulated: it acts as long as its lease lasts.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol

from fastquorum.broker.agent import Agent, Effect, MemberLink, MemberSend
from fastquorum.broker.events import StateChanged
from fastquorum.broker.settings import MemberConfig, MemberSettings
from fastquorum.broker.states import State
from fastquorum.config import QuorumConfig
from fastquorum.controller.ids import random_id
from fastquorum.kernels import Buffer, Kernels
from fastquorum.node.lane.peer_events import PeerAnswer, PeerEvent, UnansweredRequest
from fastquorum.node.network.peers import Peers
from fastquorum.sim.clock import LocalClock
from fastquorum.sim.cluster.heartbeats import heartbeat_in
from fastquorum.sim.environment import CLUSTER_ID, SimEnvironment, SimHost
from fastquorum.sim.network import Packet, endpoint_of
from fastquorum.sim.node.transport import PlainTransport
from fastquorum.sim.prng import Prng
from fastquorum.types import Endpoint, Micros, NodeId
from fastquorum.version import __version__
from fastquorum.wire import Message, frames_of


class MemberWatcher(Protocol):
    """Reports of members to the code that watches them."""

    def sends(self, member: "SimMember", message: Message) -> None:
        """Note that a member sends this."""

    def changed(self, member: "SimMember") -> None:
        """Note that a member's state changed."""

    def ended(self, member: "SimMember") -> None:
        """Note that a member ended, in good order or not."""


class SimMember(SimHost, PlainTransport):
    """Implements `network.Host`, and `node.ports.Transport` for its connections; through all its lives."""

    def __init__(
        self,
        environment: SimEnvironment,
        watcher: MemberWatcher,
        node_id: NodeId,
        broker_id: NodeId,
        config: MemberConfig,
        kernels: Kernels,
        clock: LocalClock,
        prng: Prng,
    ) -> None:
        super().__init__(environment, node_id)
        self.broker_id = broker_id
        self.clock = clock
        self.is_frozen = False
        """Whether it is stopped (SIGSTOP): it does nothing, and its clock goes on."""
        self.agent: Agent
        self._watcher = watcher
        self._config = config
        self._kernels = kernels
        self._prng = prng
        self._peers: Peers
        self._backlog: deque[Callable[[], None]] = deque()
        self._tick_at_us: Micros = -1

    @property
    def epoch(self) -> int:
        """The fencing token of its latest registration; -1 if it has none."""
        return self.agent.view.epoch if self.is_running else -1

    @property
    def is_acting(self) -> bool:
        """Whether it may act now: a check of its token would pass."""
        return self.is_running and self.clock.now_us < self.agent.view.lease_until_us

    # --- life and death -----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin a new life: another incarnation of the same broker id."""
        assert not self.is_running
        self.incarnation += 1
        self.is_running = self.is_powered = True
        self.is_frozen = False
        self._backlog.clear()
        self._tick_at_us = -1
        settings = MemberSettings(
            broker_id=self.broker_id,
            cluster_id=CLUSTER_ID,
            bootstrap=tuple(endpoint_of(voter) for voter in self._environment.ghost.voters),
            incarnation_id=random_id(self._prng),
            log_dirs=(random_id(self._prng),),
        )
        limits = QuorumConfig(request_timeout_us=self._config.request_timeout_us)
        self.agent = Agent(settings, self._config, self._kernels, self._prng)
        self._peers = Peers(self, self.send, frames_of(self._kernels), limits, f"member-{self.node_id}", __version__)
        self.note(f"member of broker {self.broker_id} starts life {self.incarnation}")
        self._do(lambda: self._carry_out(self.agent.start(self.clock.now_us)))

    def die(self, *, power: bool = False) -> None:
        """End this life, as by a kill or a power failure."""
        if not self.is_running:
            return
        self.is_running, self.is_powered = False, not power
        self.note("dies")
        self._environment.network.process_ended(self, silently=power)

    def freeze(self) -> None:
        """Stop the process (SIGSTOP); its lease runs on."""
        self.is_frozen = True
        self.note("is frozen")

    def thaw(self) -> None:
        """Let the process go on; it takes what came meanwhile first."""
        self.is_frozen = False
        self.note("is thawed")
        backlog, self._backlog = self._backlog, deque()
        for action in backlog:
            self._do(action)
        self._tick()

    def set_ready(self, is_ready: bool) -> None:
        """Set whether the program is ready."""
        self._do(lambda: self._carry_out(self.agent.set_ready(is_ready, self.clock.now_us)))

    def stop(self, wait_us: Micros) -> None:
        """Stop in good order, within this time."""
        self._do(lambda: self._carry_out(self.agent.stop(self.clock.now_us + wait_us, self.clock.now_us)))

    # --- network.Host -------------------------------------------------------------------------------------------------

    def connected(self, number: int) -> None:
        self._do(lambda: self._peers.on_connected(number, self.clock.now_us))

    def disconnected(self, number: int) -> None:
        self._do(lambda: self._tell(self._peers.on_disconnected(number, self.clock.now_us)))

    def arrived(self, number: int, packet: Packet) -> None:
        self._do(lambda: self._on_frame(number, packet.frame))

    def _on_frame(self, number: int, frame: bytes) -> None:
        if self._peers.owns(number):
            self._tell(self._peers.on_frame(number, frame, self.clock.now_us))

    # --- node.ports.Transport -----------------------------------------------------------------------------------------

    def connect(self, endpoint: Endpoint) -> int:
        return self._environment.network.connect(self, endpoint)

    def send(self, connection: int, frame: Buffer) -> None:
        data = bytes(frame)
        self._environment.send(self, connection, Packet(data, None, heartbeat_in(data)))

    def close(self, connection: int) -> None:
        self._environment.network.close(self, connection)

    def wake(self) -> None:
        """Do nothing: it has one thread."""

    # --- turns --------------------------------------------------------------------------------------------------------

    def _do(self, action: Callable[[], None]) -> None:
        if not self.is_running:
            return
        if self.is_frozen:
            self._backlog.append(action)
            return
        action()
        if self.is_running:
            self._plan()

    def _plan(self) -> None:
        due_us = self.agent.deadline_us
        if due_us < 0:
            return
        at_us = max(self.clock.world_time(due_us), self._environment.now_us + 1)
        if self._tick_at_us < 0 or at_us < self._tick_at_us:
            self._tick_at_us = at_us
            self._environment.scheduler.in_life(self, at_us, lambda: self._tick_planned(at_us))

    def _tick_planned(self, at_us: Micros) -> None:
        if at_us == self._tick_at_us:
            self._tick_at_us = -1
            if not self.is_frozen:
                self._tick()

    def _tick(self) -> None:
        self._do(lambda: self._carry_out(self.agent.on_tick(self.clock.now_us)))

    def _tell(self, events: Iterable[PeerEvent]) -> None:
        for event in events:
            now_us = self.clock.now_us
            if isinstance(event, PeerAnswer):
                link = MemberLink(event.source)
                self._carry_out(self.agent.on_answer(link, event.correlation_id, event.message, now_us))
            elif isinstance(event, UnansweredRequest):
                link = MemberLink(event.destination)
                number, unsupported = event.correlation_id, event.unsupported
                self._carry_out(self.agent.on_unanswered(link, number, "no answer", now_us, unsupported=unsupported))

    def _carry_out(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, MemberSend):
                self._watcher.sends(self, effect.message)
                now_us = self.clock.now_us
                self._tell(self._peers.request(effect.link, effect.endpoint, effect.number, effect.message, now_us))
            elif isinstance(effect, StateChanged):
                self.note(f"is {effect.state} with epoch {effect.epoch}")
                self._watcher.changed(self)
                if effect.state is State.GONE:
                    self._watcher.ended(self)
                    self.die()
                    return
