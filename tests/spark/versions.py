"""Each version of Spark that is served must give what this process gives without it, or refuse in one line of ours."""

import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from fastquorum.spark.newer import NEEDS
from tests.conftest import ROOT
from tests.interop.nodes import running
from tests.spark.other_sparks import jars_of, made
from tests.spark.version_checks import PARTS, SAME
from tests.wire.golden import CLUSTER

VERSIONS: Final = ("4.0.*", "4.1.*", "4.2.*", "4.3.*")
DELTA: Final = "io.delta:delta-spark_2.13:4.2.0"
CHECKS_S: Final = 3600.0
COMMAND: Final = ("spark", "audit-replicas", str(CLUSTER), "--master", "local[1]", "--format", "json")
_STREAMS: Final = {"read a stream": "streaming", "write a stream": "stream_writing"}
_TRACES: Final = ("Traceback (most recent call last)", "\tat ")


def versions(
    root: Path,
    wanted: Sequence[str],
    places: Path | None,
    *,
    parts: Sequence[str] = PARTS,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Every table, filter, pipeline, write, stream and a command, or some of these, by each of these versions. What
    each came to, by version; AssertionError."""
    figures = {}
    with running(root / "nodes") as nodes:
        for version in wanted:
            say(f"PySpark {version}")
            name = version.replace("*", "x")
            python = made((places or root) / f"pyspark-{name}", [f"pyspark=={version}"])
            found = _checked(python, root / name, nodes.bootstrap, *parts)
            _check_refusals(found["spark"], found["results"])
            if "pipelines" in parts:
                assert json.loads(_run(python, "fastquorum", *COMMAND))["divergent"] == [], version
            figures[found["spark"]] = found["results"]
            say(f"  {json.dumps(found)}")
    return figures


def delta(
    root: Path, package: str, places: Path | None, *, say: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """A log into a Delta table, rows of one to a quorum, and a stream of them into another, with the PySpark that this
    Delta wants. What each came to; AssertionError."""
    version = package.rpartition(":")[2]
    python = made((places or root) / f"delta-{version}", [f"delta-spark=={version}"])
    jars = jars_of(package, (places or root) / f"delta-{version}-jars")
    with running(root / "nodes") as nodes:
        found = _checked(python, root / "delta", nodes.bootstrap, "delta", "--delta", *jars)
    say(f"  {json.dumps(found)}")
    results = dict(found["results"])
    if not _has(found["spark"], "streaming"):
        assert results.pop("stream into Delta").startswith("refused: streams from a log need PySpark")
    assert set(results.values()) == {SAME}, results
    return {f"Delta {version}": found}


def _checked(python: str, directory: Path, bootstrap: str, *more: str) -> dict[str, Any]:
    directory.mkdir(parents=True)
    output = _run(python, "tests.spark.version_checks", str(CLUSTER), bootstrap, str(directory), *more)
    found: dict[str, Any] = json.loads(output.splitlines()[-1])
    return found


def _check_refusals(version: str, results: dict[str, str]) -> None:
    """What this version has not is refused by the data source's own words, and nothing else is."""
    for check, result in results.items():
        module = _STREAMS.get(check, "")
        if _has(version, module):
            assert result == SAME, f"{check}: {result}"
        else:
            assert result.startswith(f"refused: {NEEDS[module].what} need PySpark "), f"{check}: {result}"
            assert "\n" not in result, result


def _has(version: str, module: str) -> bool:
    return module not in NEEDS or tuple(int(part) for part in version.split(".")[:2]) >= NEEDS[module].least


def _run(python: str, module: str, *arguments: str) -> str:
    """What it prints. AssertionError if it fails, or a trace is seen."""
    done = subprocess.run(
        [python, "-m", module, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=CHECKS_S, check=False
    )
    assert done.returncode == 0, f"{module}: {done.stdout[-2000:]}{done.stderr[-6000:]}"
    assert not any(trace in done.stderr for trace in _TRACES), done.stderr[-6000:]
    return done.stdout
