"""The page of `sim-sweep`: what the seeds went through, and those in which a promise was broken."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from fastquorum.pages import Card, Lines, Page, Prose, Section, Table
from fastquorum.pages.chart import Axis, Bar, Bars, Key, Pen
from fastquorum.pages.page import Part
from fastquorum.spark.pages.words import DRAWN_MAX, counted, text

_HOUR_US: Final = 3.6e9
_TOTALS: Final = {"events": "events", "elections": "elections", "acknowledged": "acknowledged", "restarts": "restarts"}


def page_of(report: dict[str, Any]) -> Page:
    """Make the page of a report that `pipelines.sim_sweep.as_report` made."""
    seeds, failed = counted(report["seeds"], "seed"), report["failed"]
    return Page(
        title=f"fastquorum sim sweep, {seeds}",
        heading="Does every simulated quorum keep its promises?",
        subtitles=[f"fastquorum sim sweep: seeds {text(report['first_seed'])} to {text(report['last_seed'])}."],
        report=report,
        cards=list(_cards(report)),
        warnings=[f"In {counted(len(failed), 'seed')} a promise was broken."] if failed else [],
        sections=[
            *_failures(failed, report["invariants"]),
            Section("What the seeds went through", list(_faults(report))),
        ],
    )


def _cards(report: dict[str, Any]) -> Iterator[Card]:
    failed = len(report["failed"])
    yield Card("seeds", text(report["seeds"]))
    yield Card("failed", text(failed) if failed else "none", Pen.BAD if failed else Pen.GOOD)
    yield Card("virtual hours", f"{report['totals']['virtual_us'] / _HOUR_US:,.1f}")
    for name, label in _TOTALS.items():
        yield Card(label, text(report["totals"][name]))


def _faults(report: dict[str, Any]) -> Iterator[Part]:
    most = sorted(report["faults"].items(), key=lambda each: -each[1])
    if most:
        bars = [Bar(kind, [count], f"{count:,}") for kind, count in most]
        yield Bars("faults", "Faults, by kind", Axis("times", "count"), [Key("faults", Pen.FIRST)], bars)
    rows = [[name.replace("_", " "), text(value)] for name, value in report["totals"].items()]
    yield Table(("over all seeds", "sum"), rows)


def _failures(failed: Sequence[dict[str, Any]], invariants: dict[str, int]) -> Iterator[Section]:
    if not failed:
        yield Section("", [Prose("Every promise was kept in every seed.")])
        return
    bars = [Bar(name, [count]) for name, count in sorted(invariants.items(), key=lambda each: -each[1])]
    axis = Axis("seeds", "count")
    yield Section("Promises broken", [Bars("invariants", "Seeds, by promise", axis, [Key("seeds", Pen.BAD)], bars)])
    header = ("seed", "promise", "node", "after", "events", "shrunk to", "what was seen")
    rows = [
        [
            str(row["seed"]),
            text(row["invariant"]),
            text(row["node_id"]),
            f"{row['virtual_us'] / 1e6:,.3f} s",
            text(row["events"]),
            text(row["shrunk_events"]),
            text(row["detail"]),
        ]
        for row in failed
    ]
    yield Section("Failed seeds", [Table(header, rows, left=(1, 6))])
    for row in failed[:DRAWN_MAX]:
        yield Section(f"Seed {row['seed']}", list(_failure(row)))


def _failure(row: dict[str, Any]) -> Iterator[Part]:
    """Yield the command that shows a failure again, and the last events before it."""
    yield Prose(f"{text(row['invariant'])}: {text(row['shrunk_detail'] or row['detail'])}")
    yield Prose("Again with:")
    yield Lines([text(row["repro"]), *([row["shrunk_repro"]] if row["shrunk_repro"] else [])])
    if tail := row["shrunk_trace_tail"] or row["trace_tail"]:
        yield Prose("The last that happened, of the least that breaks it:" if row["shrunk_repro"] else "The last:")
        yield Lines(tail)
