"""The tables of the data source, by name."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from fastquorum.errors import UsageError
from fastquorum.spark.stored.options import ReadOptions
from fastquorum.spark.tables.base import BASE
from fastquorum.spark.tables.batches import BATCHES
from fastquorum.spark.tables.brokers import BROKERS, CONFIGS
from fastquorum.spark.tables.changes import ISR_HISTORY, LEADERSHIP
from fastquorum.spark.tables.checkpoints import CHECKPOINTS
from fastquorum.spark.tables.epochs import EPOCHS
from fastquorum.spark.tables.files import FILES
from fastquorum.spark.tables.image import IMAGE
from fastquorum.spark.tables.partitions import PARTITIONS, TOPICS
from fastquorum.spark.tables.quorum_state import QUORUM_STATE
from fastquorum.spark.tables.records import CONTROL, RECORDS, RecordsTable, typed_table
from fastquorum.spark.tables.replay import REPLAY
from fastquorum.spark.tables.snapshots import SNAPSHOTS
from fastquorum.spark.tables.table import SourceTable, Task
from fastquorum.spark.tables.voters import VOTERS

__all__ = ["TABLES", "SourceTable", "Task", "table_of"]

_ALL: Final[tuple[SourceTable, ...]] = (
    RECORDS,
    CONTROL,
    BATCHES,
    EPOCHS,
    VOTERS,
    QUORUM_STATE,
    CHECKPOINTS,
    SNAPSHOTS,
    REPLAY,
    BASE,
    FILES,
    IMAGE,
    BROKERS,
    TOPICS,
    PARTITIONS,
    CONFIGS,
    ISR_HISTORY,
    LEADERSHIP,
)
TABLES: Final[Mapping[str, SourceTable]] = MappingProxyType({table.name: table for table in _ALL})


def table_of(options: ReadOptions) -> SourceTable:
    """Return the wanted table, in the wanted form. UsageError: it has no such form."""
    table = TABLES[options.table]
    if not options.typed:
        return table
    if not isinstance(table, RecordsTable):
        raise UsageError(f"option typed means nothing to table {table.name!r}", "its columns have their types")
    return typed_table(table, options.types)
