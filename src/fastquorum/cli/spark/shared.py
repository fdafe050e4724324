"""What the commands of `fastquorum spark` share: where to read, where to write, and which Spark."""

import argparse
import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fastquorum.cli.spark.questions import IN_ONE_PROCESS
from fastquorum.cli.terminal.arguments import add_format, explain, positive
from fastquorum.cli.terminal.output import print_json, tell, working
from fastquorum.cli.terminal.outputs import Outputs, check_directory, check_file
from fastquorum.errors import UsageError
from fastquorum.pages import Page, write_page
from fastquorum.pages.new_files import new_directory, new_file
from fastquorum.spark.installed import check_arrow
from fastquorum.spark.stored.paths import split_by_commas
from fastquorum.types import is_text

if TYPE_CHECKING:
    from fastquorum.spark.engines.engine import Engine
    from fastquorum.spark.stored.logs import FoundLogs

_JSON: Final = ".json"
_SLIPS: Final = frozenset({_JSON, ".csv", ".htm", ".html", ".jsonl", ".log", ".md", ".ndjson", ".pdf", ".tsv", ".txt"})
"""Endings of --out that suggest a file of a kind that cannot be written."""
_ELSEWHERE: Final = "sc://"
_STARTS: Final = "Spark starts, which takes some seconds; then:"
"""Prefix of the progress line while Spark works."""
_OTHERS_SHOWN: Final = 20
"""Most passed-over paths that the table output names."""
BY_WHICH: Final = (
    "The records read are those that a majority of a cluster's voters have. If fewer voters than a majority have a "
    "directory here, they are those that all of these share; the report says so, as they may not be committed. A "
    "directory that cannot be read, as when its log is gone, is named on stderr and in the report, and the exit code "
    "is 1."
)


def configure(
    parser: argparse.ArgumentParser, what: str, *examples: str, where: str = "a data directory, a log directory"
) -> None:
    """Add the arguments of a pipeline's command. It runs in this process, or on Spark (`spark ...`, or --master)."""
    is_spark = parser.prog.split()[1:2] == ["spark"]
    needs = (
        "Runs on Spark; needs pip install 'fastquorum[spark]', no Java."
        if is_spark
        else "Needs pip install 'fastquorum[arrow]'."
    )
    explain(
        parser,
        f"{what}\n"
        f"IN is {where}, a directory that contains some, a glob, or several with commas between; also s3:// and "
        f"whatever else fsspec reads. {needs}",
        *(each if is_spark else in_process(each) for each in examples),
    )
    parser.add_argument("inputs", metavar="IN", nargs="+")
    add_out(parser, "local[*]" if is_spark else None)
    add_format(parser)


def in_process(example: str) -> str:
    """An example of `fastquorum spark ...` as its command without Spark."""
    for name, words in IN_ONE_PROCESS.items():
        example = example.replace(f"fastquorum spark {name}", f"fastquorum {words}")
    return example


def path_of(arguments: argparse.Namespace) -> str:
    """All the paths of the command line as one text. Each argument may itself be several with commas between;
    UsageError as of `split_by_commas`."""
    return ",".join(map(split_by_commas, arguments.inputs))


def add_out(parser: argparse.ArgumentParser, master: str | None = "local[*]") -> None:
    """`--out`, `--html`, `--append`, and where it runs."""
    parser.add_argument(
        "--out", metavar="OUT", help=f"write the report there as well: a {_JSON} file, or a directory of Parquet"
    )
    add_html(parser)
    parser.add_argument(
        "--append", metavar="DIR", help="add to the history there: Parquet, with the time of the run in every row"
    )
    if master is None:
        parser.add_argument("--master", metavar="URL", help="run on this Spark, as local[*] (default: in this process)")
        parser.add_argument("--threads", metavar="N", type=positive, help="threads that read (default: one a core)")
    else:
        parser.add_argument("--master", metavar="URL", default=master, help=f"of the Spark cluster (default: {master})")


@contextlib.contextmanager
def engine_of(arguments: argparse.Namespace, doing: str = "reading the logs") -> "Iterator[Engine]":
    """What the pipelines of a command run on."""
    check_arrow()
    from fastquorum.spark.engines.opening import engine

    with (
        working(doing if arguments.master is None else f"{_STARTS} {doing}"),
        engine(arguments.master, getattr(arguments, "threads", None)) as found,
    ):
        yield found


@contextlib.contextmanager
def spark_of(master: str, doing: str) -> Iterator[Any]:
    """A session of Spark's, for a command that runs on nothing else."""
    from fastquorum.spark.sessions.running import running

    with working(f"{_STARTS} {doing}"), running(master) as spark:
        yield spark


def add_html(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--html", metavar="FILE", help="one self-contained page with charts, the report inside; a new file"
    )


