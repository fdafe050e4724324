"""Rates and latencies of the last half minute, out of what was known at its beginning and what is known now.

Kafka keeps such windows for every event; here two looks at counters are enough. Source: Kafka `KafkaRaftMetrics`.
"""

import math
from collections import deque
from typing import Final, NamedTuple

from fastquorum.node.lane.tallies import Moved
from fastquorum.node.metrics import NodeMetrics
from fastquorum.observe.stages import COMMIT, StageCounts, named
from fastquorum.types import Micros

WINDOW_US: Final = 30_000_000
SAMPLE_US: Final = 5_000_000
"""Least time between two kept looks."""


class Recent(NamedTuple):
    """Figures of the window; NaN if there was nothing to measure."""

    append_records_per_s: float
    fetch_records_per_s: float
    idle_ratio: float
    commit_avg_ms: float
    commit_max_ms: float
    """Upper bound of the slowest commit's bucket."""
    election_avg_ms: float
    election_max_ms: float


class _Look(NamedTuple):
    """Counters at one moment."""

    at_us: Micros
    moved: Moved
    cpu_us: Micros
    commits: StageCounts


class RecentWindow:
    """The looks that are kept, oldest first. One thread at a time."""

    def __init__(self) -> None:
        self._kept: deque[_Look] = deque()

    def add(self, node: NodeMetrics, stages: tuple[StageCounts, ...]) -> Recent:
        """What it tells together with those before it."""
        now = _Look(node.at_us, node.moved, node.replica_cpu_us, named(stages, COMMIT))
        kept = self._kept
        # The oldest that is kept is the last one outside of the window: it is where the window begins.
        while len(kept) > 1 and now.at_us - kept[1].at_us >= WINDOW_US:
            kept.popleft()
        if not kept or now.at_us - kept[-1].at_us >= SAMPLE_US:
            kept.append(now)
        return _between(kept[0], now, node)


def _between(then: _Look, now: _Look, node: NodeMetrics) -> Recent:
    elapsed_us = now.at_us - then.at_us
    commits = now.commits.since(then.commits)
    elections_ms = [each.latency_us / 1000 for each in node.elections.latest if now.at_us - each.ended_us <= WINDOW_US]
    return Recent(
        append_records_per_s=_per_s(now.moved.appended - then.moved.appended, elapsed_us),
        fetch_records_per_s=_per_s(now.moved.fetched - then.moved.fetched, elapsed_us),
        idle_ratio=_idle(now.cpu_us - then.cpu_us, elapsed_us),
        commit_avg_ms=commits.sum_us / commits.count / 1000 if commits.count else math.nan,
        commit_max_ms=commits.slowest_us / 1000,
        election_avg_ms=sum(elections_ms) / len(elections_ms) if elections_ms else math.nan,
        election_max_ms=max(elections_ms, default=math.nan),
    )


def _per_s(count: int, elapsed_us: Micros) -> float:
    return count * 1e6 / elapsed_us if elapsed_us > 0 else 0.0


def _idle(busy_us: Micros, elapsed_us: Micros) -> float:
    return min(max(1 - busy_us / elapsed_us, 0.0), 1.0) if elapsed_us > 0 else math.nan
