"""The page of `latency`: percentiles of many runs as one, and what became slower or faster."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from fastquorum.pages import Card, Page, Prose, Section, Table
from fastquorum.pages.chart import SERIES_PENS, Axis, Bar, Bars, Chart, Key, Pen, Series
from fastquorum.pages.page import Part
from fastquorum.spark.pages.words import counted, text

_NINES: Final = {"p50_us": 2.0, "p90_us": 10.0, "p99_us": 100.0, "p999_us": 1000.0}
_FIGURES: Final = ("mean_us", *_NINES, "max_us")
_CHARTS_MAX: Final = 12
_VERDICTS: Final = {"slower": Pen.BAD, "faster": Pen.GOOD}
_OTHER: Final = Key("no difference shown", Pen.MUTED)


def page_of(report: dict[str, Any]) -> Page:
    """Make the page of a report that `pipelines.latency.as_report` made."""
    rows = report["latencies"]
    return Page(
        title=f"fastquorum report latency, {counted(len(rows), 'histogram')}",
        heading="How long did it take?",
        subtitles=[
            "fastquorum report latency: histograms of runs added, so that a percentile is that of all of them together."
        ],
        report=report,
        cards=list(_cards(report)),
        warnings=[f"Left out: {each}" for each in report["errors"][:10]],
        sections=list(_sections(report)),
    )


def _cards(report: dict[str, Any]) -> Iterator[Card]:
    rows = report["latencies"]
    yield Card("histograms", text(len(rows)))
    yield Card("runs in one, at most", text(max((row["runs"] for row in rows), default=0)))
    yield Card("measured", text(sum(row["count"] for row in rows)))
    if report["comparison"] is not None:
        yield Card("slower", text(len(report["slower"])), Pen.BAD if report["slower"] else Pen.GOOD)
        yield Card("faster", text(len(report["faster"])), Pen.GOOD if report["faster"] else None)
        yield Card("comparisons", text(report["tests"]))
    yield Card("files left out", text(len(report["errors"])), Pen.WARN if report["errors"] else None)


def _sections(report: dict[str, Any]) -> Iterator[Section]:
    if report["comparison"] is not None:
        yield Section("What became slower or faster", list(_comparison(report)))
    yield Section("Latency by percentile", list(_curves(report["latencies"], report["by"])))
    yield Section("Figures, in microseconds", list(_figures(report["latencies"], report["by"])))
    if report["doubles"]:
        doubles = [Prose(each) for each in report["doubles"][:10]]
        yield Section(f"Found twice, counted once: {counted(len(report['doubles']), 'file')}", doubles)


def _figures(rows: Sequence[dict[str, Any]], by: Sequence[str]) -> Iterator[Part]:
    """Make tables of figures. What is the same in all groups is stated once."""
    named = _telling(rows, by)
    if rows and (same := [f"{name} {text(rows[0]['group'][name])}" for name in by if name not in named]):
        yield Prose(f"All of them: {', '.join(same)}.")
    notes = ["note"] if any(row["note"] for row in rows) else []
    header = [*named, "of", "role", "runs", "count", *(_short(name) for name in _FIGURES), *notes]
    cells = [
        [
            *_group(row, named),
            text(row["runs"]),
            text(row["count"]),
            *(us(row[name]) for name in _FIGURES),
            *(row[name] or "" for name in notes),
        ]
        for row in rows
    ]
    yield Table(header, cells, left=[*range(len(named) + 2), *([len(header) - 1] if notes else [])])


def _curves(rows: Sequence[dict[str, Any]], by: Sequence[str]) -> Iterator[Part]:
    """Draw, for each measured thing, as many groups as can be told apart, those with the longest p99 first."""
    kinds: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        if row["p50_us"] is not None:
            kinds.setdefault((text(row["what"]), row["role"] or ""), []).append(row)
    named = _telling(rows, by)
    for (what, role), groups in list(kinds.items())[:_CHARTS_MAX]:
        groups = sorted(groups, key=lambda row: -row["p99_us"])
        drawn = groups[: len(SERIES_PENS)]
        title = f"{what}{f', as {role}' if role else ''}"
        if len(groups) > len(drawn):
            title += f"; the {len(drawn)} groups of {len(groups)} with the longest p99"
        series = [Series(_label(row, named), _points(row), has_points=True) for row in drawn]
        yield Chart(f"latency-{what}", title, Axis("percentile", "percentile"), Axis("latency, us", "log"), series)
    if len(kinds) > _CHARTS_MAX:
        yield Prose(f"Not drawn: {len(kinds) - _CHARTS_MAX:,} more that were measured; the table has their figures.")


def _points(row: dict[str, Any]) -> list[tuple[float, float]]:
    """Return the points of a curve. The largest value stands at its own share of all."""
    points = [(nines, row[name]) for name, nines in _NINES.items() if nines <= max(row["count"], 2)]
    return [*points, (float(row["count"]), row["max_us"])] if row["count"] > points[-1][0] else points


def _telling(rows: Sequence[dict[str, Any]], by: Sequence[str]) -> list[str]:
    """Return the columns in which groups differ."""
    return [name for name in by if len({row["group"][name] for row in rows}) > 1]


def _label(row: dict[str, Any], named: Sequence[str]) -> str:
    return ", ".join(text(row["group"][name]) for name in named) or counted(row["runs"], "run")


# --- compared with other runs -----------------------------------------------------------------------------------------


def _comparison(report: dict[str, Any]) -> Iterator[Part]:
    rows = report["comparison"]
    yield Prose(
        f"{len(report['slower']):,} slower and {len(report['faster']):,} faster, of {report['tests']:,} comparisons; "
        f"chance alone would call {report['expected_by_chance']:g} of them different."
    )
    measured = [row for row in rows if row["ratio"] is not None]
    measured.sort(key=lambda row: (row["verdict"] not in _VERDICTS, -abs(row["ratio"] - 1)))
    named = _telling(rows, report["by"])
    keys = [*(Key(verdict, pen) for verdict, pen in _VERDICTS.items()), _OTHER]
    bars = [_bar(row, named, [key.name for key in keys]) for row in measured]
    if bars:
        yield Bars("change", "Change of each percentile, after against before", Axis("%"), keys, bars)
    header = [*named, "of", "role", "at", "runs", "before", "after", "ratio", "95 %", "p", "verdict"]
    cells = [
        [*_group(row, named), _short(row["percentile"]), *comparison_cells(row)]
        for row in [*measured, *(row for row in rows if row["ratio"] is None)]
    ]
    yield Table(header, cells, left=[*range(len(named) + 3), len(header) - 1])


def _bar(row: dict[str, Any], named: Sequence[str], keys: Sequence[str]) -> Bar:
    change = (row["ratio"] - 1) * 100
    verdict = row["verdict"] if row["verdict"] in _VERDICTS else _OTHER.name
    parts = [_label(row, named)] if named else []
    label = ", ".join([text(row["what"]), *([row["role"]] if row["role"] else []), *parts, _short(row["percentile"])])
    return Bar(label, [change if key == verdict else 0.0 for key in keys], f"{change:+.1f} % ({interval(row)})")


def comparison_cells(row: dict[str, Any]) -> list[str]:
    """Return runs, microseconds before and after, their ratio with its interval, p and verdict, as text."""
    return [
        f"{row['runs_before'] or 0} / {row['runs_after'] or 0}",
        us(row["before_us"]),
        us(row["after_us"]),
        ratio(row["ratio"]),
        interval(row),
        ratio(row["p"]),
        row["verdict"],
    ]


def interval(row: dict[str, Any]) -> str:
    return "-" if row["low"] is None else f"{ratio(row['low'])} to {ratio(row['high'])}"


def _group(row: dict[str, Any], by: Sequence[str]) -> list[str]:
    return [*(text(row["group"][name]) for name in by), text(row["what"]), row["role"] or "-"]


def ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def us(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"


def _short(name: str) -> str:
    return name.removesuffix("_us").replace("p999", "p99.9")
