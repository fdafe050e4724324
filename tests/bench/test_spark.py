"""`bench spark`, small: who is compared reads the same, and the JSON says what it promises. Nothing is timed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.spark import clusters
from bench.spark.command import FIGURES, main
from bench.spark.logs import user_log
from bench.spark.sessions import children
from fastquorum import log
from fastquorum.spark.scan import read_table


def test_what_is_read_is_a_sound_log_of_so_many_records(tmp_path: Path) -> None:
    count = user_log(tmp_path / "log", 1 << 20, segment_bytes=1 << 18)
    found = log.open(tmp_path / "log")
    assert found.verify().is_sound
    assert sum(1 for _ in found.records()) == count
    assert len(list((tmp_path / "log").glob("*/*.log"))) == 4


@pytest.mark.long
def test_spark_and_its_yardsticks_read_the_same(tmp_path: Path) -> None:
    # The figure itself refuses to time who reads something else.
    command = [sys.executable, "-m", "bench", "spark", "--quick", "--only", "read", "--format", "json"]
    done = subprocess.run([*command, "--directory", str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["figures"]
    assert (found["name"], found["failed"]) == ("read", "")
    goals = {row["over"]: row["goal"] for row in found["rows"][:3]}
    assert list(goals.values()) == [">= 0.6", ">= 0.6", ">= 20"]
    assert all(row["value"]["median"] > 0 for row in found["rows"])
    assert not list(tmp_path.iterdir())


def test_the_memory_of_a_child_is_seen() -> None:
    program = "print(flush=True); input()"  # which has its memory when it has printed
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        names = [each.name for each in children() if each.size_bytes > 1 << 20]
        child.communicate("\n")
    assert "python" in names


def test_of_more_partitions_than_one_cluster_has_there_are_more_clusters(tmp_path: Path) -> None:
    one = clusters.make(tmp_path / "one", 20)
    made = clusters.many(one, tmp_path / "many", 2)
    batches = read_table(f"{tmp_path}/many/*", "batches", columns="cluster_id,directory,last_offset")
    ids = batches["cluster_id"].unique().to_pylist()
    assert (made.count, len(ids), len(batches["directory"].unique())) == (2, 2, 2 * clusters.REPLICAS)
    assert max(batches["last_offset"].to_pylist()) + 1 == made.end_offset
    status = read_table(f"{tmp_path}/many/*", "files", columns="status")["status"]
    assert set(status.to_pylist()) <= {"good", "unchecked"}


def test_the_figures_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [each.name for each in FIGURES]
