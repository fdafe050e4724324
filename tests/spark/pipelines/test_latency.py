"""Percentiles of many runs, merged exactly; and what few runs can say of two sides, and cannot."""

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastquorum.errors import UsageError
from fastquorum.kernels.stages import BUCKETS, StageHistogram, TracedGroup, bucket_of
from fastquorum.load.hdr import Histogram, Interval
from fastquorum.load.reports import history
from fastquorum.load.reports.files import write_hdr
from fastquorum.spark.pipelines.latency.comparing import LatencyVerdict, compared
from fastquorum.spark.pipelines.latency.files import files_at
from fastquorum.spark.pipelines.latency.merging import MERGED, merged
from fastquorum.spark.pipelines.latency.reading import ROWS, rows_of, without_doubles
from fastquorum.spark.pipelines.latency.report import as_report
from fastquorum.spark.pipelines.latency.significance import bootstrap_ratio, rank_p, smallest_p
from fastquorum.trace import chrome_trace
from tests.load.results import result, sweep

Values = list[int]


def run(values: Values, stages: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A result whose appends took so many nanoseconds each."""
    histogram = Histogram()
    histogram.record(np.array(values, np.int64))
    return result(histogram=histogram.encoded(), stages=stages or {}, **more)


def rows(*runs: dict[str, Any], name: str = "r") -> pa.Table:
    return pa.concat_tables([rows_of(f"/d/{name}{at}.json", json.dumps(each)) for at, each in enumerate(runs)])


def stage(values: Values) -> dict[str, Any]:
    counts = [0] * BUCKETS
    for each in values:
        counts[bucket_of(each)] += 1
    filled = [[bucket, count] for bucket, count in enumerate(counts) if count]
    return {"count": len(values), "sum_us": sum(values) / 1000, "buckets": filled}


def only(table: pa.Table, what: str, **more: Any) -> dict[str, Any]:
    (row,) = [each for each in table.to_pylist() if each["what"] == what and more.items() <= each.items()]
    return row


# --- merging ----------------------------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.integers(1, 10**10), max_size=30), min_size=1, max_size=6))
def test_many_runs_merged_are_one_run_of_them_all(runs: list[Values]) -> None:
    together = Histogram()
    together.record(np.array(list(itertools.chain.from_iterable(runs)), np.int64))
    row = only(merged(rows(*map(run, runs)), ["workload"]), "commit")
    assert (row["runs"], row["count"]) == (len(runs), together.total)
    if together.total:
        figures = {name.removesuffix("_us"): row[name] for name in ("p50_us", "p90_us", "p99_us", "p999_us", "max_us")}
        assert figures == together.as_us()
        assert row["mean_us"] == pytest.approx(together.mean / 1000)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.integers(1, 10**10), min_size=1, max_size=20), min_size=1, max_size=4))
def test_stages_are_merged_as_their_own_histograms_add(runs: list[Values]) -> None:
    results = [run([1], {"1": {"append_written": stage(values), "append_told": stage([5])}}) for values in runs]
    row = only(merged(rows(*results), []), "append_written")
    whole = StageHistogram(0, 0.0, (0,) * BUCKETS)
    for values in runs:
        counts = [0] * BUCKETS
        for each in values:
            counts[bucket_of(each)] += 1
        whole = whole.plus(StageHistogram(len(values), sum(values) / 1000, tuple(counts)))
    assert (row["role"], row["count"], row["layout"]) == ("leader", whole.count, "stage")
    assert [row["p50_us"], row["p99_us"]] == [whole.quantile_us(0.5), whole.quantile_us(0.99)]
    assert row["mean_us"] == pytest.approx(whole.mean_us)


def test_an_older_result_has_a_mean_of_its_stages_and_no_percentiles() -> None:
    old = {"count": 4, "sum_us": 40.0, "mean_us": 10.0, "p50_us": 9.0, "p99_us": 12.0}
    found = merged(rows(run([1], {"1": {"sync": old}}), run([1], {"1": {"sync": stage([20_000] * 4)}})), [])
    row = only(found, "sync")
    assert (row["count"], row["mean_us"], row["p99_us"]) == (8, 15.0, None)
    assert "without the buckets" in row["note"]
    assert only(found, "commit")["p99_us"] is not None


def test_groups_are_told_apart_and_steps_of_a_sweep_are_runs() -> None:
    found = merged(rows(sweep((1000.0, 2000.0)), result(1000.0)), ["load"])
    assert {row["load"]: row["runs"] for row in found.to_pylist()} == {"1000/s": 2, "2000/s": 1}
    assert merged(rows(sweep()), ["file"])["runs"].to_pylist() == [3]
    assert merged(ROWS.empty_table(), ["file"]).equals(MERGED.empty_table())


def test_a_run_counts_once_though_its_histogram_log_lies_beside_it(tmp_path: Path) -> None:
    one, more = Histogram(), Histogram()
    one.record(np.array([1_000_000, 3_000_000]))
    more.record(np.array([2_000_000]))
    whole = Histogram()
    whole.add(one)
    whole.add(more)
    found = result(histogram=whole.encoded())
    history.save(str(tmp_path), found)
    write_hdr(str(tmp_path / "run"), found, [Interval(0.0, 1.0, one), Interval(1.0, 1.0, more)])
    files = files_at(str(tmp_path)).found
    assert [Path(each).suffix for each in files] == [".json", ".hlog"]  # percentiles alone cannot be merged
    both = without_doubles(pa.concat_tables([rows_of(each, Path(each).read_text()) for each in files]))
    (double,) = [row["file"] for row in both.to_pylist() if row["double_of"]]
    assert double.endswith(".hlog")
    assert only(merged(both, []), "commit")["count"] == 3
    # A copy too, with all that it says of stages.
    copied = rows(*[run([5, 7], {"1": {"sync": stage([3])}})] * 2)
    assert without_doubles(copied)["double_of"].to_pylist() == [None, None, "/d/r0.json", "/d/r0.json"]
    # Alone it is a run as any other.
    alone = merged(rows_of(double, Path(double).read_text()), ["driver", "workload"])
    assert (only(alone, "commit")["count"], only(alone, "commit")["driver"]) == (3, "embedded")


def test_a_log_of_another_tool_is_read(tmp_path: Path) -> None:
    from hdrh.histogram import HdrHistogram
    from hdrh.log import HistogramLogWriter

    theirs = HdrHistogram(1, 60_000_000_000, 3)
    for value in (1000, 2_000_000, 30_000_000):
        theirs.record_value(value)
    path = tmp_path / "theirs.hdr"
    with path.open("w") as file:
        writer = HistogramLogWriter(file)
        writer.output_legend()
        theirs.set_start_time_stamp(1000)
        theirs.set_end_time_stamp(2000)
        theirs.set_tag("t")
        writer.output_interval_histogram(theirs)
    row = only(merged(rows_of(str(path), path.read_text()), []), "commit")
    assert (row["count"], row["p50_us"]) == (3, theirs.get_value_at_percentile(50) / 1000)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{}", "neither a result of `fastquorum load` nor a trace"),
        ("{", "Expecting property name"),
        ("#[nothing]\n", "it holds no histogram"),
        ("1,2,3,HISTFAAA\n", "line 1: this is not a histogram"),
        ("a,b\n", "line 1 is not of an HdrHistogram log"),
        (json.dumps({"format": "fastquorum.load/1"}), "a result that lacks 'plan'"),
        (json.dumps({"traceEvents": [{"ph": "X"}]}), "a trace with an event that lacks 'pid'"),
    ],
)
def test_what_holds_no_latencies_is_told_and_leaves_the_rest_alone(text: str, why: str) -> None:
    bad = rows_of("/d/bad", text)
    (error,) = bad["error"].to_pylist()
    assert error.startswith("/d/bad: ")
    assert why in error
    assert only(merged(pa.concat_tables([bad, rows(run([7]))]), []), "commit")["count"] == 1


@pytest.mark.parametrize(
    "one",
    [run([7], {"1": {"flush": {**stage([7]), "count": 10**30}}}), run([7]) | {"started": 2026}],
    ids=["too large", "no text"],
)
def test_a_value_that_no_column_has_room_for_is_told_and_leaves_the_rest_alone(one: dict[str, Any]) -> None:
    bad = rows_of("/d/bad", json.dumps(one))
    assert [each.startswith("/d/bad: ") for each in bad["error"].to_pylist()] == [True]
    assert only(merged(pa.concat_tables([bad, rows(run([7]))]), []), "commit")["count"] == 1


def test_a_path_between_commas_is_not_the_root_of_all(tmp_path: Path) -> None:
    for text in ("", f"{tmp_path},", f"{tmp_path},,{tmp_path}"):
        with pytest.raises(UsageError, match="names no path between two commas"):
            files_at(text)


def test_where_nothing_is_the_error_says_what_is_looked_for(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there are no latencies at .*; name a result of"):
        files_at(str(tmp_path))
    (tmp_path / "a").write_text("{}")
    assert files_at(str(tmp_path / "a")).found == [str(tmp_path / "a")]


# --- traces -----------------------------------------------------------------------------------------------------------


def traced(base: int, begin: int, *, is_leader: bool, committed: int = 9_000) -> TracedGroup:
    times = [begin + each for each in (1_000, 2_000, 3_000, 6_000, 5_000 if is_leader else 0)]
    return TracedGroup(base, base + 1, 1, is_leader, begin, *times, begin + committed if committed else 0, 0)


def test_a_trace_tells_of_batches_and_their_stages_by_role() -> None:
    nodes = {
        1: [traced(0, 10_000, is_leader=True), traced(1, 12_500, is_leader=True, committed=0)],
        2: [traced(0, 11_000, is_leader=False)],
    }
    found = merged(rows_of("/d/trace.json", json.dumps(chrome_trace(nodes))), [])
    assert only(found, "traced batch")["count"] == 1  # the other was never committed
    assert only(found, "traced batch")["p50_us"] == pytest.approx(9, rel=0.001)
    assert only(found, "until written", role="leader")["count"] == 2
    assert only(found, "until written", role="follower")["mean_us"] == pytest.approx(1)
    assert only(found, "until committed", role="leader")["p50_us"] == pytest.approx(3, rel=0.001)
    assert only(found, "traced sync")["count"] == 2  # one of each node: a trace shows none that overlap


# --- comparing --------------------------------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=5), st.lists(st.integers(0, 5), min_size=1, max_size=5))
def test_the_rank_test_counts_every_way_to_deal_the_runs_out(before: Values, after: Values) -> None:
    """The slow way: each deal, and how far its rank sum is from the middle."""
    values = before + after
    ranks = [sum(other < each for other in values) + (values.count(each) + 1) / 2 for each in values]
    middle = len(before) * (len(values) + 1) / 2
    distance = abs(sum(ranks[: len(before)]) - middle)
    deals = [sum(deal) for deal in itertools.combinations(ranks, len(before))]
    expected = sum(abs(each - middle) >= distance - 1e-9 for each in deals) / len(deals)
    assert rank_p(np.array(before, float), np.array(after, float)) == pytest.approx(min(expected, 1.0))


def test_many_runs_are_tested_by_the_normal_approximation() -> None:
    chance = np.random.default_rng(3)
    same, other = chance.normal(10, 1, (2, 100))
    assert rank_p(same, other + 1) < 1e-6
    assert rank_p(same, same) > 0.99
    few = rank_p(same[:60], other[:60] + 0.2)
    assert rank_p(same[:61], other[:60] + 0.2) == pytest.approx(few, abs=0.1)


def test_what_so_many_runs_can_say_at_all() -> None:
    assert smallest_p(3, 3) == pytest.approx(0.1)
    assert smallest_p(4, 4) == pytest.approx(2 / math.comb(8, 4))
    assert smallest_p(0, 9) == 1.0


def spread(level: int, runs: int) -> list[dict[str, Any]]:
    """Runs whose percentiles differ a little from one another."""
    return [run([level * (100 + at) + nth * level for nth in range(200)]) for at in range(runs)]


def verdicts(before: int, after: int, runs: int, **more: Any) -> dict[str, str]:
    found = compared(rows(*spread(before, runs), name="b"), rows(*spread(after, runs), name="a"), ["load"], **more)
    return {row["percentile"]: row["verdict"] for row in found.to_pylist()}


def test_slower_runs_are_called_so_only_if_there_are_enough_of_them() -> None:
    assert set(verdicts(1000, 2000, 3).values()) == {LatencyVerdict.FEW}
    assert verdicts(1000, 2000, 5) == dict.fromkeys(("p50", "p99", "p999"), LatencyVerdict.SLOWER)
    assert verdicts(2000, 1000, 5)["p99"] == LatencyVerdict.FASTER
    assert set(verdicts(1000, 1000, 5).values()) == {LatencyVerdict.SAME}
    assert set(verdicts(1000, 2000, 5, threshold=2.5).values()) == {LatencyVerdict.SAME}


def test_the_ratio_is_of_all_runs_merged_and_lies_in_its_interval() -> None:
    found = compared(rows(*spread(1000, 5), name="b"), rows(*spread(2000, 6), name="a"), [])
    row = found.to_pylist()[0]
    assert (row["runs_before"], row["runs_after"], row["count_after"]) == (5, 6, 1200)
    assert row["ratio"] == row["after_us"] / row["before_us"]
    assert row["low"] <= row["ratio"] <= row["high"]
    assert row["ratio"] == pytest.approx(2, rel=0.02)
    report = as_report(merged(rows(*spread(2000, 6)), []), [], compared=found)
    assert (len(report["slower"]), report["tests"], report["expected_by_chance"]) == (3, 3, 0.15)
    json.dumps(report)


def test_what_only_one_side_has_is_told() -> None:
    found = compared(rows(result(1000.0)), rows(result(2000.0)), ["load"])
    assert [row["verdict"] for row in found.to_pylist()] == [LatencyVerdict.ONE_SIDE] * 2


def test_percentiles_without_histograms_are_not_compared() -> None:
    old = {"1": {"sync": {"count": 4, "sum_us": 40.0, "p99_us": 12.0}}}
    found = compared(rows(run([1], old)), rows(run([1], {"1": {"sync": stage([1])}})), []).to_pylist()
    assert [row["verdict"] for row in found if row["what"] == "sync"] == [LatencyVerdict.NO_HISTOGRAM]


def test_one_run_has_no_interval() -> None:
    counts = np.array([[1, 2]])
    assert bootstrap_ratio(counts, counts, np.array([1.0, 2.0]), 0.5) is None


def test_a_run_of_three_nodes_is_one_run() -> None:
    nodes = {str(node): {"sync": stage([1000 * node])} for node in (1, 2, 3)}
    both = [rows(*[run([5], nodes)] * 5, name=name) for name in "ba"]
    (row,) = [
        each for each in compared(*both, []).to_pylist() if each["what"] == "sync" and each["percentile"] == "p50"
    ]
    assert (row["runs_before"], row["count_before"], row["verdict"]) == (5, 15, LatencyVerdict.SAME)
