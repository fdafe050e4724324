"""Throughput by appends in flight, and latency by percentile, as PNG."""

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.compare.contenders import OURS
from bench.compare.workload import CLOSED, OPEN

OUR_COLOURS = ("#d62728", "#ff7f0e", "#e6ab02", "#8b1a1a")
"""Warm; everybody else is cold or grey."""
COLOURS = ("#1f77b4", "#2ca02c", "#17becf", "#9467bd", "#8c6bb1", "#5f9ea0", "#006d2c", "#08306b", "#54278f", "#7f7f7f")
MARKS = "osD^v<>Px*h"
SHOWN_PERCENTILES = (1, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9)


def can_draw() -> bool:
    return importlib.util.find_spec("matplotlib") is not None


def draw(report: Mapping[str, Any], stem: Path) -> list[Path]:
    """Writes STEM-throughput.png and a STEM-latency-....png for each workload with percentiles worth a look."""
    from matplotlib.figure import Figure

    by_workload: dict[str, dict[str, Any]] = {}
    for result in report["results"]:
        by_workload.setdefault(result["workload"], {})[result["name"]] = result
    styles = _styles(report)
    drawn = []
    closed = [each for each in CLOSED if each.name in by_workload]
    if closed:
        figure = Figure(figsize=(10, 6.5), layout="constrained")
        _throughput(figure.add_subplot(), [(each.in_flight, by_workload[each.name]) for each in closed], styles)
        drawn.append(_save(figure, stem, "throughput"))
    for workload in (*CLOSED[:2], OPEN):
        if workload.name in by_workload:
            figure = Figure(figsize=(10, 6.5), layout="constrained")
            _latency(figure.add_subplot(), by_workload[workload.name], styles, f"{workload.name}: an append's latency")
            name = "open" if workload.rate else str(workload.in_flight)
            drawn.append(_save(figure, stem, f"latency-{name}"))
    return drawn


def _save(figure: Any, stem: Path, name: str) -> Path:
    path = stem.with_name(f"{stem.name}-{name}.png")
    figure.savefig(path, dpi=120)
    return path


def _styles(report: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """One look per contender in every chart; ours thick, the floor black and dashed."""
    styles: dict[str, dict[str, Any]] = {}
    colours = {True: OUR_COLOURS, False: COLOURS}
    for number, each in enumerate(report["contenders"]):
        is_ours = each["role"] == OURS
        is_known_durable = (each["syncs"] or {}).get("durable") is not False
        styles[each["name"]] = {
            "color": colours[is_ours][number % len(colours[is_ours])],
            "marker": MARKS[number % len(MARKS)],
            "linewidth": 2.6 if is_ours else 1.3,
            "markersize": 7 if is_ours else 5,
            "linestyle": "-" if is_known_durable else ":",
            "label": each["name"] if is_known_durable else f"{each['name']} (not durable)",
        }
    styles["C floor"] = {"color": "black", "linestyle": "--", "marker": ".", "label": "C floor"}
    return styles


def _throughput(axes: Any, levels: Sequence[tuple[int, Mapping[str, Any]]], styles: Mapping[str, Any]) -> None:
    for name, style in styles.items():
        points = [(count, found[name]["figures"]["commits/s"]) for count, found in levels if name in found]
        if points:
            counts, rates = [count for count, _ in points], [rate["median"] for _, rate in points]
            lower = [rate["median"] - rate["low"] for _, rate in points]
            upper = [rate["high"] - rate["median"] for _, rate in points]
            axes.errorbar(counts, rates, yerr=[lower, upper], capsize=2, **style)
    axes.set(xscale="log", yscale="log", xlabel="appends in flight", ylabel="commits a second")
    axes.set_xticks([count for count, _ in levels], [f"{count:,}" for count, _ in levels])
    axes.minorticks_off()
    axes.set_title("Three processes on one disk, 100-byte values\n(medians of the rounds; bars: lowest to highest)")
    _finish(axes)


def _latency(axes: Any, found: Mapping[str, Any], styles: Mapping[str, Any], title: str) -> None:
    """Percentiles spread as 1/(1-p), so that the tail has room; the median of the rounds at each."""
    for name, style in styles.items():
        if name in found:
            rounds = [each["percentiles_us"] for each in found[name]["rounds"]]
            shown = [rank for rank in SHOWN_PERCENTILES if all(f"{rank:g}" in each for each in rounds)]
            middle = [sorted(each[f"{rank:g}"] for each in rounds)[len(rounds) // 2] for rank in shown]
            label = {"label": style["label"] + _not_sent(found[name]["rounds"])}
            axes.plot([100 / (100 - rank) for rank in shown], [us / 1e3 for us in middle], **(style | label))
    axes.set(xscale="log", yscale="log", xlabel="percentile", ylabel="milliseconds")
    ticks = (1, 50, 75, 90, 99, 99.9)
    axes.set_xticks([100 / (100 - rank) for rank in ticks], [f"{rank:g}" for rank in ticks])
    axes.minorticks_off()
    axes.set_title(title)
    _finish(axes)


def _not_sent(rounds: Sequence[Mapping[str, Any]]) -> str:
    """Return a note if the latencies are those of a part of the appends only."""
    lost = sum(each["not_sent"] + each["errors"] for each in rounds)
    return f", {lost / (lost + sum(each['commits'] for each in rounds)):.0%} not sent" if lost else ""


def _finish(axes: Any) -> None:
    axes.grid(alpha=0.3)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize="small")
