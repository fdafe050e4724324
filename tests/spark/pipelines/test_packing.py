"""Parts of what is told of a cluster, packed and taken out again."""

from typing import NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastquorum.spark.pipelines import packing
from fastquorum.spark.pipelines.packing import PACKED, Packing

NUMBERS = pa.schema([pa.field("number", pa.int32(), nullable=False)])
NAMES = pa.schema([("name", pa.string()), ("few", pa.list_(pa.int64()))])


class Result(NamedTuple):
    numbers: pa.Table
    names: pa.Table
    summary: dict[str, int]


PACKING = Packing(Result, {"numbers": NUMBERS, "names": NAMES})
CLUSTERS = st.dictionaries(
    st.none() | st.text(max_size=3),
    st.builds(
        Result,
        st.lists(st.integers(-9, 9), max_size=9).map(lambda rows: pa.table({"number": rows}, schema=NUMBERS)),
        st.lists(st.fixed_dictionaries({"name": st.none() | st.text(max_size=3), "few": st.just([1, 2])})).map(
            lambda rows: pa.Table.from_pylist(rows, NAMES)
        ),
        st.dictionaries(st.text(max_size=3), st.integers()),
    ),
    max_size=4,
)


@given(CLUSTERS, st.integers(1, 4))
def test_what_was_packed_is_what_is_taken_out(clusters: dict[str | None, Result], rows_max: int) -> None:
    whole = pa.concat_tables([PACKED.empty_table(), *(PACKING.packed(*each) for each in clusters.items())])
    assert whole.num_rows == 3 * len(clusters)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "ROWS_MAX", rows_max)
        found = PACKING.unpacked(whole)
        tables = PACKING.tables(found)
    assert found == sorted(clusters.items(), key=lambda item: (item[0] is not None, item[0] or ""))
    assert list(tables) == ["numbers", "names", "summary"]
    assert all(table.schema == PACKING.schema(part) for part, table in tables.items())
    numbers = [(cluster_id, row) for cluster_id, result in found for row in result.numbers["number"].to_pylist()]
    assert [(row["cluster_id"], row["number"]) for row in tables["numbers"].to_pylist()] == numbers
