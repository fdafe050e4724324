"""The histogram against the package `hdrhistogram`: the same counts, the same percentiles, each reads what the other
writes."""

import datetime
from pathlib import Path

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
from hypothesis import given, settings
from hypothesis import strategies as st

from fastquorum.load.hdr import BUCKETS, DIGITS, HIGHEST, LOWEST, Histogram, Interval, log_lines

VALUES = st.lists(
    st.one_of(st.integers(LOWEST, 5000), st.integers(LOWEST, HIGHEST), st.sampled_from([2047, 2048, 4095, 4096])),
    max_size=200,
)


def ours(values: list[int]) -> Histogram:
    histogram = Histogram()
    histogram.record(np.array(values, np.int64))
    return histogram


def theirs(values: list[int]) -> HdrHistogram:
    histogram = HdrHistogram(LOWEST, HIGHEST, DIGITS)
    for value in values:
        assert histogram.record_value(value)
    return histogram


@pytest.mark.parametrize("seed", range(3))
def test_percentiles_are_the_oracles(seed: int) -> None:
    chance = np.random.default_rng(seed)
    values = np.clip(chance.lognormal(12 + seed, 2, 3000), LOWEST, HIGHEST).astype(np.int64).tolist()
    mine, oracle = ours(values), theirs(values)
    assert mine.total == oracle.total_count
    for percentile in (10, 50, 99, 99.9, 100):
        assert mine.at_percentile(percentile) == oracle.get_value_at_percentile(percentile)
    assert mine.mean == pytest.approx(oracle.get_mean_value())
    assert mine.deviation == pytest.approx(oracle.get_stddev())


@settings(max_examples=20, deadline=None)  # the oracle takes its time
@given(VALUES)
def test_each_reads_what_the_other_writes(values: list[int]) -> None:
    mine, oracle = ours(values), theirs(values)
    read = HdrHistogram.decode(mine.encoded())
    assert read.total_count == len(values)
    assert all(read.get_count_at_value(value) == oracle.get_count_at_value(value) for value in values)
    assert (Histogram.decode(oracle.encode().decode()).counts == mine.counts).all()


@given(VALUES, VALUES)
def test_adding_is_recording_both(one: list[int], other: list[int]) -> None:
    together = ours(one)
    together.add(ours(other))
    assert (together.counts == ours(one + other).counts).all()


def test_what_is_out_of_range_counts_at_the_edge() -> None:
    histogram = ours([0, -5, HIGHEST * 3])
    assert histogram.total == 3
    assert histogram.at_percentile(50) == LOWEST
    assert histogram.max >= HIGHEST


def test_an_empty_one_has_nothing_to_say() -> None:
    histogram = Histogram()
    assert (histogram.total, histogram.max, histogram.mean, histogram.at_percentile(99)) == (0, 0, 0.0, 0)
    assert list(histogram.levels()) == []
    assert Histogram.decode(histogram.encoded()).total == 0


@pytest.mark.parametrize("text", ["", "AAAA", "not base64!", "HISTFAAAAEV42pNpmSzMwMDAxAABz"])
def test_what_is_no_histogram_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        Histogram.decode(text)


def test_a_log_is_read_by_the_oracle(tmp_path: Path) -> None:
    path = tmp_path / "x.hlog"
    intervals = [Interval(0.0, 1.0, ours([1_000_000, 2_000_000])), Interval(1.0, 0.5, ours([3_000_000]))]
    started = datetime.datetime(2026, 11, 1, tzinfo=datetime.UTC)
    path.write_text("".join(line + "\n" for line in log_lines(started, intervals, "a test")))
    reader = HistogramLogReader(str(path), HdrHistogram(LOWEST, HIGHEST, DIGITS))
    first, second = reader.get_next_interval_histogram(), reader.get_next_interval_histogram()
    assert reader.get_next_interval_histogram() is None
    reader.input_file.close()
    assert (first.total_count, second.total_count) == (2, 1)
    assert first.get_start_time_stamp() == started.timestamp() * 1000
    assert second.get_end_time_stamp() == started.timestamp() * 1000 + 1500
    assert second.get_value_at_percentile(50) == ours([3_000_000]).at_percentile(50)


@given(st.lists(st.integers(LOWEST, HIGHEST), min_size=1, max_size=300))
def test_levels_rise_to_the_largest_value_and_are_true(values: list[int]) -> None:
    histogram = ours(values)
    levels = list(histogram.levels())
    assert levels == sorted(levels)
    assert levels[-1] == (histogram.max, 1.0, len(values))
    for value, fraction, count in levels:
        assert count >= fraction * len(values) - 1e-6
        assert histogram.at_percentile(100 * count / len(values)) == value


def test_percentiles_are_printed_as_tools_read_them() -> None:
    lines = list(ours([1_000_000] * 99 + [5_000_000]).percentile_lines())
    assert lines[0].split() == ["Value", "Percentile", "TotalCount", "1/(1-Percentile)"]
    first, last = lines[2].split(), lines[-4].split()
    assert first == ["1.000", "0.000000000000", "99", "1.00"]
    assert last == ["5.001", "1.000000000000", "100"]
    assert lines[-1] == f"#[Buckets = {BUCKETS:12d}, SubBuckets     = {2048:12d}]"
