"""`fastquorum run` with --metrics, --otel and --log-format, as those who operate a node meet them."""

import json
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Ran, RunningCommand, files_of, free_port, in_process, wait_until
from tests.cli.test_node_commands import address
from tests.observe.builders import get, scrape

Start = Callable[..., RunningCommand]
Run = Callable[..., Ran]


def test_metrics_are_served_where_the_first_line_says(fastquorum: Run, running: Start, data: Path) -> None:
    node = running(data, "--metrics", "127.0.0.1:0")
    endpoint = node.line.rstrip().rpartition("metrics at http://")[2].removesuffix("/metrics")
    assert fastquorum("append", "--bootstrap", address(data), "--value", "x").code == 0
    described = json.loads(
        fastquorum("quorum", "describe", "--status", "--format", "json", "--bootstrap", address(data)).out
    )
    page = scrape(endpoint)
    assert page.value("kafka_server_raft_metrics_current_leader") == described["leaderId"]
    assert page.value("kafka_server_raft_metrics_current_epoch") == described["leaderEpoch"]
    assert page.value("kafka_server_raft_metrics_high_watermark") == described["highWatermark"]
    assert get(endpoint, "/readyz").status == 200
    assert node.end(signal.SIGTERM).code == 0


def test_the_config_file_says_it_too(running: Start, data: Path, tmp_path: Path) -> None:
    port = free_port()
    config = tmp_path / "n1.properties"
    config.write_text(f"metrics.listener=127.0.0.1:{port}\n")
    running(data, "--config", str(config))
    assert get(f"127.0.0.1:{port}", "/healthz").status == 200


def test_a_taken_metrics_port_changes_nothing(data: Path) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        before = files_of(data)
        ran = in_process("run", "--data", data, "--metrics", f"127.0.0.1:{held.getsockname()[1]}")
    assert ran.code == 2
    assert "metrics.listener: 127.0.0.1:" in ran.err
    assert "is taken" in ran.err
    assert len(ran.err.splitlines()) == 1
    assert files_of(data) == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_as_json_every_line_is_an_object(running: Start, data: Path, number: signal.Signals) -> None:
    node = running(data, "--log-format", "json", "--metrics", "127.0.0.1:0")
    started = json.loads(node.line)
    assert (started["event"], started["node"], started["level"]) == ("started", 1, "info")
    endpoint = started["metrics"].removeprefix("http://").removesuffix("/metrics")
    assert get(endpoint, "/healthz").status == 200
    wait_until(lambda: get(endpoint, "/readyz").status == 200)
    # Who answers there knows it before who logs it: the signal waits for the line.
    assert node.process.stderr is not None
    entries = [json.loads(node.process.stderr.readline())]
    while entries[-1]["event"] != "ready":
        entries.append(json.loads(node.process.stderr.readline()))
    ended = node.end(number)
    assert ended.out == ""
    entries += [json.loads(line) for line in ended.err.splitlines()]
    assert all({"time", "level", "node", "epoch", "event"} <= each.keys() for each in entries)
    assert [each["time"] for each in entries] == sorted(each["time"] for each in entries)
    events = [each["event"] for each in entries]
    assert events.index("leadership") < events.index("ready") < events.index("stopping") < events.index("stopped")
    led = next(each for each in entries if each["event"] == "leadership" and each["is_self"])
    assert (led["leader"], led["epoch"], led["node"]) == (1, 1, 1)
    assert next(each for each in entries if each["event"] == "stopping")["signal"] == number.name
    assert ended.code == (0 if number is signal.SIGTERM else 130)


def test_as_json_a_failure_is_an_object_with_its_fields(tmp_path: Path) -> None:
    ran = in_process("run", "--data", tmp_path / "typo", "--log-format", "json")
    assert ran.code == 2
    report = json.loads(ran.err)
    assert (report["event"], report["level"], report["error"]) == ("failed", "error", "DirectoryError")
    assert report["fields"]["path"] == str(tmp_path / "typo")
    assert "the directory is not formatted" in report["message"]


def test_a_bad_address_is_wrong_usage(data: Path) -> None:
    ran = in_process("run", "--data", data, "--metrics", "nonsense")
    assert (ran.code, len(ran.err.splitlines())) == (2, 1)
    assert "expected HOST:PORT" in ran.err
