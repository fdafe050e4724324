"""Stored logs as Arrow tables, streamed: for Polars, DuckDB, pandas and whatever else reads Arrow.

Needs the extra: `pip install 'fastquorum[arrow]'`; no Spark, no JVM. The tables, their columns and options are those of
`fastquorum.spark`'s data source.
"""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fastquorum.errors import UsageError
from fastquorum.spark.installed import check_arrow
from fastquorum.spark.stored.paths import joined, split_by_commas

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["open"]


def open(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = "",
    table: str = "records",
    threads: int | None = None,
    **options: object,
) -> "pa.RecordBatchReader":
    """A table as a stream of record batches, in the order of the log.

    No more is in memory than some tasks' rows, one for each thread (option `splitBytes`: how much of a log each of them
    reads; 8 MiB). A reader that is not read to its end is to be closed.

    Args:
        path: a data directory, a log directory, one with such below it, a glob; or several of
            them, as a list or with commas between.
        table: records, control, batches, epochs, voters, ... An unknown one is refused with those that there are.
        threads: that read; None: one a core.
        options: as of the data source, as `fromOffset=100`, `types="TOPIC_RECORD"`, `mode="quarantine"`,
            `columns="offset,value"` or a list of them.
    Raises:
        UsageError: no such table, option or path, or pyarrow is not installed.
        DirectoryError, CorruptionError: something cannot be read, or is damaged; the latter from the reader.
    """
    check_arrow()
    from fastquorum.spark.exporting import open_reader

    return open_reader(_as_one(path), table, threads, options)


def _as_one(path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> str:
    """Paths with commas between. UsageError."""
    if isinstance(path, str):
        return split_by_commas(path)
    several = [path] if isinstance(path, os.PathLike) else path
    if not isinstance(several, list | tuple) or not all(isinstance(each, str | os.PathLike) for each in several):
        raise UsageError(f"path {path!r} is neither a path nor a list of paths")
    return joined(os.fspath(each) for each in several)
