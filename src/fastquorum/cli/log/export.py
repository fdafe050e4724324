"""`fastquorum log export`: a table of stored logs as Parquet or Arrow files."""

import argparse
import os

from fastquorum.cli.spark import shared
from fastquorum.cli.terminal.arguments import explain, positive
from fastquorum.cli.terminal.outputs import check_directory
from fastquorum.errors import UsageError
from fastquorum.pages.new_files import new_directory
from fastquorum.spark.installed import check_arrow

_FORMS = ("parquet", "arrow")


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Write a table of stored logs as files, several at once: records, batches, epochs, voters and others. IN is a "
        "data directory, a log directory, a directory that contains some, or a glob. Needs pip install "
        "'fastquorum[arrow]'.",
        "fastquorum log export n1 --to parquet --out n1.tables",
        "fastquorum log export '/backup/*' --table batches --to arrow --out batches --option mode=quarantine",
    )
    parser.add_argument("inputs", metavar="IN", nargs="+")
    parser.add_argument("--out", metavar="DIR", required=True, help="a new directory for the files")
    parser.add_argument("--to", choices=_FORMS, default=_FORMS[0], help="format of the files (default: parquet)")
    parser.add_argument("--table", default="records", metavar="NAME", help="which table (default: records)")
    parser.add_argument(
        "--option",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="an option of the table, as fromOffset=100, types=TOPIC_RECORD, columns=offset,value; may be repeated",
    )
    parser.add_argument("--threads", metavar="N", type=positive, help="threads that read (default: one a core)")


def run(arguments: argparse.Namespace) -> int:
    check_arrow()
    shared.check_text("--out", arguments.out)
    if os.path.lexists(arguments.out):
        raise UsageError(f"{arguments.out} exists already", "name another --out, or remove it")
    check_directory("--out", arguments.out)
    options = dict(_option(each) for each in arguments.option)
    path = shared.path_of(arguments)
    from fastquorum.spark.exporting import Form, export
    from fastquorum.spark.stored.logs import find

    find(path)

    with new_directory(arguments.out):
        done = export(path, arguments.table, arguments.out, Form(arguments.to), arguments.threads, options)
    print(f"{done.rows:,} rows in {done.files:,} files: {arguments.out}")
    return 0


def _option(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"--option {text} has no value", "write NAME=VALUE, as fromOffset=100")
    return name, value