def check_out(arguments: argparse.Namespace, **others: str | None) -> None:
    """UsageError before anything is computed that could not be written. `others`: by the names of their options, and as
    --out is: a .json file or a directory."""
    out, html, append = arguments.out, arguments.html, arguments.append
    more = ((f"--{name.replace('_', '-')}", path) for name, path in others.items())
    for option, path in (("--out", out), ("--html", html), *more):
        if path is None:
            continue
        check_text(option, path)
        if os.path.lexists(path):
            raise UsageError(f"{path} exists already", f"name another {option}, or remove it")
        suffix = os.path.splitext(path)[1]
        if option != "--html" and suffix != _JSON and suffix.lower() in _SLIPS:
            raise UsageError(f"{option} {path}: this kind of file cannot be written", f"a {_JSON} file, or a directory")
        directory = os.path.dirname(path) or "."
        is_file = option == "--html" or path.endswith(_JSON)
        if is_file and not os.path.isdir(directory):
            raise UsageError(f"there is no directory {directory}", f"make it, or name another {option}")
        (check_file if is_file else check_directory)(option, path)
    if append is not None:
        check_text("--append", append)
        check_directory("--append", append)
        check_arrow()
        from fastquorum.spark.history import check_history

        check_history(append, _report_of(arguments))
    if out is not None and html is not None and os.path.realpath(out) == os.path.realpath(html):
        raise UsageError(f"--out and --html are both {out}", "name two")


def check_text(option: str, path: str) -> None:
    """UsageError if Arrow cannot be told of this path."""
    if not is_text(path):
        raise UsageError(f"{option} {path!r} is not UTF-8", "name another place")


class Inputs(NamedTuple):
    """What a report says of its paths, by these names."""

    left_out: list[dict[str, Any]]
    """Directories that cannot be looked at, and why."""
    passed_over: list[dict[str, Any]]
    """Paths that are not the directory of a replica."""


def check_in(master: str | None, *paths: str) -> "list[FoundLogs]":
    """Raise the error that a read of no logs would bring once Spark is up, or that keeps all of a path from being
    looked at. Return what each path means. A Spark Connect server reads its own files."""
    check_arrow()
    if master is not None and master.startswith(_ELSEWHERE):
        return []
    from fastquorum.spark.stored.logs import find_all

    there = [find_all(path) for path in paths]
    for found in there:
        if not found.logs and all(each.log is None for each in found.faults):
            raise found.faults[0].error
    return there


def passed_over(master: str | None, *paths: str) -> list[dict[str, Any]]:
    """Check as `check_in` does, for an audit, which has what cannot be looked at among its findings. Return each path
    that is no replica's directory, and why."""
    return [each._asdict() for found in check_in(master, *paths) for each in found.others]


def look_in(master: str | None, *paths: str) -> Inputs:
    """Check as `check_in` does for a report that reads one directory of each cluster; name each directory that cannot
    be looked at on stderr, whatever stdout has."""
    there = check_in(master, *paths)
    left_out = [{"directory": each.directory, "why": str(each.error)} for found in there for each in found.faults]
    for each in left_out:
        tell(f"{each['directory']} is left out: {each['why']}")
    return Inputs(left_out, [each._asdict() for found in there for each in found.others])


def show_passed_over(report: dict[str, Any]) -> None:
    """A line each, for people."""
    others = report.get("passed_over", [])
    for each in others[:_OTHERS_SHOWN]:
        print(f"note: {each['path']} is passed over: {each['why']}")
    if len(others) > _OTHERS_SHOWN:
        print(f"note: {len(others) - _OTHERS_SHOWN:,} more paths are passed over: --format json has them all")


def hand_out(
    arguments: argparse.Namespace,
    report: Callable[..., dict[str, Any]],
    tables: Callable[[], Any],
    page_of: Callable[[dict[str, Any]], Page],
    show: Callable[[dict[str, Any]], None],
    *,
    on_page: Mapping[str, int] | None = None,
    on_screen: Mapping[str, int] | None = None,
    last: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """All that is asked for: --out, --append, --html, and JSON or, for people, what `show` prints. Only what these need
    is put together. Return the report that was shown.

    Args:
        report: takes how much of its parts it has at most, as `on_page` and `on_screen` say it.
        tables: as of `_write`.
        last: what else there is to do, once the report is shown: an error there does not cost it.
    """
    outputs = Outputs()
    out = arguments.out
    if out is not None:
        is_json = out.endswith(_JSON)
        outputs.write("--out", lambda: _write(out, {} if is_json else tables(), report() if is_json else {}))
    if arguments.append is not None:
        outputs.write("--append", lambda: _append(arguments, tables()))
    if arguments.html is not None:
        outputs.write("--html", lambda: write_page(arguments.html, page_of(report(**(on_page or {})))))
    if arguments.format == "json":
        shown = report()
        print_json(shown)
    else:
        shown = report(**(on_screen or {}))
        show(shown)
        show_passed_over(shown)
    last()
    outputs.check_complete()
    return shown


def _report_of(arguments: argparse.Namespace) -> str:
    """The command, by the words that it has in one process."""
    words: str = arguments.command
    return IN_ONE_PROCESS.get(words.removeprefix("spark "), words)


def _append(arguments: argparse.Namespace, tables: Any) -> None:
    from fastquorum.spark.history import append_history

    append_history(arguments.append, _report_of(arguments), tables)


def _write(path: str, tables: Any, report: dict[str, Any]) -> None:
    """The report as JSON, or as Parquet, by its name: an Arrow table, or several, each in a directory of its own."""
    if path.endswith(_JSON):
        with new_file(path) as file:
            file.write(json.dumps(report, indent=1) + "\n")
        return
    from fastquorum.spark.sessions.running import write_parquet

    named = tables if isinstance(tables, Mapping) else {"": tables}
    with new_directory(path):
        for name, table in named.items():
            write_parquet(table, os.path.join(path, name))
