"""`fastquorum load` as users run it: real processes, real files, real kills."""

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

from fastquorum import log
from fastquorum.cli.load.command import rate
from fastquorum.load.hdr import Histogram
from tests.cli.conftest import COMMAND, Ran, RunningCommand, environment, in_process, wait_until
from tests.tracing.chrome_rules import check as check_trace

SETTINGS = """\
controller.quorum.fetch.timeout.ms=600
controller.quorum.election.timeout.ms=300
controller.quorum.election.backoff.max.ms=200
"""
FIGURES = {"p50", "p90", "p99", "p999", "max"}


@pytest.fixture
def shown(tmp_path: Path) -> list[str]:
    """Where the nodes are, and elections that do not keep a test waiting. For people."""
    settings, data = tmp_path / "quick.properties", tmp_path / "data"
    settings.write_text(SETTINGS)
    data.mkdir()
    return ["--data", str(data), "--config", str(settings), "--warmup", "0.2"]


@pytest.fixture
def quick(shown: list[str]) -> list[str]:
    """The same for programs."""
    return [*shown, "--format", "json"]


def loaded(*words: object) -> dict[str, Any]:
    ran = in_process("load", *words)
    assert ran.code == 0, ran.err
    report: dict[str, Any] = json.loads(ran.out)
    return report


def assert_accounted_for(report: dict[str, Any]) -> None:
    """Every arrival was acknowledged or is an error, and the figures are of the acknowledged ones."""
    assert report["acknowledged"] + sum(report["errors"].values()) == report["appends"]
    assert report["latency_us"].keys() == FIGURES
    assert 0 < report["latency_us"]["p50"] <= report["latency_us"]["p99"] <= report["latency_us"]["max"]
    assert Histogram.decode(report["histogram"]).total == report["acknowledged"]
    assert sum(point["acknowledged"] for point in report["timeline"]) == report["acknowledged"]
    assert report["machine"].keys() >= {"cpu", "kernel", "file_system", "python", "version", "load_average"}
    assert isinstance(report["generator_was_bottleneck"], bool)
    assert report["generator"]["how"]


@pytest.mark.slow
def test_three_nodes_are_started_loaded_and_gone(quick: list[str], tmp_path: Path) -> None:
    files = {"html": "x.html", "svg": "svg", "hdr": "latency", "history": "history", "trace": "trace.json"}
    outputs = [word for name, path in files.items() for word in (f"--{name}", str(tmp_path / path))]
    report = loaded(*quick, "--rate", "400", "--seconds", "0.5", *outputs, "--keep")
    assert_accounted_for(report)
    assert (report["appends"], report["errors"], report["offered_per_s"]) == (200, {}, 400)
    assert report["cpu_us_per_append"] > 0
    assert report["generator"]["own_appends_per_s"] > 0
    assert [node["killed"] for node in report["nodes"]] == [False] * 3
    (root,) = (tmp_path / "data").iterdir()
    held = []
    for node in (1, 2, 3):
        batches = log.open(root / "quorum-1" / f"node-{node}").batches()
        held.append(sum(batch.info.records_count for batch in batches if not batch.info.is_control))
    assert sorted(held)[1] == 280  # with the warm-up's, on a majority
    assert (tmp_path / "x.html").read_text().startswith("<!doctype html>")
    assert sorted(os.listdir(tmp_path / "svg")) == ["latency.svg", "timeline-latency.svg", "timeline-rate.svg"]
    (kept,) = (tmp_path / "history").iterdir()
    assert json.loads(kept.read_text()) == report
    trace = json.loads((tmp_path / "trace.json").read_text())
    check_trace(trace)
    assert {event["pid"] for event in trace["traceEvents"]} == {1, 2, 3}
    assert report["stages"].keys() == {"1", "2", "3"}
    assert sum(stages["append_told"]["count"] for stages in report["stages"].values()) == 200, "not the warm-up's"
    assert all(stages["sync"]["p50_us"] > 0 for stages in report["stages"].values())
    reader = HistogramLogReader(str(tmp_path / "latency.hlog"), HdrHistogram(1, 3_600_000_000_000, 3))
    total = 0
    while (interval := reader.get_next_interval_histogram()) is not None:
        total += interval.total_count
    reader.input_file.close()
    assert total == 200
    assert "#[Mean" in (tmp_path / "latency.hgrm").read_text()


