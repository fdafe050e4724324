"""What a query asks of rows: comparisons of a column with values, applied exactly, and before that used to read less.

Knows no Spark: `spark.pushing` makes conditions of its filters.
"""

import enum
from collections.abc import Iterable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.spark import arrow
from fastquorum.spark.options import Options

_RANGED: Final = frozenset({"offset", "epoch", "timestamp"})
_OF_RECORDS: Final = _RANGED | {"type"}
_OF_CHANGES: Final = _RANGED | {"topic"}
NARROWING: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "records": _OF_RECORDS,
        "control": _OF_RECORDS,
        "isr_history": _OF_CHANGES,
        "leadership": _OF_CHANGES,
        "partitions": frozenset({"topic"}),
        "topics": frozenset({"topic"}),
    }
)
"""The columns of each table that less is read by."""
TEXTS: Final = frozenset({"type", "topic"})


class Op(enum.StrEnum):
    """How a column relates to the values."""

    IN = "in"
    LESS = "<"
    LESS_EQUAL = "<="
    GREATER = ">"
    GREATER_EQUAL = ">="
    KNOWN = "is not null"


class Condition(NamedTuple):
    """As SQL has it: null fulfils none."""

    column: str
    op: Op
    values: tuple[Any, ...] = ()
    """One but for IN and KNOWN: whole numbers, texts, or microseconds since 1970."""

    def holds(self, column: pa.Array) -> pa.Array:
        """For each value of the column."""
        if self.op is Op.KNOWN:
            return pc.is_valid(column)
        if self.op is Op.IN:
            values = pa.array(self.values, pa.string() if self.column in TEXTS else pa.int64())
            return pc.is_in(_plain(column), values)
        return pc.fill_null(_COMPARE[self.op](_plain(column), pa.scalar(self.values[0], pa.int64())), False)


_COMPARE: Final = MappingProxyType(
    {Op.LESS: pc.less, Op.LESS_EQUAL: pc.less_equal, Op.GREATER: pc.greater, Op.GREATER_EQUAL: pc.greater_equal}
)


def micros(moment: datetime) -> int:
    """Since 1970, of a moment with a zone."""
    since_1970: int = pa.scalar(moment, arrow.TIMESTAMP).cast(pa.int64()).as_py()
    return since_1970


def those(batch: pa.RecordBatch, conditions: Iterable[Condition], columns: Iterable[str]) -> pa.RecordBatch:
    """The rows that fulfil all of them, and of those these columns."""
    kept: pa.Array | None = None
    for each in conditions:
        holds = each.holds(batch.column(each.column))
        kept = holds if kept is None else pc.and_(kept, holds)
    chosen = batch.select(list(columns))
    return chosen if kept is None else chosen.filter(kept)


def narrowed(options: Options, conditions: Iterable[Condition]) -> Options:
    """Options that leave out what no condition lets through, and perhaps not all of it."""
    for each in conditions:
        if each.column not in NARROWING.get(options.table, ()) or each.op is Op.KNOWN:
            continue
        if each.column == "type":
            options = options._replace(types_wanted=each.values)
        elif each.column == "topic":
            is_one = len(each.values) == 1 and options.topic is None
            options = options._replace(topic=each.values[0]) if is_one else options
        elif each.values:
            options = _bounded(options, each)
    return options


def _bounded(options: Options, condition: Condition) -> Options:
    """Within [low, high), which the options have in milliseconds where the column has microseconds."""
    low, high = _range(condition)
    name = condition.column
    if name == "timestamp":
        name, low, high = "timestamp_ms", _up(low), _up(high)
    before: int | None = getattr(options, f"from_{name}")
    until: int | None = getattr(options, f"to_{name}")
    bounds: dict[str, Any] = {}
    if low is not None:
        least = low if name == "timestamp_ms" else max(low, 0)
        bounds[f"from_{name}"] = least if before is None else max(before, least)
    if high is not None:
        bounds[f"to_{name}"] = high if until is None else min(until, high)
    return options._replace(**bounds)


def _range(condition: Condition) -> tuple[int | None, int | None]:
    least, most = min(condition.values), max(condition.values)
    match condition.op:
        case Op.LESS:
            return None, most
        case Op.LESS_EQUAL:
            return None, most + 1
        case Op.GREATER:
            return least + 1, None
        case Op.GREATER_EQUAL:
            return least, None
        case _:
            return least, most + 1


def _up(value: int | None) -> int | None:
    """Microseconds to milliseconds: what is not below one is not below the other."""
    return None if value is None else -(-value // 1000)


def _plain(column: pa.Array) -> pa.Array:
    """Numbers as int64, times as microseconds, text as it is."""
    return column if pa.types.is_string(column.type) else column.cast(pa.int64())
