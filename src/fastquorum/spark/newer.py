"""Which PySpark each part of the data source needs at least: what needs a newer one than this says so, in one line.

Batch reads and writes are there from 4.0 on, and so need nothing of this. What needs more is imported when it is used.
Spark asks a data source for its streams in a process of its own, and tells of a refusal there with a trace of Python's
in one of Java's: with such a Spark, `refuse_early` has the driver's own API refuse, before there is anything to trace.
"""

import functools
import importlib
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fastquorum.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Need(NamedTuple):
    """What a module of this package needs of PySpark."""

    what: str
    """That the module is for."""
    least: tuple[int, int]
    """The version that first had it."""
    builders: tuple[str, ...]
    """The classes of PySpark's API that lead there from a driver, by `format`."""


NEEDS: Final = {
    "stream.streaming": Need("streams from a log", (4, 2), ("DataStreamReader",)),
    "write.stream_writing": Need("streams to a log", (4, 1), ("DataStreamWriter",)),
}
"""By module. A stream's reader is told where its query stands from 4.2 on (`DataSourceStreamReader.latestOffset`): it
could not tell apart otherwise what was read and what has gone."""
SOURCE: Final = "fastquorum"


def newer(module: str) -> ModuleType:
    """A module of `fastquorum.spark`. UsageError: it needs a newer PySpark than this one."""
    if module in NEEDS and (refusal := _refusal(NEEDS[module])) is not None:
        raise refusal
    return importlib.import_module(f"fastquorum.spark.{module}")


def refuse_early(spark: "SparkSession") -> None:
    """Have `spark.readStream.format("fastquorum")` and the like raise UsageError at once, where this PySpark is older
    than what they lead to. Changes PySpark's own classes, and only then."""
    for need in NEEDS.values():
        if _refusal(need) is None:
            continue
        module = type(spark.readStream).__module__
        for name in need.builders:
            builder = getattr(importlib.import_module(module), name)
            if getattr(builder.format, "refuses", None) is not need:
                builder.format = _refusing(builder.format, need)


def _refusing(original: Callable[[Any, str], Any], need: Need) -> Callable[[Any, str], Any]:
    @functools.wraps(original)
    def refusing(builder: Any, source: str) -> Any:
        refusal = _refusal(need) if source.lower() == SOURCE else None
        if refusal is not None:
            raise refusal
        return original(builder, source)

    refusing.refuses = need  # type: ignore[attr-defined]
    return refusing


def _refusal(need: Need) -> UsageError | None:
    """None: this PySpark has it."""
    import pyspark

    if tuple(int(part) for part in pyspark.__version__.split(".")[:2]) >= need.least:
        return None
    least = ".".join(map(str, need.least))
    return UsageError(
        f"{need.what} need PySpark {least} or later, and this is {pyspark.__version__}",
        f"pip install 'pyspark>={least},<5'; batch reads and writes work as they are",
    )
