"""What a record costs the leader while 1 to 100 observers read the log: its processor time over the bytes that it
sends.

The observers are light: a process that speaks Fetch as observers do, and keeps nothing (`observers`). Their own work is
not counted, the leader's is, and as they share the machine's cores with it, wall time is only reported.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from bench.compare.cluster import Process
from bench.figures.figure import Goal, Measured, Setting, alone, over
from bench.figures.trio import CLUSTER_ID, Node, Trio
from bench.measure import Spread

ANSWER_S: Final = 120.0
FOLLOWERS: Final = 2
BATCH, IN_FLIGHT = 1000, 2
LINEAR: Final = Goal(at_most=1.2)
"""Goal of the leader's processor time a byte, relative to that with one observer: it must not grow."""


def measure(setting: Setting, trio: Trio, directory: Path, measured: Measured) -> None:
    """Measure on a quorum with a new log. `directory` is for the observers' error output."""
    levels: Sequence[int] = setting.pick((1, 10, 100), (1, 5))
    rounds, appends = setting.pick(5, 1), setting.pick(40, 4)
    taken: dict[int, list[dict[str, float]]] = {level: [] for level in levels}
    leader = trio.await_leader()
    command = [sys.executable, "-m", "bench.figures.observers", trio.endpoint_of(leader), CLUSTER_ID]
    observers = Process("scale, observers", command, directory / "observers.stderr", {})
    try:
        for turn in range(rounds + 1):
            setting.say(f"scale: observers, round {turn} of {rounds} ...")
            for level in levels if turn % 2 == 0 else reversed(levels):
                found = _slice(leader, observers, level, appends)
                if turn:  # the first one warms up
                    taken[level].append(found)
    finally:
        observers.ask_to_end()
        observers.stop(speaks=True)
    _report(measured, taken)
    measured.how |= {"observers": "light Fetch clients in one process", "observer_batches": appends}


def _slice(leader: Node, observers: Process, level: int, appends: int) -> dict[str, float]:
    now = leader.ask("who")
    _tell(observers, {"do": "join", "count": level, "epoch": now["epoch"], "offset": now["end_offset"]})
    before = leader.ask("who")["cpu_s"]
    done = leader.ask("window", in_flight=IN_FLIGHT, appends=appends, batch=BATCH)
    read = _tell(observers, {"do": "await", "offset": now["end_offset"] + done["count"]})
    cpu_s = leader.ask("who")["cpu_s"] - before
    sent = read["bytes"] * (level + FOLLOWERS) / level
    return {
        "cpu_ns_per_byte": cpu_s / sent * 1e9,
        "cpu_us_per_record": cpu_s / done["count"] * 1e6,
        "wall_us_per_record": done["seconds"] / done["count"] * 1e6,
        "sent_bytes": sent,
    }


def _tell(observers: Process, command: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(observers.ask(command, ANSWER_S))
    return answer


def _report(measured: Measured, taken: dict[int, list[dict[str, float]]]) -> None:
    levels = list(taken)
    one = [each["cpu_ns_per_byte"] for each in taken[levels[0]]]
    for level in levels[1:]:
        own = [each["cpu_ns_per_byte"] for each in taken[level]]
        goal = LINEAR if level == levels[-1] else None
        what = f"{level} observers, the leader's processor time"
        measured.rows.append(over(what, "ns a byte sent", own, f"{levels[0]} observer", one, goal))
    costs = [Spread.of([each["cpu_us_per_record"] for each in taken[level]]).median for level in levels]
    slope = float(np.polyfit(levels, costs, 1)[0])
    measured.rows.append(alone("each further observer, the leader's processor time", "us a record", [slope]))
    measured.details["observers"] = {str(level): each for level, each in taken.items()}
