"""Pages of what is wrong, would go wrong, or changed: the figures are there, the worst first, in few bytes."""

import pytest

from fastquorum.spark.pages import audit_invariants, image_diff, placement

from . import findings
from .test_pages import looked, plain

VISIBLE = "orders <&> \\u202ereturns"


# --- placement --------------------------------------------------------------------------------------------------------


def test_the_real_clusters_leaders_lie_unevenly() -> None:
    report = findings.real_placement()
    seen = looked(placement.page_of(report), report)
    assert {"11 (rack11): leads: 434", "12 (rack12): follows: 610"} <= set(seen.titles)
    assert "No single loss would take a partition offline" in seen.words
    assert "Replicas of each broker, after the plan" in seen.words
    assert "610, leads 217" in seen.words  # after it


def test_a_thousand_brokers_are_drawn_as_a_curve_and_the_fullest_by_name() -> None:
    report = findings.large_placement()
    (cluster,) = report["clusters"]
    seen = looked(placement.page_of(report), report)
    fullest = max(cluster["brokers"], key=lambda each: each["replicas"])
    assert "Balance over brokers" in seen.words
    assert f"{fullest['replicas']:,}, leads {fullest['leaders']:,}" in seen.words
    worst = cluster["losses"][0]
    assert f"{worst['offline']:,} offline, {worst['under_min_isr']:,} under min ISR" in seen.words
    left_out = cluster["plan"]["partitions"] - 100
    assert f"{left_out:,} more rows are not shown here; --out has them." in seen.words
    assert VISIBLE in seen.words


# --- audit-invariants -------------------------------------------------------------------------------------------------


def test_every_broken_promise_is_counted_and_told() -> None:
    report = findings.invariants(30)
    seen = looked(audit_invariants.page_of(report), report)
    assert "partition-epoch-jump: 20" in seen.titles
    assert "fenced-leads: epoch 1, 7 to 7" in seen.titles
    for text in ("what fenced-leads breaks", f"{VISIBLE}-29", "epoch 29; before, since offset 1: epoch 2", "1, 2, -"):
        assert text in plain(seen)
    assert "Notes: what breaks no promise" in seen.words


def test_ten_thousand_of_many_clusters_stay_small() -> None:
    report = findings.invariants(200, clusters=50)
    seen = looked(audit_invariants.page_of(report), report)
    assert "9,900 more rows are not shown here; the JSON has them." in seen.words
    assert "Broken promises, by cluster" in seen.words


def test_where_every_promise_is_kept_the_page_says_so() -> None:
    report = findings.invariants(0)
    assert "Every promise that could be checked is kept." in looked(audit_invariants.page_of(report), report).words


# --- image-diff -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "clusters"), [(12, 1), (5000, 1), (300, 20)])
def test_what_changed_is_counted_by_kind_and_told(count: int, clusters: int) -> None:
    report = findings.image_diff(count, clusters)
    seen = looked(image_diff.page_of(report), report)
    assert f"From offset 10 to 99: {count:,} things differ." in plain(seen)
    counts = report["clusters"][0]["counts"]["topic"]
    assert f"topic: created: {counts['created']}" in seen.titles
    assert f"{VISIBLE}-0 is another" in seen.words
    assert "not compared: bytes are damaged" in seen.words


def test_where_nothing_differs_the_page_says_so() -> None:
    nothing = {"clusters": []}
    assert "Nothing differs." in looked(image_diff.page_of(nothing), nothing).words
