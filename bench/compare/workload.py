"""What every contender is asked to do, and what it answers.

A contender's process reads commands from stdin, a JSON object a line, and answers each with one on stdout; the end of
stdin ends it. {"do": "who"} asks whether appends are to be made there: {"leads": bool}. {"do": "run", ...} is a
workload, answered with `Figures`.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

VALUE_BYTES = 100
BATCH = 1000
BATCHES_IN_FLIGHT = 4
OPEN_RATE = 100_000
OPEN_IN_FLIGHT_MAX = 8192


@dataclass(frozen=True, slots=True)
class Workload:
    name: str
    in_flight: int
    """Appends at a time; in an open loop the most of them."""
    batch: int = 1
    """Values an append."""
    rate: float = 0.0
    """Values a second on an absolute schedule, latency from when an append was due; 0 is a closed loop."""

    def request(self, seconds: float) -> dict[str, Any]:
        return {
            "do": "run",
            "in_flight": self.in_flight,
            "batch": self.batch,
            "rate": self.rate,
            "seconds": seconds,
            "value_bytes": VALUE_BYTES,
        }


CLOSED = tuple(Workload(f"{count} in flight", count) for count in (1, 64, 256, 1024))
BATCHES = Workload(f"batches of {BATCH:,}", BATCHES_IN_FLIGHT, BATCH)
OPEN = Workload(f"{OPEN_RATE:,}/s offered", OPEN_IN_FLIGHT_MAX, rate=OPEN_RATE)
WORKLOADS = (*CLOSED, BATCHES, OPEN)


class BadAnswer(Exception):
    """A contender's process answered what no contender should; the message says who and what."""


@dataclass(frozen=True, slots=True)
class Figures:
    commits: int
    """Values committed."""
    seconds: float
    percentiles_us: Mapping[float, float]
    """Percentiles of an append's latency, by percent."""
    errors: int = 0
    not_sent: int = 0
    """Values that an open loop had no room for within its time."""
    error: str = ""
    """The last error."""
    cpu_us: float = 0.0
    """Processor time of all processes, user and system."""
    cpu_us_by_process: Mapping[str, float] = field(default_factory=dict)

    @property
    def commits_per_s(self) -> float:
        return self.commits / self.seconds

    @property
    def cpu_us_per_commit(self) -> float:
        return self.cpu_us / self.commits if self.commits else math.nan


def parse(who: str, line: str) -> Figures:
    """A `run` command's answer. Raises BadAnswer: no JSON, a field missing, a figure that cannot be."""
    try:
        answer = json.loads(line)
        percentiles = {float(rank): float(us) for rank, us in answer["percentiles_us"].items()}
        figures = Figures(
            commits=int(answer["commits"]),
            seconds=float(answer["seconds"]),
            percentiles_us=dict(sorted(percentiles.items())),
            errors=int(answer.get("errors", 0)),
            not_sent=int(answer.get("not_sent", 0)),
            error=str(answer.get("error", "")),
            cpu_us=float(answer.get("cpu_us", 0.0)),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadAnswer(f"{who} answered {line[:200]!r}, not a run's figures: {error!r}") from None
    values = list(figures.percentiles_us.values())
    if figures.commits < 0 or not 0 < figures.seconds < math.inf or any(not 0 <= us < math.inf for us in values):
        raise BadAnswer(f"{who} answered figures that cannot be: {line[:200]!r}")
    if values != sorted(values):
        raise BadAnswer(f"{who} answered percentiles that fall: {line[:200]!r}")
    if figures.commits == 0:
        raise BadAnswer(f"{who} committed nothing: {figures.error or 'no error was told'}")
    if not {50.0, 99.0} <= figures.percentiles_us.keys():
        raise BadAnswer(f"{who} told neither p50 nor p99, or only one of them")
    return figures
