"""`df.writeStream.format("fastquorum")`: each micro-batch of a query is appended exactly once.

Spark's API: `pyspark.sql.datasource`. A query's id is in its checkpoint, and the batch's number with it: see
`fastquorum.spark.write.writing`.
"""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from fastquorum.errors import UsageError
from fastquorum.spark.write.appending import WritePart
from fastquorum.spark.write.write_options import WriteOptions
from fastquorum.spark.write.writing import BATCH_ID, QUERY_ID, Messages, checked, this_task, written


class StreamWriter(DataSourceStreamArrowWriter):
    """One batch of a streaming query."""

    def __init__(self, options: WriteOptions) -> None:
        """UsageError: a name is given, and it has one."""
        if options.writer is not None:
            raise UsageError(
                "a streaming query takes no option writer", "it is known by the id that is in its checkpoint"
            )
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Errors as of `append_rows`."""
        task = this_task()
        query_id, batch_id = (task.getLocalProperty(name) for name in (QUERY_ID, BATCH_ID))
        if not query_id or not batch_id:
            raise UsageError(
                "Spark does not say which batch of which query this is",
                "micro-batches have numbers, continuous processing is not served",
            )
        return written(iterator, WritePart(f"query {query_id}", int(batch_id), task.partitionId()), self._options)

    def commit(self, messages: Messages, batchId: int) -> None:
        """Do nothing: rows are committed when their task is done."""

    def abort(self, messages: Messages, batchId: int) -> None:
        """Do nothing: appended rows stay. When the query is started again, it appends what is missing of the batch."""


def stream_writer(options: dict[str, str], schema: StructType, overwrite: bool) -> StreamWriter:
    """UsageError: an option, a column or a mode that there is not."""
    return StreamWriter(checked(options, schema, overwrite))
