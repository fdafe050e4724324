"""Opens the engine that a command asked for."""

import contextlib
from collections.abc import Iterator
from typing import Final

from fastquorum.spark.engines.engine import Engine

_REMOTE: Final = "sc://"
"""A Spark Connect server reads its own files."""


@contextlib.contextmanager
def engine(master: str | None, threads: int | None = None) -> Iterator[Engine]:
    """Spark at this master, for one command; None: this process, by so many threads. Errors as of `running.running`."""
    if master is None:
        from fastquorum.spark.engines.local_jobs import LocalEngine

        yield LocalEngine(threads)
        return
    from fastquorum.spark.sessions.running import running

    with running(master) as spark:
        from fastquorum.spark.engines.spark_engine import SparkEngine

        yield SparkEngine(spark, sees_files=not master.startswith(_REMOTE))
