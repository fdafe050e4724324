"""Rows cut into batches: every row once, in order, alike however they arrive, and none too large."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastquorum.errors import RecordTooLarge, UsageError
from fastquorum.kernels import BATCH_HEADER_BYTES, Header, Kernels, Record, load
from fastquorum.kernels.producers import Stamp
from fastquorum.spark.stored import arrow
from fastquorum.spark.write.chunks import chunks, encoded

SCHEMA = pa.schema([("headers", arrow.HEADERS), ("value", pa.string()), ("key", pa.binary())])
BYTES = 400
STAMP = Stamp(1 << 62, 7, 0, 1)
Row = dict[str, Any]

header = st.fixed_dictionaries({"key": st.text(max_size=5), "value": st.none() | st.binary(max_size=5)})
row = st.fixed_dictionaries(
    {
        "value": st.none() | st.text(max_size=40),
        "key": st.none() | st.binary(max_size=20),
        "headers": st.none() | st.lists(header, max_size=3),
    }
)


@pytest.fixture(scope="module", params=["native", "pure"])
def kernels(request: pytest.FixtureRequest) -> Kernels:
    return load(request.param)


def arriving(rows: Sequence[Row], cuts: Sequence[int], schema: pa.Schema = SCHEMA) -> list[pa.RecordBatch]:
    whole = pa.RecordBatch.from_pylist(list(rows), schema)
    edges = [0, *sorted(cut % (len(rows) + 1) for cut in cuts), len(rows)]
    return [whole.slice(start, end - start) for start, end in pairwise(edges)]


def record(row: Row) -> Record:
    headers = tuple(Header(each["key"], each["value"]) for each in row.get("headers") or ())
    value = row["value"]
    return Record(value.encode() if isinstance(value, str) else value, row.get("key"), headers)


@given(st.lists(row, max_size=30), st.lists(st.integers(0, 100), max_size=4))
def test_every_row_is_there_once_in_order_and_cuts_do_not_depend_on_how_rows_arrive(
    kernels: Kernels, rows: list[Row], cuts: list[int]
) -> None:
    found = list(chunks(arriving(rows, cuts), BYTES))
    batches = [encoded(each, kernels, STAMP, 5) for each in found]
    assert [encoded(each, kernels, STAMP, 5) for each in chunks(arriving(rows, []), BYTES)] == batches
    assert all(len(each) <= BYTES for each in batches)
    records = [each._replace(timestamp_ms=-1, offset=-1) for batch in batches for each in kernels.decode_records(batch)]
    assert records == [record(each) for each in rows]
    assert [each.first_row for each in found] == [
        sum(each.rows.num_rows for each in found[:number]) for number in range(len(found))
    ]
    for one, next_one in pairwise(found):  # none could have been longer
        assert len(encoded(one, kernels, STAMP, 5)) + len(encoded(next_one, kernels, STAMP, 5)) > BYTES // 2


@pytest.mark.parametrize("kind", [pa.string(), pa.binary(), pa.large_string(), pa.large_binary()], ids=str)
def test_values_of_every_kind_are_the_same_records(kernels: Kernels, kind: pa.DataType) -> None:
    rows = [{"value": value} for value in ("a", "", "ccc")]
    batch = pa.RecordBatch.from_arrays([pa.array([each["value"] for each in rows]).cast(kind)], ["value"])
    (chunk,) = chunks([batch], BYTES)
    encoding = encoded(chunk, kernels, STAMP._replace(record_count=3), 5)
    (info,) = kernels.batch_headers(encoding)
    assert (info.producer_id, info.producer_epoch, info.base_sequence, info.records_count) == (1 << 62, 7, 0, 3)
    assert kernels.decode_values(encoding) == [b"a", b"", b"ccc"]


def test_a_row_that_fits_into_no_batch_is_named_before_anything_that_came_with_it_is_given() -> None:
    rows = [{"value": "a" * size} for size in (200, 200, 100, BYTES, 1)]
    given = chunks(arriving(rows, [2]), BYTES)
    with pytest.raises(RecordTooLarge, match=f"row 3 takes {BYTES + 32} bytes, a batch has room for") as caught:
        list(given)
    assert caught.value.limit_bytes == BYTES - BATCH_HEADER_BYTES


def test_a_header_without_a_key_is_named_by_its_row() -> None:
    rows: list[Row] = [
        {"value": "a"},
        {"value": "b", "headers": [{"key": "x", "value": b""}]},
        {"value": "c", "headers": []},
        {"value": "d", "headers": [{"key": "x", "value": b""}, {"key": None, "value": b""}]},
    ]
    with pytest.raises(UsageError, match="row 3 has a header without a key"):
        list(chunks(arriving(rows, [1]), BYTES))
