"""`fastquorum doctor --spark`."""

import json
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest

from .conftest import Ran

SPARK = ("doctor", "--spark")


@pytest.fixture
def no_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    version = metadata.version

    def of_others(package: str) -> str:
        if package == "pyspark":
            raise metadata.PackageNotFoundError(package)
        return version(package)

    monkeypatch.setattr(metadata, "version", of_others)


@pytest.mark.usefixtures("no_pyspark")
def test_without_pyspark_one_line_says_what_installs_it(fastquorum: Callable[..., Ran]) -> None:
    ran = fastquorum(*SPARK)
    assert ran == Ran(1, "WRONG: PySpark is not installed; pip install 'fastquorum[spark]'\n", "")


@pytest.mark.usefixtures("no_pyspark")
def test_without_pyspark_json_says_the_same(fastquorum: Callable[..., Ran]) -> None:
    ran = fastquorum(*SPARK, "--format", "json")
    report = json.loads(ran.out)
    assert ran.code == 1
    assert report["pyspark"] == ""
    assert report["problems"] == [{"text": "PySpark is not installed", "hint": "pip install 'fastquorum[spark]'"}]


def test_a_python_that_workers_cannot_run_is_wrong(
    fastquorum: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "/nowhere/python")
    ran = fastquorum(*SPARK)
    assert ran.code == 1
    assert "WRONG: PYSPARK_PYTHON=/nowhere/python cannot be run" in ran.out
    assert "unset PYSPARK_PYTHON" in ran.out
    assert "session_s" not in ran.out


def test_a_session_that_fails_is_wrong_and_what_spark_said_is_told(
    fastquorum: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--no-such-option pyspark-shell")
    ran = fastquorum(*SPARK)
    assert ran.code == 1
    assert "WRONG: a session of Spark fails: " in ran.out
    assert "ended before Spark was up" in ran.out


@pytest.mark.long
def test_a_tiny_session_is_tried_and_everything_is_said(
    fastquorum: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    ran = fastquorum(*SPARK, "--format", "json")
    report = json.loads(ran.out)
    assert report["problems"] == []
    assert ran.code == 0
    assert report["registers"] is True
    assert report["session_s"] > 0
    assert report["worker_python"] == report["PYSPARK_PYTHON"]
    assert report["worker_fastquorum"] == report["version"]
    assert {"java", "java_version", "java_chosen", "pyspark", "pyarrow", "pandas", "numpy"} <= report.keys()