@pytest.mark.slow
def test_people_read_what_programs_do(shown: list[str], tmp_path: Path) -> None:
    ran = in_process("load", *shown, "--rate", "400", "--seconds", "0.5", "--history", tmp_path / "history")
    assert ran.code == 0, ran.err
    (kept,) = (tmp_path / "history").iterdir()
    assert ran.err.splitlines()[-1] == f"written: {kept}"
    assert not re.search("━|three nodes start", ran.err), "nobody watches"
    report = json.loads(kept.read_text())
    rows = dict(re.split(r"  +", line, maxsplit=1) for line in ran.out.splitlines())
    assert rows["LOAD"] == "400 records/s"
    assert rows["offered"] == "400 records/s (values, 100 B, 1 an append, embedded, blocking)"
    assert rows["achieved"] == f"{report['achieved_per_s']:,.0f} records/s"
    names = {"p50": "p50", "p90": "p90", "p99": "p99", "p999": "p99.9", "max": "max"}
    latencies = [f"{name} {report['latency_us'][figure]:,.0f}" for figure, name in names.items()]
    assert rows["latency, us"].split("  ") == latencies
    assert rows["errors"] == "none"
    assert rows["CPU"] == f"{report['cpu_us_per_append']:,.0f} us an append, all processes"
    verdict = "it was the BOTTLENECK" if report["generator_was_bottleneck"] else "kept up"
    assert rows["generator"] == f"{verdict}: {report['generator']['how']}"


@pytest.mark.slow
def test_whoever_watches_sees_a_bar_and_stdout_stays_json(quick: list[str]) -> None:
    master, terminal = pty.openpty()
    seen: list[bytes] = []
    reader = threading.Thread(target=lambda: seen.extend(_read(master)))
    words = [*COMMAND, "load", *quick, "--rate", "400", "--seconds", "1"]
    watched = environment(TERM="xterm", COLUMNS="160")
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=terminal, text=True, env=watched) as run:
        os.close(terminal)
        reader.start()
        out, _ = run.communicate(timeout=60)
    reader.join()
    os.close(master)
    drawn = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", b"".join(seen).decode())
    assert run.returncode == 0, drawn
    assert_accounted_for(json.loads(out))
    assert "three nodes start" in drawn
    assert re.search(r"400 records/s +[━╸╺]+ +[\d,]+ appends/s, p99 +[\d,]+ us", drawn), drawn
    assert b"".join(seen).rstrip().endswith(b"\x1b[2K"), "the bar goes away in the end"


def _read(terminal: int) -> Iterator[bytes]:
    """Until nobody has its other side open."""
    with contextlib.suppress(OSError):  # EIO: how Linux says that
        while data := os.read(terminal, 65536):
            yield data


@pytest.mark.slow
def test_kafkas_client_loads_local_nodes(quick: list[str], tmp_path: Path) -> None:
    report = loaded(*quick, "--rate", "300", "--seconds", "0.5", "--driver", "kafka", "--workload", "keys")
    assert_accounted_for(report)
    assert (report["acknowledged"], report["errors"]) == (150, {})
    assert list((tmp_path / "data").iterdir()) == []  # not kept


