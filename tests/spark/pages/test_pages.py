"""Pages of pipelines: the report's figures are on it, in few bytes, and the report itself."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fastquorum.cli.spark import shared
from fastquorum.errors import UsageError
from fastquorum.pages import Card, Page, document, report_of
from fastquorum.pages.chart import Pen
from fastquorum.spark.pages import audit_replicas, demo, timeline
from fastquorum.spark.pages.words import lasted
from tests.cli.conftest import Ran
from tests.pages.reading import Looked, looked_at
from tests.spark.programs import outputs

from .reports import audit, large_audit, large_timeline, real_audit, real_timeline, replica

PAGE_BYTES_MAX = 2_000_000
EVIL = "<script>alert('x')</script>"


def looked(page: Page, report: dict[str, Any]) -> Looked:
    """Small, whole, and with the report in it."""
    drawn = document(page)
    assert len(drawn.encode()) < PAGE_BYTES_MAX
    assert report_of(drawn) == report
    return looked_at(drawn)


def plain(looked: Looked) -> str:
    return re.sub(r"\s+", " ", looked.words)


# --- audit-replicas ---------------------------------------------------------------------------------------------------


def test_the_real_clusters_tail_is_drawn_and_named() -> None:
    report = real_audit()
    seen = looked(audit_replicas.page_of(report), report)
    assert {"node 2, c2: uncommitted tail, 3,836 to 4,447"} <= {
        each.replace("28,538 bytes", "uncommitted tail") for each in seen.titles
    }
    for text in ("28,538 bytes from offset 3,836 on", "committed, 3,836", "with an uncommitted tail", "4,447"):
        assert text in seen.words
    assert report["divergent"] == []


def test_of_500_replicas_the_wrong_ones_come_first_however_little_is_wrong() -> None:
    report = large_audit()
    seen = looked(audit_replicas.page_of(report), report)
    assert "Node 4 of cluster cluster-80 is divergent from offset 999,999 on, 70 bytes: it has" in seen.words
    headings = re.findall(r"(Cluster cluster-\d+)\n", seen.words)
    assert headings == ["Cluster cluster-80", "Cluster cluster-50", "Cluster cluster-1"]
    assert "Not drawn: 97 more clusters; all their replicas hold the same." in seen.words
    assert "400 more rows are not shown here" in seen.words
    assert "node 2, controller-2: 70 bytes, 1,000,000 to 1,000,001" in seen.titles


def test_what_nobody_can_tell_is_drawn_as_such_and_says_why() -> None:
    lost = "its log ends at 1839, and its own snapshot is of all below 3829"
    why = "replicas that have lost records may have held these"
    same = {"committed_end": 3829}
    report = audit(
        [
            replica(1, 1, verdict="undecided", end_offset=3836, offset=3829, bytes=504, why=why, **same),
            replica(1, 2, verdict="divergent", end_offset=1839, offset=1839, bytes=7138, why=lost, **same),
            replica(1, 3, verdict="divergent", end_offset=0, offset=0, why="its log is empty", **same),
        ]
    )
    seen = looked(audit_replicas.page_of(report), report)
    assert f"1 replica cannot be judged: {why}." in seen.words
    assert f"divergent from offset 1,839 on, 7,138 bytes: {lost}" in seen.words
    assert "node 1, controller-1: not known, 3,829 to 3,836" in {
        each.replace("504 bytes", "not known") for each in seen.titles
    }


def test_a_cluster_of_which_nothing_is_left_makes_a_page_too() -> None:
    gone = {"verdict": "undecided", "committed_end": None, "end_offset": 0, "why": "its log is empty"}
    report = audit([replica(1, node, **gone) for node in (1, 2, 3)])
    assert "3 replicas cannot be judged: its log is empty." in looked(audit_replicas.page_of(report), report).words


def test_foreign_names_on_a_page_are_text() -> None:
    odd = replica(1, 2, verdict="divergent", cluster_id=EVIL, directory=f"/x/{EVIL}\udcff", why=EVIL, offset=3, bytes=9)
    report = audit([odd])
    seen = looked(audit_replicas.page_of(report), report)
    assert EVIL in seen.words


def test_nothing_at_all_makes_a_page_too() -> None:
    looked(audit_replicas.page_of(audit([])), audit([]))
    nothing: dict[str, Any] = {"events": [], "clusters": []}
    looked(timeline.page_of(nothing), nothing)


# --- timeline ---------------------------------------------------------------------------------------------------------


def test_a_cluster_that_could_not_be_told_is_a_warning_and_the_others_are_drawn() -> None:
    one = real_timeline()
    untold = [{"cluster_id": f"torn-{nth}", "unchecked": f"no majority shares a record{EVIL}"} for nth in range(12)]
    report = {"events": one["events"], "clusters": [*one["clusters"], *untold]}
    seen = looked(timeline.page_of(report), report)
    assert f"Cluster torn-9 has no timeline: no majority shares a record{EVIL}." in seen.words
    assert "No timeline either: 2 more clusters; the JSON has all." in seen.words
    assert "Who led the quorum" in seen.words
    assert Card("without a timeline", "12", Pen.BAD) in timeline.page_of(report).cards
    nothing: dict[str, Any] = {"events": [], "clusters": untold}
    assert "Cluster torn-0 has no timeline" in looked(timeline.page_of(nothing), nothing).words


def test_the_real_clusters_story_is_drawn() -> None:
    report = real_timeline()
    seen = looked(timeline.page_of(report), report)
    assert seen.tags.count("svg") == 5
    titles = seen.titles
    assert any(each.startswith("controller 2: leads in epoch 3, 2026-11-21 06:35:00.506 to") for each in titles)
    assert any(each.startswith("broker 13: fenced, 2026-11-21 06:34:24.164 to 06:34:32.817") for each in titles)
    assert any(each.startswith("broker 12: in controlled shutdown, 2026-11-21 06:34:38.430") for each in titles)
    most = max(report["clusters"][0]["over_time"]["under_replicated"]["most"])
    assert any(each.endswith(f"under-replicated {most}") for each in titles)
    for text in ("740 partitions, 650 of them at the end", "broker 13 was fenced", "__consumer_offsets-2", "3.93 h"):
        assert text in plain(seen)


def test_a_day_of_a_thousand_brokers_stays_small_and_legible() -> None:
    report = large_timeline()
    seen = looked(timeline.page_of(report), report)
    assert "9,900 more rows are not shown here; the JSON has them." in seen.words
    assert "960 more are not drawn here; the JSON has them." not in seen.words  # the JSON has not
    assert "960 more are not drawn here." in seen.words
    for doubt in ("3 partitions changed before it says what they were", "2 records cannot be read", "by 12 ms at most"):
        assert doubt in plain(seen)


def test_of_many_clusters_the_worst_are_drawn_and_all_are_listed() -> None:
    report = large_timeline(brokers=30, events=300, clusters=50)
    for nth, cluster in enumerate(report["clusters"]):
        cluster["partitions"]["offline_ms"] = nth
    seen = looked(timeline.page_of(report), report)
    assert re.findall(r"Cluster cluster-(\d+)", seen.words)[:2] == ["49", "48"]
    assert seen.tags.count("svg") <= 10 * 7
    assert "Only in the table: 40 more clusters" in seen.words


def test_the_demos_page_has_both() -> None:
    report = {"audit": real_audit(), "timeline": real_timeline(), "seconds": 20.1, "ok": True}
    seen = looked(demo.page_of(report), report)
    for each in ("GREEN", "28,538 bytes from offset 3,836 on", "Who led the quorum", "What brokers were"):
        assert each in seen.words


@pytest.mark.parametrize(
    ("time_ms", "text"),
    [(0, "0 ms"), (850, "850 ms"), (61_000, "1.02 min"), (90_000_000, "1.04 d"), (1e12, "11,574 d")],
)
def test_how_long_something_lasted_is_said_shortly(time_ms: float, text: str) -> None:
    assert lasted(time_ms) == text


# --- the option -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [("audit-replicas", "/nowhere"), ("timeline", "/nowhere"), ("demo",)])
def test_a_file_that_is_there_is_refused_before_anything_is_done(
    words: tuple[str, ...], tmp_path: Path, fastquorum: Callable[..., Ran]
) -> None:
    mine = tmp_path / "page.html"
    mine.write_text("mine")
    ran = fastquorum("spark", *words, "--html", mine)
    assert ran.code == 2
    assert ran.err.splitlines()[-1].endswith(f"{mine} exists already; name another --html, or remove it")
    assert mine.read_text() == "mine"


def test_what_could_not_be_written_is_refused_too(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no directory"):
        shared.check_out(outputs(html=tmp_path / "none" / "page.html"))
    with pytest.raises(UsageError, match="both"):
        shared.check_out(outputs(out=tmp_path / "a.json", html=tmp_path / "a.json"))
    shared.check_out(outputs(out=tmp_path / "new" / "parquet", html=tmp_path / "page.html"))
