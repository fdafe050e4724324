"""Conditions: the rows that a slow look at each of them keeps, and less is read for them."""

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.datasource import EqualNullSafe, EqualTo, Filter, GreaterThan, In, IsNotNull, IsNull, LessThan, Not

from fastquorum.spark.conditions import NARROWING, TEXTS, Condition, Op, micros
from fastquorum.spark.pushing import condition_of
from fastquorum.spark.scan import Scan, read_table
from fastquorum.spark.stores import LocalStore
from tests.spark.damage import change, make_log, segments
from tests.wire.golden import CLUSTER

PATH = str(CLUSTER / "c1")
MOMENT = datetime(2026, 11, 21, 6, 34, 25, tzinfo=UTC)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "offset": st.integers(-5, 4000),
    "epoch": st.integers(-1, 5),
    "timestamp": st.integers(-150_000_000, 150_000_000).map(lambda shift: micros(MOMENT) + shift),
    "type": st.sampled_from(["TOPIC_RECORD", "LEADER_CHANGE", "no such type"]),
    "topic": st.sampled_from(["orders-6", "clicks-15", "no such topic"]),
}
WHOLE = {name: read_table(PATH, name) for name in NARROWING}


@st.composite
def conditions(draw: st.DrawFn, table: str) -> Condition:
    column = draw(st.sampled_from(sorted(NARROWING[table])))
    op = draw(st.sampled_from([Op.IN, Op.KNOWN] if column in TEXTS else list(Op)))
    count = {Op.IN: 3, Op.KNOWN: 0}.get(op, 1)
    return Condition(column, op, tuple(draw(st.lists(VALUES[column], min_size=min(count, 1), max_size=count))))


def fulfils(value: Any, condition: Condition) -> bool:
    values: Any = condition.values
    match condition.op:
        case _ if value is None:
            return False
        case Op.KNOWN:
            return True
        case Op.IN:
            return value in values
        case Op.LESS:
            return bool(value < values[0])
        case Op.LESS_EQUAL:
            return bool(value <= values[0])
        case Op.GREATER:
            return bool(value > values[0])
        case Op.GREATER_EQUAL:
            return bool(value >= values[0])


def column(table: pa.Table, name: str) -> list[Any]:
    found = table[name]
    return (found.cast(pa.int64()) if name == "timestamp" else found).to_pylist()


@pytest.mark.parametrize("table", sorted(NARROWING))
@given(data=st.data())
@settings(deadline=None, max_examples=25)
def test_rows_are_those_that_fulfil_all(table: str, data: st.DataObject) -> None:
    asked = data.draw(st.lists(conditions(table), min_size=1, max_size=3))
    scan = Scan.of({"path": PATH, "table": table, "columns": "directory"}).narrowed(asked)
    found = sum(batch.num_rows for task in scan.tasks() for batch in scan.read(task))
    columns = {each.column: column(WHOLE[table], each.column) for each in asked}
    kept = [all(fulfils(columns[each.column][at], each) for each in asked) for at in range(WHOLE[table].num_rows)]
    assert found == sum(kept)


def test_a_query_of_a_few_offsets_reads_the_segments_that_have_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_log(tmp_path / "n1", 100, roll=10)
    read, counted = LocalStore.read, [0]

    def reads(self: LocalStore, path: str, start: int = 0, size_bytes: int = -1) -> bytes:
        data = read(self, path, start, size_bytes)
        counted[0] += len(data) if path.endswith(".log") else 0
        return data

    monkeypatch.setattr(LocalStore, "read", reads)

    def bytes_of(*asked: Condition) -> int:
        counted[0] = 0
        scan = Scan.of({"path": str(root), "columns": "value"}).narrowed(asked)
        assert sum(batch.num_rows for task in scan.tasks() for batch in scan.read(task)) == (5 if asked else 400)
        return counted[0]

    few = (Condition("offset", Op.GREATER_EQUAL, (100,)), Condition("offset", Op.LESS, (105,)))
    assert bytes_of(*few) * 9 < bytes_of()


def test_damage_that_no_condition_lets_through_is_not_shown(tmp_path: Path) -> None:
    root = make_log(tmp_path / "n1", 10)
    change(segments(root)[0], 100, b"\xff")
    whole = Scan.of({"path": str(root), "mode": "quarantine"})
    assert sum(batch.num_rows for task in whole.tasks() for batch in whole.read(task)) == 37
    late = whole.narrowed([Condition("offset", Op.GREATER, (20,)), Condition("epoch", Op.KNOWN)])
    assert sum(batch.num_rows for task in late.tasks() for batch in late.read(task)) == 19


@pytest.mark.parametrize(
    ("asked", "condition"),
    [
        (EqualTo(("offset",), 5), Condition("offset", Op.IN, (5,))),
        (EqualNullSafe(("type",), "A"), Condition("type", Op.IN, ("A",))),
        (In(("epoch",), (1, None, 2)), Condition("epoch", Op.IN, (1, 2))),
        (IsNotNull(("offset",)), Condition("offset", Op.KNOWN)),
        (GreaterThan(("timestamp",), MOMENT), Condition("timestamp", Op.GREATER, (micros(MOMENT),))),
        (
            LessThan(("timestamp",), MOMENT.astimezone(timezone(timedelta(hours=9)))),
            Condition("timestamp", Op.LESS, (micros(MOMENT),)),
        ),
        (LessThan(("timestamp",), datetime(2026, 1, 1)), None),
        (LessThan(("type",), "A"), None),
        (LessThan(("offset",), 2**63 - 1), None),
        (EqualTo(("offset",), None), None),
        (EqualTo(("offset",), 1.5), None),
        (EqualNullSafe(("offset",), None), None),
        (EqualTo(("PARTITION_RECORD", "offset"), 5), None),
        (EqualTo(("key",), b"k"), None),
        (IsNull(("offset",)), None),
        (Not(EqualTo(("offset",), 5)), None),
    ],
    ids=repr,
)
def test_filters_that_are_taken_and_filters_that_are_left_to_spark(asked: Filter, condition: Condition | None) -> None:
    assert condition_of("records", asked) == condition


def test_tables_without_such_columns_take_none() -> None:
    assert condition_of("batches", EqualTo(("epoch",), 5)) is None
    assert condition_of("brokers", EqualTo(("epoch",), 5)) is None
