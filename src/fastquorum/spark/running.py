"""A session for one command: it ends with it, and what goes wrong in Spark is told in our own words."""

import contextlib
import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from fastquorum.errors import SparkEnvironmentError, UsageError
from fastquorum.spark.opening import session

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

_OURS: Final = re.compile(r"^\s*fastquorum\.errors\.\w+: (.+)$", re.MULTILINE)
"""The last line of a traceback that Spark brings from the process where it happened."""


@contextlib.contextmanager
def running(master: str) -> Iterator["SparkSession"]:
    """A session that is stopped in the end.

    Raises:
        SparkEnvironmentError: Spark cannot run here as things are.
        UsageError: what one of our own errors said, wherever it was raised; or Spark gave up.
    """
    spark = session(master=master)
    from pyspark.errors import PySparkException

    try:
        yield spark
    except PySparkException as error:
        said = _OURS.findall(str(error))
        if not said:
            raise UsageError(f"Spark gave up: {str(error).strip().splitlines()[0]}", "see --debug") from error
        raise UsageError(said[-1]) from error
    finally:
        spark.stop()


def write_parquet(table: "pa.Table", path: str) -> None:
    """As the one file of a new directory, as Spark reads it."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise SparkEnvironmentError("pyarrow is not installed", "pip install 'fastquorum[spark]'") from error
    os.makedirs(path)
    pyarrow.parquet.write_table(table, os.path.join(path, "part-0.parquet"))
