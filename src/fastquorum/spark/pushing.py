"""Filters that Spark pushes down, as conditions: what is taken is applied in full, the rest Spark applies itself."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

from fastquorum.spark.conditions import NARROWING, TEXTS, Condition, Op, micros

_COMPARISONS: Final[dict[type[Filter], Op]] = {
    LessThan: Op.LESS,
    LessThanOrEqual: Op.LESS_EQUAL,
    GreaterThan: Op.GREATER,
    GreaterThanOrEqual: Op.GREATER_EQUAL,
}
_BITS: Final = 62
"""Of numbers to which one may be added."""


def condition_of(table: str, asked: Filter) -> Condition | None:
    """None: Spark is to see to it."""
    column = _column(asked)
    if column not in NARROWING.get(table, ()):
        return None
    if isinstance(asked, IsNotNull):
        return Condition(column, Op.KNOWN)
    if isinstance(asked, EqualTo | EqualNullSafe):
        return _with(column, Op.IN, (asked.value,))
    if isinstance(asked, In):
        return _with(column, Op.IN, tuple(each for each in asked.value if each is not None))
    op = _COMPARISONS.get(type(asked))
    return None if op is None or column in TEXTS else _with(column, op, (getattr(asked, "value"),))  # noqa: B009


def _column(asked: Filter) -> str:
    path: tuple[str, ...] = getattr(asked, "attribute", ())
    return path[0] if len(path) == 1 else ""


def _with(column: str, op: Op, given: Iterable[Any]) -> Condition | None:
    values = tuple(_value(column, each) for each in given)
    return None if None in values else Condition(column, op, values)


def _value(column: str, value: Any) -> int | str | None:
    """As conditions have it; None: of a kind that the column is not."""
    if column in TEXTS:
        return value if isinstance(value, str) else None
    if column == "timestamp":
        return micros(value) if isinstance(value, datetime) and value.tzinfo is not None else None
    return value if type(value) is int and value.bit_length() <= _BITS else None
