"""Pipelines over runs, and their commands, on the session that the tests share."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fastquorum.cli.main import main
from fastquorum.load import history
from tests.load.results import result
from tests.spark.pipelines.test_latency import spread

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
    told = capsys.readouterr().out.splitlines()
    assert told[0].split()[:5] == ["WORKLOAD", "WHAT", "ROLE", "RUNS", "COUNT"]
    assert told[1].split()[:5] == ["values", "commit", "-", "5", "1,000"]
    assert main(["spark", "latency", str(tmp_path), "--by", "weather"]) == 2
    assert "there is no such group; the groups are driver, api" in capsys.readouterr().err
