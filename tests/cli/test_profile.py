"""`fastquorum profile` as users run it: real nodes, py-spy where it may trace, and what is said where it may not."""

import json
import os
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fastquorum.kernels.stages import STAGES
from fastquorum.profile.tools import find_py_spy
from tests.cli.conftest import Ran, in_process
from tests.cli.test_load import SETTINGS
from tests.privileges import missing

FILES = ("profile.html", "flame.svg", "waiting.svg", "stacks.collapsed", "report.json", "report.txt")


@cache
def py_spy_missing() -> str:
    """Why py-spy cannot look at a process here; empty if it can."""
    code = "import sys; sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as process:
        tried = subprocess.run(
            [find_py_spy(), "dump", "--native", "--pid", str(process.pid)], capture_output=True, text=True, check=False
        )
        process.communicate()
    return "" if tried.returncode == 0 else f"py-spy may not trace here: {tried.stderr.strip()[-200:]}"


def words(tmp_path: Path) -> list[str]:
    settings, data = tmp_path / "quick.properties", tmp_path / "data"
    settings.write_text(SETTINGS)
    data.mkdir()
    return ["load", "--data", str(data), "--config", str(settings), "--warmup", "0.2"]


@pytest.mark.slow
def test_a_loaded_leader_is_profiled_with_python_and_native_frames(tmp_path: Path) -> None:
    if reason := py_spy_missing():
        missing(reason)
    out = tmp_path / "out"
    loading = [*words(tmp_path), "--closed", "16", "--api", "asyncio"]
    ran = in_process("profile", "--out", out, "--seconds", "1", "--format", "json", "--", *loading)
    assert ran.code == 0, ran.err
    report: dict[str, Any] = json.loads(ran.out)
    assert sorted(os.listdir(out)) == sorted(FILES)
    assert json.loads((out / "report.json").read_text())["nodes"] == report["nodes"]
    _has_frames(out)
    _has_times(report)
    whats = " ".join(each["what"] for each in report["missing"])
    assert "what native threads wait for" in whats
    assert all(each["why"] for each in report["missing"])
    page, text = (out / "profile.html").read_text(), (out / "report.txt").read_text()
    assert page.startswith("<!doctype html>")
    assert "<svg" in page
    assert "a sync under way" in text
    assert "not in this profile" in text


def _has_frames(out: Path) -> None:
    """Check that both kinds of files have frames of the leader, of Python and of native code."""
    lines = (out / "stacks.collapsed").read_text().splitlines()
    assert all(line.startswith("node ") and "(leader);" in line for line in lines)
    assert any("fastquorum/load/" in line for line in lines), "the generator, which is Python"
    assert any(".so" in line for line in lines), "native code, below Python's"
    assert any("fq-sockets (native)" in line for line in lines), "a thread that never runs Python"
    drawn = ET.fromstring((out / "flame.svg").read_text())
    assert len(list(drawn.iter("{http://www.w3.org/2000/svg}g"))) > 20


def _has_times(report: dict[str, Any]) -> None:
    roles = [node["role"] for node in report["nodes"]]
    assert sorted(roles) == ["follower", "follower", "leader"]
    for node in report["nodes"]:
        names = {row["name"] for row in node["threads"]}
        assert names >= {"fq-sockets", "fq-flusher", "MainThread" if node["role"] == "leader" else "main"}
        assert node["running_share"] > 0
        assert 0 < node["sync"]["share"] <= 1.05, "one at a time"
        assert node["stages"].keys() == set(STAGES)
        for row in node["threads"]:
            assert row["blocked_s"] is None or 0 <= row["blocked_s"] <= report["wall_s"] * 1.05
    commit = report["commit"]
    assert sum(commit["shares"].values()) == pytest.approx(1)
    assert commit["appends"] >= commit["batches"] > 0
    assert report["load"]["acknowledged"] > 0


@pytest.mark.slow
def test_where_py_spy_may_not_trace_the_report_says_so_and_has_the_rest(
    fastquorum: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "py-spy"
    program.write_text("#!/bin/sh\necho 'Permission Denied: Try running again with elevated permissions' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr("fastquorum.profile.tools.find_py_spy", lambda: str(program))
    out = tmp_path / "out"
    before = signal.getsignal(signal.SIGTERM)
    try:
        ran = fastquorum("profile", "--out", out, "--seconds", "0.5", "--", *words(tmp_path), "--rate", "200")
    finally:
        signal.signal(signal.SIGTERM, before)
    assert ran.code == 1, "there is no stack of Python's"
    assert "ptrace is not permitted here" in ran.out
    assert "a sync under way" in ran.out
    assert sorted(os.listdir(out)) == sorted(FILES)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (["--"], "profile runs load, and nothing else"),
        (["--", "demo"], "profile runs load, and nothing else"),
        (["--", "load", "--sweep"], "a profile is of one"),
        (["--", "load", "--bootstrap", "h:1"], "cannot be profiled"),
        (["--", "load", "--kill-leader-at", "1"], "kills what is being profiled"),
        (["--seconds", "1", "--", "load", "--seconds", "2"], "--seconds is given twice"),
        (["--", "load", "--rate", "fast"], "is not a rate above 0"),
        (["--rate", "0", "--", "load"], "not a whole number from 1"),
        (["--", "load", "--closed", "4", "--rate", "5"], "exclude each other"),
    ],
)
def test_what_cannot_be_profiled_is_refused_at_once(
    fastquorum: Callable[..., Ran], tmp_path: Path, typed: list[str], expected: str
) -> None:
    ran = fastquorum("profile", "--out", tmp_path / "out", *typed)
    assert ran.code == 2
    assert expected in ran.err
    assert ran.out == ""
