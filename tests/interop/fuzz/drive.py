"""The driver: mutants to three live nodes, a client between them, and everything looked at now and then."""

import os
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import Final

from fastquorum import log
from fastquorum.storage.identity import LogKind
from tests.interop.nodes import Nodes, running

from .client import Client
from .forgery import Forgery, Stream
from .live import Live
from .mutations import Mutant, Mutator
from .nodes_time import MIB, resident_bytes
from .report import Counts, Finding
from .target import Group, Target

SETTINGS: Final = {
    "FASTQUORUM_CONTROLLER_QUORUM_FETCH_TIMEOUT_MS": "15000",
    "FASTQUORUM_CONTROLLER_QUORUM_REQUEST_TIMEOUT_MS": "10000",
    "FASTQUORUM_METADATA_MAX_IDLE_INTERVAL_MS": "0",
}
"""An election for want of a CPU is not what is looked for: a hang is noticed long before. No-ops would be records that
nobody sent."""
QUARANTINE_MIB: Final = 16
"""What AddressSanitizer may hold back of freed memory; 256 by default, which would hide growth."""
GROWTH_MIB_MAX: Final = 128
"""Above the level after the warm-up: room for a batch that unpacks to the 64 MiB it may, and its copy."""
WARM_UP: Final = 5_000
"""Mutants, or a quarter of them all."""
TURN: Final = 96
"""Mutants made at a time."""
GROUP_MUTANTS_MAX: Final = 24
GROUP_FRAMES_MAX: Final = 120
"""A connection may owe 256 answers."""
CHECK_EVERY: Final = 20
"""Turns."""

Parts = list[tuple[Mutant, Stream]]


class Run:
    """One quorum with one kind of log under fire."""

    def __init__(self, nodes: Nodes, live: Live, counts: Counts, *, growth_mib_max: float = GROWTH_MIB_MAX) -> None:
        self.nodes = nodes
        self.live = live
        self.counts = counts
        self.suspects: deque[Mutant] = deque()
        """Sent since everything was looked at last."""
        self._forgery = Forgery(live)
        self._growth_mib_max = growth_mib_max
        self._sent: set[bytes] = set()
        self.targets = {node_id: Target(nodes, node_id, counts) for node_id in nodes.ids}
        self.client = Client(live, self.targets[live.leader], nodes.describe().partition.high_watermark)

    def close(self) -> None:
        """Every connection, the client's too."""
        for target in self.targets.values():
            target.close()

    # --- mutants ------------------------------------------------------------------------------------------------------

    def send_all(self, mutants: Iterable[Mutant], *, turn: int = TURN, check_every: int = CHECK_EVERY) -> None:
        """Finding if anything is not as it should be; `suspects` holds who may have done it."""
        for number, some in enumerate(_in_turns(mutants, turn), 1):
            self._turn(some)
            if number % check_every == 0:
                self.check()
        self.check()

    def _turn(self, mutants: list[Mutant]) -> None:
        self.suspects += mutants
        self.client.begin_append()
        waiting: list[tuple[Target, Group]] = []
        for node_id, parts in self._by_node(mutants).items():
            target = self.targets[node_id]
            waiting += [(target, target.send(group)) for group in _groups(parts)]
        for target, group in waiting:
            target.finish(group)
        self.client.finish_append()
        for target in self.targets.values():
            target.check_alive()

    def _by_node(self, mutants: list[Mutant]) -> dict[int, Parts]:
        by_node: dict[int, Parts] = {}
        for mutant in mutants:
            stream = self._forgery.read(mutant.data, mutant.node_id)
            by_node.setdefault(mutant.node_id, []).append((mutant, stream))
            self._sent.update(stream.batches)
            self.counts.count(mutant)
            self.counts.frames += stream.frames
            self.counts.tamed += stream.tamed
        return by_node

    # --- checks -------------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Everything but the log."""
        for node_id, target in self.targets.items():
            target.check_alive()
            target.check_complaints()
            target.probe()
            self._check_memory(node_id)
        now = self.nodes.describe()
        if (now.epoch, now.leader_id) != (self.live.epoch, self.live.leader):
            raise Finding(
                "leader changed",
                f"node {self.live.leader} led epoch {self.live.epoch}, now node {now.leader_id} leads {now.epoch}",
            )
        self.suspects.clear()

    def warmed_up(self) -> None:
        """From here on memory may grow so much and no further."""
        for node_id in self.nodes.ids:
            level = resident_bytes(self.nodes.pid(node_id)) / MIB
            self.counts.resident_mib[f"node {node_id}"] = [round(level, 1), round(level, 1)]

    def _check_memory(self, node_id: int) -> None:
        levels = self.counts.resident_mib.get(f"node {node_id}")
        if levels is None:
            return
        now = resident_bytes(self.nodes.pid(node_id)) / MIB
        levels[1] = max(levels[1], round(now, 1))
        if now > levels[0] + self._growth_mib_max:
            raise Finding(
                "memory",
                f"node {node_id} holds {now:.0f} MiB, {levels[0]:.0f} MiB after the warm-up; at most "
                f"{self._growth_mib_max:.0f} MiB more are allowed",
            )

    def check_log(self) -> None:
        """What the leader serves, and that all three directories hold just that when they are closed."""
        end_offset = self.nodes.wait_caught_up().partition.high_watermark
        self.counts.appended_by_mutants += self.client.check_log(end_offset, self._sent)
        self.counts.appended_by_client += len(self.client.promised)
        self.close()
        self.nodes.stop()
        for target in self.targets.values():
            target.check_complaints()
        logs = [_batches(self.nodes.data(node_id), end_offset) for node_id in self.nodes.ids]
        if any(each != logs[0] for each in logs):
            raise Finding("logs differ", f"the closed directories do not hold the same below offset {end_offset}")


