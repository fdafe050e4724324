"""When arrivals are due: an absolute schedule, fixed before the run, that nothing which happens in the run can move.

Arrivals are grouped in ticks; all arrivals of a tick are intended at the tick's own time. An append's latency counts
from there, whenever it was really sent, so that a stall of the quorum is felt by every arrival that it delays and not
only by the one that happened to be under way ("coordinated omission": G. Tene, "How NOT to Measure Latency").
"""

from typing import Final

import numpy as np

from fastquorum.load.plan import LoadPlan

_NS: Final = 1_000_000_000


class Schedule:
    """Ticks 0 up to `ticks`; tick n is due `n * tick_ns` after the start and brings `counts[n]` arrivals (appends)."""

    def __init__(self, plan: LoadPlan, seconds: float, seed: int) -> None:
        appends_per_s = plan.appends_per_s
        assert appends_per_s is not None, "a closed loop has no schedule"
        shortest_ns = plan.tick_us * 1000
        is_even = plan.arrivals == "even"
        # Rare arrivals that are evenly spread have a tick each; else ticks are as short as asked for.
        tick_ns = _NS / appends_per_s if is_even and _NS / appends_per_s > shortest_ns else float(shortest_ns)
        self.tick_ns: Final = tick_ns
        self.ticks: Final = max(1, round(seconds * _NS / tick_ns))
        if is_even:
            edges = np.floor(np.arange(self.ticks + 1) * (appends_per_s * tick_ns / _NS) + 1e-6)
            counts = np.diff(edges).astype(np.int64)
        else:
            counts = np.random.default_rng(seed).poisson(appends_per_s * tick_ns / _NS, self.ticks)
        self.counts: Final[list[int]] = counts.tolist()
        self._arrivals_before = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))

    @property
    def seconds(self) -> float:
        return self.ticks * self.tick_ns / _NS

    def tick_at(self, since_start_ns: int) -> int:
        """The first tick that is due at this time or later; `ticks` after the end."""
        return min(max(-int(-since_start_ns // self.tick_ns), 0), self.ticks)

    def arrivals(self, first_tick: int, end_tick: int) -> int:
        """How many are due in these ticks, the end exclusive."""
        return int(self._arrivals_before[end_tick] - self._arrivals_before[first_tick])
