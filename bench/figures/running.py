"""Figures measured one after another, saved as they come, and shown as tables."""

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from bench.compare.cluster import ContenderFailed
from bench.compare.workload import BadAnswer
from bench.facts import facts
from bench.figures.figure import Figure, Measured, Row, Setting
from bench.measure import Spread
from bench.report import check_places, facts_lines, table
from fastquorum.errors import FastQuorumError
from fastquorum.kernels import load

INTERRUPTED: Final = 130
"""The exit code that shells expect after SIGINT."""


def to_measure(figures: Sequence[Figure], options: argparse.Namespace) -> Sequence[Figure] | None:
    """Return the figures to measure; None after --list. Whatever would fail later fails here, with advice."""
    if options.list:
        print("\n".join(f"{each.name:18} {each.title}" for each in figures))
        return None
    wanted = chosen(figures, options.only)
    check_places(options.directory, options.save)
    load("native")  # rather than in three processes
    return wanted


def run_figures(chosen: Sequence[Figure], setting: Setting, *, save: str | None, is_json: bool) -> int:
    """Prints what came of them; the exit code."""
    report: dict[str, Any] = {"facts": facts(setting.directory), "quick": setting.is_quick, "figures": []}
    interrupted = False
    lines = facts_lines(report["facts"])
    for figure in chosen:
        setting.say(f"{figure.name} ...")
        try:
            found, shown = _measured(figure, setting)
        except KeyboardInterrupt:
            interrupted = True
            setting.say(f"interrupted: {figure.name} and what comes behind it are left out")
            break
        report["figures"].append(found)
        lines += ["", *shown]
        if save:  # after each: nothing that took minutes is lost by what comes later
            Path(save).write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report, indent=1) if is_json else "\n".join(lines))
    if interrupted:
        return INTERRUPTED
    return 1 if any(each["failed"] for each in report["figures"]) else 0


def _measured(figure: Figure, setting: Setting) -> tuple[dict[str, Any], list[str]]:
    """One that fails is told so, and ends nothing."""
    began, failed, measured = time.monotonic(), "", Measured()
    with _directory(setting.directory) as directory:
        try:
            measured = figure.measure(setting, directory)
        except (ContenderFailed, BadAnswer, FastQuorumError) as error:
            failed = str(error)
            setting.say(f"lost: {figure.name}: {failed}")
    found = {
        "name": figure.name,
        "title": figure.title,
        "failed": failed,
        "took_s": time.monotonic() - began,
        "how": measured.how,
        "rows": [row.as_json() for row in measured.rows],
        "notes": measured.notes,
        "details": measured.details,
    }
    return found, _table(figure, measured, failed)


@contextmanager
def _directory(parent: str) -> Iterator[Path]:
    """Removed whatever happens."""
    path = Path(tempfile.mkdtemp(dir=parent, prefix="fastquorum-figures-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _table(figure: Figure, measured: Measured, failed: str) -> list[str]:
    how = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in measured.how.items())
    lines = [f"**{figure.name}**: {figure.title}{f' ({how})' if how else ''}", ""]
    if measured.rows:
        head = ("what", "reached", "over", "yardstick", "ratio", "goal")
        lines += table([head, *(_cells(row) for row in measured.rows)])
    lines += [f"{note}  " for note in measured.notes]
    return [*lines, f"lost: {failed}"] if failed else lines


def _cells(row: Row) -> Sequence[str]:
    verdict = "" if row.goal is None else f"{row.goal}: {'met' if row.met else 'NOT met'}"
    return (
        row.what,
        f"{_spread(row.value)} {row.unit}".rstrip(),
        row.over,
        "" if row.yardstick is None else _spread(row.yardstick),
        "" if row.ratio is None else f"{_spread(row.ratio)} x",
        verdict,
    )


def _spread(value: Spread) -> str:
    if value.low == value.high:
        return _short(value.median)
    return f"{_short(value.median)} ({_short(value.low)}-{_short(value.high)})"


def _short(value: float) -> str:
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


# --- options ----------------------------------------------------------------------------------------------------------


def chosen(figures: Sequence[Figure], only: Sequence[str]) -> list[Figure]:
    """Return the figures whose name contains one of the texts; all without texts. SystemExit if none does."""
    wanted = [text.lower().replace("-", " ") for text in only]
    for text in wanted:
        if not any(text in each.name for each in figures):
            names = ", ".join(each.name for each in figures)
            raise SystemExit(f"bench: no figure's name contains {text!r}; there are: {names}")
    return [each for each in figures if not wanted or any(text in each.name for text in wanted)]


def add_options(parser: argparse.ArgumentParser) -> None:
    """What every such command takes."""
    parser.add_argument("--list", action="store_true", help="what there is to measure, and end")
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="those whose name contains this; may be repeated"
    )
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument("--save", metavar="FILE", help="write the JSON there as well, after each figure")
    parser.add_argument("--quick", action="store_true", help="small and short: shows that it runs, says little")
    parser.add_argument(
        "--directory",
        default=tempfile.gettempdir(),
        help="where files are written; take a disk, not a tmpfs (default: %(default)s)",
    )


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number
