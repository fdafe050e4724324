"""`spark.read.format("fastquorum")`: the tables of `fastquorum.spark.tables` as a PySpark data source.

Spark's API: `pyspark.sql.datasource`. The class is pickled by reference, so this package must be on every executor.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, cast

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from fastquorum.spark.scan import Scan
from fastquorum.spark.tables import Task

if TYPE_CHECKING:
    import pyarrow as pa


class FastQuorumSource(DataSource):
    """Logs of metadata quorums, as tables."""

    @classmethod
    def name(cls) -> str:
        return "fastquorum"

    def schema(self) -> StructType:
        return from_arrow_schema(Scan.of(dict(self.options)).schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Of the columns that `schema` names: a read's own `.schema(...)` may leave some out."""
        return Reader(Scan.of(dict(self.options)).pruned(schema.names))


class Split(InputPartition):
    """What one Spark task reads."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)


class Reader(DataSourceReader):
    """A batch read."""

    def __init__(self, scan: Scan) -> None:
        self._scan = scan

    def partitions(self) -> Sequence[InputPartition]:
        return [Split(task) for task in self._scan.tasks()]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        return self._scan.read(cast(Task, partition.value))
