"""The tables of the data source, by name."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from fastquorum.spark.tables.records import CONTROL, RECORDS
from fastquorum.spark.tables.table import Table, Task

__all__ = ["TABLES", "Table", "Task"]

_ALL: Final[tuple[Table, ...]] = (RECORDS, CONTROL)
TABLES: Final[Mapping[str, Table]] = MappingProxyType({table.name: table for table in _ALL})
