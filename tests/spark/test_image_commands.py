"""Pipelines over images, and their commands, on the session that the tests share."""

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet
import pytest

from fastquorum.cli.main import main
from fastquorum.cli.reassignment_plan import read_plan
from fastquorum.spark.image_jobs import placement
from fastquorum.spark.reads import choice
from tests.wire.golden import CLUSTER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ID = "usACA5tBSrKS64DhDt4jig"
EMPTY = "AAAAAAAAAAAAAAAAAAAAEQ"


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real cluster, and its first replica as another cluster."""
    root = tmp_path_factory.mktemp("two")
    shutil.copytree(CLUSTER, root / "one")
    shutil.copytree(CLUSTER / "c1", root / "other")
    path = root / "other" / "meta.properties"
    path.write_text(path.read_text().replace(ID, "another"))
    return root


def told(capsys: pytest.CaptureFixture[str], *words: object) -> Any:
    assert main(["spark", *map(str, words), "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_of_each_cluster_one_directory_is_read(spark: "SparkSession", two: Path) -> None:
    chosen = choice(spark, str(two), of_images=True)
    # Not c2, whose tail nobody else has.
    assert chosen.owners == {str(two / "other"): "another", str(two / "one" / "c1"): ID}
    assert (chosen.tails, chosen.unread) == ({}, {})


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
    assert f"cluster {EMPTY} could not be looked at: none of its logs" in capsys.readouterr().out
    for words in ([whole, "--from", "1800", "--to", "1836"], [str(empty), "--with", str(CLUSTER)]):
        assert main(["spark", "image-diff", *words]) == 1
        assert "not compared: none of its logs has a record to look at" in capsys.readouterr().out


def test_what_every_replica_has_alone_is_in_no_image(
    shared: "SparkSession", tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only the real c2, and a copy of c1 that ends earlier: what the second has is all that two share."""
    shutil.copytree(CLUSTER / "c2", tmp_path / "c2")
    assert main(["spark", "placement", str(tmp_path), "--format", "json"]) == 0
    alone = json.loads(capsys.readouterr().out)["clusters"][0]["end_offset"]
    shutil.copytree(CLUSTER / "c1", tmp_path / "c1")
    assert main(["spark", "placement", str(tmp_path), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["clusters"][0]["end_offset"] < alone


def test_what_changed_is_told_of_each_cluster(
    shared: "SparkSession", two: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "changes.json"
    report = told(capsys, "image-diff", two, "--from", 1800, "--to", 1836, "--out", out)
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
    assert told(capsys, "image-diff", c1, "--with", c2, "--to", 3000) == {"clusters": []}
    (tail,) = told(capsys, "image-diff", c1, "--with", c2)["clusters"]
    assert set(tail["counts"]) == {"broker", "partition"}  # in what c2 alone has
    assert told(capsys, "image-diff", two / "one", "--with", two / "other") == {"clusters": []}
    assert main(["spark", "image-diff", str(two), "--with", str(two), "--from", "1"]) == 2
    assert "one of --from and --with is needed" in capsys.readouterr().err


def test_placement_is_told_of_each_cluster_alone(
    shared: "SparkSession", two: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, plans = tmp_path / "told", tmp_path / "plans"
    # At this offset broker 13 is fenced.
    report = told(capsys, "placement", two, "--at", 1820, "--out", out, "--reassignment-json", plans)
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
    assert main(["spark", "placement", str(two / "one")]) == 0
    assert "0 replicas on brokers that are not active" in capsys.readouterr().out


def test_a_plan_that_cannot_be_written_costs_nobody_the_report(
    shared: "SparkSession", two: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan, out, page = (tmp_path / name for name in ("plan.json", "told.json", "page.html"))
    words = (two, "--at", 1820, "--reassignment-json", plan, "--out", out, "--html", page, "--format", "json")
    assert main(["spark", "placement", *map(str, words)]) == 2
    told = capsys.readouterr()
    assert "plan.json is one file, and 2 clusters have moves; name a directory: without .json" in told.err
    assert json.loads(told.out) == json.loads(out.read_text())
    assert [each["cluster_id"] for each in json.loads(told.out)["clusters"]] == ["another", ID]
    assert page.exists()
    assert not plan.exists()


def test_a_part_of_a_placement_is_a_data_frame(spark: "SparkSession") -> None:
    rows = placement(spark, str(CLUSTER)).orderBy("broker_id").collect()
    assert [(row["cluster_id"], row["broker_id"], row["leaders"]) for row in rows] == [
        (ID, 11, 434),
        (ID, 12, 0),
        (ID, 13, 216),
    ]
    (row,) = placement(spark, str(CLUSTER), "summary").collect()
    assert json.loads(row["summary"])["partitions"] == 650
