"""How a node's process fares, as the kernel tells: its own time, its memory, what it complains of."""

import os
import time
from pathlib import Path
from typing import Final

COMPLAINTS: Final = ("Sanitizer", "runtime error:", "Traceback (most recent call last)", "Fatal Python error")
"""What no node writes to stderr while all is well. The sanitizers of the checked build end the process as well."""
MIB: Final = 1024 * 1024


def resident_bytes(pid: int) -> int:
    """Anonymous memory: what it allocated, without files that it mapped. ProcessLookupError if it is no more."""
    for line in _text(f"/proc/{pid}/status").splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise ProcessLookupError(f"process {pid} is no more")


class Stopwatch:
    """The time that a process had for itself: wall time, less what its threads waited for a CPU, and for a disk.

    Threads that wait for each other are charged, as is a process that is stopped or sleeps. The disk is looked for
    whenever the time is read, so that should be often.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._waited_ns = self._run_delays()
        self._began_s = self._seen_s = time.monotonic()
        self._disk_s = 0.0

    def read_s(self) -> float:
        now_s = time.monotonic()
        if "D" in thread_states(self._pid):
            self._disk_s += now_s - self._seen_s
        self._seen_s = now_s
        delays = self._run_delays()
        longest_ns = max((delay - self._waited_ns.get(task, 0) for task, delay in delays.items()), default=0)
        return now_s - self._began_s - self._disk_s - longest_ns / 1e9

    def _run_delays(self) -> dict[str, int]:
        """How long each thread was runnable without running."""
        found = {}
        for task in _tasks(self._pid):
            text = _text(f"/proc/{self._pid}/task/{task}/schedstat")
            if text:
                found[task] = int(text.split()[1])
        return found


def thread_states(pid: int) -> list[str]:
    """Return states as in /proc: R runs or could, S sleeps, D waits for a disk, T is stopped; none if it ended."""
    texts = (_text(f"/proc/{pid}/task/{task}/stat") for task in _tasks(pid))
    return [text.rpartition(") ")[2][:1] for text in texts]


def _tasks(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")
    except FileNotFoundError:
        return []


def _text(path: str) -> str:
    """Empty if the process, or the thread, is no more."""
    try:
        return Path(path).read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def complaints(errors: str) -> list[str]:
    """The lines of a node's stderr that tell of a bug, with some that follow."""
    lines = errors.splitlines()
    first = next((number for number, line in enumerate(lines) if any(each in line for each in COMPLAINTS)), None)
    return [] if first is None else lines[first : first + 40]
