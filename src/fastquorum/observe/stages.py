"""The stages of a commit as histograms that Prometheus and OpenTelemetry understand: fewer buckets, counted upwards."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

COMMIT: Final = "append_told"
"""The stage that is a whole commit: from append to being told."""
SYNC: Final = "sync"
"""One sync of the log."""
BOUNDS_US: Final = (*(each * 10**decade for decade in range(1, 7) for each in (1, 1.5, 2, 3, 5, 7)), 10_000_000)
"""From 10 us to 10 s."""


class StageTimes(Protocol):
    """How long a stage of commits took, each time since the node was started."""

    @property
    def count(self) -> int: ...
    @property
    def sum_us(self) -> float: ...
    def count_below(self, bound_us: float) -> int:
        """How many took less than that, as nearly as its buckets tell."""


@dataclass(frozen=True, slots=True)
class StageCounts:
    """One stage since the node was started: how often, how long in all, and how often no longer than each bound."""

    name: str
    count: int
    sum_us: float
    buckets: tuple[tuple[float, int], ...]
    """(bound in microseconds, count up to it), ascending. What took longer than the last is in `count` only."""

    def since(self, earlier: "StageCounts") -> "StageCounts":
        """What came after `earlier`."""
        before = dict(earlier.buckets)
        buckets = tuple((bound, upto - before.get(bound, 0)) for bound, upto in self.buckets)
        return StageCounts(self.name, self.count - earlier.count, self.sum_us - earlier.sum_us, buckets)

    def quantile_us(self, fraction: float) -> float:
        """The time within which this part of them lies, evenly spread inside a bucket; NaN if there are none, the last
        bound if it lies beyond that."""
        if not self.count:
            return float("nan")
        wanted = fraction * self.count
        below, bound_below = 0, 0.0
        for bound, upto in self.buckets:
            if upto >= wanted and upto > below:
                return bound_below + (bound - bound_below) * max(wanted - below, 0) / (upto - below)
            below, bound_below = upto, bound
        return float(bound_below)

    @property
    def slowest_us(self) -> float:
        """The bound below which all of them lie; the last one if some lie beyond it, NaN if there are none."""
        everything = (bound for bound, upto in self.buckets if upto == self.count > 0)
        return next(everything, self.quantile_us(1.0))


def counted(stages: Mapping[str, StageTimes]) -> tuple[StageCounts, ...]:
    """In their order."""
    return tuple(
        StageCounts(name, each.count, each.sum_us, tuple((bound, each.count_below(bound)) for bound in BOUNDS_US))
        for name, each in stages.items()
    )


def named(stages: tuple[StageCounts, ...], name: str) -> StageCounts:
    """Return that stage; without any counts if it is not measured."""
    return next((each for each in stages if each.name == name), StageCounts(name, 0, 0, ()))
