"""`pytest bench --benchmark-only` runs, for comparing commits with pytest-benchmark's tools. Nothing is timed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench import floors

ROOT = Path(__file__).resolve().parents[2]
SHORT = ("--benchmark-min-rounds=1", "--benchmark-max-time=0.01", "--benchmark-warmup=off")


@pytest.mark.slow
@pytest.mark.skipif(not floors.has_compiler(), reason="the yardsticks in C need a compiler")
def test_pytest_benchmark_times_ours_beside_its_twin_and_its_yardsticks(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    words = ["-m", "pytest", "bench", "--benchmark-only", "-k", "CRC-32C", "-q", "-n", "0", "-p", "no:cacheprovider"]
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, *words, *SHORT, f"--basetemp={tmp_path / 'written'}", f"--benchmark-json={report}"],
        cwd=ROOT,
        env=plain,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    timed = json.loads(report.read_text())["benchmarks"]
    assert all(each["stats"]["min"] > 0 for each in timed)
    by_case: dict[str, set[str]] = {}
    for each in timed:
        by_case.setdefault(each["params"]["name"], set()).add(each["params"]["contender"])
    assert by_case
    for name, contenders in by_case.items():
        assert name.startswith("CRC-32C")
        assert contenders >= {"native", "pure", "C, one stream"}
