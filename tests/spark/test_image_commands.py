"""Pipelines over images, and their commands, on the session that the tests share."""

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet
import pytest

from fastquorum.cli.main import main
from fastquorum.cli.topic.reassignment_plan import read_plan
from fastquorum.kernels import load
from fastquorum.spark.engines.image_jobs import placements
from fastquorum.spark.engines.reads import choice
from fastquorum.spark.pipelines.candidates import OfImage
from fastquorum.spark.pipelines.choosing import USER_RECORDS
from fastquorum.spark.pipelines.placement import PACKING
from fastquorum.storage.names import LOG_DIRECTORY, join, segment_name
from fastquorum.wire.records.cluster import NoOpRecord
from fastquorum.wire.records.metadata import encode_metadata_record
from tests.wire.golden import CLUSTER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ID = "usACA5tBSrKS64DhDt4jig"
EMPTY = "AAAAAAAAAAAAAAAAAAAAEQ"
END = 3836
"""Committed end of the real cluster's log, where the tail of c2 begins."""


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real cluster, and its first replica as another cluster."""
    root = tmp_path_factory.mktemp("two")
    shutil.copytree(CLUSTER, root / "one")
    shutil.copytree(CLUSTER / "c1", root / "other")
    path = root / "other" / "meta.properties"
    path.write_text(path.read_text().replace(ID, "another"))
    return root


def report_of(capsys: pytest.CaptureFixture[str], *words: object) -> Any:
    assert main(["spark", *map(str, words), "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_of_each_cluster_one_directory_is_read(spark: "SparkSession", two: Path) -> None:
    chosen = choice(spark, str(two), OfImage())
    # Not c2, whose tail nobody else has.
    assert chosen.owners == {str(two / "other"): "another", str(two / "one" / "c1"): ID}
    assert (chosen.ends, chosen.unread) == ({"another": END, ID: END}, {})


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cluster of two directories without a record."""
    root = tmp_path_factory.mktemp("empty")
    for node_id in (1, 2):
        directory = root / str(node_id)
        words = ("--data", directory, "--node-id", node_id, "--cluster-id", EMPTY, "--log", "metadata")
        assert main(["format", *map(str, words), "--voters", "1@h1:9093,2@h2:9093"]) == 0
    return root


