"""The output of `load`: a live line while it runs, on a terminal, and tables in the end."""

import contextlib
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final

from fastquorum.cli.terminal.output import print_table
from fastquorum.load.recorded import TimelinePoint
from fastquorum.load.reports.chart import load_name
from fastquorum.load.result import SWEEP_FORMAT, Result
from fastquorum.load.runs import Watching
from fastquorum.load.stolen import in_words

_LATENCIES: Final = (("p50", "P50 US"), ("p90", "P90 US"), ("p99", "P99 US"), ("p999", "P99.9 US"), ("max", "MAX US"))


@contextlib.contextmanager
def watching() -> Iterator[Watching]:
    """A bar on stderr, if that is a terminal: how far, how fast, how late."""
    if not sys.stderr.isatty():
        yield Watching()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[figures]}"),
        TimeRemainingColumn(),
    )
    drawn = sys.stdout.isatty()
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=drawn) as bar:
        task = bar.add_task("starting", total=None, figures="")
        failed = 0

        def on_phase(name: str, seconds: float) -> None:
            nonlocal failed
            failed = 0
            bar.reset(task, description=name, total=seconds, figures="")

        def on_point(point: TimelinePoint) -> None:
            nonlocal failed
            failed += sum(point.errors.values())
            rate = point.acknowledged / point.span_s if point.span_s else 0.0
            errors = f", {failed:,} errors" if failed else ""
            bar.update(
                task, completed=point.t_s, figures=f"{rate:>9,.0f} appends/s, p99 {point.p99_us:>9,.0f} us{errors}"
            )

        def on_result(step: Result) -> None:
            """Print one step of a sweep while it runs."""
            offered, achieved = step["offered_per_s"], step["achieved_per_s"]
            bar.console.print(
                f"{offered:>12,.0f} records/s offered {achieved:>12,.0f} achieved   p99 {_us(step, 'p99'):>10} us",
                highlight=False,
            )

        yield Watching(on_phase, on_point, on_result)


def show(result: Result) -> None:
    """For people, on stdout."""
    if result["format"] == SWEEP_FORMAT:
        _show_sweep(result)
    else:
        _show_run(result)
    if result["interrupted"]:
        print("\nended early, on request")


def _show_run(result: Result) -> None:
    rows: list[tuple[str, str]] = [
        ("offered", f"{result['offered_per_s']:,.0f} records/s ({_what(result)})"),
        ("achieved", f"{result['achieved_per_s']:,.0f} records/s"),
        ("latency, us", "  ".join(f"{_short(label)} {_us(result, name)}" for name, label in _LATENCIES)),
        ("errors", _errors(result)),
    ]
    rows += [("killed", f"node {each['node_id']} at {each['t_s']:.2f} s") for each in result["kills"]]
    rows += [
        ("elected", f"node {each['leader']} at {each['t_s']:.2f} s, epoch {each['epoch']}")
        for each in result["elections"]
    ]
    if result["cpu_us_per_append"] is not None:
        rows.append(("CPU", f"{result['cpu_us_per_append']:,.0f} us an append, all processes"))
    if stolen := in_words(result["stolen_cpu_share"]):
        rows.append(("machine", stolen))
    verdict = "it was the BOTTLENECK: " if result["generator_was_bottleneck"] else "kept up: "
    rows.append(("generator", verdict + result["generator"]["how"]))
    print_table(("LOAD", load_name(result)), rows)


def _show_sweep(result: Result) -> None:
    header = ("OFFERED/S", "ACHIEVED/S", *(label for _, label in _LATENCIES), "ERRORS", "GENERATOR")
    print_table(header, [_sweep_row(step) for step in result["steps"]])
    print()
    knee, overload = result["knee"], result["overload"]
    if knee is None:
        why = "the sweep was ended before" if result["interrupted"] else "even the first rate was not kept up with"
        print(f"no knee was found: {why}")
        return
    latency = knee["latency_us"]
    print(
        f"knee: {knee['achieved_per_s']:,.0f} records/s, p50 {latency['p50']:,.0f} us, p99 {latency['p99']:,.0f} us; "
        "beyond it less than 98 % is achieved, errors appear, or arrivals queue"
    )
    if overload is not None:
        elections = len(overload["elections"])
        print(
            f"offered twice as much: {overload['achieved_over_knee']:.0%} of the knee's throughput, "
            f"{elections} elections, errors: {_errors(overload)}"
        )


def _sweep_row(step: Result) -> Sequence[Any]:
    return (
        f"{step['offered_per_s']:,.0f}",
        f"{step['achieved_per_s']:,.0f}",
        *(_us(step, name) for name, _ in _LATENCIES),
        f"{sum(step['errors'].values()):,}",
        "BOTTLENECK" if step["generator_was_bottleneck"] else "kept up",
    )


def _what(result: Result) -> str:
    plan = result["plan"]
    size = f", {plan['record_bytes']} B" if plan["record_bytes"] else ""
    api = f", {plan['api']}" if plan["driver"] == "embedded" else ""
    return f"{plan['workload']}{size}, {plan['records_per_append']} an append, {plan['driver']}{api}"


def _errors(result: Result) -> str:
    return ", ".join(f"{kind} {count:,}" for kind, count in result["errors"].items()) or "none"


def _us(result: Result, name: str) -> str:
    """Return a latency in microseconds, `-` if nothing was acknowledged."""
    value = result["latency_us"][name]
    return "-" if value is None else f"{value:,.0f}"


def _short(label: str) -> str:
    return label.removesuffix(" US").lower()
