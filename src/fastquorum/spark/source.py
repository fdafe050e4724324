"""`format("fastquorum")`: the tables of `fastquorum.spark.tables` as a PySpark data source, and a quorum to write to.

Spark's API: `pyspark.sql.datasource`. The class is pickled by reference, so this package must be on every executor.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, cast

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, Filter, InputPartition
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import DataSourceStreamWriter, DataSourceWriter

    from fastquorum.spark.quorum import QuorumRange
    from fastquorum.spark.scan import Scan
    from fastquorum.spark.tables import Task


class FastQuorumSource(DataSource):
    """Logs of metadata quorums, as tables."""

    @classmethod
    def name(cls) -> str:
        return "fastquorum"

    def writer(self, schema: StructType, overwrite: bool) -> "DataSourceWriter":
        """Of one job; UsageError. See `fastquorum.spark.writing`."""
        from fastquorum.spark.writing import batch_writer

        return batch_writer(dict(self.options), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> "DataSourceStreamWriter":
        """Of one batch of a query; UsageError. See `fastquorum.spark.writing`."""
        from fastquorum.spark.writing import stream_writer

        return stream_writer(dict(self.options), schema, overwrite)

    def schema(self) -> StructType:
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(self._scan().schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Of the columns that `schema` names: a read's own `.schema(...)` may leave some out."""
        scan = self._scan().pruned(schema.names)
        return PushingReader(scan) if scan.options.pushdown else Reader(scan)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Of those columns, up to what is committed."""
        from fastquorum.spark.streaming import StreamReader

        return StreamReader(self._scan().pruned(schema.names))

    def _scan(self) -> "Scan":
        """UsageError, as `Scan.of`. Imported here: every session imports this module to learn that there is such a
        source."""
        from fastquorum.spark.scan import Scan

        return Scan.of(dict(self.options))


class Split(InputPartition):
    """What one Spark task reads."""

    def __init__(self, task: "Task | QuorumRange") -> None:
        super().__init__(task)


class Reader(DataSourceReader):
    """A batch read."""

    def __init__(self, scan: "Scan") -> None:
        self._scan = scan

    def partitions(self) -> Sequence[InputPartition]:
        return [Split(task) for task in self._scan.tasks()]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        if partition.value is None:
            return iter(())  # Spark's own, where there are none
        return self._scan.read(cast("Task | QuorumRange", partition.value))


class PushingReader(Reader):
    """A batch read that takes filters.

    A reader of its own: Spark refuses one that has `pushFilters` where spark.sql.python.filterPushdown.enabled is
    false, and its error says that: nothing here is asked before, but `plain.read` is.

    For one query: up to Spark 4.3 all scans of one `load()` (or one view) share what the last of them planned, so that
    a second query, or the other side of a join, is given the rows of the last filters. That cannot be seen here: a scan
    that pushes nothing asks nobody. Who sets the option loads anew for each scan. Source: Spark `PythonScanBuilder`.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Those that are left to Spark."""
        from fastquorum.spark.pushing import condition_of

        asked = [(each, condition_of(self._scan.options.table, each)) for each in filters]
        self._scan = self._scan.narrowed(condition for _, condition in asked if condition is not None)
        return [each for each, condition in asked if condition is None]
