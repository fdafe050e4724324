"""Which Python and which packages of it Spark is run with: here, and in the workers that Spark starts."""

import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Final, NamedTuple

from fastquorum.spark.sessions.java import INSTALL

CHECK_S: Final = 60.0
"""Timeout for a Python to report its version."""
WORKERS: Final = "PYSPARK_PYTHON"
"""The variable that names the Python of what executors leave to Python."""
DRIVER: Final = "PYSPARK_DRIVER_PYTHON"
"""The variable that names the Python of the driver's JVM, which asks a data source for its schema and partitions."""
_PROBE: Final = (
    "import importlib.util as u, json, sys; print(json.dumps([list(sys.version_info[:2]), "
    "[n for n in sys.argv[1:] if u.find_spec(n) is None]]))"
)
_IN_WORKERS: Final = ("fastquorum", "pyarrow")


class Needed(NamedTuple):
    """A package and the versions that fit: from `least` on, and before `below` if that is not empty."""

    package: str
    least: tuple[int, ...]
    below: tuple[int, ...]

    def __str__(self) -> str:
        bounds = [f">={_text(self.least)}"] + ([f"<{_text(self.below)}"] if self.below else [])
        return f"{self.package}{','.join(bounds)}"


class Flaw(NamedTuple):
    """A problem, and what to do about it."""

    text: str
    hint: str


NEEDED: Final = (
    Needed("pyspark", (4, 0), (5,)),
    Needed("pyarrow", (18,), ()),
    Needed("pandas", (2, 2), (3,)),
    Needed("numpy", (1, 26), ()),
)
"""Packages and versions as in pyproject.toml; PySpark's own bounds stand in pyspark/sql/pandas/utils.py."""


def versions() -> dict[str, str]:
    """Return the version of each package that Spark needs; empty if it is not installed. None of them is imported."""
    return {needed.package: _version(needed.package) for needed in NEEDED}


def package_flaws(found: Mapping[str, str]) -> list[Flaw]:
    """Return which packages are missing, or have a version that does not fit."""
    missing = [needed.package for needed in NEEDED if not found[needed.package]]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        return [Flaw(f"{' and '.join(missing)} {verb} not installed", INSTALL)]
    return [
        Flaw(f"{needed.package} {found[needed.package]} is not supported", f"pip install '{needed}'")
        for needed in NEEDED
        if not _is_within(found[needed.package], needed)
    ]


def python_flaws(environment: Mapping[str, str], variables: Sequence[str]) -> list[Flaw]:
    """Return what is wrong with the Pythons that these variables name, where they are not this one."""
    others = [name for name in variables if environment[name] != sys.executable]
    return [flaw for name in others for flaw in _flaws_of(name, environment[name], environment)]


def _flaws_of(name: str, python: str, environment: Mapping[str, str]) -> list[Flaw]:
    hint = f"unset {name}: Spark then runs {sys.executable}, as this process does"
    command = [python, "-c", _PROBE, *_IN_WORKERS]
    try:
        done = subprocess.run(
            command, env=dict(environment), capture_output=True, text=True, timeout=CHECK_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return [Flaw(f"{name}={python} cannot be run: {error}", hint)]
    try:
        version, missing = json.loads(done.stdout)
    except ValueError:
        return [Flaw(f"{name}={python} is not a Python", hint)]
    if tuple(version) != sys.version_info[:2]:
        here = _text(sys.version_info[:2])
        return [
            Flaw(f"{name}={python} is Python {_text(version)}, and this process runs {here}: they must agree", hint)
        ]
    if missing:
        return [Flaw(f"{name}={python} does not have {' and '.join(missing)}", f"install them there, or {hint}")]
    return []


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _is_within(version: str, needed: Needed) -> bool:
    numbers = tuple(int(part) for part in re.findall(r"\d+", version.partition("+")[0])[:3])
    return numbers >= needed.least and (not needed.below or numbers < needed.below)


def _text(version: tuple[int, ...]) -> str:
    return ".".join(str(part) for part in version)
