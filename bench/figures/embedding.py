"""What a program waits for that embeds a quorum, each time in a process of its own: modules are imported, too.

A quorum of three of `fastquorum.testing` until it is ready and until it is closed; and the longest time for which the
process's first `open` keeps its event loop from other work. The yardstick of each is the bound that it has to keep.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

from bench.compare.cluster import ContenderFailed
from bench.figures.figure import Goal, Measured, Row, Setting, over

PROCESS_S: Final = 120.0


class Bound(NamedTuple):
    """A measured step, and the most that it may take."""

    program: str
    key: str
    what: str
    at_most_s: float


BOUNDS: Final = (
    Bound("testing", "ready_s", "fastquorum.testing: a quorum of three is ready", 0.5),
    Bound("testing", "closed_s", "fastquorum.testing: it is closed", 0.2),
    Bound("opening", "blocked_s", "the first open in a loop: longest without a turn", 0.05),
)


def measure(setting: Setting, directory: Path) -> Measured:
    rounds = setting.pick(15, 2)
    taken: list[dict[str, float]] = []
    for turn in range(rounds):
        setting.say(f"embedding: {turn + 1} of {rounds} ...")
        taken.append({**_run("testing", directory), **_run("opening", directory / f"node-{turn}")})
    measured = Measured(how={"rounds": rounds, "processes": "one for each value"})
    measured.rows = [_row(bound, taken) for bound in BOUNDS]
    measured.details = {"rounds": taken}
    return measured


def _run(program: str, directory: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.figures.embedded_program", program, str(directory)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PROCESS_S, check=False)
    if done.returncode != 0:
        raise ContenderFailed(f"{program}: {done.stderr.strip()}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _row(bound: Bound, taken: list[dict[str, float]]) -> Row:
    values = [1000 * each[bound.key] for each in taken]
    return over(bound.what, "ms", values, "its bound", [1000 * bound.at_most_s] * len(values), Goal(at_most=1.0))
