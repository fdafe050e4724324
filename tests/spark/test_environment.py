"""Packages, Pythons and variables that a session needs."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from fastquorum.errors import SparkEnvironmentError, UsageError
from fastquorum.spark.sessions import environment, python_packages
from fastquorum.spark.sessions.python_packages import DRIVER, NEEDED, WORKERS, package_flaws, python_flaws
from fastquorum.spark.sessions.running import in_our_words
from tests.privileges import missing

from .programs import java_home, program

ROOT = Path(__file__).resolve().parents[2]
FIT = {"pyspark": "4.3.0", "pyarrow": "18.0.0", "pandas": "2.3.3", "numpy": "2.0.0"}


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The process's environment says nothing of Spark, and has a Java on PATH; its home."""
    for name in ("JAVA_HOME", WORKERS, DRIVER):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    home = java_home(tmp_path / "java")
    monkeypatch.setenv("PATH", f"{home}/bin{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return home


def test_the_versions_that_do_are_those_that_are_installed_with_the_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [*project["dependencies"], *project["optional-dependencies"]["spark"]]
    named = {re.match(r"[\w-]+", line)[0]: line.replace(" ", "") for line in lines}  # type: ignore[index]
    for needed in NEEDED:
        assert named[needed.package] == str(needed)


def test_a_user_without_a_name_is_told_so_before_java_is_asked() -> None:
    if os.geteuid() != 0:
        missing("another user id needs root")
    os.setresuid(54321, 0, 0)
    try:
        with pytest.raises(SparkEnvironmentError, match=r"user id 54321 has no entry in /etc/passwd.*nss_wrapper"):
            environment.look({})
    finally:
        os.setresuid(0, 0, 0)
    environment.check_user()


def test_what_is_installed_here_does() -> None:
    assert package_flaws(python_packages.versions()) == []


@pytest.mark.parametrize(
    ("package", "version", "todo"),
    [
        ("pyspark", "3.5.7", "pip install 'pyspark>=4.0,<5'"),
        ("pyspark", "5.0.0.dev1", "pip install 'pyspark>=4.0,<5'"),
        ("pyarrow", "17.0.0", "pip install 'pyarrow>=18'"),
        ("pandas", "2.1.4", "pip install 'pandas>=2.2,<3'"),
        ("pandas", "3.0.0", "pip install 'pandas>=2.2,<3'"),
        ("pyarrow", "", "pip install 'fastquorum[spark]'"),
    ],
)
def test_a_version_that_does_not_do_is_named_with_the_command_that_helps(package: str, version: str, todo: str) -> None:
    assert package_flaws(FIT) == []
    (flaw,) = package_flaws({**FIT, package: version})
    assert package in flaw.text
    assert version in flaw.text
    assert flaw.hint == todo


def test_all_that_is_missing_is_named_at_once() -> None:
    (flaw,) = package_flaws(dict.fromkeys(FIT, ""))
    assert flaw.text == "pyspark and pyarrow and pandas and numpy are not installed"


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("echo '[[3, 9], []]'", "is Python 3.9, and this process runs"),
        (f"echo '[{list(sys.version_info[:2])}, [\"fastquorum\"]]'", "does not have fastquorum"),
        ("echo 'No such notebook' >&2; exit 1", "is not a Python"),
    ],
)
def test_workers_with_another_python_are_found_out_before_spark_starts(tmp_path: Path, script: str, says: str) -> None:
    python = str(program(tmp_path / "python", script))
    (flaw,) = python_flaws({**os.environ, WORKERS: python, DRIVER: sys.executable}, (WORKERS, DRIVER))
    assert f"PYSPARK_PYTHON={python} {says}" in flaw.text
    assert "unset PYSPARK_PYTHON" in flaw.hint


def test_a_python_that_is_not_there_is_named() -> None:
    (flaw,) = python_flaws({**os.environ, WORKERS: "/nowhere/python", DRIVER: sys.executable}, (WORKERS,))
    assert "PYSPARK_PYTHON=/nowhere/python cannot be run" in flaw.text


