"""A session for one command: it ends with it, and what goes wrong in Spark is told in our own words."""

import contextlib
import os
import re
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NoReturn

from fastquorum.errors import FastQuorumError, SparkEnvironmentError, UsageError
from fastquorum.spark.plain import our_error
from fastquorum.spark.sessions.environment import check_packages, is_local
from fastquorum.spark.sessions.jvm import Jvm
from fastquorum.spark.sessions.opening import end_scratch, session

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

_GAVE_UP: Final = re.compile(r"Reason: (All masters are unresponsive)")
"""Pattern in Spark's log of a master that does not answer; the exception names only what was called after that."""
_CAUSE: Final = re.compile(
    r"^(?:: |Caused by: |Exception in thread \"main\" )?[\w.$]+(?:Exception|Error): (.+)$", re.MULTILINE
)
"""Pattern of a Java exception's message."""
_OTHER_PYTHON: Final = re.compile(r"\[PYTHON_VERSION_MISMATCH\][^:]*: ([\d.]+) than that in driver: ([\d.]+)")


@contextlib.contextmanager
def running(master: str) -> Iterator["SparkSession"]:
    """A session that is stopped in the end.

    Raises:
        SparkEnvironmentError: Spark cannot run here, or where its workers are, as things are.
        FastQuorumError: one of our own, wherever it was raised.
        UsageError: Spark gave up, or did not begin.
    """
    check_packages()
    from pyspark.errors import PySparkException

    jvm = Jvm()
    with jvm.interruptible():
        try:
            spark = _begun(master, jvm)
            try:
                yield spark
            except PySparkException as error:
                raise in_our_words(str(error)) from error
            finally:
                if not jvm.is_sent_away:
                    spark.stop()
        finally:
            if jvm.end():
                end_scratch()


def _begun(master: str, jvm: Jvm) -> "SparkSession":
    """Start a session in a thread of its own; in the main thread PySpark would take Ctrl-C for itself."""
    begun: list[SparkSession] = []
    failed: list[BaseException] = []

    def begin() -> None:
        try:
            begun.append(session(master=master))
        except BaseException as error:  # raised where it is waited for
            failed.append(error)

    beginning = threading.Thread(target=begin, daemon=True)
    holding = contextlib.nullcontext(bytearray()) if is_local(master) else jvm.holding_back()
    with holding as held, jvm.starting():
        beginning.start()
        try:
            beginning.join()
        except KeyboardInterrupt:
            beginning.join()  # it ends with the JVM, and takes away what it made
            raise
        for error in failed:
            _raise_plainly(error, master, held.decode(errors="replace"))
    return begun[0]


def _raise_plainly(error: BaseException, master: str, output: str) -> NoReturn:
    """Raise an error of Spark's start in our own words. `output`: what the JVM printed, and nobody has seen."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    is_java = isinstance(error, Py4JError | PySparkException) or (output and isinstance(error, SparkEnvironmentError))
    if not is_java:
        raise error
    causes = _GAVE_UP.findall(output) or _CAUSE.findall(str(error)) or _CAUSE.findall(output)
    what = f"Spark did not start with --master {master}" + (f": {causes[-1].strip()}" if causes else "")
    raise UsageError(what, "it is local[*], or the URL of a Spark cluster that runs; see --debug") from error


def in_our_words(text: str) -> FastQuorumError:
    """Return our own error for the text of an error of Spark's; the text may hold the traceback of another process."""
    if (ours := our_error(text)) is not None:
        return ours
    if other := _OTHER_PYTHON.search(text):
        return SparkEnvironmentError(
            f"Spark's workers run Python {other[1]}, and its driver Python {other[2]}: they must agree",
            f"set PYSPARK_PYTHON to a Python {other[2]} with fastquorum, at the same place on every worker",
        )
    return UsageError(f"Spark gave up: {text.strip().splitlines()[0]}", "see --debug")


def write_parquet(table: "pa.Table", path: str) -> None:
    """Write a table as the one file of a directory, as Spark reads it."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise SparkEnvironmentError("pyarrow is not installed", "pip install 'fastquorum[spark]'") from error
    os.makedirs(path, exist_ok=True)
    pyarrow.parquet.write_table(table, os.path.join(path, "part-0.parquet"))