@pytest.mark.slow
@pytest.mark.parametrize(
    ("driver", "api", "lost"),
    [
        # Whatever the killed process had in flight dies with it.
        ("embedded", "asyncio", {"killed"}),
        ("embedded", "blocking", {"killed"}),
        # The client lives on, and cannot know what became of what it had sent.
        ("client", "blocking", {"outcome_unknown"}),
        # librdkafka sends it again, to the next leader.
        ("kafka", "blocking", set()),
    ],
)
def test_the_load_goes_on_with_the_next_leader(quick: list[str], driver: str, api: str, lost: set[str]) -> None:
    words = ["--rate", "200", "--seconds", "2.5", "--driver", driver, "--api", api, "--kill-leader-at", "0.5"]
    report = loaded(*quick, *words)
    assert_accounted_for(report)
    (kill,), (election, *_) = report["kills"], report["elections"]
    assert 0.5 <= kill["t_s"] <= election["t_s"]
    assert election["leader"] != kill["node_id"]
    assert report["errors"].keys() <= lost
    # Whoever was due while nobody led had to wait for the election, and that was not left out. Half of it: whoever
    # watches may hear of the new leader later than who appends.
    assert report["latency_us"]["max"] >= (election["t_s"] - kill["t_s"]) * 0.5e6
    assert report["acknowledged"] >= 400
    assert report["cpu_us_per_append"] is None  # the killed process took its part with it


@pytest.mark.slow
def test_ctrl_c_ends_the_run_and_still_reports(quick: list[str], tmp_path: Path) -> None:
    words = ["--closed", "8", "--batch", "3", "--seconds", "600", "--warmup", "0"]
    run = subprocess.Popen(
        [*COMMAND, "load", *quick, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    # So far into the log that appends have been acknowledged: no more than 8 are in flight.
    wait_until(lambda: any(_has_bytes_at(path, 20_000) for path in _logs(tmp_path)), 60)
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=60)
    assert run.returncode == 130, err
    report = json.loads(out)
    assert report["interrupted"]
    assert_accounted_for(report)
    assert report["records"] == 3 * report["appends"]
    assert max(point["in_flight"] for point in report["timeline"]) <= 8


def endpoint_of(node: RunningCommand) -> str:
    """HOST:PORT, as it says where it listens."""
    found = re.search(r"://(\S+?),", node.line)
    assert found is not None
    return found[1]


def _logs(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "data").glob("*/quorum-1/node-*/*/*.log"))


def _has_bytes_at(path: Path, position: int) -> bool:
    """Segments are filled with zeros ahead of use."""
    with open(path, "rb") as file:
        file.seek(position)
        return bool(file.read(64).strip(b"\0"))


@pytest.mark.slow
def test_a_quorum_that_others_run_is_loaded_through_its_door_until_it_does_not_keep_up(
    data: Path, running: Callable[..., RunningCommand], tmp_path: Path, fastquorum: Callable[..., Ran]
) -> None:
    endpoint = endpoint_of(running(data))
    # A window of one append: whatever the machine, it is not kept up with for long.
    words = ["--sweep", "--rate", "50", "--seconds", "0.3", "--warmup", "0", "--in-flight-max", "1"]
    report = loaded("--bootstrap", endpoint, *words, "--history", tmp_path / "h", "--format", "json")
    rates = [step["offered_per_s"] for step in report["steps"]]
    assert rates == sorted(rates)
    for step in report["steps"]:
        assert step["plan"]["driver"] == "client"
        assert step["nodes"] == []
        assert step["acknowledged"] + sum(step["errors"].values()) == step["appends"]
    if report["knee"] is None:  # a busy machine: the first rate was the last
        assert len(report["steps"]) == 1
    else:
        assert report["overload"]["offered_per_s"] == pytest.approx(2 * report["knee"]["offered_per_s"], rel=0.2)
    compared = fastquorum("load", "compare", tmp_path / "h", tmp_path / "h")
    assert compared.code == 0
    assert "1.00" in compared.out


def test_a_log_of_another_name_is_not_written_to(data: Path, running: Callable[..., RunningCommand]) -> None:
    endpoint = endpoint_of(running(data))
    ran = in_process("load", "--bootstrap", endpoint, "--topic", "payments", "--seconds", "1")
    assert ran.code == 2
    assert f"{endpoint} has no topic 'payments'; --topic NAME is the log to load" in ran.err


