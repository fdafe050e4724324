"""What the commands of `fastquorum spark` share: where to read, where to write, and which Spark."""

import argparse
import contextlib
import json
import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from fastquorum.cli.arguments import add_format, explain
from fastquorum.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

_JSON: Final = ".json"
_OURS: Final = re.compile(r"^\s*fastquorum\.errors\.\w+: (.+)$", re.MULTILINE)
"""The last line of a traceback that Spark brings from the process where it happened."""


def configure(parser: argparse.ArgumentParser, what: str, example: str) -> None:
    explain(
        parser,
        f"{what}\nIN is a data directory, a log directory, a directory with such below it, a glob, or several with "
        "commas between; also s3:// and whatever else fsspec reads. Needs pip install 'fastquorum[spark]', no Java.",
        example,
    )
    parser.add_argument("path", metavar="IN")
    parser.add_argument("--out", metavar="OUT", help=f"write there as well: a {_JSON} file, or a directory of Parquet")
    parser.add_argument("--master", metavar="URL", default="local[*]", help="of the Spark cluster (default: local[*])")
    add_format(parser)


def check_out(path: str | None) -> None:
    """UsageError before anything is computed that could not be written."""
    if path is not None and os.path.exists(path):
        raise UsageError(f"{path} is there already", "name another --out, or remove it")


@contextlib.contextmanager
def running(master: str) -> Iterator["SparkSession"]:
    """A session that ends with the command. UsageError: without the extra, or what is wrong with the input."""
    try:
        from pyspark.errors import PySparkException

        from fastquorum.spark import session
    except ImportError as error:
        raise UsageError(f"Spark cannot be used here: {error}", "pip install 'fastquorum[spark]'") from error
    spark = session(master=master)
    try:
        yield spark
    except PySparkException as error:
        said = _OURS.findall(str(error))
        if not said:
            raise UsageError(f"Spark gave up: {str(error).strip().splitlines()[0]}", "see --debug") from error
        raise UsageError(said[-1]) from error
    finally:
        spark.stop()


def write(path: str | None, table: "pa.Table", report: dict[str, Any]) -> None:
    """The report as JSON, or the table as Parquet, by the name of what is asked for."""
    if path is None:
        return
    if path.endswith(_JSON):
        with open(path, "x", encoding="utf-8") as file:
            file.write(json.dumps(report, indent=1) + "\n")
        return
    import pyarrow.parquet

    os.makedirs(path)
    pyarrow.parquet.write_table(table, os.path.join(path, "part-0.parquet"))
