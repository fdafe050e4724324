"""A read of one table, without Spark: planned into tasks, each read to Arrow record batches.

What Spark's reader hands out to executors, and what a program without a JVM runs by itself.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Self

import pyarrow as pa

from fastquorum.errors import UsageError
from fastquorum.spark import arrow
from fastquorum.spark.conditions import Condition, narrowed, those
from fastquorum.spark.logs import find_logs
from fastquorum.spark.options import Options, parse_options
from fastquorum.spark.tables import TABLES, Table, Task, table_of


class Scan(NamedTuple):
    """One read, planned but for its tasks. Travels to executors."""

    options: Options
    columns: tuple[str, ...]
    conditions: tuple[Condition, ...] = ()
    """Rows that do not fulfil all of them are left out."""

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Self:
        """From a reader's options. UsageError, which says what there is."""
        options = parse_options(given, TABLES)
        whole = tuple(table_of(options).schema.names)
        return cls(options, whole).pruned(options.columns or whole)

    @property
    def table(self) -> Table:
        return table_of(self.options)

    @property
    def schema(self) -> pa.Schema:
        return arrow.pruned(self.table.schema, self.columns)

    def pruned(self, columns: Sequence[str]) -> Self:
        """With these columns only. UsageError if there is no such column."""
        known = self.table.schema.names
        for column in columns:
            if column not in known:
                raise UsageError(
                    f"table {self.options.table!r} has no column {column!r}", f"the columns are {', '.join(known)}"
                )
        return self._replace(columns=tuple(columns))

    def narrowed(self, conditions: Iterable[Condition]) -> Self:
        """With only the rows that fulfil these conditions too; as little as can be is read for them."""
        more = tuple(conditions)
        return self._replace(options=narrowed(self.options, more), conditions=(*self.conditions, *more))

    def tasks(self) -> list[Task]:
        """What can be read apart from one another. UsageError, DirectoryError."""
        return self.table.tasks(find_logs(self.options.path), self.options)

    def read(self, task: Task) -> Iterator[pa.RecordBatch]:
        """What one task comes to."""
        asked = dict.fromkeys((*self.columns, *(each.column for each in self.conditions)))
        for batch in self.table.read(task, self.options, tuple(asked)):
            yield those(batch, self.conditions, self.columns) if self.conditions else batch


def read_table(path: str, table: str = "records", **options: object) -> pa.Table:
    """A whole table in this process, without Spark or Java. Options as of the data source; errors as there."""
    scan = Scan.of({"path": path, "table": table, **{name: str(value) for name, value in options.items()}})
    batches = [batch for task in scan.tasks() for batch in scan.read(task)]
    return pa.Table.from_batches(batches, scan.schema)
