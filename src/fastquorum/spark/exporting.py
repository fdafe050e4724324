"""Tables of logs as streams and files, read by several threads with bounded memory, in the order of the log."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

import pyarrow as pa

from fastquorum.errors import UsageError
from fastquorum.spark.engines.local_reads import in_order
from fastquorum.spark.scan import TableScan

SPLIT_BYTES: Final = 8 << 20
"""Bytes of a log that one task reads; each thread has that much in memory, as rows."""


class Form(StrEnum):
    """Formats of exported files."""

    PARQUET = "parquet"
    ARROW = "arrow"


class Exported(NamedTuple):
    """Counts of what was written."""

    files: int
    rows: int


def open_reader(path: str, table: str, threads: int | None, options: Mapping[str, object]) -> pa.RecordBatchReader:
    """Open a table as a stream of record batches; see `fastquorum.tables.open`."""
    count = _threads(threads)
    scan = _scan(path, table, options)
    tasks = scan.tasks()

    def read(task: Any) -> Iterable[pa.RecordBatch]:
        # One thread hands each batch on as it is read; several read ahead, and a task's rows wait for their turn.
        return scan.read(task) if count == 1 else list(scan.read(task))

    def batches() -> Iterator[pa.RecordBatch]:
        for found in in_order(read, tasks, count):
            yield from found

    return pa.RecordBatchReader.from_batches(scan.schema, batches())


def export(
    path: str, table: str, directory: str, form: Form, threads: int | None, options: Mapping[str, object]
) -> Exported:
    """Write a table as files into a directory that is there, one for each task, in parallel; their names are in the
    order of the log. Errors as of `open_reader`."""
    scan = _scan(path, table, options)
    tasks: Sequence[Any] = scan.tasks()

    def write(numbered: tuple[int, Any]) -> int:
        number, task = numbered
        place = os.path.join(directory, f"part-{number:05d}.{form}")
        return _write(place, form, scan.schema, () if task is None else scan.read(task))

    rows = list(in_order(write, list(enumerate(tasks or [None])), _threads(threads)))
    return Exported(len(rows), sum(rows))


def _write(path: str, form: Form, schema: pa.Schema, batches: Any) -> int:
    rows = 0
    with _writer(path, form, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows


def _writer(path: str, form: Form, schema: pa.Schema) -> Any:
    if form is Form.ARROW:
        return pa.ipc.new_file(path, schema)
    import pyarrow.parquet

    return pyarrow.parquet.ParquetWriter(path, schema)


def _scan(path: str, table: str, options: Mapping[str, object]) -> TableScan:
    given = {"path": path, "table": table, "splitBytes": str(SPLIT_BYTES)}
    return TableScan.of({**given, **{name: _as_text(value) for name, value in options.items()}})


def _as_text(value: object) -> str:
    """Return an option as the data source takes it; a list becomes its parts with commas between."""
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _threads(wanted: int | None) -> int:
    """Return how many threads read. UsageError: `wanted` is not a number, or is less than one."""
    if wanted is not None and (not isinstance(wanted, int) or isinstance(wanted, bool) or wanted < 1):
        raise UsageError(f"threads is {wanted!r}", "it is a number from 1 on; or None, for one a core")
    return wanted or os.cpu_count() or 1
