"""What the figures of one run decide: ratios within a round, medians with spread, goals met or not."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bench.compare.run import Slice, Taken
from bench.compare.workload import BATCHES, CLOSED, OPEN, Figures
from bench.measure import Spread

FLOOR = "C floor"
ASYNCIO, BLOCKING, UVLOOP, BY_CLIENT = "ours, asyncio", "ours, blocking", "ours, uvloop", "ours, Kafka client"
BARE, ETCD, KAFKA, KAFKA_AT_ONCE = "etcd raft + wal", "etcd, client", "Kafka's raft", "Kafka's raft, linger 0"
ONE, SIXTY_FOUR, MANY, MOST = (each.name for each in CLOSED)


def _p50(figures: Figures) -> float:
    return figures.percentiles_us[50.0]


def _p99(figures: Figures) -> float:
    return figures.percentiles_us[99.0]


def _rate(figures: Figures) -> float:
    return figures.commits_per_s


def _cpu(figures: Figures) -> float:
    return figures.cpu_us_per_commit


FIGURES: Mapping[str, Callable[[Figures], float]] = {
    "p50": _p50,
    "p99": _p99,
    "commits/s": _rate,
    "CPU us a commit": _cpu,
}


@dataclass(frozen=True, slots=True)
class Goal:
    figure: str
    workload: str
    of: str
    over: str = ""
    """Empty: the figure itself, not a ratio."""
    at_least: float | None = None
    at_most: float | None = None

    def __str__(self) -> str:
        bound = f">= {_plain(self.at_least)}" if self.at_least is not None else f"<= {_plain(self.at_most)}"
        over = f" over {self.over}" if self.over else ""
        return f"{self.figure}, {self.workload}, {self.of}{over} {bound}"

    def holds(self, value: float) -> bool:
        return (self.at_least is None or value >= self.at_least) and (self.at_most is None or value <= self.at_most)


def _plain(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:g}"


GOALS = (
    Goal("p50", ONE, BLOCKING, FLOOR, at_most=1.3),
    Goal("p50", ONE, ASYNCIO, FLOOR, at_most=1.5),
    Goal("p99", ONE, BLOCKING, FLOOR, at_most=1.5),
    Goal("p99", ONE, ASYNCIO, FLOOR, at_most=1.5),
    Goal("p50", ONE, BLOCKING, ETCD, at_most=0.4),
    Goal("p50", ONE, ASYNCIO, ETCD, at_most=0.4),
    Goal("commits/s", SIXTY_FOUR, ASYNCIO, BARE, at_least=3.0),
    Goal("commits/s", SIXTY_FOUR, ASYNCIO, ETCD, at_least=20.0),
    Goal("commits/s", SIXTY_FOUR, BY_CLIENT, ETCD, at_least=5.0),
    Goal("commits/s", MANY, ASYNCIO, BARE, at_least=2.5),
    Goal("commits/s", MOST, ASYNCIO, BARE, at_least=1.5),
    Goal("commits/s", MOST, UVLOOP, BARE, at_least=3.0),
    Goal("CPU us a commit", MOST, ASYNCIO, at_most=10.0),
    Goal("commits/s", BATCHES.name, ASYNCIO, FLOOR, at_least=0.6),
    Goal("commits/s", BATCHES.name, ASYNCIO, at_least=1_000_000.0),
    Goal("commits/s", BATCHES.name, ASYNCIO, KAFKA_AT_ONCE, at_least=5.0),
    Goal("p99", OPEN.name, ASYNCIO, KAFKA, at_most=0.1),
    Goal("p99", OPEN.name, BLOCKING, KAFKA, at_most=0.1),
)


@dataclass(frozen=True, slots=True)
class Verdict:
    goal: Goal
    value: Spread | None
    """None: not decided, `why` says so."""
    met: bool
    why: str = ""


def spread(slices: Sequence[Slice], figure: str) -> Spread:
    return Spread.of([FIGURES[figure](each.figures) for each in slices])


def over_floor(slices: Sequence[Slice], figure: str) -> Spread | None:
    """Each slice over the floor's just before it."""
    read = FIGURES[figure]
    ratios = [read(each.figures) / read(each.floor) for each in slices if each.floor is not None]
    return Spread.of(ratios) if ratios else None


def over(slices: Sequence[Slice], others: Sequence[Slice], figure: str) -> Spread | None:
    """Round by round, those that both have."""
    read, theirs = FIGURES[figure], {each.round: each.figures for each in others}
    ratios = [read(each.figures) / read(theirs[each.round]) for each in slices if each.round in theirs]
    return Spread.of(ratios) if ratios else None


def verdicts(taken: Taken, goals: Sequence[Goal] = GOALS) -> list[Verdict]:
    return [_verdict(taken, goal) for goal in goals]


def _verdict(taken: Taken, goal: Goal) -> Verdict:
    slices = taken.slices.get((goal.of, goal.workload), [])
    if not slices:
        return Verdict(goal, None, False, f"no figures of {goal.of}")
    if not goal.over:
        value: Spread | None = spread(slices, goal.figure)
    elif goal.over == FLOOR:
        value = over_floor(slices, goal.figure)
    else:
        value = over(slices, taken.slices.get((goal.over, goal.workload), []), goal.figure)
    if value is None:
        return Verdict(goal, None, False, f"no figures of {goal.over} in the same rounds")
    unsent = [each.figures for each in slices if each.figures.not_sent or each.figures.errors]
    if unsent and goal.figure in ("p50", "p99"):
        lost = sum(each.not_sent + each.errors for each in unsent)
        return Verdict(goal, value, False, f"{lost:,} appends were not sent or failed")
    return Verdict(goal, value, goal.holds(value.median))
