"""`df.write.format("fastquorum")`: user records, appended through a running quorum exactly once.

Spark's API: `pyspark.sql.datasource`. Spark calls `write` once for each attempt at a task, a speculative one included,
in a process of the executor's. Who writes which batch is told by the task: a streaming query's id is in its checkpoint,
and the batch's number with it, so that both are the same after a restart. How that makes a row be there once:
`fastquorum.spark.write.appending`.
"""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from fastquorum.errors import UsageError
from fastquorum.kernels import load
from fastquorum.spark.write.appending import Appended, WritePart, append_rows, note_done
from fastquorum.spark.write.write_options import WriteOptions, check_columns, parse_write_options

QUERY_ID: Final = "sql.streaming.queryId"
BATCH_ID: Final = "streaming.sql.batchId"
"""What Spark tells its tasks of the streaming query that they belong to (`StreamExecution`, `MicroBatchExecution`)."""
_MODES: Final = 'mode("append") and outputMode("append") are what there is'

Messages = list[WriterCommitMessage | None]


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """Message of a task whose rows are all committed in the quorum."""

    part: WritePart
    appended: Appended


class BatchWriter(DataSourceArrowWriter):
    """One job."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options
        self._job = uuid.uuid4().hex
        """The job's own name, where it was given none: the same in all its tasks, and in each attempt at them."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Errors as of `append_rows`."""
        task = this_task()
        query_id, batch_id = (task.getLocalProperty(name) for name in (QUERY_ID, BATCH_ID))
        if self._options.writer is None:
            writer, batch = f"job {self._job}", 0
        elif query_id and batch_id:  # of a foreachBatch
            writer, batch = f"writer {self._options.writer!r} in query {query_id}", int(batch_id)
        else:
            writer, batch = f"writer {self._options.writer!r}", 0
        is_named_job = self._options.writer is not None and not (query_id and batch_id)
        return written(iterator, WritePart(writer, batch, task.partitionId(), is_named_job), self._options)

    def commit(self, messages: Messages) -> None:
        """Note, for a job with a name, that the rows of all its tasks are committed. Errors as of `note_done`."""
        for message in messages[:1]:
            if isinstance(message, Written) and message.part.is_named_job:
                note_done(message.part, len(messages), self._options, load("native"))

    def abort(self, messages: Messages) -> None:
        """Do nothing: appended rows stay. A job with a name appends what is missing when it is run again."""


def batch_writer(options: dict[str, str], schema: StructType, overwrite: bool) -> BatchWriter:
    """UsageError: an option, a column or a mode that there is not."""
    return BatchWriter(checked(options, schema, overwrite))


def checked(options: dict[str, str], schema: StructType, overwrite: bool) -> WriteOptions:
    """UsageError, as `batch_writer`."""
    if overwrite:
        raise UsageError("a log is only ever appended to: nothing in it can be overwritten", _MODES)
    parsed = parse_write_options(options)
    check_columns(to_arrow_schema(schema))
    return parsed


def written(rows: Iterator[pa.RecordBatch], part: WritePart, options: WriteOptions) -> Written:
    """Append a task's rows. Errors as of `append_rows`."""
    return Written(part, append_rows(rows, part, options, load("native")))


def this_task() -> TaskContext:
    task = TaskContext.get()
    assert task is not None, "Spark writes in tasks"
    return task
