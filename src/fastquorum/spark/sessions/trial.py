"""A tiny session from beginning to end, as `doctor` tries it in a process of its own: what came of it, as JSON on
stdout. Run as `python -m fastquorum.spark.sessions.trial`."""

import json
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from fastquorum.errors import SparkEnvironmentError
from fastquorum.spark.sessions.opening import open_session

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import SparkSession

ROWS: Final = 1000
SOURCE: Final = "fastquorum"


class Trial(NamedTuple):
    """Results of a trial session."""

    session_s: float
    """Seconds until the session was up."""
    worker_s: float
    """Seconds that a job took after the start; its rows pass through two Python workers."""
    worker_python: str
    worker_fastquorum: str
    """Version of what the workers import."""
    registers: bool
    """Whether the session knows the data source by itself."""


def run() -> Trial:
    """Start a session, run a job in Python workers, look whether the data source is known."""
    begun = time.monotonic()
    spark = open_session("fastquorum doctor", "local[2]")
    up = time.monotonic()
    rows = spark.range(ROWS, numPartitions=2).mapInArrow(_python_rows, "rows bigint, python string, fastquorum string")
    rows_back = rows.collect()
    if sum(row["rows"] for row in rows_back) != ROWS:
        raise SparkEnvironmentError(f"of {ROWS} rows other than these came back: {rows_back}")
    done = time.monotonic()
    registers = _knows_source(spark)
    spark.stop()
    return Trial(up - begun, done - up, rows_back[0]["python"], rows_back[0]["fastquorum"], registers)


def _python_rows(batches: "Iterator[pyarrow.RecordBatch]") -> "Iterator[pyarrow.RecordBatch]":
    import sys

    import pyarrow

    from fastquorum.version import __version__

    for batch in batches:
        columns = {"rows": [batch.num_rows], "python": [sys.executable], "fastquorum": [__version__]}
        yield pyarrow.RecordBatch.from_pydict(columns)


def _knows_source(spark: "SparkSession") -> bool:
    from pyspark.errors import AnalysisException

    try:
        spark.read.format(SOURCE).load()
    except AnalysisException as error:
        # Whatever else it says, the source said it: it was asked for nothing that it could give.
        return error.getCondition() != "DATA_SOURCE_NOT_FOUND"
    return True


if __name__ == "__main__":
    print(json.dumps(run()._asdict()))
