"""The page of a result: figures, charts, machine, and the whole JSON."""

from collections.abc import Iterator, Sequence
from typing import Final

from fastquorum.load.reports.chart import charts_of, load_name
from fastquorum.load.result import SWEEP_FORMAT, Result
from fastquorum.load.stolen import in_words
from fastquorum.pages import Card, Facts, Page, Section, Table

_LATENCIES: Final = (("p50", "p50"), ("p90", "p90"), ("p99", "p99"), ("p999", "p99.9"), ("max", "max"))
_HEADER: Final = ("load", "offered/s", "achieved/s", *(f"{label} us" for _, label in _LATENCIES), "errors")
_BULKY: Final = ("timeline", "histogram", "machine")


def page_of(result: Result) -> Page:
    """The page, as data."""
    is_sweep = result["format"] == SWEEP_FORMAT
    steps: Sequence[Result] = result["steps"] if is_sweep else [result]
    return Page(
        title=f"fastquorum load, {result['started']}",
        heading=f"fastquorum load{': sweep' if is_sweep else ''}",
        subtitles=[_what(steps), f"{result['started']} · fastquorum {result['version']}"],
        report=result,
        cards=list(_cards(result, is_sweep)),
        warnings=list(_warnings(steps)),
        sections=[
            Section("", charts_of(result)),
            Section("Figures", [Table(_HEADER, [_row(step) for step in steps], rows_max=len(steps))]),
            *_events(steps),
            Section("Machine", [Facts({name: str(value) for name, value in result["machine"].items()})]),
        ],
        report_id="result",
        readable=_slim(result),
        may_pack=False,
    )


def _row(step: Result) -> list[str]:
    figures = [_figure(step, name) for name, _ in _LATENCIES]
    errors = ", ".join(f"{kind} {count:,}" for kind, count in step["errors"].items()) or "none"
    return [load_name(step), f"{step['offered_per_s']:,.0f}", f"{step['achieved_per_s']:,.0f}", *figures, errors]


def _figure(step: Result, name: str) -> str:
    """Return a latency in microseconds, `-` if nothing was acknowledged."""
    value = step["latency_us"][name]
    return "-" if value is None else f"{value:,.0f}"


def _what(steps: Sequence[Result]) -> str:
    if not steps:
        return "Nothing was measured."
    plan = steps[0]["plan"]
    size = f"{plan['record_bytes']} B records" if plan["workload"] in ("values", "keys") else "metadata records"
    count = plan["records_per_append"]
    return (
        f"Workload {plan['workload']}, {size}, {count} an append; driver "
        f"{plan['driver']}{', ' + plan['api'] + ' API' if plan['driver'] == 'embedded' else ''}; {plan['seconds']:g} s "
        "each."
    )


def _warnings(steps: Sequence[Result]) -> Iterator[str]:
    for step in steps:
        if step["generator_was_bottleneck"]:
            yield f"{load_name(step)}: the generator was the bottleneck: {step['generator']['how']}."
        if stolen := in_words(step.get("stolen_cpu_share")):
            yield f"{load_name(step)}: {stolen}."
    if any(step["interrupted"] for step in steps):
        yield "The run was ended early."


def _cards(result: Result, is_sweep: bool) -> Iterator[Card]:
    if is_sweep:
        knee, overload = result["knee"], result["overload"]
        yield Card("knee, records/s", f"{knee['achieved_per_s']:,.0f}" if knee else "not found")
        if knee:
            yield Card("p50 at the knee, us", f"{knee['latency_us']['p50']:,.0f}")
            yield Card("p99 at the knee, us", f"{knee['latency_us']['p99']:,.0f}")
        if overload:
            yield Card("kept when twice as much is offered", f"{overload['achieved_over_knee']:.0%}")
        return
    yield Card("achieved, records/s", f"{result['achieved_per_s']:,.0f}")
    yield Card("offered, records/s", f"{result['offered_per_s']:,.0f}")
    for name, label in _LATENCIES:
        yield Card(f"{label}, us", _figure(result, name))
    yield Card("errors", f"{sum(result['errors'].values()):,}")


def _events(steps: Sequence[Result]) -> Iterator[Section]:
    rows = []
    for step in steps:
        rows += [[f"{each['t_s']:.2f}", f"kill -9 of node {each['node_id']}"] for each in step["kills"]]
        rows += [
            [f"{each['t_s']:.2f}", f"node {each['leader']} leads epoch {each['epoch']}"] for each in step["elections"]
        ]
    if rows:
        yield Section(
            "What happened", [Table(("seconds", "event"), sorted(rows, key=lambda row: float(row[0])), left=(0, 1))]
        )


def _slim(result: Result) -> Result:
    """Without what is drawn already."""
    slim = {name: value for name, value in result.items() if name not in _BULKY}
    if "steps" in slim:
        slim["steps"] = [_slim(step) for step in slim["steps"]]
    return slim
