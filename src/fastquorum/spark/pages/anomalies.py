"""The page of `anomalies`: what was unusual, when, and by how much."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

from fastquorum.pages import Card, Page, Prose, Section, Table
from fastquorum.pages.chart import Axis, Band, Bar, Bars, Key, Pen, Strip, Strips
from fastquorum.pages.page import Part
from fastquorum.pages.scales import moment, seconds_of
from fastquorum.spark.pages.words import DRAWN_MAX, counted, heading_of, lasted, of_cluster, text, unproven

_KINDS: Final = {
    "record-mix-change": Pen.FIRST,
    "snapshot-gap": Pen.FIFTH,
    "isr-churn": Pen.FOURTH,
    "flapping-broker": Pen.SECOND,
    "election-storm": Pen.BAD,
}
_KEYS: Final = [Key(kind, pen) for kind, pen in _KINDS.items()]
_NUMBERS: Final = {kind: nth for nth, kind in enumerate(_KINDS)}
_LOOKED_AT: Final = {
    "quorum_elections": "elections of the quorum",
    "broker_departures": "brokers that went",
    "partition_elections": "changes of a partition's leader",
    "isr_shrinks": "ISRs that lost members",
}
MISSING: Final = "{:,} records are missing from this log, damaged, or of an unknown type: they were not looked at"
"""For a cluster of which no replica is without a hole."""


def page_of(report: dict[str, Any]) -> Page:
    """Make the page of a report with `findings`, `kinds` and `clusters`."""
    findings: dict[str | None, list[dict[str, Any]]] = {}
    for each in report["findings"]:
        findings.setdefault(each["cluster_id"], []).append(each)
    scope = counted(len(report["clusters"]), "cluster")
    return Page(
        title=f"fastquorum report anomalies, {scope}",
        heading="What is unusual?",
        subtitles=[f"fastquorum report anomalies: {scope}, each log its own measure. Times are UTC."],
        report=report,
        cards=list(_cards(report)),
        warnings=list(islice(_doubts(report["clusters"]), DRAWN_MAX)),
        sections=list(_sections(report, sorted(findings.items(), key=lambda pair: -len(pair[1])))),
    )


def _doubts(clusters: Sequence[dict[str, Any]]) -> Iterator[str]:
    for each in clusters:
        if "unchecked" in each:
            yield f"{heading_of(each['cluster_id'])} could not be looked at: {each['unchecked']}"
            continue
        yield from unproven(each)
        if each["missing_records"]:
            yield f"{heading_of(each['cluster_id'])}: {MISSING.format(each['missing_records'])}."


def _cards(report: dict[str, Any]) -> Iterator[Card]:
    count = len(report["findings"])
    yield Card("clusters", text(len(report["clusters"])))
    yield Card("findings", text(count) if count else "none", Pen.WARN if count else Pen.GOOD)
    for kind, of_kind in report["kinds"].items():
        yield Card(kind, text(of_kind))


def _sections(report: dict[str, Any], findings: Sequence[tuple[str | None, list[dict[str, Any]]]]) -> Iterator[Section]:
    if not findings:
        yield Section("", [Prose("Nothing is unusual.")])
    if len(findings) > 1:
        yield Section("Findings, by cluster", [_overview(findings)])
    for cluster_id, group in findings[:DRAWN_MAX]:
        yield Section(heading_of(cluster_id), list(_cluster(group, is_only=len(findings) == 1)))
    yield Section("What was looked at", [_looked_at(report["clusters"])])


def _overview(findings: Sequence[tuple[str | None, list[dict[str, Any]]]]) -> Bars:
    bars = [
        Bar(of_cluster(cluster_id), [sum(each["kind"] == kind for each in group) for kind in _KINDS], text(len(group)))
        for cluster_id, group in findings
    ]
    return Bars("clusters", "Findings, by kind", Axis("findings", "count"), _KEYS, bars)


def _cluster(findings: Sequence[dict[str, Any]], *, is_only: bool) -> Iterator[Part]:
    """When each subject was unusual; by how much; and every finding in words."""
    spans: dict[str, list[Band]] = {}
    for each in findings:
        begin, end = seconds_of(each["begin"]), seconds_of(each["end"])
        spans.setdefault(_subject(each), []).append(Band(begin, end, _NUMBERS[each["kind"]], each["kind"]))
    strips = [Strip(name, of_subject) for name, of_subject in spans.items()]
    yield Strips("when", "When it was unusual", Axis("time, UTC", "time"), _KEYS, strips)
    much = sorted(findings, key=lambda each: -_over(each))
    bars = [
        Bar(
            _subject(each),
            [_over(each) if each["kind"] == kind else 0.0 for kind in _KINDS],
            f"{each['peak']:,.4g}, usually {each['usual']:,.3g}; {each['threshold']:,.4g} is too much",
        )
        for each in much
    ]
    yield Bars("much", "How far above what is too much", Axis("times"), _KEYS, bars, rows_max=20)
    rows = [[moment(seconds_of(each["begin"])), text(each["offset"]), each["kind"], each["text"]] for each in findings]
    yield Table(("time, UTC", "offset", "kind", "why"), rows, left=(0, 2, 3), rows_max=100 if is_only else 20)


def _over(finding: dict[str, Any]) -> float:
    return float(finding["peak"] / finding["threshold"]) if finding["threshold"] else 0.0


def _subject(finding: dict[str, Any]) -> str:
    if finding["topic_id"] is not None or finding["topic"] is not None:
        more = (finding["subjects"] or 1) - 1
        name = f"{finding['topic'] or finding['topic_id']}-{text(finding['partition'])}"
        return name if not more else f"{name} and {more:,} more"
    if finding["broker_id"] is not None:
        return f"broker {finding['broker_id']}"
    return text(finding["type"]) if finding["type"] is not None else str(finding["of"])


def _looked_at(clusters: Sequence[dict[str, Any]]) -> Table:
    header = ["cluster", "lasted", "up to offset", "snapshots", *_LOOKED_AT.values(), "most of one in a window"]
    rows = []
    for each in clusters:
        if "unchecked" in each:
            rows.append([text(each["cluster_id"]), *["-"] * (len(header) - 1)])
            continue
        most = ", ".join(f"{each[name]['most']:,} of {each[name]['too_many']:,}" for name in _LOOKED_AT)
        rows.append(
            [
                text(each["cluster_id"]),
                lasted(each["lasted_ms"]),
                text(each["end_offset"]),
                text(each["snapshots"]),
                *(text(each[name]["count"]) for name in _LOOKED_AT),
                most,
            ]
        )
    return Table(header, rows)
