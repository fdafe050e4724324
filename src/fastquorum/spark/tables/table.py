"""What a table is: columns, tasks that the driver plans, and batches that each task reads where it runs.

A task is data and travels; nothing else does. Every row names its log: cluster, node, directory.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol

import pyarrow as pa

from fastquorum.errors import FastQuorumError, UsageError
from fastquorum.kernels.rows import EVERY_ROW, RowFilter
from fastquorum.spark.stored import arrow
from fastquorum.spark.stored.logs import FoundLog, LogFault
from fastquorum.spark.stored.options import ReadOptions
from fastquorum.spark.stored.reading import Mode
from fastquorum.spark.stored.splits import Piece

_NARROWING: Final[Mapping[str, str]] = MappingProxyType(
    {
        "types": "types",
        "topic": "topic",
        "fromOffset": "from_offset",
        "toOffset": "to_offset",
        "fromEpoch": "from_epoch",
        "toEpoch": "to_epoch",
        "fromTimestamp": "from_timestamp_ms",
        "toTimestamp": "to_timestamp_ms",
        "asOfOffset": "as_of_offset",
        "asOfTimestamp": "as_of_timestamp_ms",
        "diffFrom": "diff_from",
        "committedEnds": "committed_ends",
    }
)
"""Options that leave rows out, and their fields."""
BOUNDS: Final = frozenset(_NARROWING) - {"types", "topic", "committedEnds"}


class Task(NamedTuple):
    """The part of a read that one Spark task has."""

    pieces: tuple[Piece, ...] = ()
    logs: tuple[FoundLog, ...] = ()
    ids: tuple[str, ...] = ()
    """Ids of the wanted topic, in whatever clusters."""
    faults: tuple[LogFault, ...] = ()
    """Faults of directories; each becomes a row, in any table."""


class SourceTable(Protocol):
    """One table of the data source."""

    name: str
    schema: pa.Schema

    def tasks(self, logs: Sequence[FoundLog], options: ReadOptions) -> list[Task]:
        """Plan tasks, on the driver. UsageError, DirectoryError."""

    def read(self, task: Task, options: ReadOptions, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read a task, on an executor: only these columns, in their order."""


Row = Mapping[str, Any]
"""Values by column; a missing one is null."""


class LogTable:
    """A table with few rows for each log, which has to be seen whole for them."""

    def __init__(
        self,
        name: str,
        fields: Iterable[pa.Field],
        rows: Callable[[FoundLog, ReadOptions], Iterable[Row]],
        takes: Iterable[str] = (),
    ) -> None:
        """`takes`: which of the options that leave rows out `rows` honours; the others are refused."""
        self.name = name
        self.schema = pa.schema([*arrow.OWNER_FIELDS, *fields])
        self._rows = rows
        self._takes = frozenset(takes)

    def tasks(self, logs: Sequence[FoundLog], options: ReadOptions) -> list[Task]:
        refuse_others(self.name, options, self._takes)
        return whole_logs(logs, options.split_bytes)

    def read(self, task: Task, options: ReadOptions, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        schema = arrow.pruned(self.schema, columns)
        for log in task.logs:
            rows: list[Row] = []
            try:
                rows.extend(self._rows(log, options))
            except FastQuorumError as error:
                rows.extend(error_rows(error, options))
            yield arrow.batch_of(schema, [{**owner_columns(log), **row} for row in rows])


class RowExtent(NamedTuple):
    """Range of records that a row stands for. End and times: -1 if there is none."""

    start_offset: int
    end_offset: int
    """Exclusive."""
    epoch: int
    first_ms: int
    last_ms: int

    def is_in(self, wanted: RowFilter) -> bool:
        """Return whether some of its records may be wanted."""
        return wanted == EVERY_ROW or (
            (self.end_offset < 0 or self.end_offset > wanted.offset_min)
            and self.start_offset < wanted.offset_max
            and wanted.epoch_min <= self.epoch < wanted.epoch_max
            and (self.last_ms < 0 or self.last_ms >= wanted.timestamp_ms_min)
            and (self.first_ms < 0 or self.first_ms < wanted.timestamp_ms_max)
        )


def bounds_of(options: ReadOptions) -> RowFilter:
    """Return the bounds on records, from whichever options state them."""
    wanted = options.row_filter
    if options.as_of_offset is not None:
        wanted = wanted._replace(offset_max=min(wanted.offset_max, options.as_of_offset))
    if options.as_of_timestamp_ms is not None:
        wanted = wanted._replace(timestamp_ms_max=min(wanted.timestamp_ms_max, options.as_of_timestamp_ms + 1))
    if options.diff_from is not None:
        wanted = wanted._replace(offset_min=max(wanted.offset_min, options.diff_from))
    return wanted


def refuse_others(table: str, options: ReadOptions, takes: Iterable[str]) -> None:
    """Raise UsageError if an option asks for fewer rows than the table can leave out."""
    for name, field in _NARROWING.items():
        value = getattr(options, field)
        is_given = value not in (None, {}) and (name, value) != ("fromOffset", 0)  # which is where all begin
        if name not in takes and is_given:
            fitting = f"it takes {', '.join(sorted(takes))}" if takes else "it is always read whole"
            raise UsageError(f"option {name} means nothing to table {table!r}", fitting)


def error_rows(error: FastQuorumError, options: ReadOptions, left_out: str = "the rest of its rows") -> Iterator[Row]:
    """Handle an error as the mode says: raise it, yield a row with it, or warn. `left_out`: what is missing then;
    without it, the error ends a log's rows."""
    if options.mode is Mode.FAIL:
        raise error
    if options.mode is Mode.QUARANTINE:
        yield {"error": str(error)}
    else:
        warnings.warn(f"{error}: {left_out} is left out", RuntimeWarning, stacklevel=2)


def owner_columns(log: FoundLog | Piece) -> dict[str, Any]:
    """Return the columns of `arrow.OWNER`."""
    return {"cluster_id": log.cluster_id, "node_id": log.node_id, "directory": log.directory}


def whole_logs(logs: Sequence[FoundLog], split_bytes: int) -> list[Task]:
    """Make tasks of whole logs: many small ones in a task, a large one by itself."""
    tasks: list[list[FoundLog]] = []
    room = 0
    for log in logs:
        size_bytes = sum(each.size_bytes for each in log.files)
        if not tasks or size_bytes > room:
            tasks.append([])
            room = split_bytes
        tasks[-1].append(log)
        room -= size_bytes
    return [Task(logs=tuple(task)) for task in tasks]
