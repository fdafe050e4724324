"""The charts of a result, as data. `pages.svg` draws them without help, `png` with matplotlib."""

import math
from collections.abc import Sequence
from typing import Final

from fastquorum.load.hdr import Histogram
from fastquorum.load.result import SWEEP_FORMAT, Result
from fastquorum.pages.chart import Axis, Chart, Marker, Pen, Series
from fastquorum.pages.text import number

_BIN_S: Final = 0.1
_BINS_MAX: Final = 600
_STEPS_DRAWN: Final = 6
"""Most steps of a sweep in the chart by percentile: more lines cannot be told apart."""
_LAST_NINES: Final = 1e6


def charts_of(result: Result) -> list[Chart]:
    """Return all charts: for a sweep over load, for a single run the timeline, for both the percentiles."""
    if result["format"] == SWEEP_FORMAT:
        return [*_over_load(result), _by_percentile(_chosen(result["steps"]))]
    return [_by_percentile([result]), *_timeline(result)]


def load_name(result: Result) -> str:
    """The load of one run, as people say it."""
    plan = result["plan"]
    return f"{plan['closed']} in flight" if plan["closed"] else f"{plan['records_per_s']:,.0f} records/s"


def _chosen(steps: Sequence[Result]) -> list[Result]:
    """The first, the last, and some between them, evenly."""
    if len(steps) <= _STEPS_DRAWN:
        return list(steps)
    last = len(steps) - 1
    return [steps[round(nth * last / (_STEPS_DRAWN - 1))] for nth in range(_STEPS_DRAWN)]


def _by_percentile(results: Sequence[Result]) -> Chart:
    series = []
    for result in results:
        points = []
        for value, fraction, _ in Histogram.decode(result["histogram"]).levels():
            nines = 1 / (1 - fraction) if fraction < 1 else _LAST_NINES
            if nines < _LAST_NINES:
                points.append((nines, value / 1e3))
        # The largest one stands where its own share of all is, not at infinity.
        points = [(min(nines, max(result["acknowledged"], 1)), value) for nines, value in points]
        rate = result["plan"]["records_per_s"]
        series.append(Series(f"{number(rate)}/s" if rate else load_name(result), points))
    title = "Latency by percentile, from the intended send time"
    if results and results[0]["plan"]["closed"]:
        title = "Latency by percentile, closed loop"
    return Chart("latency", title, Axis("percentile", "percentile"), Axis("latency, us", "log"), series)


def _over_load(result: Result) -> list[Chart]:
    steps = [step for step in result["steps"] if step["offered_per_s"] > 0]
    offered = [float(step["offered_per_s"]) for step in steps]
    achieved = [(x, float(step["achieved_per_s"])) for x, step in zip(offered, steps, strict=True)]
    marks = []
    if result["knee"] is not None:
        marks.append(Marker(result["knee"]["offered_per_s"], f"knee {result['knee']['achieved_per_s']:,.0f}/s"))
    x = Axis("offered, records/s", "log")
    throughput = Chart(
        "throughput",
        "Throughput over offered load",
        x,
        Axis("achieved, records/s", "log"),
        [
            Series("offered", [(each, each) for each in offered], is_dashed=True),
            Series("achieved", achieved, False, True),
        ],
        marks,
    )
    latencies = [
        Series(
            name,
            [(at, _or_nan(step["latency_us"][name])) for at, step in zip(offered, steps, strict=True)],
            False,
            True,
        )
        for name in ("p50", "p99", "max")
    ]
    return [
        throughput,
        Chart("latency-over-load", "Latency over offered load", x, Axis("latency, us", "log"), latencies, marks),
    ]


def _timeline(result: Result) -> list[Chart]:
    points = [point for point in result["timeline"] if point["t_s"] > 0]
    end_s = max((point["t_s"] for point in points), default=1.0)
    width_s = max(_BIN_S, math.ceil(end_s / _BINS_MAX / _BIN_S) * _BIN_S)
    bins = max(math.ceil(end_s / width_s - 0.5), 1)
    size = result["plan"]["records_per_append"]
    done, failed = [0.0] * bins, [0.0] * bins
    for point in points:
        at = min(int(_middle_s(point) / width_s), bins - 1)
        done[at] += point["acknowledged"] * size / width_s
        failed[at] += sum(point["errors"].values()) * size / width_s
    times = [(nth + 0.5) * width_s for nth in range(bins)]
    rates = [Series("acknowledged", list(zip(times, done, strict=True)))]
    if any(failed):
        rates.append(Series("errors", list(zip(times, failed, strict=True)), pen=Pen.BAD))
    offered = result["plan"]["records_per_s"]
    if offered:
        rates.append(Series("offered", [(0.0, offered), (result["plan"]["seconds"], offered)], is_dashed=True))
    marks = [Marker(each["t_s"], f"kill -9 of node {each['node_id']}", is_bad=True) for each in result["kills"]]
    marks += [Marker(each["t_s"], f"node {each['leader']} leads epoch {each['epoch']}") for each in result["elections"]]
    points_with_gaps = [(_middle_s(point), point) for point in _with_gaps(points)]
    latencies = [
        Series(
            name, [(at, point[f"{name}_us"] if point["acknowledged"] else math.nan) for at, point in points_with_gaps]
        )
        for name in ("p50", "p99", "max")
    ]
    x = Axis("seconds since the start")
    return [
        Chart("timeline-rate", "Timeline: records per second", x, Axis("records/s"), rates, marks),
        Chart(
            "timeline-latency",
            "Timeline: latency of acknowledged appends",
            x,
            Axis("latency, us", "log"),
            latencies,
            marks,
        ),
    ]


def _middle_s(point: Result) -> float:
    """Return the middle of a point's interval, in seconds."""
    return float(max(point["t_s"] - min(point["span_s"], _BIN_S) / 2, 0.0))


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _with_gaps(points: Sequence[Result]) -> list[Result]:
    """Return the points, with an empty one before each whose long interval had acknowledgements only at its end."""
    points_with_gaps: list[Result] = []
    for point in points:
        if point["span_s"] > 2 * _BIN_S and points_with_gaps:
            points_with_gaps.append({**point, "t_s": point["t_s"] - _BIN_S, "acknowledged": 0})
        points_with_gaps.append(point)
    return points_with_gaps
