"""Pages over time and over runs: what was unusual and when, which percentile became slower."""

import pytest

from fastquorum.spark.pages import anomalies, latency, sim_sweep

from . import runs
from .test_pages import looked, plain

# --- anomalies --------------------------------------------------------------------------------------------------------


def test_what_was_unusual_is_drawn_over_time_and_told() -> None:
    report = runs.anomalies(10)
    seen = looked(anomalies.page_of(report), report)
    assert any(
        each.startswith("broker 1: flapping-broker, 2026-09-21 14:23:20.000 to 14:28:20") for each in seen.titles
    )
    assert f"{runs.TOPIC}-2 and 2 more" in seen.words
    assert "13, usually 0.5; 6 is too much" in seen.words
    assert "21 times, where 6 are too many" in seen.words
    assert "Cluster silent could not be looked at: no majority shares a record" in seen.words
    assert "2 records are missing from this log, damaged, or of an unknown type" in seen.words


def test_thousands_of_findings_stay_small() -> None:
    report = runs.anomalies(300, clusters=40)
    seen = looked(anomalies.page_of(report), report)
    assert seen.tags.count("svg") == 1 + 2 * 10
    assert "280 more rows are not shown here" in plain(seen)


def test_where_nothing_is_unusual_the_page_says_so() -> None:
    report = runs.anomalies(0)
    seen = looked(anomalies.page_of(report), report)
    assert "Nothing is unusual." in seen.words
    assert "3 of 6, 3 of 6" in seen.words  # what was looked at


# --- latency ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loads", [1, 30])
def test_slower_runs_stand_out_and_say_how_sure_that_is(loads: int) -> None:
    report = runs.latency(loads, slower=True)
    assert report["slower"]
    seen = looked(latency.page_of(report), report)
    worst = max(report["slower"], key=lambda row: row["ratio"])
    assert f"+{(worst['ratio'] - 1) * 100:.1f} % ({worst['low']:.3f} to {worst['high']:.3f})" in seen.words
    assert f"{report['latencies'][0]['p99_us']:,.1f}" in seen.words
    assert f"{len(report['slower'])} slower and 0 faster" in plain(seen)
    assert "Left out: a.json: it is no result" in seen.words
    assert ("the 6 groups of 30 with the longest p99" in seen.words) is (loads == 30)


def test_what_is_only_on_one_side_or_no_different_is_told_as_that() -> None:
    report = runs.latency(2)
    seen = looked(latency.page_of(report), report)
    assert "on one side only" in seen.words
    assert report["slower"] == []


def test_runs_that_nothing_is_compared_with_have_their_percentiles() -> None:
    report = runs.latency(3) | {"comparison": None, "slower": [], "faster": []}
    seen = looked(latency.page_of(report), report)
    assert "Latency by percentile" in seen.words
    assert "What became slower" not in seen.words


# --- sim-sweep --------------------------------------------------------------------------------------------------------


def test_failed_seeds_are_told_with_the_command_that_shows_them_again() -> None:
    report = runs.sim_sweep(1000, 500)
    seen = looked(sim_sweep.page_of(report), report)
    for text in ("fastquorum sim run --seed 9", "fastquorum sim run --nodes 3", runs.EVIL, "S1 <&>"):
        assert text in seen.words
    assert "400 more rows are not shown here; the JSON has them." in seen.words
    assert "kill: 3,000" in seen.titles
    assert "In 500 seeds a promise was broken." in seen.words


def test_a_sweep_in_which_nothing_failed_says_so() -> None:
    report = runs.sim_sweep(3, 0)
    assert "Every promise was kept in every seed." in looked(sim_sweep.page_of(report), report).words
