"""The pipelines as Spark runs them: on several clusters at once, with the same result as without it."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from fastquorum.cli.main import main
from fastquorum.cli.spark import anomalies as spark_anomalies
from fastquorum.cli.spark import audit_invariants as spark_audit_invariants
from fastquorum.pages import report_of
from fastquorum.spark.engines import jobs
from fastquorum.spark.engines.local_jobs import LocalEngine
from fastquorum.spark.engines.spark_engine import SparkEngine
from fastquorum.spark.pipelines import audit_replicas as auditing
from fastquorum.spark.pipelines import image_diff as differing
from fastquorum.spark.pipelines import placement as placing
from fastquorum.spark.pipelines import timeline as telling
from fastquorum.spark.pipelines.anomalies import findings as unusual
from fastquorum.spark.pipelines.audit_replicas import audit_cluster
from fastquorum.spark.pipelines.invariants import findings
from fastquorum.spark.pipelines.latency import report
from fastquorum.storage.names import LOG_DIRECTORY, segment_name
from fastquorum.wire.records.cluster import ConfigRecord
from tests.spark.damage import change as overwrite
from tests.spark.pipelines.invariant_logs import Log, change, change_of
from tests.spark.pipelines.test_directory_ids import END, LOG, NEW_ID, formatted, know_committed
from tests.spark.pipelines.test_latency import spread
from tests.spark.replicas import batches_at, known_at
from tests.wire.golden import CLUSTER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RUN_S = 240
ID = "usACA5tBSrKS64DhDt4jig"


@pytest.fixture
def clusters(tmp_path: Path) -> Path:
    """A real one without a fault; one of which all replicas have an ISR without its leader, and one a flipped bit, that
    has lived through a storm; one log that begins with its snapshot."""
    (tmp_path / "real").symlink_to(CLUSTER)
    for node_id in (1, 2, 3):
        log = Log(node_id=node_id, cluster_id="faulty").begun().snapshot().add(change(isr=[2, 3])).add(change(isr=[1]))
        for epoch in range(2, 22):
            log.leads(1 + epoch % 3, epoch)
        log.write(tmp_path / "faulty" / f"n{node_id}", roll_at=(8,))
    overwrite(tmp_path / "faulty" / "n2" / LOG_DIRECTORY / segment_name(8), 90, b"\xff\x00\xff")
    cut = Log(node_id=1, cluster_id="cut").begun()
    base = cut.snapshot().next_offset
    cut.add(ConfigRecord(resource_type=2, resource_name="t", name="x", value="y")).add(change_of(1, 2, fenced=1))
    cut.write(tmp_path / "cut" / "n1", begin=base)
    return tmp_path


def test_spark_audits_replicas_by_their_snapshots_too_and_names_clusters_of_which_nothing_is_left(
    spark: "SparkSession", tmp_path: Path
) -> None:
    for node_id in (1, 2, 3):
        log = Log(node_id=node_id, cluster_id="cut off").begun().snapshot().add(change(isr=[2, 3])).snapshot()
        log.write(tmp_path / "cut" / f"n{node_id}")
        segment = tmp_path / "cut" / f"n{node_id}" / LOG_DIRECTORY / segment_name(0)
        if node_id > 1:
            segment.write_bytes(segment.read_bytes()[:-200])
        (tmp_path / "gone" / f"n{node_id}" / LOG_DIRECTORY).mkdir(parents=True)
        meta = f"version=1\ncluster.id=gone\nnode.id={node_id}\n"
        (tmp_path / "gone" / f"n{node_id}" / "meta.properties").write_text(meta)
    found = jobs.audit_replicas(spark, str(tmp_path)).toArrow().sort_by("directory")
    cut, gone = str(tmp_path / "cut"), str(tmp_path / "gone")
    without = [audit_cluster(batches_at(path), known_at(path)) for path in (cut, gone)]
    assert found == pa.concat_tables(without)
    report = auditing.as_report(found)
    assert [(each["cluster_id"], each["replica"]) for each in report["divergent"]] == [("cut off", 2), ("cut off", 3)]
    assert all("and its own snapshot is of all below" in each["why"] for each in report["divergent"])
    assert [(each["cluster_id"], each["why"]) for each in report["undecided"]] == [("gone", "its log is empty")] * 3
    unchecked = {
        each["cluster_id"]: each.get("unchecked")
        for each in unusual.as_report(jobs.anomalies(spark, str(tmp_path)).toArrow())["clusters"]
    }
    assert unchecked == {"cut off": None, "gone": "none of its logs has a record to look at"}


@pytest.mark.parametrize("job", [jobs.audit_replicas, jobs.audit_invariants])
def test_marks_are_read_before_logs_so_that_none_says_more_than_is_read(
    spark: "SparkSession", tmp_path: Path, job: "Callable[[SparkSession, str], DataFrame]"
) -> None:
    for node_id in (1, 2, 3):
        formatted(tmp_path / f"n{node_id}", node_id, *LOG[:-1])
    planned = job(spark, str(tmp_path))
    know_committed(tmp_path / "n1", LOG, END)  # before it has the last batch, as nothing writes it
    found = planned.toArrow()
    accusing = auditing if job is jobs.audit_replicas else findings
    assert not accusing.accuses(found)
    assert accusing.accuses(job(spark, str(tmp_path)).toArrow())


def test_spark_gives_no_vote_to_a_directory_under_another_id(spark: "SparkSession", tmp_path: Path) -> None:
    know_committed(formatted(tmp_path / "n1", 1, *LOG), LOG, END)
    for node_id in (2, 3):
        formatted(tmp_path / f"n{node_id}", node_id, *LOG[:-1])
    formatted(tmp_path / "n3-anew", 3, *LOG, third=NEW_ID)
    engine, local = SparkEngine(spark), LocalEngine(1)
    found = engine.audit_replicas(str(tmp_path)).sort_by("directory")
    assert found == local.audit_replicas(str(tmp_path))
    assert found["verdict"].to_pylist().count("lacks committed records") == 2
    promises = findings.as_report(engine.audit_invariants(str(tmp_path)))
    assert promises == findings.as_report(local.audit_invariants(str(tmp_path)))
    assert promises["kinds"] == {"not-on-majority": 1}


def test_spark_finds_what_is_found_without_it(spark: "SparkSession", clusters: Path) -> None:
    report = findings.as_report(jobs.audit_invariants(spark, str(clusters)).toArrow())
    assert report == findings.as_report(LocalEngine().audit_invariants(str(clusters)))
    violations = [(row["cluster_id"], row["kind"], row["node_ids"]) for row in report["violations"]]
    assert violations == [
        ("cut", "fenced-leads", [1]),
        ("faulty", "bit-flip", [2]),
        ("faulty", "leader-not-in-isr", [1, 3]),
    ]
    found = unusual.as_report(jobs.anomalies(spark, str(clusters)).toArrow())
    assert found["kinds"] == {"election-storm": 1}
    assert [each["cluster_id"] for each in found["clusters"]] == ["cut", "faulty", ID]
    assert (found["findings"][0]["cluster_id"], found["findings"][0]["peak"]) == ("faulty", 21)


def test_one_process_gives_what_spark_gives(spark: "SparkSession", clusters: Path) -> None:
    path = str(clusters)
    here, there = LocalEngine(2), SparkEngine(spark)
    assert here.audit_replicas(path) == there.audit_replicas(path).sort_by("directory")
    both = (here.audit_invariants(path), there.audit_invariants(path))
    assert findings.as_report(both[0]) == findings.as_report(both[1])
    looked = [unusual.as_report(each.anomalies(path, 30.0)) for each in (here, there)]
    assert looked[0] == looked[1]
    timelines = [telling.as_report(telling.PACKING.unpacked(each.timelines(path))) for each in (here, there)]
    assert timelines[0] == timelines[1]
    limits: dict[str, Any] = {"limits": placing.ALL, "keep_fenced": False, "at": None}
    placed = [placing.as_report(placing.PACKING.unpacked(each.placements(path, **limits))) for each in (here, there)]
    assert placed[0] == placed[1]
    alone = str(CLUSTER / "c1")
    changed = [differing.as_report(each.image_diff(alone, 1816, 1836)) for each in (here, there)]
    assert changed[0] == changed[1]
    assert changed[0]["clusters"][0]["total"] > 0
    assert "(2, 3) have no directory here" in changed[0]["clusters"][0]["unproven"][0]


def test_one_process_merges_and_compares_latencies_as_spark_does(spark: "SparkSession", tmp_path: Path) -> None:
    """Intervals too: they are drawn from a seed of the runs, wherever that is done."""
    for side, level in (("before", 100), ("after", 200)):
        (tmp_path / side).mkdir()
        for nth, each in enumerate(spread(level, 4)):
            (tmp_path / side / f"{nth}.json").write_text(json.dumps(each))
    (tmp_path / "after" / "again.json").write_text((tmp_path / "after" / "0.json").read_text())
    (tmp_path / "after" / "other.json").write_text("[]")
    by = ("driver", "workload")
    for before in (None, str(tmp_path / "before")):
        here, there = (
            report.as_report(found.merged, by, compared=found.compared, errors=found.errors, doubles=found.doubles)
            for engine in (LocalEngine(2), SparkEngine(spark))
            for found in [engine.latency(str(tmp_path / "after"), before, by, 1.05)]
        )
        assert here == there
        assert (len(here["latencies"]) > 0, len(here["doubles"]), len(here["errors"])) == (True, 1, 1)
        assert (here["comparison"] is None) == (before is None)


def test_spark_judges_directories_that_have_lost_something_as_one_process_does(
    spark: "SparkSession", tmp_path: Path
) -> None:
    """The log itself; all that was in it but the epochs; nothing, and bytes lie behind what is committed."""
    for name in ("gone", "emptied", "torn"):
        shutil.copytree(CLUSTER, tmp_path / name, ignore=shutil.ignore_patterns("dump-*", "shell-*"))
    shutil.rmtree(tmp_path / "gone" / "c3" / LOG_DIRECTORY)
    emptied = tmp_path / "emptied" / "c3" / LOG_DIRECTORY
    for each in (*emptied.glob("*.log"), *emptied.glob("*.checkpoint")):
        each.unlink()
    with (tmp_path / "torn" / "c1" / LOG_DIRECTORY / segment_name(0)).open("ab") as file:
        file.write(bytes(range(1, 200)))
    here, there = LocalEngine(2), SparkEngine(spark)
    for name, verdicts in (
        ("gone", ["same", "uncommitted tail", "undecided"]),
        ("emptied", ["same", "undecided", "divergent"]),
        ("torn", ["torn end", "uncommitted tail", "same"]),
    ):
        path = ",".join(str(tmp_path / name / each) for each in ("c1", "c2", "c3"))
        found = here.audit_replicas(path)
        assert found["verdict"].to_pylist() == verdicts
        assert found == there.audit_replicas(path).sort_by("directory")
        timelines = [telling.as_report(telling.PACKING.unpacked(each.timelines(path))) for each in (here, there)]
        assert timelines[0] == timelines[1]


def test_a_timeline_begins_with_the_snapshot_that_a_log_begins_with(spark: "SparkSession", clusters: Path) -> None:
    found = dict(telling.PACKING.unpacked(jobs.timelines(spark, str(clusters)).toArrow()))
    assert list(found) == ["cut", "faulty", ID]
    cut = found["cut"].summary
    assert (cut["is_whole"], cut["unknown_partitions"], cut["partitions"]["count"]) == (True, 0, 1)
    assert (cut["brokers"], cut["events"]) == (3, {"fenced": 1})


def test_one_cluster_that_cannot_be_told_keeps_no_other_from_being_told(
    shared: "SparkSession", tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "logs" / "real").mkdir(parents=True)
    for replica in ("c1", "c2"):
        (tmp_path / "logs" / "real" / replica).symlink_to(CLUSTER / replica)
    impossible = Log(node_id=1, cluster_id="impossible").begun().add(change(7, isr=[1]), folds=False)
    impossible.write(tmp_path / "logs" / "impossible")
    for node_id, epoch in ((1, 1), (2, 5)):
        Log(node_id=node_id, cluster_id="torn").leads(1, epoch).write(tmp_path / "logs" / f"torn-{node_id}")
    words, out, page = ["spark", "timeline", str(tmp_path / "logs")], tmp_path / "told", tmp_path / "told.html"
    assert main([*words, "--out", str(out), "--html", str(page)]) == 1
    shown = capsys.readouterr().out
    assert "cluster torn has no timeline: of 2 replicas of cluster torn no majority shares a record" in shown
    assert "broker 13 was fenced" in shown
    tables = {each.name: pyarrow.parquet.read_table(each) for each in sorted(out.iterdir())}
    assert list(tables) == ["brokers", "events", "partitions", "summary"]
    assert {name: set(each["cluster_id"].to_pylist()) for name, each in tables.items()} == {
        "brokers": {ID},
        "events": {ID},
        "partitions": {ID},
        "summary": {"impossible", "torn", ID},
    }
    report = report_of(page.read_text())
    assert [each["cluster_id"] for each in report["clusters"] if "unchecked" in each] == ["impossible", "torn"]
    assert "PARTITION_CHANGE_RECORD at offset" in report["clusters"][0]["unchecked"]
    assert len(report["events"]) == tables["events"].num_rows


def test_reports_are_told_to_people(clusters: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = findings.as_report(LocalEngine().audit_invariants(str(clusters / "faulty")))
    spark_audit_invariants.show({"logs": 3, **report})
    output = capsys.readouterr().out
    assert "leader 1 is not in ISR [2, 3]; before, since offset 9: leader 1, ISR [1, 2, 3], replicas" in output
    assert output.splitlines()[-1] == "3 logs: 1 leader-not-in-isr, 1 bit-flip; 1 note"
    found = LocalEngine().anomalies(str(clusters / "faulty" / "n1"))
    spark_anomalies.show(unusual.as_report(found))
    output = capsys.readouterr().out
    assert "election-storm: 21 elections of the quorum's leader within 0.5 min" in output
    assert output.splitlines()[-1] == "1 clusters: 1 election-storm"


@pytest.mark.long
def test_a_broken_promise_is_the_commands_verdict(clusters: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fastquorum.cli", "spark", "audit-invariants", str(clusters / "cut")]
    out = ["--out", str(tmp_path / "found.json"), "--master", "local[1]"]
    done = subprocess.run([*command, *out], capture_output=True, text=True, timeout=RUN_S, env=os.environ)
    assert done.returncode == 1, done.stderr
    assert done.stdout.splitlines()[-1] == "1 logs: 1 fenced-leads"
    assert "BROKER_REGISTRATION_CHANGE_RECORD of broker 1 leaves it leading" in (tmp_path / "found.json").read_text()
