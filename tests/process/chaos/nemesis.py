"""The faults of the hosts: one at a time or two, each begun, left for a while, and ended."""

import random
import resource
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping

from tests.process.chaos.ends import NO_MEMORY, POWER_LOSS, Struck
from tests.process.chaos.hosts import CLIENTS, Hosts
from tests.process.chaos.switch import Link

FAULT_S = (0.3, 2.5)
"""How long a fault lasts."""
QUIET_S = (0.1, 1.0)
"""How long there is none afterwards."""
DAY_S = 86_400
HELD_S = (0.3, 4.0)
"""Below and above `disk.stall.max.ms`, after which a leader's native threads give up its lead."""
End = Callable[[], None]


class Nemesis:
    """Chooses by a seed; what comes of it no seed decides. One thread."""

    def __init__(self, quorum: Hosts, seed: int) -> None:
        self._quorum = quorum
        self._random = random.Random(seed)
        self._pacing = threading.Event()
        """Never set: what is waited for is time."""
        self.done: Counter[str] = Counter()
        self.struck: list[Struck] = []
        """Faults that a process may end of."""

    def strike(self) -> None:
        """One fault, or two at once, from beginning to end; then a quiet moment, and whoever is down is started."""
        count = 2 if self._random.random() < 0.3 else 1
        ends: list[End] = []
        for name in self._random.sample(sorted(FAULTS), count):
            ends.append(FAULTS[name](self))
            self.done[name] += 1
        self._wait(FAULT_S)
        for end in reversed(ends):
            end()
        self._restart()
        self._wait(QUIET_S)

    def heal(self) -> None:
        """End everything, whatever a fault left."""
        self._quorum.network.heal()
        self._quorum.clock.jump(0)
        self._restart()

    def _restart(self) -> None:
        quorum = self._quorum
        dead = [node_id for node_id in quorum.ids if not quorum.nodes[node_id].is_alive]
        self._random.shuffle(dead)
        for node_id in dead:
            quorum.kill(node_id)  # it is reaped, and the votes on its disk are noted
        quorum.start(*dead)

    def _wait(self, bounds: tuple[float, float]) -> None:
        self._pacing.wait(self._random.uniform(*bounds))

    def _note(self, node_id: int, fault: str) -> None:
        self.struck.append(Struck(node_id, fault, time.monotonic()))

    def _any(self) -> int:
        """Half of the time the leader."""
        leader = self._quorum.leader()
        alive = self._quorum.alive
        if leader in alive and self._random.random() < 0.5:
            return leader
        return self._random.choice(alive or list(self._quorum.ids))

    # --- the network ------------------------------------------------------------------------------------------------

    def _links_of(self, node_id: int, *, out: bool, into: bool, clients: bool) -> list[tuple[str, str]]:
        hosts = self._quorum.hosts
        own = hosts[node_id]
        others = [host for host in hosts.values() if host != own] + ([CLIENTS] if clients else [])
        return [(own, other) for other in others if out] + [(other, own) for other in others if into]

    def _spoil(self, links: list[tuple[str, str]], link: Link) -> End:
        network = self._quorum.network
        for source, target in links:
            network.set(source, target, link)

        def end() -> None:
            for source, target in links:
                network.set(source, target)

        return end

    def one_way(self) -> End:
        """A node is not heard by the others, or hears nothing."""
        out = self._random.random() < 0.5
        clients = self._random.random() < 0.3
        return self._spoil(self._links_of(self._any(), out=out, into=not out, clients=clients), Link(loss=1.0))

    def cut(self) -> End:
        """A node is alone; its clients may still reach it."""
        clients = self._random.random() < 0.3
        return self._spoil(self._links_of(self._any(), out=True, into=True, clients=clients), Link(loss=1.0))

    def lossy(self) -> End:
        """Everywhere packets get lost, overtake each other and arrive twice."""
        links = [
            link for node_id in self._quorum.ids for link in self._links_of(node_id, out=True, into=True, clients=True)
        ]
        shares = Link(
            loss=self._random.uniform(0, 0.2), delay_s=0.001, jitter_s=self._random.uniform(0, 0.05), doubled=0.1
        )
        return self._spoil(links, shares)

    def trickle(self) -> End:
        """A node's network lets some hundred bytes through a second."""
        slow = Link(bytes_per_s=self._random.uniform(200, 5_000))
        return self._spoil(self._links_of(self._any(), out=True, into=True, clients=False), slow)

    # --- processes and machines -------------------------------------------------------------------------------------

    def freeze(self) -> End:
        """A process stands still, and does not know it afterwards."""
        node_id = self._any()
        process = self._quorum.nodes[node_id]
        self._quorum.freeze(node_id)

        def end() -> None:
            if process.is_alive:
                self._quorum.thaw(node_id)

        return end

    def kill(self) -> End:
        self._quorum.kill(*self._random.sample(self._quorum.ids, self._random.choice((1, 1, 2, 3))))
        return _nothing

    def power(self) -> End:
        """One machine loses power, or all at once."""
        whom = self._quorum.ids if self._random.random() < 0.3 else (self._any(),)
        for node_id in whom:
            self._note(node_id, POWER_LOSS)
            self._quorum.lose_power(node_id)
        return _nothing

    def descriptors(self) -> End:
        """A node cannot open anything."""
        return self._limit(resource.RLIMIT_NOFILE, self._quorum.descriptors)

    def memory(self) -> End:
        """A node is given no memory beyond what it has and a little."""
        spare = self._random.randrange(0, 8 << 20)

        def measure(node_id: int) -> int:
            self._note(node_id, NO_MEMORY)
            return self._quorum.memory_bytes(node_id) + spare

        return self._limit(resource.RLIMIT_AS, measure)

    def _limit(self, what: int, measure: Callable[[int], int]) -> End:
        """Limit a node that is open: an interpreter that cannot start is not our concern."""
        node_id = self._any()
        process = self._quorum.nodes[node_id]
        if not process.is_alive or not process.reported("opened"):
            return _nothing
        try:
            self._quorum.limit(node_id, what, measure(node_id))
        except ProcessLookupError:
            return _nothing  # it ended just now

        def end() -> None:
            if process.is_alive:
                self._quorum.lift(node_id, what)

        return end

    def hold(self) -> End:
        """A C call keeps the interpreter; the native threads go on."""
        process = self._quorum.nodes[self._any()]
        seconds = self._random.uniform(*HELD_S)
        if process.is_alive:
            process.tell(f"hold {seconds}")
        return _nothing

    def clock(self) -> End:
        """Everybody's wall clock jumps by up to a year, there and back."""
        self._quorum.clock.jump(self._random.randrange(-365 * DAY_S, 365 * DAY_S))
        return lambda: self._quorum.clock.jump(0)


def _nothing() -> None:
    """What was done ends by itself, or by a restart."""


FAULTS: Mapping[str, Callable[[Nemesis], End]] = {
    "one-way loss": Nemesis.one_way,
    "partition": Nemesis.cut,
    "loss, reordering and doubling": Nemesis.lossy,
    "trickle": Nemesis.trickle,
    "freeze": Nemesis.freeze,
    "kill -9": Nemesis.kill,
    POWER_LOSS: Nemesis.power,
    "no descriptors": Nemesis.descriptors,
    NO_MEMORY: Nemesis.memory,
    "interpreter held": Nemesis.hold,
    "clock": Nemesis.clock,
}
