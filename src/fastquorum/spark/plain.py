"""Reads for programs, and errors in our own words: Spark tells those of a data source as a traceback of its workers.

What can be found wrong on the driver is raised there, before Spark hears of it. What a worker finds, methods of Spark's
raise as an error of Spark's, and ours has to be asked for: `plain_errors`.
"""

import contextlib
import json
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from fastquorum import errors
from fastquorum.errors import FastQuorumError, UsageError
from fastquorum.spark.stored.logs import find
from fastquorum.spark.stored.options import TABLE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OURS: Final = re.compile(r"^\s*fastquorum\.errors\.(\w+): (.+)$", re.MULTILINE)
"""Pattern of the last line of a traceback that Spark brings from another process."""
_CONNECT: Final = "pyspark.sql.connect"


def read(spark: "SparkSession", path: str | Sequence[str] = "", table: str = TABLE, **options: object) -> "DataFrame":
    """A table of the logs at `path`, or several, or of a running quorum by option `bootstrap`: the same as by
    `spark.read.format("fastquorum")`, with its options.

    Raises:
        UsageError: there is no such table, option, column or type, a value does not fit its option, or there is no
            log at `path`.
        DirectoryError: `path` is not there or cannot be read. (A Spark Connect server has files of its own: what is not
            there Spark says, when the rows are asked for.)
    """
    from fastquorum.spark.scan import TableScan
    from fastquorum.spark.stored.options import refuse_streams_options

    given = {"table": table, **{name: str(value) for name, value in options.items()}}
    paths = {"path": path} if isinstance(path, str) else {"paths": json.dumps(list(path))}
    known = TableScan.of({**given, **paths}).options
    refuse_streams_options(known)
    if known.path and not type(spark).__module__.startswith(_CONNECT):
        find(known.path)
    reader = spark.read.format("fastquorum").options(**given)
    return reader.load(path if isinstance(path, str) else list(path)) if path else reader.load()


@contextlib.contextmanager
def plain_errors() -> Iterator[None]:
    """Around what asks Spark for rows: one of our errors that a worker raised is raised as itself, in place of Spark's.

    Its class and what it says are those of the worker's; its fields are not known. Other errors of Spark's stay as they
    are.
    """
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        ours = our_error(str(error))
        if ours is None:
            raise
        raise ours from error


def our_error(text: str) -> FastQuorumError | None:
    """Return the last error of ours in a text of Spark's; None: there is none."""
    found = _OURS.findall(text)
    if not found:
        return None
    name, sentence = found[-1]
    return _error_of(getattr(errors, name, FastQuorumError), sentence)


def _error_of(kind: type[FastQuorumError], sentence: str) -> FastQuorumError:
    """Make an error of that class. It is complete if the class takes no more than the sentence."""
    if issubclass(kind, UsageError) and str(whole := kind(sentence)) == sentence:
        return whole
    made: Any = type(kind.__name__, (_ForeignError, kind), {"__module__": kind.__module__})
    error: FastQuorumError = made.__new__(made)
    error.args = (sentence,)
    return error


class _ForeignError(FastQuorumError):
    """An error that another process raised. Only its text is known; the error's own class is the next base."""

    def __str__(self) -> str:
        return str(self.args[0])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def as_fields(self) -> dict[str, Any]:
        return {}

    def __reduce__(self) -> tuple[Any, ...]:
        return _error_of, (type(self).__mro__[2], str(self))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ForeignError) and (type(self).__mro__[2], str(self)) == (
            type(other).__mro__[2],
            str(other),
        )

    __hash__ = FastQuorumError.__hash__
