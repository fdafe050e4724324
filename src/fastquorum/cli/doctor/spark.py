"""`fastquorum doctor --spark`: what Spark would be run with here, whether it runs, what is wrong and what to do."""

import json
import os
import subprocess
import sys
from typing import Any, Final

from fastquorum.cli.doctor.machine import Problem
from fastquorum.cli.terminal.output import working
from fastquorum.errors import SparkEnvironmentError
from fastquorum.spark.sessions.environment import Environment, look
from fastquorum.spark.sessions.java import INSTALL
from fastquorum.spark.sessions.python_packages import versions
from fastquorum.version import __version__

TRIAL_S: Final = 300.0
"""A session that is not up by then hangs."""
LINES_MAX: Final = 5


def is_installed() -> bool:
    """Whether there is a PySpark to look at."""
    return bool(versions()["pyspark"])


def diagnose() -> tuple[dict[str, Any], list[Problem]]:
    """Facts about Spark's environment, and what is wrong. Starts a session, in a process of its own, if it can."""
    facts: dict[str, Any] = {"version": __version__, "python": sys.executable, **versions()}
    if not is_installed():
        return facts, [Problem("PySpark is not installed", INSTALL)]
    try:
        found = look(os.environ)
    except SparkEnvironmentError as error:
        return facts, [Problem(error.detail, error.hint)]
    facts |= _environment_facts(found)
    with working("a session of Spark is started"):
        tried, problems = _try()
    return {**facts, **tried}, problems


def _environment_facts(found: Environment) -> dict[str, Any]:
    java = found.java
    return {
        "java": java.executable,
        "java_version": java.version,
        "java_chosen": java.why,
        "java_passed_over": java.passed_over,
        "java_wrapper": java.wrapper,
        **found.variables,
    }


def _try() -> tuple[dict[str, Any], list[Problem]]:
    """A trial session: its figures, and what went wrong."""
    hint = "Spark's own messages come first; PySpark's and Java's versions are above"
    try:
        done = subprocess.run(
            [sys.executable, "-m", "fastquorum.spark.sessions.trial"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TRIAL_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {}, [Problem(f"a session of Spark was not up and done within {TRIAL_S:g} s", hint)]
    if done.returncode != 0:
        last_lines = " | ".join(done.stderr.strip().splitlines()[-LINES_MAX:])
        return {}, [Problem(f"a session of Spark fails: {last_lines or 'without a message'}", hint)]
    tried: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    problems = []
    if tried["worker_fastquorum"] != __version__:
        problems.append(
            Problem(
                f"workers import fastquorum {tried['worker_fastquorum']}, and this is {__version__}",
                "install the same version for PYSPARK_PYTHON",
            )
        )
    if not tried["registers"]:
        problems.append(
            Problem(
                "a session does not find the data source by itself",
                "install fastquorum again, or call fastquorum.spark.register(spark)",
            )
        )
    return {name: round(value, 1) if isinstance(value, float) else value for name, value in tried.items()}, problems
