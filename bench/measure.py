"""Taking turns with a yardstick: what a case is, and how its contenders are timed.

A figure alone says little on a machine that others use too. So each case carries its yardsticks, all contenders take
turns within every round, ratios are taken within a round, and what is reported is the median of the rounds with the
lowest and the highest beside it. Nothing is timed before everybody has given the same result.
"""

import statistics
import timeit
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from time import perf_counter_ns
from typing import Any, NamedTuple

SLICES = 5
"""A round is the fastest of so many: what else runs on the machine can only make a slice slower."""


class Role(StrEnum):
    """What a contender is to us."""

    NATIVE = "native"
    PURE = "pure"
    OWN = "own"
    """Ours, where there is one implementation only."""
    PEER = "peer"
    FLOOR = "floor"


class Unit(NamedTuple):
    """How a time per call is told: `amount` (bytes, records, 1) a call, as a rate or as a time."""

    name: str
    is_rate: bool
    scale: float
    """Rate: divides amount per second. Time: nanoseconds in one."""

    def tell(self, ns: float, amount: float) -> float:
        return amount / ns * 1e9 / self.scale if self.is_rate else ns / self.scale


GB_PER_S = Unit("GB/s", True, 1e9)
M_RECORDS_PER_S = Unit("M records/s", True, 1e6)
MICROSECONDS = Unit("us", False, 1e3)
NANOSECONDS = Unit("ns", False, 1.0)


@dataclass(frozen=True, slots=True)
class Contender:
    """One way to do the work."""

    name: str
    role: Role
    run: Callable[[int], float]
    """Repeat the work that often; nanoseconds for one."""
    result: Callable[[], Any]
    """Do the work once; what must be equal for all."""


@dataclass(frozen=True, slots=True)
class Goal:
    """What `of` should reach: a speed relative to the fastest of `against`, or an absolute time."""

    of: str = "native"
    against: tuple[str, ...] = ()
    at_least: float = 0.0
    """Speed ratio; 0 = none asked."""
    at_most: float = 0.0
    """In the case's unit; 0 = none asked."""

    def __str__(self) -> str:
        if self.at_most:
            return f"<= {self.at_most:g}"
        against = self.against[0] if len(self.against) == 1 else "the best peer"
        return f">= {self.at_least:.2g} x {against}" if self.at_least else ""


@dataclass(frozen=True, slots=True)
class Case:
    """A piece of work, everybody who can do it, and what we want to reach."""

    group: str
    name: str
    unit: Unit
    contenders: Sequence[Contender]
    goals: Sequence[Goal] = ()
    amount: float = 1.0
    repeat: int = 0
    """Calls a slice; 0 = as many as fill its share of the round's time."""

    def assert_equal_results(self) -> None:
        first = self.contenders[0]
        expected = first.result()
        for other in self.contenders[1:]:
            got = other.result()
            assert got == expected, f"{self.group}, {self.name}: {other.name} differs from {first.name}"


class Spread(NamedTuple):
    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        return cls(statistics.median(values), min(values), max(values))


class Ratio(NamedTuple):
    """Speed of `of` over the speed of `against`, taken round by round."""

    of: str
    against: str
    ratio: Spread


class Verdict(NamedTuple):
    goal: Goal
    value: Spread
    """The ratio, or the time."""
    met: bool


@dataclass(slots=True)
class Outcome:
    case: Case
    values: dict[str, Spread] = field(default_factory=dict)
    """By contender, in the case's unit."""
    ratios: list[Ratio] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)


def statement(text: str, **names: Any) -> Callable[[int], float]:
    """Repeat a Python expression without a function call around it."""
    timer = timeit.Timer(text, timer=perf_counter_ns, globals=names)
    return lambda repeat: timer.timeit(repeat) / repeat


def python(name: str, role: Role, text: str, result: Callable[[], Any] | None = None, **names: Any) -> Contender:
    """A contender that is a Python expression; its own value is the result unless `result` gives a comparable form."""
    code = compile(text, name, "eval")
    return Contender(name, role, statement(text, **names), result or (lambda: eval(code, names)))


def measure(case: Case, rounds: int, round_ms: float) -> Outcome:
    """Check, warm up, then let everybody take turns."""
    case.assert_equal_results()
    calls = {each.name: case.repeat or repeats(each, round_ms / SLICES) for each in case.contenders}
    took: dict[str, list[float]] = {each.name: [] for each in case.contenders}
    for turn in range(rounds):
        order = case.contenders if turn % 2 == 0 else tuple(reversed(case.contenders))
        for each in order:
            took[each.name].append(min(each.run(calls[each.name]) for _ in range(SLICES)))
    return evaluate(case, took)


def repeats(contender: Contender, round_ms: float) -> int:
    """How many calls fill a round."""
    repeat = 1
    while True:
        total = contender.run(repeat) * repeat
        if total >= round_ms * 1e6 / 4 or repeat >= 1 << 24:
            return max(1, round(repeat * round_ms * 1e6 / max(total, 1.0)))
        repeat *= 4


def evaluate(case: Case, took: dict[str, list[float]]) -> Outcome:
    """From each contender's nanoseconds, round by round."""
    outcome = Outcome(case)
    for name, times in took.items():
        outcome.values[name] = Spread.of([case.unit.tell(ns, case.amount) for ns in times])
    names = [each.name for each in case.contenders]
    if "native" in names:
        outcome.ratios = [Ratio("native", name, _ratio(took, "native", (name,))) for name in names if name != "native"]
    for goal in case.goals:
        if goal.at_most:
            value = outcome.values[goal.of]
            outcome.verdicts.append(Verdict(goal, value, value.median <= goal.at_most))
        elif goal.against and all(name in took for name in goal.against):
            value = _ratio(took, goal.of, goal.against)
            outcome.verdicts.append(Verdict(goal, value, value.median >= goal.at_least))
    return outcome


def _ratio(took: dict[str, list[float]], of: str, against: Sequence[str]) -> Spread:
    best = (min(times) for times in zip(*(took[name] for name in against), strict=True))
    return Spread.of([theirs / ours for theirs, ours in zip(best, took[of], strict=True)])