def test_a_kafka_client_has_room_for_every_record_of_what_is_in_flight(
    data: Path, running: Callable[..., RunningCommand]
) -> None:
    endpoint = endpoint_of(running(data))
    words = ["--driver", "kafka", "--closed", "4", "--batch", "500", "--in-flight-max", "4"]
    report = loaded("--bootstrap", endpoint, *words, "--seconds", "0.3", "--warmup", "0", "--format", "json")
    assert report["acknowledged"] > 0
    assert report["errors"] == {}


def test_nobody_at_the_bootstrap_servers_is_said(fastquorum: Callable[..., Ran]) -> None:
    ran = in_process("load", "--bootstrap", "127.0.0.1:1", "--timeout", "0.2", "--seconds", "1")
    assert ran.code == 3
    assert "fastquorum load: the quorum is not ready: 127.0.0.1:1 cannot be reached: Connection refused" in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--closed", "4", "--rate", "5"], "--closed and --rate exclude each other"),
        (["--closed", "4", "--sweep"], "--closed and --sweep exclude each other"),
        (["--closed", "40", "--in-flight-max", "5"], "--closed 40 is more than --in-flight-max 5"),
        (["--batch", "3000000000"], "an append of 300,000 MB, one batch, is more than 67 MB"),
        (["--sweep", "--kill-leader-at", "1"], "exclude each other"),
        (["--sweep", "--hdr", "x"], "--hdr is for a single run"),
        (["--sweep", "--trace", "x"], "--trace is for a single run"),
        (["--bootstrap", "h:1", "--trace", "x"], "is for nodes that are started here"),
        (["--trace", "/nowhere/x.json"], "--trace /nowhere/x.json cannot be written: No such file or directory"),
        (["--workload", "isr", "--record-bytes", "10"], "have sizes of their own"),
        (["--workload", "keys", "--record-bytes", "3"], "no room for keys"),
        (["--driver", "client", "--api", "asyncio"], "--api asyncio is for the embedded driver"),
        (["--bootstrap", "h:1", "--driver", "embedded"], "needs a node in its process"),
        (["--topic", "payments"], "the embedded one appends to the log"),
        (["--topic", "payments", "--driver", "client"], "needs an existing log"),
        (["--bootstrap", "h:1", "--kill-leader-at", "1"], "kills nodes that are started here"),
        (["--bootstrap", "h:1", "--data", "x"], "is for nodes that are started here"),
        (["--kill-leader-at", "11"], "is after the end of the run"),
        (["--tick-us", "2000"], "a tick is 1000 us at most"),
        (["--data", "/nowhere"], "--data /nowhere cannot be used"),
        (["--html", "/nowhere/x.html"], "--html /nowhere/x.html cannot be written: No such file or directory"),
        (["--hdr", "/tmp/"], "--hdr /tmp/ names a directory; say how the files begin: /tmp/run"),
        (["--config", "/nowhere/x.toml"], "config file (/nowhere/x.toml): cannot be read"),
        (["--rate", "1000M", "--seconds", "1000000"], "GB left"),
        (["--rate", "fast"], "is not a rate above 0"),
        (["--rate", "0"], "is not a rate above 0"),
        (["--closed", "0"], "not a whole number from 1"),
        (["--bootstrap", "h"], "is not HOST:PORT"),
    ],
)
def test_what_does_not_go_together_is_refused_at_once(
    fastquorum: Callable[..., Ran], words: list[str], expected: str
) -> None:
    ran = fastquorum("load", *words)
    assert ran.code == 2
    assert expected in ran.err
    assert ran.out == ""


def test_a_missing_matplotlib_is_said_before_the_run(
    fastquorum: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    ran = fastquorum("load", "--png", tmp_path / "png")
    assert ran.code == 2
    assert "PNG charts need the package matplotlib, which is not installed; pip install 'fastquorum[bench]'" in ran.err


@pytest.mark.parametrize(
    ("text", "value"), [("500", 500), ("100k", 100_000), ("1.5M", 1_500_000), ("2K", 2000), ("0.5", 0.5)]
)
def test_rates_have_units(text: str, value: float) -> None:
    assert rate(text) == value
