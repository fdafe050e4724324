"""What the process that a node runs in takes of its machine. Source: proc(5); Prometheus' names for process metrics."""

import os
import resource
import time
from typing import Final, NamedTuple

_STARTED_FIELD: Final = 19
"""Index of the start time in /proc/self/stat, counted from the field after the command's name."""
_SCHEDULERS_CLOCK: Final = 2
"""Linux' CPUCLOCK_SCHED: the clock of a process's time on a processor."""


class ProcessFigures(NamedTuple):
    """Figures of a process at one moment, in seconds and bytes."""

    cpu_s: float
    resident_bytes: int
    open_files: int
    open_files_max: int
    started_s: float
    """Seconds since 1970."""


def process_now() -> ProcessFigures:
    """Return the figures of this process."""
    with open("/proc/self/statm", "rb") as file:
        pages = int(file.read().split()[1])
    return ProcessFigures(
        cpu_s=time.process_time(),
        resident_bytes=pages * resource.getpagesize(),
        open_files=len(os.listdir("/proc/self/fd")) - 1,  # not counting the one that lists them
        open_files_max=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        started_s=time.time() - _age_s(),
    )


def cpu_s_of(pid: int) -> float:
    """Return another process's processor time in seconds, of ended threads too. OSError if there is no such
    process.

    By the scheduler's clock (clock_getcpuclockid(3)): /proc counts in ticks of 10 ms, too coarse for what takes little.
    """
    return time.clock_gettime(~pid << 3 | _SCHEDULERS_CLOCK)


def _age_s() -> float:
    with open("/proc/self/stat", "rb") as file:
        started_ticks = int(file.read().rpartition(b")")[2].split()[_STARTED_FIELD])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started_ticks / os.sysconf("SC_CLK_TCK")
