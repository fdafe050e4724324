"""What a stretch of load came to, from the history that the writers keep."""

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tests.process.history import History


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of the appends that were settled in the stretch."""

    seconds: float
    acked: int
    acked_per_s: float
    p50_ms: float
    p99_ms: float
    refused: int
    unknown: int

    def as_json(self) -> dict[str, Any]:
        return {name: round(value, 3) for name, value in asdict(self).items()}


def figures(history: History, begin_s: float, end_s: float) -> Figures:
    """Between two moments of the monotonic clock."""
    settled = history.settled(begin_s, end_s)
    latencies_ms = sorted((each.settled_s - each.began_s) * 1e3 for each in settled if each.fate == "acked")
    seconds = max(end_s - begin_s, 1e-9)
    return Figures(
        seconds=seconds,
        acked=len(latencies_ms),
        acked_per_s=len(latencies_ms) / seconds,
        p50_ms=_percentile(latencies_ms, 0.5),
        p99_ms=_percentile(latencies_ms, 0.99),
        refused=sum(each.fate == "refused" for each in settled),
        unknown=sum(each.fate == "unknown" for each in settled),
    )


def _percentile(values: Sequence[float], share: float) -> float:
    return values[min(int(len(values) * share), len(values) - 1)] if values else 0.0


def ratio(rounds: Sequence[dict[str, Figures]], of: str, to: str) -> dict[str, Any]:
    """Throughput and latency of one stretch over another's, of each round: the median, and how far they spread."""
    found: dict[str, Any] = {}
    for name in ("acked_per_s", "p50_ms", "p99_ms"):
        each = [getattr(one[of], name) / max(getattr(one[to], name), 1e-9) for one in rounds]
        found[name] = {
            "median": round(statistics.median(each), 3),
            "min": round(min(each), 3),
            "max": round(max(each), 3),
        }
    return {"of": of, "to": to, **found}
