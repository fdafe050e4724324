"""Quantiles out of few buckets lie where the many lie that they were made of."""

import math
from bisect import bisect_left

from hypothesis import given
from hypothesis import strategies as st

from fastquorum.observe.stages import BOUNDS_US, StageCounts, counted, named
from tests.observe.builders import Times

TIMES = st.lists(st.floats(0.5, 9e6), min_size=1, max_size=200)


def stage(times: list[float]) -> StageCounts:
    return counted({"sync": Times(tuple(times))})[0]


@given(TIMES, st.floats(0.01, 1.0))
def test_a_quantile_lies_in_the_bucket_of_the_true_one(times: list[float], fraction: float) -> None:
    true = sorted(times)[math.ceil(fraction * len(times)) - 1]
    bucket = bisect_left(BOUNDS_US, true)
    below = BOUNDS_US[bucket - 1] if bucket else 0
    assert below <= stage(times).quantile_us(fraction) <= BOUNDS_US[bucket]


@given(TIMES, TIMES)
def test_what_came_since_is_what_was_added(before: list[float], more: list[float]) -> None:
    since = stage(before + more).since(stage(before))
    assert since.buckets == stage(more).buckets
    assert since.count == len(more)


@given(TIMES)
def test_the_slowest_lies_below_its_bound(times: list[float]) -> None:
    slowest = stage(times).slowest_us
    assert max(times) <= slowest
    assert slowest in BOUNDS_US


def test_without_counts_there_is_no_quantile() -> None:
    nothing = named((), "sync")
    assert math.isnan(nothing.quantile_us(0.5))
    assert math.isnan(nothing.slowest_us)


def test_what_is_beyond_the_last_bound_counts_as_the_last_bound() -> None:
    assert stage([5e7]).quantile_us(0.5) == BOUNDS_US[-1]
    assert stage([5e7]).slowest_us == BOUNDS_US[-1]
