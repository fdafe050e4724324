"""Other projects' own test suites, from their registries, run against brokers: what each test of theirs came to.

Versions are pinned: what is compared between two clusters must be the same tests.
"""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

from .kafka import KAFKA, Missing

Verdict = Literal["passed", "failed", "skipped"]
Results = dict[str, Verdict]
FRANZ_GO: Final = "github.com/twmb/franz-go@v1.22.3"
CONFLUENT_GO: Final = "github.com/confluentinc/confluent-kafka-go/v2@v2.11.1"
KAFKA_PYTHON: Final = "kafka-python==3.0.12"
RECORDS: Final = 20_000
"""franz-go's exactly-once tests write so many; their own default is 500,000."""
SUITE_S: Final = 1_500.0
SERVICE: Final = """
class ExternalService:
    def __init__(self, host, port):
        pass


class SpawnedService:
    def __init__(self, args, env):
        raise RuntimeError("this run is against brokers that are there already")
"""
"""kafka-python's archive lacks this module, by which its tests would start brokers of their own."""
TEST_S: Final = 90
"""A test of kafka-python's that takes longer has failed, and the next one goes on."""
_GO: Final[Mapping[str, Verdict]] = {"pass": "passed", "fail": "failed", "skip": "skipped"}


class Suite(NamedTuple):
    name: str
    run: Callable[[str, Path, Sequence[str]], Results]
    """(bootstrap servers, an empty directory, names of tests: all if empty); what each test came to. Raises Missing."""


def _module(module: str, directory: Path) -> Path:
    """A copy of a Go module, which may be written to."""
    if shutil.which("go") is None:
        raise Missing("no Go toolchain")
    done = subprocess.run(
        ["go", "mod", "download", "-json", module], capture_output=True, text=True, check=False, cwd=directory
    )
    if done.returncode != 0:
        raise Missing(f"{module} could not be fetched: {done.stdout}{done.stderr}")
    copy = directory / "module"
    shutil.copytree(json.loads(done.stdout)["Dir"], copy)
    subprocess.run(["chmod", "-R", "u+w", str(copy)], check=True)
    return copy


def _go_test(at: Path, package: str, only: Sequence[str], environment: Mapping[str, str]) -> Results:
    command = ["go", "test", "-json", "-count=1", f"-timeout={SUITE_S:.0f}s", "-parallel=2", package]
    if only:
        command.append(f"-run=^({'|'.join(only)})$")
    done = subprocess.run(
        command, cwd=at, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    (at / "output.json").write_text(done.stdout + done.stderr)
    results = go_results(done.stdout)
    if not results:
        raise Missing(f"{package} could not be built or ran no test: {(done.stdout + done.stderr)[-2000:]}")
    return results


def go_results(output: str) -> Results:
    """What `go test -json` printed, by test: those without subtests of their own. One that did not end has failed."""
    found: Results = {}
    for line in output.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        name, action = event.get("Test"), event.get("Action")
        if name is not None and action == "run":
            found[name] = "failed"
        elif name is not None and action in _GO:
            found[name] = _GO[action]
    parents = {name.rpartition("/")[0] for name in found}
    return {name: verdict for name, verdict in found.items() if name not in parents}


def franz_go(bootstrap: str, directory: Path, only: Sequence[str]) -> Results:
    environment = {"KGO_SEEDS": bootstrap, "KGO_TEST_RECORDS": str(RECORDS), "KGO_LOG_LEVEL": "none"}
    return _go_test(_module(FRANZ_GO, directory), "./pkg/kgo", only, environment)


def confluent_go(bootstrap: str, directory: Path, only: Sequence[str]) -> Results:
    copy = _module(CONFLUENT_GO, directory)
    settings = {"Brokers": bootstrap, "TopicName": "test", "GroupID": "testgroup", "PerfMsgCount": 10_000}
    (copy / "kafka" / "testconf.json").write_text(json.dumps({**settings, "PerfMsgSize": 100}))
    return _go_test(copy, "./kafka", only, {})


def kafka_python(bootstrap: str, directory: Path, only: Sequence[str]) -> Results:
    download = ["download", "--no-deps", "--no-binary=:all:", KAFKA_PYTHON]
    beside = ["install", "--no-deps", "--target=beside", "pytest-mock"]
    done = [
        subprocess.run(
            [sys.executable, "-m", "pip", *words, "--quiet"], cwd=directory, capture_output=True, text=True, check=False
        )
        for words in (download, beside)
    ]
    archives = list(directory.glob("kafka_python-*.tar.gz"))
    if any(each.returncode for each in done) or not archives:
        raise Missing(f"{KAFKA_PYTHON} could not be fetched: {''.join(each.stderr for each in done)}")
    with tarfile.open(archives[0]) as archive:
        archive.extractall(directory, filter="data")
    [source] = directory.glob("kafka_python-*/")
    (source / "test" / "__init__.py").touch()  # Python has a package of that name, too
    (source / "test" / "service.py").write_text(SERVICE)
    report = directory / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junit-xml={report}"]
    command.append(f"--basetemp={directory / 'written'}")
    command += [
        "-o",
        "addopts=",
        f"--timeout={TEST_S}",
        "--timeout-method=signal",
        "test/integration",
        "-p",
        "no:xdist",
        f"-k={' or '.join(only)}" if only else "-q",
    ]
    environment = {
        **os.environ,
        "PYTHONPATH": f"{source}{os.pathsep}{directory / 'beside'}",
        "KAFKA_VERSION": KAFKA.version,
    }
    environment["KAFKA_ROOT"] = str(directory)  # looked for, and not used, where brokers are there already
    environment["KAFKA_URI"] = f"kafka://{bootstrap.partition(',')[0]}"
    ran = subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True, check=False)
    (directory / "output.txt").write_text(ran.stdout + ran.stderr)
    if not report.exists():
        raise Missing(f"{KAFKA_PYTHON} ran no test: {ran.stdout[-2000:]}{ran.stderr[-2000:]}")
    return junit_results(report)


def junit_results(report: Path) -> Results:
    """A JUnit report, by test."""
    found: Results = {}
    for case in ET.parse(report).iter("testcase"):
        kinds = {child.tag for child in case}
        verdict: Verdict = "passed"
        if kinds & {"failure", "error"}:
            verdict = "failed"
        elif "skipped" in kinds:
            verdict = "skipped"
        found[f"{case.get('classname')}::{case.get('name')}"] = verdict
    return found


SUITES: Final = (
    Suite("franz-go", franz_go),
    Suite("confluent-kafka-go", confluent_go),
    Suite("kafka-python", kafka_python),
)
