"""The committed part of an answer: never more than it says is committed, however a deposed leader answers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastquorum.client.committed_log import committed_part
from fastquorum.errors import CorruptionError
from fastquorum.kernels import load
from tests.spark.tables.directories import batch


@given(
    counts=st.lists(st.integers(1, 4), max_size=8),
    high_watermark=st.integers(-1, 30),
    wanted=st.tuples(st.integers(0, 30), st.integers(0, 30)),
    cut=st.integers(0, 200),
    kernels=st.sampled_from(["native", "pure"]),
)
def test_it_is_whole_batches_of_what_is_wanted_below_the_high_watermark(
    counts: list[int], high_watermark: int, wanted: tuple[int, int], cut: int, kernels: str
) -> None:
    offset, end = wanted
    data, expected, position = b"", b"", 0
    size = sum(len(batch(0, count)) for count in counts) - cut
    for count in counts:
        each = batch(position, count)
        data += each
        is_whole = len(data) <= size
        if is_whole and position + count <= high_watermark and offset < position + count and position < end:
            expected += each
        position += count
    assert committed_part(load(kernels), data[: max(size, 0)], high_watermark, offset, end) == expected


def test_a_checksum_that_is_wrong_is_said_once_nothing_good_precedes_it() -> None:
    bad = batch(2, 2)[:-1] + b"?"
    data = batch(0, 2) + bad + batch(4, 2)
    assert committed_part(load("native"), data, 6, 0, 6) == batch(0, 2)
    with pytest.raises(CorruptionError, match="crc"):
        committed_part(load("native"), data, 6, 2, 6)
