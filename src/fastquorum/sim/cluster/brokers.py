"""The brokers of a simulated cluster, their faults, and the state that they must reach in the end."""

from collections.abc import Callable

from fastquorum.sim.cluster.admin import Admin
from fastquorum.sim.cluster.broker import SimBroker
from fastquorum.sim.cluster.context import ClusterContext
from fastquorum.sim.cluster.upgrader import Upgrader
from fastquorum.sim.prng import Prng
from fastquorum.types import Micros, NodeId


class SimBrokers:
    """Implements `population.Population`."""

    def __init__(self, context: ClusterContext, count: int, prng: Prng) -> None:
        self.context = context
        self.brokers: dict[NodeId, SimBroker] = {}
        for broker_id in range(1, count + 1):
            self.brokers[broker_id] = SimBroker(context, self.brokers, broker_id, prng.fork(), self._start_later)
        self._double = SimBroker(context, self.brokers, 1, prng.fork(), self._start_later, is_impostor=True)
        self._admin = Admin(context, self.brokers, prng.fork())
        self._prng = prng.fork()
        is_raised = context.environment.swarm.kraft_version == 0
        self._upgrader = Upgrader(context, prng.fork()) if is_raised else None
        self._session_us = context.session_us
        self._faults: tuple[tuple[str, Callable[[SimBroker], None]], ...] = (
            *2 * (("crash", self._crash),),
            ("bounce", self._bounce),
            ("mute", self._mute),
            ("flap", self._flap),
            ("slow", self._slow),
            ("cut_off", self._cut_off),
            ("half", self._half),
            ("shut_down", self._shut_down),
            ("impostor", self._impostor),
            ("hear_again", self._hear_again),
        )
        """The kinds of faults, as often as they are likely, and the methods."""

    @property
    def size(self) -> int:
        return len(self.brokers)

    @property
    def hosts(self) -> tuple[SimBroker, ...]:
        """The hosts on the network."""
        return (*self.brokers.values(), self._double)

    # --- phases -------------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        for broker in self.brokers.values():
            broker.start()
        self._admin.start()
        if self._upgrader is not None:
            config = self.context.environment.swarm.config
            self._upgrader.is_active = not config.snapshot_interval_us  # else amid the faults
            self._upgrader.start()

    def begin_faults(self) -> None:
        self.context.has_faults = True
        if self._upgrader is not None:
            self._upgrader.is_active = True
        self._plan()

    def end_faults(self) -> None:
        """Bring every broker back for good, and end the impostor."""
        self.context.has_faults = self._admin.is_active = False
        if self._upgrader is not None:
            self._upgrader.is_active = False
        if self._double.is_running:
            self._double.die()
        for broker in self.brokers.values():
            broker.is_mute = broker.is_slow = broker.is_stopping = False
            if not broker.is_running:
                broker.start()

    def missing(self) -> str:
        """Return what is not well yet; empty if all is well."""
        for broker in self.brokers.values():
            if not broker.is_running:
                return f"L8: broker {broker.broker_id} was let go"
        return self.context.metadata.missing({each.broker_id: each.epoch for each in self.brokers.values()})

    # --- faults -------------------------------------------------------------------------------------------------------

    def _plan(self) -> None:
        every_us = self._session_us // 3
        self.context.environment.scheduler.after(self._prng.heavy_tail(every_us, 6 * every_us), self._strike)

    def _strike(self) -> None:
        if not self.context.has_faults:
            return
        kind, act = self._prng.pick(self._faults)
        running = [each for each in self.brokers.values() if each.is_running]
        if running:
            self.context.counts[f"broker {kind}"] += 1
            victim = self._prng.pick(running)
            victim.note(f"fault: {kind}")
            act(victim)
        self._plan()

    def _duration(self) -> Micros:
        """Return a time around a session timeout: the controllers notice some of these silences only."""
        return self._prng.heavy_tail(self._session_us, 4 * self._session_us)

    def _start_later(self, broker: SimBroker) -> None:
        broker.start_after(self._duration())

    def _crash(self, broker: SimBroker) -> None:
        broker.die(power=self._prng.randrange(2) == 0)
        self._start_later(broker)

    def _bounce(self, broker: SimBroker) -> None:
        """Restart a broker so fast that its session is not over."""
        broker.die()
        broker.start_after(self._prng.between(1, self._session_us // 3))

    def _mute(self, broker: SimBroker) -> None:
        broker.is_mute = True

        def speak() -> None:
            broker.is_mute = False

        broker.later(self._duration(), speak)

    def _flap(self, broker: SimBroker) -> None:
        """Make a broker silent and live in turns, each about as long as a session."""
        left = 2 * self._prng.between(2, 5)

        def turn() -> None:
            nonlocal left
            left -= 1
            broker.is_mute = self.context.has_faults and left > 0 and not broker.is_mute
            if self.context.has_faults and left > 0:
                broker.later(self._prng.between(self._session_us // 2, 3 * self._session_us // 2), turn)

        turn()

    def _slow(self, broker: SimBroker) -> None:
        broker.is_slow = not broker.is_slow

    def _cut_off(self, broker: SimBroker) -> None:
        self.context.cut_off_partly(broker.node_id, self._prng)

    def _half(self, _: SimBroker) -> None:
        for broker in list(self.brokers.values())[: len(self.brokers) // 2 + 1]:
            if broker.is_running:
                self._crash(broker)

    def _shut_down(self, broker: SimBroker) -> None:
        broker.stop()

    def _impostor(self, _: SimBroker) -> None:
        """Let another process come with the id of broker 1, and go."""
        if not self._double.is_running:
            self._double.start()
            self._double.later(self._duration(), self._double.die)

    def _hear_again(self, _: SimBroker) -> None:
        self.context.environment.network.heal(self._prng.randrange(1_000_000))
