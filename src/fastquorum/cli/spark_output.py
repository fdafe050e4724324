"""What the commands of `fastquorum spark` share: where to read, where to write, and which Spark."""

import argparse
import json
import os
from typing import Any, Final

from fastquorum.cli.arguments import add_format, explain
from fastquorum.errors import UsageError

_JSON: Final = ".json"


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
    parser.add_argument("--master", metavar="URL", default="local[*]", help="of the Spark cluster (default: local[*])")


def check_out(path: str | None) -> None:
    """UsageError before anything is computed that could not be written."""
    if path is not None and os.path.exists(path):
        raise UsageError(f"{path} is there already", "name another --out, or remove it")


def write(path: str | None, table: Any, report: dict[str, Any]) -> None:
    """The report as JSON, or the Arrow table as Parquet, by the name of what is asked for."""
    if path is None:
        return
    if path.endswith(_JSON):
        with open(path, "x", encoding="utf-8") as file:
            file.write(json.dumps(report, indent=1) + "\n")
        return
    from fastquorum.spark.running import write_parquet

    write_parquet(table, path)
