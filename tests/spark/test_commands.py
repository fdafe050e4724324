"""`fastquorum spark`: by real processes, on a real cluster and on one with something wrong."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fastquorum.cli.main import main
from fastquorum.cli.spark import image_diff as spark_image_diff
from fastquorum.cli.spark import latency as spark_latency
from fastquorum.cli.spark.shared import check_out
from fastquorum.errors import DirectoryError, UsageError
from fastquorum.pages import report_of
from fastquorum.spark.sessions.jvm import Jvm
from fastquorum.spark.stored.logs import find
from tests.spark.damage import change
from tests.spark.programs import outputs, without_java
from tests.wire.golden import CLUSTER

RUN_S = 240
SEGMENT = "__cluster_metadata-0/00000000000000000000.log"


def fastquorum(*words: object, environment: Mapping[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "fastquorum.cli", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=RUN_S, env=environment or os.environ)


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """The real cluster, one byte of c3 flipped in the batch at 3829."""
    for replica in ("c1", "c2", "c3"):
        shutil.copytree(CLUSTER / replica, tmp_path / "cluster" / replica)
    path = tmp_path / "cluster" / "c3" / SEGMENT
    change(path, path.stat().st_size - 200, b"\xff\x00\xff")
    return tmp_path / "cluster"


@pytest.mark.long
def test_the_demo_tells_what_happened_without_a_java_of_the_systems(tmp_path: Path) -> None:
    page = tmp_path / "demo.html"
    done = fastquorum("spark", "demo", "--format", "json", "--html", page, environment=without_java(tmp_path))
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    assert report_of(page.read_text()) == report
    assert report["audit"]["divergent"] == []
    (tail,) = report["audit"]["uncommitted_tails"]
    assert (tail["replica"], tail["offset"], tail["bytes"]) == (2, 3836, 28_538)
    events = [(each["event"], each["node_id"], each["epoch"]) for each in report["timeline"]["events"]]
    assert ("fenced", 13, 1) in events
    assert ("controlled shutdown", 12, 1) in events
    assert ("quorum leader", 2, 3) in events
    assert report["seconds"] > 0


@pytest.mark.long
def test_who_differs_is_named_and_the_exit_code_says_it(broken: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    done = fastquorum("spark", "audit-replicas", broken, "--out", report)
    assert done.returncode == 1, done.stderr
    assert "divergent from offset" in done.stdout
    assert "its bytes are damaged" in done.stdout
    (odd,) = json.loads(report.read_text())["divergent"]
    assert (odd["replica"], odd["directory"]) == (3, str(broken / "c3"))
    again = fastquorum("spark", "audit-replicas", broken, "--out", report)
    assert (again.returncode, again.stdout) == (2, "")
    assert f"{report} exists already; name another --out, or remove it" in again.stderr


LOGS = "name a data directory, a log directory, a directory with such below it, or a glob"
RUNS = "name a result of `fastquorum load`, or a directory of files with .json, .hlog, .hdr, .log"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        *(
            ((command, "{0}/nope"), f"{{0}}/nope: is not there; {LOGS}")
            for command in ("audit-replicas", "audit-invariants", "anomalies", "timeline", "placement")
        ),
        (("image-diff", CLUSTER, "--with", "{0}/nope"), f"{{0}}/nope: is not there; {LOGS}"),
        (("latency", "{0}/nope"), f"{{0}}/nope: is not there; {RUNS}"),
        (("latency", "{0}/file", "--before", "{0}/nope"), f"{{0}}/nope: is not there; {RUNS}"),
        (("latency", "{0}"), f"there are no latencies at {{0}}; {RUNS}"),
        (("timeline", "{0}"), f"there is no log at {{0}}; {LOGS}"),
        (("timeline", "{0}/*/c"), f"there is no log at {{0}}/*/c; {LOGS}"),
        (("timeline", "{0}/file"), "{0}/file: is a file; name a data directory, a log directory, or one with such"),
        (("timeline", "{0}/neither,{0}/nope"), f"{{0}}/neither: is not there; {LOGS}"),
        (("timeline", f"{CLUSTER},"), f"'{CLUSTER},' names no path between two commas"),
        (("timeline", " "), "IN is blank; was a variable not set? The current directory is ."),
        (("timeline", "nosuch://x"), "nothing here reads nosuch://; "),
    ],
)
def test_a_path_at_which_there_is_nothing_is_one_line_before_spark_starts(
    words: tuple[object, ...], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Jvm, "starting", lambda _: pytest.fail("no Spark is needed for that"))
        assert main(["spark", *(str(each).format(tmp_path) for each in words)]) == 2
    output = capsys.readouterr()
    assert (output.out, len(output.err.splitlines())) == ("", 1)
    assert output.err.startswith(f"fastquorum spark {words[0]}: {message.format(tmp_path)}")


@pytest.mark.long
def test_a_spark_that_does_not_start_is_one_line_at_the_end() -> None:
    done = fastquorum("spark", "timeline", CLUSTER, "--master", "local[nonsense]")
    assert done.returncode == 2
    output = done.stderr.splitlines()[-1]
    assert output.startswith("fastquorum spark timeline: Spark did not start with --master local[nonsense]: ")
    assert "Traceback" not in done.stderr


def test_a_path_of_a_file_is_told_from_one_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DirectoryError, match="file: is a file; name a data directory"):
        find(str(tmp_path / "file"))


@pytest.mark.parametrize("name", ["audit.txt", "audit.CSV", "audit.html", "audit.JSON"])
def test_an_output_that_is_named_as_no_output_is_is_taken_for_a_slip(name: str, tmp_path: Path) -> None:
    text = f"{name}: this kind of file cannot be written; a .json file, or a directory"
    with pytest.raises(UsageError, match=text):
        check_out(outputs(out=tmp_path / name))
    with pytest.raises(UsageError, match=f"--reassignment-json .*{text}"):
        check_out(outputs(), reassignment_json=str(tmp_path / name))
    check_out(outputs(out=tmp_path / "logs.parquet", html=tmp_path / "page.html"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("placement", "x", "--tolerance", "x"), "argument --tolerance: 'x' is not a part of the average, as 0.1 is"),
        (("latency", "x", "--threshold", "x"), "argument --threshold: 'x' is not a ratio of 1 or more"),
        (("latency", "x", "--threshold", "nan"), "argument --threshold: 'nan' is not a ratio of 1 or more"),
    ],
)
def test_a_number_that_is_none_is_told_what_it_is_to_be(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["spark", *words])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_a_cluster_that_was_not_compared_is_not_said_to_be_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    cluster: dict[str, Any] = {"cluster_id": "c", "other_cluster_id": "c", "from_offset": None, "to_offset": None}
    none: dict[str, Any] = {"total": 0, "counts": {}, "changes": []}
    spark_image_diff.show({"clusters": [{**cluster, **none, "errors": ["it is damaged"], "unproven": []}]})
    assert capsys.readouterr().out == "cluster c\nnot compared: it is damaged\n\n\n"


def test_where_nothing_holds_a_latency_the_last_line_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    report = {"by": ["driver"], "latencies": [], "comparison": None, "doubles": [], "errors": ["a: no", "b: no"]}
    spark_latency.show(report)
    assert capsys.readouterr().out.splitlines()[-1] == "nothing here holds a latency; left out: 2 file(s)"


def test_an_option_that_names_what_is_there_already_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="name another --reassignment-json, or remove it"):
        check_out(outputs(), reassignment_json=str(tmp_path))
