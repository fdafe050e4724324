"""What a figure is: rows of values, each with its ratio over a yardstick of the same run and the goal that it has."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from bench.measure import Spread


@dataclass(frozen=True, slots=True)
class Setting:
    """What a figure is measured with."""

    directory: str
    """Where files are written."""
    is_quick: bool = False
    has_compiler: bool = True
    kills: int = 100
    records_max: int = 10_000_000
    """Most records, or whatever else a figure adds to."""
    names: frozenset[str] = frozenset()
    """Names to measure, where a figure has several; empty: all."""
    say: Callable[[str], None] = lambda line: print(line, file=sys.stderr, flush=True)
    """Prints the progress."""

    def pick(self, whole: Any, quick: Any) -> Any:
        return quick if self.is_quick else whole


class Goal(NamedTuple):
    """A bound of a row's ratio, or of its value if it has no yardstick; of the median."""

    at_least: float | None = None
    at_most: float | None = None

    def __str__(self) -> str:
        return f">= {self.at_least:g}" if self.at_least is not None else f"<= {self.at_most:g}"

    def is_met(self, value: float) -> bool:
        return (self.at_least is None or value >= self.at_least) and (self.at_most is None or value <= self.at_most)


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that was measured."""

    what: str
    unit: str
    value: Spread
    over: str = ""
    """The yardstick's name."""
    yardstick: Spread | None = None
    ratio: Spread | None = None
    """The value over the yardstick's, taken within each round."""
    goal: Goal | None = None

    @property
    def met(self) -> bool | None:
        """None: it has no goal."""
        return None if self.goal is None else self.goal.is_met((self.ratio or self.value).median)

    def as_json(self) -> dict[str, Any]:
        def spread(of: Spread | None) -> Mapping[str, float] | None:
            return None if of is None else of._asdict()

        return {
            "what": self.what,
            "unit": self.unit,
            "value": spread(self.value),
            "over": self.over,
            "yardstick": spread(self.yardstick),
            "ratio": spread(self.ratio),
            "goal": "" if self.goal is None else str(self.goal),
            "met": self.met,
        }


@dataclass(slots=True)
class Measured:
    """What came of one figure."""

    rows: list[Row] = field(default_factory=list)
    how: dict[str, Any] = field(default_factory=dict)
    """Sizes, counts and settings that it was measured with."""
    details: dict[str, Any] = field(default_factory=dict)
    """What the rows were made from, and what else was seen."""
    notes: list[str] = field(default_factory=list)
    """What was left out, and why."""


@dataclass(frozen=True, slots=True)
class Figure:
    name: str
    title: str
    """What it tells, in one line; for --list."""
    measure: Callable[[Setting, Path], Measured]
    """In a directory of its own, which is removed afterwards."""


def alone(what: str, unit: str, values: Sequence[float], goal: Goal | None = None) -> Row:
    """A row without a yardstick, or whose yardstick is the goal itself."""
    return Row(what, unit, Spread.of(values), goal=goal)


def over(
    what: str, unit: str, values: Sequence[float], name: str, yardsticks: Sequence[float], goal: Goal | None = None
) -> Row:
    """A row with the ratio over a yardstick, round by round."""
    ratios = [value / yardstick for value, yardstick in zip(values, yardsticks, strict=True)]
    return Row(what, unit, Spread.of(values), name, Spread.of(yardsticks), Spread.of(ratios), goal)


def folder(parent: Path | str, name: str) -> Path:
    """A new directory there."""
    path = Path(parent) / name
    path.mkdir()
    return path
