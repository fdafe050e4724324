"""Errors that the kernel seems to answer to a process that runs, from one moment to another. Source: strace(1).

Attached to every thread of it; what is counted is counted for each thread.
"""

import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from tests.privileges import missing, strace_missing

_ATTACHED: Final = re.compile(r"strace: Process \d+ attached")
DETACHED_S: Final = 30.0


class Fault(NamedTuple):
    """What one system call is answered."""

    call: str
    error: str
    when: str = "1+"
    """The n-th of a thread, `n+`: and all after it."""

    def __str__(self) -> str:
        return f"{self.call}={self.error}@{self.when}"

    @property
    def words(self) -> list[str]:
        return ["-e", f"trace={self.call}", "-e", f"inject={self.call}:error={self.error}:when={self.when}"]


@contextmanager
def injected(pid: int, fault: Fault, log: Path) -> Iterator[None]:
    """A process that runs meets the fault meanwhile. Nothing happens to one that has ended."""
    if reason := strace_missing():
        missing(reason)
    words = ["strace", "-f", "-o", str(log), *fault.words, "-p", str(pid)]
    tracer = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert tracer.stderr is not None
    try:
        for line in tracer.stderr:
            if _ATTACHED.match(line):
                break
        yield
    finally:
        tracer.send_signal(signal.SIGINT)
        tracer.communicate(timeout=DETACHED_S)


def met(log: Path) -> int:
    """How often a fault was met."""
    return log.read_text(errors="replace").count("(INJECTED)") if log.exists() else 0
