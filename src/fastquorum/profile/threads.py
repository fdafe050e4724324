"""What /proc tells of a process's threads: time on the processor, time ready and waiting for one, time off it."""

import contextlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

NATIVE: Final = "fq-"
"""How the names of a node's native threads begin."""
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_NS: Final = 1e9


class Times(NamedTuple):
    """Times of one thread since it began, in seconds."""

    name: str
    user_s: float
    system_s: float
    running_s: float
    """Time on a processor; finer than user and system, which count ticks."""
    ready_s: float
    """Waiting for a processor; -1: the kernel does not tell."""
    given_up: int
    """Times that it went to wait for something."""
    taken: int
    """Times that it had to make room for others."""


def read_threads(pid: int) -> dict[int, Times]:
    """By thread id; those that end meanwhile are left out. Empty if the process has ended."""
    found: dict[int, Times] = {}
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                found[int(task.name)] = _times(task, "main" if int(task.name) == pid else "")
    return found


def _times(task: Path, name: str) -> Times:
    comm, _, rest = (task / "stat").read_text(errors="replace").partition(" (")[2].rpartition(")")
    fields = rest.split()
    user_s, system_s = int(fields[11]) / _TICKS, int(fields[12]) / _TICKS
    running_s, ready_s = user_s + system_s, -1.0
    with contextlib.suppress(FileNotFoundError, ValueError):
        running, ready, _ = (task / "schedstat").read_text().split()
        running_s, ready_s = int(running) / _NS, int(ready) / _NS
    switches = dict(re.findall(r"^(\w+)_ctxt_switches:\s+(\d+)", (task / "status").read_text(errors="replace"), re.M))
    counts = int(switches.get("voluntary", 0)), int(switches.get("nonvoluntary", 0))
    return Times(name or comm, user_s, system_s, running_s, ready_s, *counts)


def between(
    before: dict[int, Times], after: dict[int, Times], wall_s: float, names: Mapping[int, str] | None = None
) -> list[dict[str, Any]]:
    """What each thread did in the time between, the busiest first. `blocked_s`: it waited for something else than a
    processor; None where the kernel does not tell. `names`: Python's own.
    """
    rows = []
    for thread, now in after.items():
        was = before.get(thread, Times(now.name, 0, 0, 0, 0, 0, 0))
        running_s = now.running_s - was.running_s
        ready_s = now.ready_s - was.ready_s if now.ready_s >= 0 else None
        is_native = now.name.startswith(NATIVE)
        rows.append(
            {
                "thread": thread,
                "name": now.name if is_native else (names or {}).get(thread, now.name),
                "is_native": is_native,
                "user_s": now.user_s - was.user_s,
                "system_s": now.system_s - was.system_s,
                "running_s": running_s,
                "ready_s": ready_s,
                "blocked_s": None if ready_s is None else max(wall_s - running_s - ready_s, 0.0),
                "given_up": now.given_up - was.given_up,
                "taken": now.taken - was.taken,
            }
        )
    return sorted(rows, key=lambda row: -row["running_s"])
