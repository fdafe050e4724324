"""The page of `image-diff`: what changed of a cluster between two offsets, or differs between two clusters."""

from collections.abc import Iterator
from typing import Any, Final

from fastquorum.pages import Card, Page, Prose, Section, Table
from fastquorum.pages.chart import Axis, Bar, Bars, Key, Pen
from fastquorum.pages.page import Part
from fastquorum.spark.pages.words import DRAWN_MAX, counted, of_cluster, text

CHANGES_MAX: Final = 5000
"""Most changes of each cluster in a report that becomes a page."""
_CHANGES: Final = {"created": Pen.GOOD, "changed": Pen.FIRST, "gone": Pen.BAD}
_KEYS: Final = [Key(name, pen) for name, pen in _CHANGES.items()]


def page_of(report: dict[str, Any]) -> Page:
    """Make the page of a report that `pipelines.image_diff.as_report` made, best with CHANGES_MAX."""
    clusters = sorted(report["clusters"], key=lambda each: (not each["errors"], -each["total"]))
    scope = counted(len(clusters), "cluster")
    sections = [Section(_heading(each), list(_cluster(each))) for each in clusters[:DRAWN_MAX]]
    if not clusters:
        sections = [Section("", [Prose("Nothing differs.")])]
    elif len(clusters) > 1:
        sections.insert(0, Section("Things that differ, by cluster", [_overview(clusters)]))
    return Page(
        title=f"fastquorum report image-diff, {scope}",
        heading="What changed?",
        subtitles=[f"fastquorum report image-diff: {scope} in which anything differs."],
        report=report,
        cards=list(_cards(clusters)),
        warnings=list(_warnings(clusters[:DRAWN_MAX])),
        sections=sections,
    )


def _warnings(clusters: list[dict[str, Any]]) -> Iterator[str]:
    for each in clusters:
        yield from (f"{_heading(each)}, not compared: {error}" for error in each["errors"][:DRAWN_MAX])
        yield from (f"{_heading(each)}, not proven: {why}." for why in each["unproven"])


def _heading(cluster: dict[str, Any]) -> str:
    ids = cluster["cluster_id"], cluster["other_cluster_id"]
    names = of_cluster(ids[0]) if ids[0] == ids[1] else f"{of_cluster(ids[0])} and {of_cluster(ids[1])}"
    return names[0].upper() + names[1:]


def _cards(clusters: list[dict[str, Any]]) -> Iterator[Card]:
    yield Card("clusters", text(len(clusters)))
    yield Card("differ", text(sum(each["total"] for each in clusters)))
    for name in _CHANGES:
        yield Card(name, text(sum(kind[name] for each in clusters for kind in each["counts"].values())))


def _overview(clusters: list[dict[str, Any]]) -> Bars:
    bars = []
    for each in clusters:
        sums = [sum(kind[name] for kind in each["counts"].values()) for name in _CHANGES]
        bars.append(Bar(_heading(each), sums, text(each["total"])))
    return Bars("clusters", "Created, changed and gone", Axis("things", "count"), _KEYS, bars)


def _cluster(cluster: dict[str, Any]) -> Iterator[Part]:
    if cluster["errors"] and not cluster["total"]:
        return  # the warning says why; that nothing differs, nobody knows
    yield Prose(
        f"From offset {text(cluster['from_offset'])} to {text(cluster['to_offset'])}: "
        f"{counted(cluster['total'], 'thing')} differ. What came and went in between leaves no trace."
    )
    bars = [
        Bar(
            kind,
            [counts[name] for name in _CHANGES],
            ", ".join(f"{counts[name]:,} {name}" for name in _CHANGES if counts[name]),
        )
        for kind, counts in cluster["counts"].items()
    ]
    if bars:
        yield Bars("kinds", "What differs, by kind", Axis("things", "count"), _KEYS, bars)
    if changes := cluster["changes"]:
        rows = [[each["change"], each["kind"], each["name"], each["words"]] for each in changes]
        left_out = max(cluster["total"] - len(changes), 0)
        yield Table(("", "kind", "name", "in words"), rows, left=(0, 1, 2, 3), left_out=left_out, whole="--out")
