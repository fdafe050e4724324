"""A read of one table, without Spark: planned into tasks, each read to Arrow record batches.

What Spark's reader hands out to executors, and what a program without a JVM runs by itself.
"""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Self

import pyarrow as pa

from fastquorum.errors import CorruptionError, UsageError
from fastquorum.spark.quorum import QuorumRange, quorum_ranges, read_range
from fastquorum.spark.stored import arrow
from fastquorum.spark.stored.beginnings import OF_BEGINNINGS, lost_beginnings
from fastquorum.spark.stored.logs import FoundLogs, LogFault, find, find_all
from fastquorum.spark.stored.options import ReadOptions, parse_options, refuse_streams_options
from fastquorum.spark.stored.reading import Mode
from fastquorum.spark.tables import TABLES, SourceTable, Task, table_of
from fastquorum.spark.tables.files import FILES, unreadable
from fastquorum.spark.tables.table import bounds_of, owner_columns

_HOW_TO_READ_ON: Final = (
    "option mode=quarantine has damaged bytes in columns of their own, mode=drop leaves them out with a warning; the "
    "end of a log that a crash has torn off was never acknowledged"
)


class TableScan(NamedTuple):
    """One read, planned but for its tasks. Travels to executors."""

    options: ReadOptions
    columns: tuple[str, ...]

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Self:
        """From a reader's options. UsageError, which says what there is."""
        options = parse_options(given, TABLES)
        whole = tuple(table_of(options).schema.names)
        return cls(options, whole).pruned(options.columns or whole)

    @property
    def table(self) -> SourceTable:
        return table_of(self.options)

    @property
    def schema(self) -> pa.Schema:
        return arrow.pruned(self.table.schema, self.columns)

    def pruned(self, columns: Sequence[str]) -> Self:
        """With these columns only. UsageError if there is no such column, or one is named twice."""
        known = self.table.schema.names
        for column in columns:
            if column not in known:
                raise UsageError(
                    f"table {self.options.table!r} has no column {column!r}", f"the columns are {', '.join(known)}"
                )
            if columns.count(column) > 1:
                raise UsageError(f"column {column!r} is named twice")
        return self._replace(columns=tuple(columns))

    def tasks(self, found: FoundLogs | None = None) -> "list[Task] | list[QuorumRange]":
        """Return tasks that can be read apart, of logs that are found already, or of the path in options. UsageError,
        DirectoryError; of a quorum, NotReady."""
        refuse_streams_options(self.options)
        if self.options.bootstrap:
            return quorum_ranges(self.table, self.options)
        is_lenient = self.options.mode is Mode.QUARANTINE
        logs, faults, _ = found or (find_all if is_lenient else find)(self.options.path)
        if self.table is FILES:
            logs = [*logs, *(each.log for each in faults if each.log is not None)]
            faults = [each for each in faults if each.log is None]
        elif self.options.mode is not Mode.QUARANTINE:
            self._tell(faults)
            faults = []
        if self.table.name in OF_BEGINNINGS:
            lost = lost_beginnings(logs, bounds_of(self.options), is_any=self.options.from_offset is None)
            if self.options.mode is Mode.QUARANTINE:
                faults = [*faults, *lost]
            else:
                self._tell(lost)
        tasks = self.table.tasks(logs, self.options) if logs else []
        return [*tasks, Task(faults=tuple(faults))] if faults else tasks

    def _tell(self, faults: Iterable[LogFault]) -> None:
        """The error, or a warning each."""
        for each in faults:
            if self.options.mode is Mode.FAIL:
                raise each.error
            warnings.warn(f"{each.error}: {each.left_out or each.directory} is left out", RuntimeWarning, stacklevel=2)

    def read(self, task: Task | QuorumRange) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one task. CorruptionError, with a note of how to read on, where an option of ours helps."""
        try:
            yield from self._read(task)
        except CorruptionError as error:
            if isinstance(task, Task) and self.options.mode is Mode.FAIL:
                error.add_note(_HOW_TO_READ_ON)
            raise

    def _read(self, task: Task | QuorumRange) -> Iterator[pa.RecordBatch]:
        if isinstance(task, QuorumRange):
            yield from read_range(task, self.table, self.options, self.columns)
            return
        yield from self.table.read(task, self.options, self.columns)
        for fault in task.faults:
            row = unreadable(fault) if self.table is FILES else {"error": str(fault.error)}
            schema = arrow.pruned(self.table.schema, self.columns)
            named = {"directory": fault.directory} if fault.log is None else owner_columns(fault.log)
            yield arrow.batch_of(schema, [{**named, **row}])


def read_table(path: str = "", table: str = "records", **options: object) -> pa.Table:
    """A whole table in this process, without Spark or Java: of directories, or of a quorum by option `bootstrap`.
    Options as of the data source; errors as there."""
    scan = TableScan.of({"path": path, "table": table, **{name: str(value) for name, value in options.items()}})
    batches = [batch for task in scan.tasks() for batch in scan.read(task)]
    return pa.Table.from_batches(batches, scan.schema)
