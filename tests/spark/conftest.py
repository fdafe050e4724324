"""Where Spark can be run, one session that all of a process's tests share; elsewhere one line says that there is none.

The extra `test` brings all that Spark needs, a Java included. With CI=true nothing may be left out.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

import fastquorum.spark
from fastquorum.errors import SparkEnvironmentError
from fastquorum.spark.sessions.environment import look

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _missing() -> str:
    """Why Spark cannot be run here; empty if it can."""
    try:
        look(os.environ)
    except SparkEnvironmentError as error:
        return str(error)
    return ""


MISSING = _missing()
if MISSING:
    assert os.environ.get("CI") != "true", MISSING
    collect_ignore_glob = ["test_*.py"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if MISSING:
        terminalreporter.write_line(f"tests/spark (Apache Spark) left out: {MISSING}", yellow=True)


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """A session on two threads of one JVM, with the data source registered."""
    # A shuffle here has few rows: its 200 partitions would be all that a test waits for.
    session = fastquorum.spark.session(
        "fastquorum tests", "local[2]", {"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": 2}
    )
    yield session
    session.stop()


@pytest.fixture
def shared(spark: "SparkSession", monkeypatch: pytest.MonkeyPatch) -> "SparkSession":
    """Commands have no session of their own: it would take as long again to start, and end this one."""

    @contextmanager
    def lent(master: str) -> Iterator["SparkSession"]:
        yield spark

    from fastquorum.spark.sessions import running

    monkeypatch.setattr(running, "running", lent)
    return spark