def test_a_real_python_of_another_version_is_found_out() -> None:
    others = (f"python3.{minor}" for minor in range(9, 16) if minor != sys.version_info.minor)
    python = next((found for each in others if (found := shutil.which(each)) and _runs(found)), None)
    if python is None:
        pytest.skip("there is no other Python on PATH")
    (flaw,) = python_flaws({**os.environ, WORKERS: python, DRIVER: sys.executable}, (WORKERS, DRIVER))
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert f"PYSPARK_PYTHON={python} is Python 3." in flaw.text
    assert flaw.text.endswith(f"and this process runs {here}: they must agree")


def _runs(python: str) -> bool:
    """A version manager has names of Pythons that it does not run."""
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0


def test_workers_elsewhere_with_another_python_are_told_apart_from_other_faults() -> None:
    from pyspark.errors import PySparkRuntimeError
    from pyspark.worker_util import check_python_version

    with pytest.raises(PySparkRuntimeError) as raised:
        check_python_version("3.7")
    error = in_our_words(f"[PYTHON_DATA_SOURCE_ERROR] Failed to create Python data source: {raised.value}")
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert isinstance(error, SparkEnvironmentError)
    assert error.detail == f"Spark's workers run Python {here}, and its driver Python 3.7: they must agree"
    assert error.hint.startswith("set PYSPARK_PYTHON to a Python 3.7 with fastquorum")
    other = in_our_words("first line\nTraceback\n  fastquorum.errors.UsageError: there is no log at x\nSQLSTATE: 1")
    assert (type(other), str(other)) == (UsageError, "there is no log at x")
    assert str(in_our_words("Job aborted\nat ...")) == "Spark gave up: Job aborted; see --debug"


def test_another_name_of_the_same_python_does(tmp_path: Path) -> None:
    python = str(program(tmp_path / "python", f'exec {sys.executable} "$@"'))
    assert python_flaws({**os.environ, WORKERS: python}, (WORKERS,)) == []


@pytest.mark.usefixtures("plain")
def test_prepared_the_process_has_its_own_python_for_workers_and_driver() -> None:
    before = dict(os.environ)
    found = environment.look(os.environ)
    assert dict(os.environ) == before
    assert environment.prepare() == found
    assert dict(os.environ) == {**before, WORKERS: sys.executable, DRIVER: sys.executable}
    assert environment.prepare() == found


def test_what_is_set_and_does_stays(plain: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    python = str(program(tmp_path / "python", f'exec {sys.executable} "$@"'))
    monkeypatch.setenv("JAVA_HOME", str(plain))
    monkeypatch.setenv(WORKERS, python)
    environment.prepare()
    assert os.environ["JAVA_HOME"] == str(plain)
    assert os.environ[WORKERS] == python


@pytest.mark.usefixtures("plain")
def test_a_java_home_that_does_not_do_is_taken_away(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java_home(tmp_path / "old", "11.0.1")))
    environment.prepare()
    assert "JAVA_HOME" not in os.environ


@pytest.mark.usefixtures("plain")
def test_a_refusal_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(WORKERS, "/nowhere/python")
    before = dict(os.environ)
    with pytest.raises(SparkEnvironmentError, match=r"/nowhere/python cannot be run.*unset PYSPARK_PYTHON"):
        environment.prepare()
    assert dict(os.environ) == before


@pytest.mark.usefixtures("plain")
def test_a_clusters_workers_have_files_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(WORKERS, "./unpacked/bin/python")
    environment.prepare("spark://h1:7077")
    assert os.environ[WORKERS] == "./unpacked/bin/python"
    assert os.environ[DRIVER] == sys.executable


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("fastquorum.spark", ("pyspark", "pyarrow", "pandas", "numpy", "subprocess")),
        ("fastquorum.cli.main", ("pyspark", "pyarrow", "fastquorum.spark")),
        ("fastquorum.cli.doctor.command", ("pyspark", "pyarrow", "fastquorum.spark")),
    ],
)
def test_an_import_brings_nothing_of_spark_along(module: str, absent: tuple[str, ...]) -> None:
    code = f"import {module}, sys; print([name for name in {absent!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_what_spark_imports_to_find_the_source_brings_little_along() -> None:
    code = (
        "import pyspark.sql.datasource, sys; before = set(sys.modules); import pyspark_fastquorum; "
        "print(pyspark_fastquorum.DefaultSource.name()); "
        "print([name for name in set(sys.modules) - before if not name.startswith(('pyspark', 'fastquorum'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "fastquorum\n[]\n"
