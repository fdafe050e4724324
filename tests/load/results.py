"""Results made of little, for the tests of what becomes of results."""

from typing import Any

import numpy as np

from fastquorum.load.hdr import Histogram
from fastquorum.load.plan import LoadPlan
from fastquorum.load.result import FORMAT, SWEEP_FORMAT, Result

MACHINE = {"cpu": "a <fast> one", "cpus": 2, "kernel": "Linux 6", "version": "0", "file_system": "ext4 on /dev/x"}


def result(rate: float = 1000.0, latency_us: int = 500, **more: Any) -> Result:
    """A run of two seconds in which every append took about as long."""
    histogram = Histogram()
    spread = np.linspace(latency_us * 500, latency_us * 2000, 1000).astype(np.int64)
    histogram.record(spread)
    point = {"span_s": 0.1, "sent": 50, "acknowledged": 50, "errors": {}, "in_flight": 1}
    figures = {"p50_us": latency_us * 1.0, "p99_us": latency_us * 1.9, "max_us": latency_us * 2.0}
    return {
        "format": FORMAT,
        "version": "0.1",
        "started": "2026-11-01T10:00:00+00:00",
        "plan": LoadPlan(records_per_s=rate, seconds=2.0).as_json(),
        "latency_us": histogram.as_us(),
        "offered_per_s": rate,
        "achieved_per_s": rate * 0.99,
        "appends": 1000,
        "records": 1000,
        "acknowledged": 1000,
        "errors": {},
        "generator_was_bottleneck": False,
        "generator": {"how": "ticks began in time", "lateness_us": histogram.as_us(), "sent": 1000},
        "elections": [],
        "kills": [],
        "cpu_us_per_append": 50.0,
        "stolen_cpu_share": 0.001,
        "nodes": [],
        "timeline": [{"t_s": 0.1 * nth, **point, **figures} for nth in range(1, 21)],
        "histogram": histogram.encoded(),
        "machine": dict(MACHINE),
        "interrupted": False,
        **more,
    }


def sweep(rates: tuple[float, ...] = (1000.0, 2000.0, 4000.0)) -> Result:
    steps = [result(rate, int(rate / 4)) for rate in rates]
    knee = {name: steps[-2][name] for name in ("offered_per_s", "achieved_per_s", "latency_us", "errors")}
    return {
        "format": SWEEP_FORMAT,
        "version": "0.1",
        "started": steps[0]["started"],
        "steps": steps,
        "knee": {**knee, "generator_was_bottleneck": False},
        "overload": {**knee, "achieved_over_knee": 0.95, "elections": []},
        "machine": dict(MACHINE),
        "interrupted": False,
    }
