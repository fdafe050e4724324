"""The brokers of a simulated cluster, what happens to them, and what must have come of it in the end."""

from typing import TYPE_CHECKING, Final

from fastquorum.kernels import Kernels
from fastquorum.sim.cluster.admin import Admin
from fastquorum.sim.cluster.broker import SimBroker
from fastquorum.sim.cluster.metadata import Metadata
from fastquorum.sim.cluster.upgrader import Upgrader
from fastquorum.sim.prng import Prng
from fastquorum.types import Micros, NodeId

if TYPE_CHECKING:
    from fastquorum.sim.world import World

KINDS: Final = (
    "crash",
    "crash",
    "bounce",
    "mute",
    "flap",
    "slow",
    "cut_off",
    "half",
    "shut_down",
    "impostor",
    "hear_again",
)
SETTLE_SESSIONS: Final = 12
"""Within so many session timeouts all is well again."""


class Herd:
    """See the module."""

    def __init__(
        self, world: "World", kernels: Kernels, prng: Prng, cluster_id: str, count: int, session_us: Micros
    ) -> None:
        self.world = world
        self.cluster_id = cluster_id
        self.session_us = session_us
        self.metadata = Metadata(world, kernels, session_us)
        self.brokers: dict[NodeId, SimBroker] = {
            broker_id: SimBroker(self, broker_id, prng.fork()) for broker_id in range(1, count + 1)
        }
        self.counts: dict[str, int] = {}
        self._double = SimBroker(self, 1, prng.fork(), is_impostor=True)
        self._admin = Admin(self, prng.fork())
        self._prng = prng.fork()
        self._upgrader = Upgrader(self, prng.fork()) if world.swarm.kraft_version == 0 else None
        self.is_active = False

    @property
    def size(self) -> int:
        return len(self.brokers)

    @property
    def hosts(self) -> tuple[SimBroker, ...]:
        """On the network."""
        return (*self.brokers.values(), self._double)

    def fetches(self, broker_id: NodeId) -> bool:
        """Does this replica follow its leaders now?"""
        broker = self.brokers.get(broker_id)
        return broker is not None and broker.is_running and broker.epoch >= 0 and not broker.is_mute

    # --- phases -------------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        for broker in self.brokers.values():
            broker.start()
        self._admin.start()
        if self._upgrader is not None:
            self._upgrader.is_active = not self.world.swarm.config.snapshot_interval_us  # else amid the faults
            self._upgrader.start()

    def begin_faults(self) -> None:
        self.is_active = True
        if self._upgrader is not None:
            self._upgrader.is_active = True
        self._plan()

    def end_faults(self) -> None:
        """Everybody comes back, and stays; the impostor goes."""
        self.is_active = self._admin.is_active = False
        if self._upgrader is not None:
            self._upgrader.is_active = False
        if self._double.is_running:
            self._double.die()
        for broker in self.brokers.values():
            broker.is_mute = broker.is_slow = broker.is_stopping = False
            if not broker.is_running:
                broker.start()

    def missing(self) -> str:
        """What is not well yet; empty: nothing."""
        for broker in self.brokers.values():
            if not broker.is_running:
                return f"L8: broker {broker.broker_id} was let go"
        return self.metadata.missing({each.broker_id: each.epoch for each in self.brokers.values()})

    def ended(self, broker: SimBroker) -> None:
        """It was let go."""
        broker.start_after(self._duration())

    # --- faults -------------------------------------------------------------------------------------------------------

    def _plan(self) -> None:
        every_us = self.session_us // 3
        self.world.scheduler.after(self._prng.heavy_tail(every_us, 6 * every_us), self._strike)

    def _strike(self) -> None:
        if not self.is_active:
            return
        kind = self._prng.pick(KINDS)
        running = [each for each in self.brokers.values() if each.is_running]
        if running:
            self.counts[f"broker {kind}"] = self.counts.get(f"broker {kind}", 0) + 1
            victim = self._prng.pick(running)
            victim.note(f"fault: {kind}")
            getattr(self, f"_{kind}")(victim)
        self._plan()

    def _duration(self) -> Micros:
        """Around a session timeout: sometimes the controllers notice, sometimes they do not."""
        return self._prng.heavy_tail(self.session_us, 4 * self.session_us)

    def _crash(self, broker: SimBroker) -> None:
        broker.die(power=self._prng.randrange(2) == 0)
        broker.start_after(self._duration())

    def _bounce(self, broker: SimBroker) -> None:
        """So fast that its session is not over."""
        broker.die()
        broker.start_after(self._prng.between(1, self.session_us // 3))

    def _mute(self, broker: SimBroker) -> None:
        broker.is_mute = True

        def speak() -> None:
            broker.is_mute = False

        broker.later(self._duration(), speak)

    def _flap(self, broker: SimBroker) -> None:
        """Silent and back, time and again, each about as long as a session lasts."""
        left = 2 * self._prng.between(2, 5)

        def turn() -> None:
            nonlocal left
            left -= 1
            broker.is_mute = self.is_active and left > 0 and not broker.is_mute
            if self.is_active and left > 0:
                broker.later(self._prng.between(self.session_us // 2, 3 * self.session_us // 2), turn)

        turn()

    def _slow(self, broker: SimBroker) -> None:
        broker.is_slow = not broker.is_slow

    def _cut_off(self, broker: SimBroker) -> None:
        """From some of the controllers, one way or both."""
        for process in self.world.processes:
            if self._prng.randrange(2):
                self.world.network.block(broker.node_id, process.node_id)
            if self._prng.randrange(2):
                self.world.network.block(process.node_id, broker.node_id)

    def _half(self, _: SimBroker) -> None:
        for broker in list(self.brokers.values())[: len(self.brokers) // 2 + 1]:
            if broker.is_running:
                self._crash(broker)

    def _shut_down(self, broker: SimBroker) -> None:
        broker.stop()

    def _impostor(self, _: SimBroker) -> None:
        """Somebody else comes with the id of broker 1, and goes."""
        if not self._double.is_running:
            self._double.start()
            self._double.later(self._duration(), self._double.die)

    def _hear_again(self, _: SimBroker) -> None:
        self.world.network.heal(self._prng.randrange(1_000_000))