def _batches(directory: Path, end_offset: int) -> list[bytes]:
    """Behind it there may be the word of somebody who led while the others stopped."""
    stored = takewhile(lambda each: each.info.base_offset < end_offset, log.open(directory).batches())
    return [bytes(each.data) for each in stored]


def _in_turns(mutants: Iterable[Mutant], size: int) -> Iterator[list[Mutant]]:
    some: list[Mutant] = []
    for mutant in mutants:
        some.append(mutant)
        if len(some) == size:
            yield some
            some = []
    if some:
        yield some


def _groups(parts: Parts) -> Iterator[Parts]:
    """Yield groups of parts for one connection each. A part that ends it comes last, so that all before it is read."""
    last = [part for part in parts if part[1].ends or part[1].is_partial or part[1].will_park]
    group: Parts = []
    frames = 0
    for part in parts:
        stream = part[1]
        if stream.ends or stream.is_partial or stream.will_park:
            continue
        if group and (len(group) == GROUP_MUTANTS_MAX or frames + stream.frames > GROUP_FRAMES_MAX):
            yield [*group, last.pop()] if last else group
            group, frames = [], 0
        group.append(part)
        frames += stream.frames
    if group:
        yield group  # and the connection is kept
    yield from ([part] for part in last)


@contextmanager
def quorum(kind: LogKind, counts: Counts, *, growth_mib_max: float = GROWTH_MIB_MAX) -> Iterator[Run]:
    """Three nodes with such a log, one of which leads."""
    options = f"{os.environ.get('ASAN_OPTIONS', '')}:quarantine_size_mb={QUARANTINE_MIB}".lstrip(":")
    environment = {**SETTINGS, "ASAN_OPTIONS": options}
    with (
        tempfile.TemporaryDirectory(prefix="fuzz-") as root,
        running(Path(root), log=kind.value, environment=environment) as nodes,
    ):
        found = nodes.wait_caught_up()
        victim, quiet = (each for each in nodes.ids if each != found.leader_id)
        live = Live(kind, found.epoch, found.leader_id, victim, quiet, nodes.ports)
        run = Run(nodes, live, counts, growth_mib_max=growth_mib_max)
        try:
            yield run
        finally:
            run.close()


def fuzz(run: Run, seed: int, numbers: range, say: Callable[[str], None] = lambda _: None) -> None:
    """All these mutants of a seed. Finding."""
    mutator = Mutator(seed, run.live)
    warm_up = min(WARM_UP, len(numbers) // 4)
    run.send_all(mutator.mutant(number) for number in numbers[:warm_up])
    run.warmed_up()
    began_s = reported_s = time.monotonic()

    def reported() -> Iterator[Mutant]:
        nonlocal reported_s
        for number in numbers[warm_up:]:
            if time.monotonic() - reported_s > 5:
                reported_s = time.monotonic()
                rate = (number - numbers[warm_up]) / (reported_s - began_s)
                say(f"{run.live.kind.value} log: {run.counts.mutants:,} mutants, {rate:,.0f} a second")
            yield mutator.mutant(number)

    run.send_all(reported())
    run.check_log()
