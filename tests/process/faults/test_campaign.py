"""The campaign's own command, short: it runs, and reports ratios. What the faults cost is the long run's to say."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.slow
def test_a_short_campaign_ends_well_and_reports_ratios(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    words = ["--only", "computing", "--seconds", "0.5", "--rounds", "1", "--seed", "7", "--report", str(path)]
    command = [sys.executable, "-m", "tests.process.faults.campaign", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(path.read_text())
    assert json.loads(done.stdout) == report
    assert report["seed"] == 7
    (scenario,) = report["scenarios"].values()
    assert scenario["failure"] == ""
    assert len(scenario["rounds"]) == 1
    assert scenario["rounds"][0]["idle"]["acked"] > 0
    assert [(each["of"], each["to"]) for each in scenario["ratios"]] == [("computing", "idle"), ("holding", "idle")]
    computing, _ = scenario["ratios"]  # while C holds the leader's interpreter nothing need be acknowledged
    for figure in ("acked_per_s", "p50_ms", "p99_ms"):
        assert 0 < computing[figure]["min"] <= computing[figure]["median"] <= computing[figure]["max"]