def test_a_cluster_without_a_record_is_told_of(
    shared: "SparkSession", empty: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, page = f"{empty}/*,{CLUSTER}/*", tmp_path / "page.html"
    capsys.readouterr()
    assert main(["spark", "placement", whole, "--format", "json", "--html", str(page)]) == 1
    first, second = json.loads(capsys.readouterr().out)["clusters"]
    assert first == {"cluster_id": EMPTY, "unchecked": "none of its logs has a record to look at"}
    assert second["cluster_id"] == ID
    assert f"{EMPTY} could not be looked at: none of its logs" in page.read_text()
    assert main(["spark", "placement", str(empty)]) == 1
    assert f"cluster {EMPTY} could not be checked: none of its logs" in capsys.readouterr().out
    for words in ([whole, "--from", "1800", "--to", "1836"], [str(empty), "--with", str(CLUSTER)]):
        assert main(["spark", "image-diff", *words]) == 1
        assert "not compared: none of its logs has a record to look at" in capsys.readouterr().out


@pytest.fixture
def replicas(tmp_path: Path) -> Path:
    """The real cluster's three directories; a majority of them shares what is below END."""
    root = tmp_path / "replicas"
    shutil.copytree(CLUSTER, root)
    return root


def log_of(directory: Path) -> Path:
    return directory / join(LOG_DIRECTORY, segment_name(0))


def test_what_one_replica_has_alone_is_in_no_image(
    shared: "SparkSession", replicas: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """c2's tail, whole and with a bit flipped, behind a log that is read."""
    capsys.readouterr()
    (alone,) = report_of(capsys, "placement", replicas / "c2")["clusters"]
    assert alone["end_offset"] == 4447
    tail = bytearray(log_of(replicas / "c2").read_bytes()[log_of(replicas / "c1").stat().st_size :])
    for flipped in (False, True):
        tail[100] ^= flipped
        shutil.copy(CLUSTER / "c1" / join(LOG_DIRECTORY, segment_name(0)), log_of(replicas / "c1"))
        with log_of(replicas / "c1").open("ab") as file:
            file.write(tail)
        for name in ("c1,{0}/c3", "c2,{0}/c3" if not flipped else "c1,{0}/c2,{0}/c3"):
            (cluster,) = report_of(capsys, "placement", f"{replicas}/{name.format(replicas)}")["clusters"]
            assert (cluster["end_offset"], cluster["errors"]) == (END, [])
    for words in (("--from", 1800), ("--from", 1800, "--to", END)):
        report = report_of(capsys, "image-diff", f"{replicas}/c1,{replicas}/c3", *words)["clusters"]
        assert [(each["to_offset"], each["errors"]) for each in report] == [(END, [])]
    assert main(["spark", "placement", f"{replicas}/c1,{replicas}/c3", "--at", str(END + 1)]) == 1
    assert f"offset {END + 1} is not committed: what is ends at offset {END}" in capsys.readouterr().out


def test_what_is_appended_after_the_choice_is_in_no_image(spark: "SparkSession", replicas: Path) -> None:
    packed = placements(spark, str(replicas))
    later = load("native").encode_values(
        [encode_metadata_record(NoOpRecord(), 0)], base_offset=END, leader_epoch=9, timestamp_ms=1
    )
    for name in ("c1", "c3"):
        with log_of(replicas / name).open("ab") as file:
            file.write(later)
    ((_, found),) = PACKING.unpacked(packed.toArrow())
    assert found.summary["end_offset"] == END


def test_empty_replicas_make_no_majority_and_user_logs_are_no_clusters(
    shared: "SparkSession", replicas: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("c1", "c3"):
        shutil.rmtree(replicas / name / LOG_DIRECTORY)
        (replicas / name / LOG_DIRECTORY).mkdir()
    words = ("--data", tmp_path / "user", "--node-id", 1, "--cluster-id", EMPTY, "--voters", "1@h1:9093")
    assert main(["format", *map(str, words)]) == 0
    capsys.readouterr()
    clusters = report_of(capsys, "placement", f"{replicas},{tmp_path / 'user'}")["clusters"]
    of_users, cluster = sorted(clusters, key=lambda each: each["cluster_id"] == ID)
    assert (of_users["cluster_id"], of_users["unchecked"]) == (EMPTY, USER_RECORDS)
    assert main(["report", "placement", str(tmp_path / "user")]) == 1
    assert USER_RECORDS in capsys.readouterr().out
    assert (cluster["cluster_id"], cluster["end_offset"]) == (ID, 3829), "its newest snapshot needs no majority"
    for each in (replicas / "c2" / LOG_DIRECTORY).glob("*.checkpoint"):
        each.unlink()
    assert main(["spark", "placement", str(replicas)]) == 1
    assert "could not be checked: of 3 replicas of cluster" in capsys.readouterr().out


def test_what_changed_is_told_of_each_cluster(
    shared: "SparkSession", two: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "changes.json"
    report = report_of(capsys, "image-diff", two, "--from", 1800, "--to", 1836, "--out", out)
    assert json.loads(out.read_text()) == report
    words = [[change["words"] for change in cluster["changes"]] for cluster in report["clusters"]]
    assert len(words) == 2
    assert words[0] == words[1]
    broker = "broker 13: epoch 41 -> 1827"
    assert any(each.startswith(broker) for each in words[0])
    assert main(["spark", "image-diff", str(two), "--from", "9999"]) == 1
    assert "not compared: " in capsys.readouterr().out


def test_replicas_and_clusters_are_compared(
    shared: "SparkSession", two: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    c1, c2 = two / "one" / "c1", two / "one" / "c2"
    (same,) = report_of(capsys, "image-diff", c1, "--with", c2, "--to", 3000)["clusters"]
    assert (same["total"], same["changes"]) == (0, [])
    assert [each.partition(" have ")[0] for each in same["unproven"]] == [
        "2 of 3 voters (2, 3)",
        "2 of 3 voters (1, 3)",
    ]
    (tail,) = report_of(capsys, "image-diff", c1, "--with", c2)["clusters"]
    assert set(tail["counts"]) == {"broker", "partition"}  # in what c2 alone has
    (alone,) = report_of(capsys, "image-diff", two / "one", "--with", two / "other")["clusters"]
    assert (alone["total"], alone["changes"]) == (0, [])
    assert len(alone["unproven"]) == 1  # of the other
    assert main(["spark", "image-diff", str(two), "--with", str(two), "--from", "1"]) == 2
    assert "one of --from and --with is needed" in capsys.readouterr().err


def test_placement_is_told_of_each_cluster_alone(
    shared: "SparkSession", two: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, plans = tmp_path / "told", tmp_path / "plans"
    # At this offset broker 13 is fenced.
    report = report_of(capsys, "placement", two, "--at", 1820, "--out", out, "--reassignment-json", plans)
    assert [(each["cluster_id"], each["end_offset"]) for each in report["clusters"]] == [("another", 1820), (ID, 1820)]
    assert report["clusters"][0]["now"] == report["clusters"][1]["now"]
    assert report["clusters"][0]["now"]["replicas_on_inactive"] == 610
    assert report["clusters"][0]["plan"]["stuck"] == 530  # there is no fourth broker
    assert sorted(each.name for each in plans.iterdir()) == [f"{name}.json" for name in ("another", ID)]
    plan = read_plan(str(plans / f"{ID}.json"))
    planned = [(each.topic, each.partition, list(each.replicas)) for each in plan]
    moves = report["clusters"][1]["moves"]
    assert planned == sorted((each["topic"], each["partition"], each["planned"]) for each in moves)
    assert sum(each["added"] for each in moves) == 80
    tables = {each.name: pyarrow.parquet.read_table(each) for each in out.iterdir()}
    assert {name: each.num_rows for name, each in tables.items()} == {
        name: sum(len(each[name]) for each in report["clusters"]) for name in ("brokers", "losses", "moves")
    } | {"summary": 2}
    nothing = tmp_path / "nothing.json"
    assert main(["spark", "placement", str(two / "one"), "--no-load", "--reassignment-json", str(nothing)]) == 0
    output = capsys.readouterr()
    assert "0 replicas on brokers that are not active" in output.out
    assert output.err.endswith(f"{nothing} is not written: there is nothing to move\n")
    assert not nothing.exists()


def test_a_plan_that_cannot_be_written_costs_nobody_the_report(
    shared: "SparkSession", two: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan, out, page = (tmp_path / name for name in ("plan.json", "told.json", "page.html"))
    words = (two, "--at", 1820, "--reassignment-json", plan, "--out", out, "--html", page, "--format", "json")
    assert main(["spark", "placement", *map(str, words)]) == 2
    output = capsys.readouterr()
    assert "plan.json is one file, and 2 clusters have moves; name a directory: without .json" in output.err
    assert json.loads(output.out) == json.loads(out.read_text())
    assert [each["cluster_id"] for each in json.loads(output.out)["clusters"]] == ["another", ID]
    assert page.exists()
    assert not plan.exists()


def test_a_placement_is_packed_with_all_its_parts(spark: "SparkSession") -> None:
    ((cluster_id, found),) = PACKING.unpacked(placements(spark, str(CLUSTER)).toArrow())
    rows = found.brokers.sort_by("broker_id").to_pylist()
    assert cluster_id == ID
    assert [(row["broker_id"], row["leaders"]) for row in rows] == [(11, 434), (12, 0), (13, 216)]
    assert found.summary["partitions"] == 650
