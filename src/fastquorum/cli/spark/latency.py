"""`fastquorum spark latency`: percentiles of many runs as one, and what became slower."""

import argparse
from typing import Any, Final

from fastquorum.cli.spark import shared
from fastquorum.cli.terminal.arguments import number
from fastquorum.cli.terminal.output import print_table
from fastquorum.meant import one_of
from fastquorum.spark.installed import check_arrow
from fastquorum.spark.pages.latency import comparison_cells, page_of, us
from fastquorum.spark.stored.paths import split_by_commas

_FIGURES: Final = ("mean_us", "p50_us", "p90_us", "p99_us", "p999_us", "max_us")
_BY: Final = "driver,api,workload,load"


def configure(parser: argparse.ArgumentParser) -> None:
    shared.configure(
        parser,
        "Show how long commits and their stages took, over many runs of `fastquorum load`. Histograms are added: a "
        "percentile is that of all runs together, never an average of percentiles.\n"
        "--before compares with other runs: the ratio of each percentile with its bootstrap interval over runs, and a "
        "rank test over runs that says whether the difference may be chance; three runs against three are too few. "
        "Runs of both sides should alternate on one machine. Exits 1 if anything is slower, beyond chance and "
        "--threshold, if nothing there holds a latency, or if a path cannot be read.",
        "fastquorum spark latency bench/history",
        "fastquorum spark latency after/ --before before/ --by workload,load --out latency.json",
        where="a result of `load` as JSON (--history), an HdrHistogram log (--hdr), a trace (--trace)",
    )
    parser.add_argument("--before", metavar="IN", help="runs to compare with")
    parser.add_argument("--by", metavar="NAME,...", default=_BY, help=f"what to group by (default: {_BY}; see below)")
    parser.add_argument(
        "--threshold", metavar="RATIO", type=_ratio, default=1.05, help="smaller ratios count as equal (default: 1.05)"
    )
    parser.epilog = (
        f"{parser.epilog}\n\ngroups: driver, api, workload, load, record_bytes, records_per_append, version, commit, "
        "cpu, directory, file"
    )


def _ratio(text: str) -> float:
    """An argparse type."""
    return number(text, "a ratio of 1 or more", lambda value: 1 <= value < 1000)


def run(arguments: argparse.Namespace) -> int:
    shared.check_out(arguments)
    check_arrow()
    path = shared.path_of(arguments)
    by = _groups(arguments.by)
    from fastquorum.spark.pipelines.latency.files import files_at

    unread = []
    for each in (path, *([] if arguments.before is None else [split_by_commas(arguments.before)])):
        unread += [str(error) for _, error in files_at(each).unread]

    with shared.engine_of(arguments) as engine:
        found = engine.latency(path, arguments.before, by, arguments.threshold)
    from fastquorum.spark.pipelines.latency.report import as_report

    merged, compared, errors, doubles = found
    report = as_report(merged, by, compared=compared, errors=[*unread, *errors], doubles=doubles)
    tables = merged if compared is None else compared
    shared.hand_out(arguments, lambda: report, lambda: tables, page_of, show)
    return 1 if unread or report["slower"] or not report["latencies"] else 0


def _groups(text: str) -> tuple[str, ...]:
    from fastquorum.errors import UsageError
    from fastquorum.spark.pipelines.latency.reading import GROUPS

    names = tuple(each.strip() for each in text.split(",") if each.strip())
    for each in names:
        if each not in GROUPS:
            raise UsageError(f"--by {each}: there is no such group", one_of("groups", each, GROUPS))
    return tuple(dict.fromkeys(names))


# --- for people -------------------------------------------------------------------------------------------------------


def show(report: dict[str, Any]) -> None:
    by = report["by"]
    rows = [
        (*_group(row, by), row["runs"], f"{row['count']:,}", *(us(row[name]) for name in _FIGURES))
        for row in report["latencies"]
    ]
    heads = (*(each.upper() for each in by), "WHAT", "ROLE")
    print_table((*heads, "RUNS", "COUNT", *(f"{name.removesuffix('_us').upper()} US" for name in _FIGURES)), rows)
    notes = sorted({row["note"] for row in report["latencies"] if row["note"]})
    for note in notes:
        print(f"-: {note}")
    if report["comparison"] is not None:
        _show_comparison(report, heads)
    for each in report["doubles"]:
        print(f"counted once, found elsewhere too: {each}")
    for each in report["errors"]:
        print(f"left out: {each}")
    if not report["latencies"]:
        print(f"\nnothing here holds a latency; left out: {len(report['errors']):,} file(s)")


def _show_comparison(report: dict[str, Any], heads: tuple[str, ...]) -> None:
    rows = [(*_group(row, report["by"]), row["percentile"], *comparison_cells(row)) for row in report["comparison"]]
    print()
    print_table((*heads, "AT", "RUNS", "BEFORE US", "AFTER US", "RATIO", "95 %", "P", "VERDICT"), rows)
    print(
        f"\n{len(report['slower'])} slower, {len(report['faster'])} faster, of {report['tests']} comparisons; chance "
        f"alone would call {report['expected_by_chance']:g} of them different"
    )


def _group(row: dict[str, Any], by: list[str]) -> tuple[str, ...]:
    return (*(row["group"][name] or "-" for name in by), row["what"], row["role"] or "-")
