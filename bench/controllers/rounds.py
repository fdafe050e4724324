"""Rounds: everybody's turn on a quorum of its own, in changing order; and rows of ours over each of the others."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from bench.compare.cluster import ContenderFailed
from bench.compare.fetch import Missing
from bench.compare.workload import BadAnswer
from bench.controllers.quorums import KAFKA, KAFKA_AT_ONCE, OURS, Quorum, Settings, servers
from bench.figures import figure
from bench.figures.figure import Goal, Measured, Row, alone, folder, over
from fastquorum.types import NodeId

T = TypeVar("T")
Turn = Callable[[Path], T]
"""In an empty directory of its own."""
ALL: Final = (OURS, KAFKA, KAFKA_AT_ONCE)


@dataclass(frozen=True, slots=True)
class Setting(figure.Setting):
    """What `bench controllers` is run with."""

    rounds: int = 3
    seconds: float = 2.0
    """Length of each slice."""
    in_flight: int = 16
    partitions: int = 20_000
    """All partitions, when a broker dies."""
    brokers: int = 20
    leaders: int = 2_000
    """That the broker leads."""
    session_ms: int = 9_000
    heap: str = "1g"

    def warm_s(self, whole: float) -> float:
        return 0.2 if self.is_quick else whole


def contenders(
    setting: Setting,
    measured: Measured,
    settings: Settings,
    turn: Callable[[Quorum, float], T],
    names: Sequence[str] = ALL,
    prefix: Callable[[Path, NodeId], Sequence[str]] = lambda directory, node_id: (),
) -> dict[str, Turn[T]]:
    """Return the turns of the available servers, and note the others. `turn` gets a started quorum and its warm-up
    time. `prefix` goes before the command of a node, in the directory of the turn."""
    ready: dict[str, Turn[T]] = {}
    for server in servers(setting.heap):
        if server.name not in names:
            continue
        try:
            commands = server.prepare()
        except Missing as missing:
            leave_out(setting, measured, server.name, str(missing))
            continue

        def start(directory: Path, server=server, commands=commands) -> T:
            with Quorum(server, commands, directory, settings, partial(prefix, directory)) as quorum:
                found = turn(quorum, setting.warm_s(server.warm_s))
                quorum.check()
                return found

        ready[server.name] = start
    return ready


def leave_out(setting: Setting, measured: Measured, name: str, why: str) -> None:
    measured.notes.append(f"left out: {name}: {why}")
    setting.say(measured.notes[-1])


def take_turns(
    setting: Setting, measured: Measured, directory: Path, turns: Mapping[str, Turn[T]]
) -> dict[str, dict[int, T]]:
    """What each came to, by round. Who fails loses that round, and nothing else."""
    taken: dict[str, dict[int, T]] = {name: {} for name in turns}
    for number in range(setting.rounds):
        order = list(enumerate(turns))
        for place, name in order if number % 2 == 0 else reversed(order):
            setting.say(f"round {number + 1} of {setting.rounds}: {name} ...")
            try:
                taken[name][number] = turns[name](folder(directory, f"round-{number}-{place}"))
            except (ContenderFailed, BadAnswer, OSError) as error:
                measured.notes.append(f"lost: round {number + 1}, {name}: {error}")
                setting.say(measured.notes[-1])
    return taken


def rows(
    what: str,
    unit: str,
    taken: Mapping[str, Mapping[int, T]],
    value: Callable[[T], float],
    goal: Goal | None = None,
    *,
    against: Sequence[str] | None = None,
) -> list[Row]:
    """Ours, over each of the others (or of `against`), round by round. Alone if nobody else was measured."""
    ours = {number: value(found) for number, found in taken[OURS].items()}
    made = []
    for name, theirs in taken.items():
        both = [number for number in ours if number in theirs]
        if name == OURS or not both or (against is not None and name not in against):
            continue
        yardsticks = [value(theirs[number]) for number in both]
        made.append(over(what, unit, [ours[number] for number in both], name, yardsticks, goal))
    return made or ([alone(what, unit, list(ours.values()))] if ours else [])
