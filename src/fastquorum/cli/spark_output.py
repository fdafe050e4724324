"""What the commands of `fastquorum spark` share: where to read, where to write, and which Spark."""

import argparse
import json
import os
from collections.abc import Callable, Mapping
from typing import Any, Final

from fastquorum.cli.arguments import add_format, explain
from fastquorum.cli.output import print_json
from fastquorum.errors import UsageError
from fastquorum.pages import Page, write_page
from fastquorum.pages.new_files import new_directory, new_file

_JSON: Final = ".json"
_SLIPS: Final = frozenset({_JSON, ".csv", ".htm", ".html", ".jsonl", ".log", ".md", ".ndjson", ".pdf", ".tsv", ".txt"})
"""Who ends a directory's name so means a file."""
_ELSEWHERE: Final = "sc://"


def configure(
    parser: argparse.ArgumentParser, what: str, *examples: str, where: str = "a data directory, a log directory"
) -> None:
    explain(
        parser,
        f"{what}\nIN is {where}, a directory with such below it, a glob, or several with commas between; also s3:// "
        "and whatever else fsspec reads. Needs pip install 'fastquorum[spark]', no Java.",
        *examples,
    )
    parser.add_argument("path", metavar="IN")
    add_out(parser)
    add_format(parser)


def add_out(parser: argparse.ArgumentParser) -> None:
    """`--out`, and `--master`."""
    parser.add_argument("--out", metavar="OUT", help=f"write there as well: a {_JSON} file, or a directory of Parquet")
    add_html(parser)
    parser.add_argument("--master", metavar="URL", default="local[*]", help="of the Spark cluster (default: local[*])")


def add_html(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--html", metavar="FILE", help="one self-contained page with charts, the report inside; a new file"
    )


def check_out(out: str | None, html: str | None = None, **others: str | None) -> None:
    """UsageError before anything is computed that could not be written. `others`: by the names of their options, and as
    `out` is: a .json file or a directory."""
    more = ((f"--{name.replace('_', '-')}", path) for name, path in others.items())
    for option, path in (("--out", out), ("--html", html), *more):
        if path is None:
            continue
        if os.path.lexists(path):
            raise UsageError(f"{path} is there already", f"name another {option}, or remove it")
        suffix = os.path.splitext(path)[1]
        if option != "--html" and suffix != _JSON and suffix.lower() in _SLIPS:
            raise UsageError(f"{option} {path}: nothing of that kind is written", f"a {_JSON} file, or a directory")
        directory = os.path.dirname(path) or "."
        if (option == "--html" or path.endswith(_JSON)) and not os.path.isdir(directory):
            raise UsageError(f"there is no directory {directory}", f"make it, or name another {option}")
    if out is not None and html is not None and os.path.realpath(out) == os.path.realpath(html):
        raise UsageError(f"--out and --html are both {out}", "name two")


def check_in(master: str, *paths: str) -> None:
    """The error that a read of no logs would bring once Spark is up. A Spark Connect server reads its own files."""
    if master.startswith(_ELSEWHERE):
        return
    from fastquorum.spark.logs import find

    for path in paths:
        find(path)


def hand_out(
    arguments: argparse.Namespace,
    report: dict[str, Any],
    tables: Any,
    page_of: Callable[[dict[str, Any]], Page],
    show: Callable[[dict[str, Any]], None],
) -> None:
    """All that is asked for: --out, --html, and JSON or, for people, what `show` prints. `tables`: as of `write`."""
    write(arguments.out, tables, report)
    if arguments.html is not None:
        write_page(arguments.html, page_of(report))
    if arguments.format == "json":
        print_json(report)
    else:
        show(report)


def write(path: str | None, tables: Any, report: dict[str, Any]) -> None:
    """The report as JSON, or as Parquet, by the name of what is asked for: an Arrow table, or several by their names,
    each in a directory of its own."""
    if path is None:
        return
    if path.endswith(_JSON):
        with new_file(path) as file:
            file.write(json.dumps(report, indent=1) + "\n")
        return
    from fastquorum.spark.running import write_parquet

    named = tables if isinstance(tables, Mapping) else {"": tables}
    with new_directory(path):
        for name, table in named.items():
            write_parquet(table, os.path.join(path, name))
