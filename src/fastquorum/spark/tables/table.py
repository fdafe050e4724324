"""What a table is: columns, tasks that the driver plans, and batches that each task reads where it runs.

A task is data and travels; nothing else does. Every row names its log: cluster, node, directory.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple, Protocol

import pyarrow as pa

from fastquorum.spark.logs import FoundLog
from fastquorum.spark.options import Options
from fastquorum.spark.splits import Piece

WHOSE: Final = (
    pa.field("cluster_id", pa.string()),
    pa.field("node_id", pa.int32()),
    pa.field("directory", pa.string(), nullable=False),
)


class Task(NamedTuple):
    """What one Spark task reads."""

    pieces: tuple[Piece, ...] = ()
    logs: tuple[FoundLog, ...] = ()
    ids: tuple[str, ...] = ()
    """Of the topic that is asked for, in whatever clusters."""


class Table(Protocol):
    """One table of the data source."""

    name: str
    schema: pa.Schema

    def tasks(self, logs: Sequence[FoundLog], options: Options) -> list[Task]:
        """On the driver. UsageError, DirectoryError."""

    def read(self, task: Task, options: Options, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """On an executor: only these columns, in their order."""


def whose(log: FoundLog) -> dict[str, Any]:
    """The columns of WHOSE."""
    return {"cluster_id": log.cluster_id, "node_id": log.node_id, "directory": log.directory}


def one_task_each(logs: Sequence[FoundLog]) -> list[Task]:
    """For tables that need a log whole."""
    return [Task(logs=(log,)) for log in logs]
