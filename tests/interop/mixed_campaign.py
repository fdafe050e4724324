"""Every scenario of mixed quorums, one after the other, with so many commits before, during and after each kill; and
the reference: the same by Kafka's controllers alone, for what they log."""

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fastquorum.kernels import load

from . import log_lines
from .kafka import Kafka
from .mixed_quorum import Stage
from .mixed_scenarios import SCENARIOS


def play(stage: Stage, name: str) -> dict[str, Any]:
    """Figures of a scenario that went as it should; AssertionError if it did not."""
    began = time.monotonic()
    try:
        found = SCENARIOS[name](stage).finish()
    finally:
        stage.stop()
    return {**found, "seconds": round(time.monotonic() - began, 1)}


def mixed(kafka: Kafka, commits: int, names: Sequence[str], say: Callable[[str], None]) -> dict[str, Any]:
    """A report of all of them."""
    scenarios: dict[str, Any] = {}
    problems: list[str] = []
    for name in names or SCENARIOS:
        with tempfile.TemporaryDirectory() as scratch:
            stage = Stage(kafka, load("native"), Path(scratch), commits, say=say)
            say(f"--- {name}")
            try:
                scenarios[name] = play(stage, name)
                problems += [f"{name}: {each}" for each in log_lines.unheard_of(stage.members, name)]
            except AssertionError as failed:
                problems.append(f"{name}: {failed}")
    return {"kafka": kafka.version, "commits": commits, "scenarios": scenarios, "problems": problems}


def reference(kafka: Kafka, commits: int, runs: int, names: Sequence[str], say: Callable[[str], None]) -> None:
    """What varies with timing shows in one run or the other."""
    for name in names or SCENARIOS:
        found: set[str] = set()
        for _ in range(runs):
            with tempfile.TemporaryDirectory() as scratch:
                stage = Stage(kafka, load("native"), Path(scratch), commits, is_reference=True, say=say)
                say(f"--- {name}, Kafka's controllers alone")
                play(stage, name)
                found |= log_lines.logged(stage.members)
        log_lines.record(name, found, kafka.version)
