"""The page of `audit-invariants`: which promises are broken, where, and by what."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from fastquorum.pages import Card, Page, Prose, Section, Table
from fastquorum.pages.chart import Axis, Band, Bar, Bars, Key, Pen, Strip, Strips
from fastquorum.pages.page import Part
from fastquorum.spark.pages.words import counted, listed, text

_BROKEN: Final = [Key("a promise is broken", Pen.BAD)]


def page_of(report: dict[str, Any]) -> Page:
    """Make the page of a report with `violations`, `notes`, `kinds`, `clusters` and, as the command adds it, `logs`."""
    logs = counted(report["logs"], "log")
    return Page(
        title=f"fastquorum audit invariants, {logs}",
        heading="Does each log keep its promises?",
        subtitles=[f"fastquorum audit invariants: {logs}."],
        report=report,
        cards=list(_cards(report)),
        sections=list(_sections(report)),
    )


def _cards(report: dict[str, Any]) -> Iterator[Card]:
    violations = len(report["violations"])
    yield Card("logs", text(report["logs"]))
    yield Card("promises broken", text(violations) if violations else "none", Pen.BAD if violations else Pen.GOOD)
    yield Card("kinds", text(len(report["kinds"])))
    yield Card("clusters with any", text(len(report["clusters"])))
    yield Card("notes, which are none", text(len(report["notes"])))


def _sections(report: dict[str, Any]) -> Iterator[Section]:
    violations = report["violations"]
    if violations:
        yield Section("Which promises are broken", list(_overview(report)))
        yield Section("Each of them", [_table(violations)])
    else:
        yield Section("", [Prose("Every promise that could be checked is kept.")])
    if report["notes"]:
        yield Section("Notes: what breaks no promise", [_table(report["notes"])])


def _overview(report: dict[str, Any]) -> Iterator[Part]:
    promises = {row["kind"]: row["promise"] for row in report["violations"]}
    most = sorted(report["kinds"].items(), key=lambda each: -each[1])
    bars = [Bar(kind, [count], f"{count:,}") for kind, count in most]
    yield Bars("kinds", "Broken promises, by kind", Axis("findings", "count"), _BROKEN, bars)
    yield Table(("kind", "the promise", "broken"), [[kind, promises[kind], f"{n:,}"] for kind, n in most], left=(0, 1))
    yield from _where(report)
    if len(report["clusters"]) > 1:
        totals = sorted(((sum(each["kinds"].values()), each) for each in report["clusters"]), key=lambda pair: -pair[0])
        bars = [Bar(text(each["cluster_id"] or None), [count]) for count, each in totals]
        yield Bars("clusters", "Broken promises, by cluster", Axis("findings", "count"), _BROKEN, bars)


def _where(report: dict[str, Any]) -> Iterator[Strips]:
    """Draw where promises are broken: a strip for each kind in one cluster, for each cluster in several."""
    by = "kind" if len(report["clusters"]) == 1 else "cluster_id"
    spans: dict[str, list[Band]] = {}
    for row in report["violations"]:
        if row["offset"] is not None:
            spans.setdefault(text(row[by]), []).append(Band(row["offset"], row["offset"], 0, row["says"]))
    if spans:
        strips = [Strip(name, of_name) for name, of_name in sorted(spans.items(), key=lambda each: -len(each[1]))]
        yield Strips("where", "Where in the log", Axis("offset", "count", has_zero=False), _BROKEN, strips)


def _table(rows: Sequence[dict[str, Any]]) -> Table:
    """Make a table of findings. It leaves out the cluster's id if there is only one."""
    only = len({row["cluster_id"] for row in rows}) == 1
    cells = [
        [
            text(row["cluster_id"]),
            row["kind"],
            text(row["offset"]),
            listed([text(each) for each in row["node_ids"]]),
            subject_of(row),
            row["says"]
            + (f"; before, since offset {text(row['before_offset'])}: {row['before']}" if row["before"] else ""),
        ]
        for row in rows
    ]
    header = ["cluster", "kind", "offset", "nodes", "of", "what it says"]
    if only:
        return Table(header[1:], [row[1:] for row in cells], left=(0, 2, 3, 4))
    return Table(header, cells, left=(0, 1, 3, 4, 5))


def subject_of(row: dict[str, Any]) -> str:
    """Return the partition, topic or broker that a finding is of; "-": it is of none."""
    if row["topic_id"] is not None:
        return str(row["topic"] or row["topic_id"]) + ("" if row["partition"] is None else f"-{row['partition']}")
    return "-" if row["broker_id"] is None else f"broker {row['broker_id']}"
