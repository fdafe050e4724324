"""Pipelines over runs, and their commands, on the session that the tests share."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fastquorum import sim
from fastquorum.cli.main import main
from fastquorum.load.reports import history
from fastquorum.spark.engines.run_jobs import sim_sweep
from tests.conftest import ROOT
from tests.load.results import result
from tests.spark.pipelines.test_latency import spread

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUN_S = 240


def test_runs_are_merged_and_compared(
    shared: "SparkSession", tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for side, level in (("before", 1000), ("after", 2000)):
        for each in spread(level, 5):
            history.save(str(tmp_path / side), each)
    history.save(str(tmp_path / "after"), result(3000.0))
    (tmp_path / "after" / "note.json").write_text("{}")
    out = tmp_path / "latency.json"
    words = ["spark", "latency", str(tmp_path / "after"), "--before", str(tmp_path / "before"), "--out", str(out)]
    assert main([*words, "--format", "json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report == json.loads(out.read_text())
    assert [(row["group"]["load"], row["runs"]) for row in report["latencies"]] == [("1000/s", 5), ("3000/s", 1)]
    assert [row["percentile"] for row in report["slower"]] == ["p50", "p99", "p999"]
    assert [row["verdict"] for row in report["comparison"] if row["percentile"] == "all"] == ["on one side only"]
    assert len(report["errors"]) == 1
    assert main(["spark", "latency", str(tmp_path / "before"), "--by", "workload"]) == 0
    output = capsys.readouterr().out.splitlines()
    assert output[0].split()[:5] == ["WORKLOAD", "WHAT", "ROLE", "RUNS", "COUNT"]
    assert output[1].split()[:5] == ["values", "commit", "-", "5", "1,000"]
    (tmp_path / "nothing.json").write_text("{}")
    assert main(["spark", "latency", str(tmp_path / "nothing.json")]) == 1
    assert "left out: " in capsys.readouterr().out
    assert main(["spark", "latency", str(tmp_path), "--by", "weather"]) == 2
    assert "there is no such group; the groups are driver, api" in capsys.readouterr().err


def test_seeds_are_simulated_on_executors(
    shared: "SparkSession", tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "seeds.json"
    words = ["spark", "sim-sweep", "--seeds", "3:7", "--seeds-a-task", "2", "--out", str(out)]
    assert main(words) == 0
    assert capsys.readouterr().out.startswith("4 seeds, 0 failed; ")
    report = json.loads(out.read_text())
    expected = list(sim.sweep(range(3, 7)))
    assert report["totals"]["events"] == sum(each.events for each in expected)
    assert (report["first_seed"], report["last_seed"], report["failed"]) == (3, 6, [])
    rows = sim_sweep(shared, range(3, 5), seeds_a_task=1).orderBy("seed").collect()
    assert [row["trace_hash"] for row in rows] == [each.trace_hash for each in expected[:2]]


@pytest.mark.long
def test_a_seed_that_fails_on_an_executor_is_told_and_shrunk(tmp_path: Path) -> None:
    """Every Python of the session forgets votes, as it starts."""
    (tmp_path / "sitecustomize.py").write_text(
        "from tests.sim.campaign import MUTANTS\n"
        "from tests.sim.mutants import Patches\n"
        'MUTANTS["K1"].apply(Patches())\n'
    )
    words = ["spark", "sim-sweep", "--seeds", "1:3", "--kernels", "pure", "--master", "local[2]", "--format", "json"]
    done = subprocess.run(
        [sys.executable, "-m", "fastquorum.cli", *words],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        timeout=RUN_S,
    )
    assert done.returncode == 1, done.stderr
    failed = json.loads(done.stdout)["failed"]
    assert [row["seed"] for row in failed] == [1, 2]
    assert {row["invariant"] for row in failed} == {"S3"}
    assert all(row["shrunk_events"] < row["events"] for row in failed)
    assert failed[0]["shrunk_repro"].startswith("fastquorum sim run --seed 1 --nodes 2 --without ")
