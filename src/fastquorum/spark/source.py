"""`format("fastquorum")`: the tables of `fastquorum.spark.tables` as a PySpark data source, and a quorum to write to.

Spark's API: `pyspark.sql.datasource`. The class is pickled by reference, so this package must be on every executor.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, cast

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from fastquorum.spark.newer import newer

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import DataSourceStreamWriter, DataSourceWriter

    from fastquorum.spark.quorum import QuorumRange
    from fastquorum.spark.scan import TableScan
    from fastquorum.spark.tables import Task


class FastQuorumSource(DataSource):
    """Logs of metadata quorums, as tables."""

    @classmethod
    def name(cls) -> str:
        return "fastquorum"

    def writer(self, schema: StructType, overwrite: bool) -> "DataSourceWriter":
        """Return the writer of one job; UsageError. See `fastquorum.spark.write.writing`."""
        from fastquorum.spark.write.writing import batch_writer

        return batch_writer(dict(self.options), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> "DataSourceStreamWriter":
        """Return the writer of one batch of a query; UsageError. See `fastquorum.spark.write.stream_writing`."""
        writer: DataSourceStreamWriter = newer("write.stream_writing").stream_writer(
            dict(self.options), schema, overwrite
        )
        return writer

    def schema(self) -> StructType:
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(self._scan().schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of the columns that `schema` names: a read's own `.schema(...)` may leave some out."""
        return Reader(self._scan().pruned(schema.names))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return a reader of those columns, up to what is committed."""
        reader: DataSourceStreamReader = newer("stream.streaming").StreamReader(self._scan().pruned(schema.names))
        return reader

    def _scan(self) -> "TableScan":
        """UsageError, as `TableScan.of`. Imported here: every session imports this module, to learn of the source."""
        from fastquorum.spark.scan import TableScan

        return TableScan.of(dict(self.options))


class Split(InputPartition):
    """The part of a read that one Spark task has."""

    def __init__(self, task: "Task | QuorumRange") -> None:
        super().__init__(task)


class Reader(DataSourceReader):
    """A batch read."""

    def __init__(self, scan: "TableScan") -> None:
        self._scan = scan

    def partitions(self) -> Sequence[InputPartition]:
        return [Split(task) for task in self._scan.tasks()]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        if partition.value is None:
            return iter(())  # Spark's own, where there are none
        return self._scan.read(cast("Task | QuorumRange", partition.value))
