"""What the process that a node runs in takes of its machine. Source: proc(5); Prometheus' names for process metrics."""

import time
from collections.abc import Mapping
from typing import Final

from prometheus_client import ProcessCollector

_COLLECTOR: Final = ProcessCollector(registry=None)
_SCHEDULERS_CLOCK: Final = 2
"""Linux' CPUCLOCK_SCHED: the clock of a process's time on a processor."""


def process_now() -> Mapping[str, float]:
    """Return the figures of this process, in seconds and bytes, by the names of their metrics; without those that
    /proc does not tell."""
    return {each.name: each.value for family in _COLLECTOR.collect() for each in family.samples}


def cpu_s_of(pid: int) -> float:
    """Return another process's processor time in seconds, of ended threads too. OSError if there is no such
    process.

    By the scheduler's clock (clock_getcpuclockid(3)): /proc counts in ticks of 10 ms, too coarse for what takes little.
    """
    return time.clock_gettime(~pid << 3 | _SCHEDULERS_CLOCK)
