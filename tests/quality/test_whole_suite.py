"""How the whole suite is run: by `pytest` alone, in three processes, whose own processes have none."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEST = """
import os


def test_it_is_in_one_of_three_processes():
    assert os.environ["PYTEST_XDIST_WORKER"] in ("gw0", "gw1", "gw2")
    assert os.environ["PYTEST_XDIST_WORKER_COUNT"] == "3"
"""
LONG = """
import pytest


@pytest.mark.long
def test_it_takes_a_minute():
    pass
"""
OWN_ROOT = "ROOT = Path(__file__).resolve().parent.parent"
BOUND_S = 100


def test_pytest_looks_into_every_directory_with_tests(pytestconfig: pytest.Config) -> None:
    # By default it does not look into one called "build", for instance.
    passed_over: list[str] = pytestconfig.getini("norecursedirs")
    with_tests = {path.parent.relative_to(ROOT) for path in (ROOT / "tests").rglob("test_*.py")}
    assert len(with_tests) > 10
    names = {name for folder in with_tests for name in folder.parts}
    assert not [name for name in names for pattern in passed_over if fnmatch(name, pattern)]


@pytest.mark.long
def test_without_a_path_it_runs_in_three_processes_and_with_one_in_this(tmp_path: Path) -> None:
    tests = tmp_path / "tests"
    tests.mkdir()
    shared = (ROOT / "tests/conftest.py").read_text()
    assert shared.count(OWN_ROOT) == 1
    # The package under test is still this checkout's, editable or not.
    (tests / "conftest.py").write_text(shared.replace(OWN_ROOT, f"ROOT = Path({str(ROOT)!r})"))
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = tests\n")
    for name in ("a", "b", "c"):
        (tests / f"test_{name}.py").write_text(TEST)
    (tests / "test_d.py").write_text(LONG)
    assert "3 passed" in run(tmp_path), "and what is long is left out"
    assert "1 passed" in run(tmp_path, "tests/test_d.py")
    (tests / "test_a.py").write_text(TEST.replace("assert", "assert not").replace("[", ".get(").replace("]", ", '')"))
    assert "1 passed" in run(tmp_path, "tests/test_a.py")


def run(directory: Path, *arguments: str) -> str:
    """Its output. All of its processes end with it, or when they take too long.

    It has a place of its own for what tests write: at the usual one it would clear away, before it ends, what suites of
    before have left, which takes minutes on a busy disk."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--basetemp={directory / 'written'}", *arguments],
        cwd=directory,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as child:
        try:
            return child.communicate(timeout=BOUND_S)[0]
        finally:
            with suppress(ProcessLookupError):  # they have ended
                os.killpg(child.pid, signal.SIGKILL)
