"""The demo itself, once for all tests here; its verdict, on disks that were damaged after it; its parts."""

import base64
import io
import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from rich.console import Console

from fastquorum.cli.demo import nodes, play, stage
from fastquorum.cli.demo.appender import Acknowledged
from fastquorum.cli.demo.play import DemoOutcome
from fastquorum.cli.demo.screen import JsonScreen, TextScreen
from fastquorum.cli.demo.verdict import judge
from fastquorum.data import carried_records
from fastquorum.kernels import Kernels, load
from tests.cli import packaged_log
from tests.cli.conftest import COMMAND, Ran, environment, free_port, running_with, wait_until
from tests.wire.golden import CLUSTER

pytestmark = pytest.mark.slow

KEYS = {
    "records",
    "acknowledged",
    "lost",
    "duplicated",
    "elections",
    "kills",
    "commit_p50_us",
    "commit_p99_us",
    "commits_per_s",
    "replicas_identical",
}
LOG = f"__cluster_metadata-0/{0:020}.log"


class Played(NamedTuple):
    """A demo that is over."""

    code: int
    report: dict[str, Any]
    directory: Path


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    return load("native")


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    directory = tmp_path_factory.mktemp("demo") / "kept"
    command = [*COMMAND, "demo", "--keep", str(directory), "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.stdout, done.stderr
    return Played(done.returncode, json.loads(done.stdout), directory)


def test_nothing_is_lost_and_nothing_comes_twice(played: Played) -> None:
    report = played.report
    assert report.keys() >= KEYS
    assert report["problems"] == []
    assert (played.code, report["verdict"]) == (0, "green")
    assert report["records"] == report["acknowledged"] == len(packaged_log.values())
    assert (report["lost"], report["duplicated"], report["kills"]) == (0, 0, 2)
    assert report["elections"] >= 3
    assert report["replicas_identical"] is True
    assert 0 < report["commit_p50_us"] <= report["commit_p99_us"]
    assert report["commits_per_s"] > 0


def test_the_picture_is_that_of_kafkas_own_checkpoint(played: Played, fastquorum: Callable[..., Ran]) -> None:
    """Topics and partitions as in the snapshot that Kafka itself took at offset 3829 of this log."""
    checkpoint = CLUSTER / "c1" / "__cluster_metadata-0" / "00000000000000003829-0000000003.checkpoint"
    lines = fastquorum("log", "dump", "--format", "json", checkpoint).out.splitlines()
    types = [json.loads(line).get("type") for line in lines]
    assert played.report["topics"] == types.count("TOPIC_RECORD")
    assert played.report["partitions"] == types.count("PARTITION_RECORD")
    assert played.report["brokers"] == types.count("REGISTER_BROKER_RECORD")


def test_the_disks_are_closed_logs_of_what_was_sent(played: Played, fastquorum: Callable[..., Ran]) -> None:
    for number in (1, 2, 3):
        node = played.directory / f"node-{number}"
        verified = json.loads(fastquorum("log", "verify", "--format", "json", node).out)
        assert verified["sound"]
        assert verified["closed"]
        lines = map(json.loads, fastquorum("log", "dump", "--format", "json", node).out.splitlines())
        records = [line for line in lines if "type" in line]
        assert len(records) == played.report["records"]


# --- the verdict ------------------------------------------------------------------------------------------------------


def ledger_of(played: Played) -> list[Acknowledged]:
    lines = map(json.loads, (played.directory / stage.LEDGER).read_text().splitlines())
    return [Acknowledged(line["offset"], base64.b64decode(line["value"])) for line in lines]


@pytest.fixture
def copies(played: Played, tmp_path: Path) -> list[str]:
    """The demo's directories, to be damaged."""
    for number in (1, 2, 3):
        shutil.copytree(played.directory / f"node-{number}", tmp_path / f"node-{number}")
    return [str(tmp_path / f"node-{number}") for number in (1, 2, 3)]


def cut_batches(directory: str, kernels: Kernels, count: int) -> None:
    """Take the last `count` batches of records off a closed log, and what an election wrote behind them."""
    path = Path(directory) / LOG
    data = path.read_bytes()
    records = [info for info in kernels.batch_headers(data) if not info.is_control]
    path.write_bytes(data[: records[-count].position])


def test_the_untouched_disks_are_green(played: Played, copies: list[str], kernels: Kernels) -> None:
    verdict = judge(copies, ledger_of(played), kernels)
    assert not verdict.problems
    assert (verdict.lost, verdict.duplicated, verdict.replicas_identical) == (0, 0, True)


@pytest.mark.parametrize("victim", [0, 1, 2])
def test_a_shortened_disk_is_red(played: Played, copies: list[str], kernels: Kernels, victim: int) -> None:
    cut_batches(copies[victim], kernels, 2)
    verdict = judge(copies, ledger_of(played), kernels)
    assert verdict.problems
    assert (verdict.lost, verdict.replicas_identical) == (2, False)


def test_the_same_loss_on_every_disk_is_red(played: Played, copies: list[str], kernels: Kernels) -> None:
    for directory in copies:
        cut_batches(directory, kernels, 1)
    verdict = judge(copies, ledger_of(played), kernels)
    assert verdict.problems
    assert (verdict.lost, verdict.replicas_identical) == (1, True)


def test_a_flipped_bit_is_red(played: Played, copies: list[str], kernels: Kernels) -> None:
    path = Path(copies[1]) / LOG
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)
    verdict = judge(copies, ledger_of(played), kernels)
    assert verdict.problems
    assert verdict.lost > 0


def test_a_record_that_is_there_twice_is_red(played: Played, copies: list[str], kernels: Kernels) -> None:
    ledger = ledger_of(played)
    for directory in copies:
        path = Path(directory) / LOG
        data = path.read_bytes()
        last = kernels.batch_headers(data)[-1]
        again = bytearray(data[last.position :])
        kernels.stamp_batch(again, last.last_offset + 1, last.leader_epoch)
        path.write_bytes(data + again)
    verdict = judge(copies, ledger, kernels)
    assert verdict.problems
    assert (verdict.lost, verdict.duplicated, verdict.replicas_identical) == (0, 1, True)


def test_a_missing_disk_is_red(played: Played, copies: list[str], kernels: Kernels) -> None:
    shutil.rmtree(copies[2])
    verdict = judge(copies, ledger_of(played), kernels)
    assert verdict.problems
    assert verdict.lost == len(ledger_of(played))


def test_an_induced_loss_makes_the_whole_demo_red_and_exit_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, kernels: Kernels
) -> None:
    """A quorum of one and a short log, so that it is over soon; and a disk that forgets before it is looked at."""
    monkeypatch.setattr(play, "carried_records", lambda: carried_records()[:30])

    def forget(directories: Sequence[str]) -> None:
        cut_batches(directories[0], kernels, 1)

    assert play.play(1, str(tmp_path / "kept"), kernels, JsonScreen(), before_verdict=forget) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["verdict"] == "red"
    assert (report["records"], report["acknowledged"], report["lost"], report["kills"]) == (30, 30, 1, 2)


# --- its parts --------------------------------------------------------------------------------------------------------


def test_the_packaged_log_is_the_golden_one_without_control_records() -> None:
    assert carried_records() == packaged_log.values()


@pytest.mark.parametrize("words", [("--nodes", "0"), ("--nodes", "8"), ("--keep", "full")])
def test_bad_arguments_start_nothing(
    fastquorum: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: tuple[str, str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes").write_text("mine")

    def never(*_: object) -> nodes.DemoNodes:
        raise AssertionError("nodes were started")

    monkeypatch.setattr(play, "start_nodes", never)
    ran = fastquorum("demo", *words)
    assert ran.code == 2
    assert os.listdir(tmp_path / "full") == ["notes"]


def test_a_port_that_is_taken_meanwhile_is_no_trouble(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kernels: Kernels
) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        ports = [[held.getsockname()[1]], [free_port()]]
        monkeypatch.setattr(nodes, "free_ports", lambda count: ports.pop(0))
        started = nodes.start_nodes(str(tmp_path), 1, kernels)
        started.kill()
    assert ports == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_demo_leaves_no_process_and_no_file(tmp_path: Path, number: int, code: int) -> None:
    demo = subprocess.Popen(
        [*COMMAND, "demo", "--nodes", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(TMPDIR=str(tmp_path)),
        text=True,
    )
    assert demo.stdout is not None
    while "leads epoch" not in demo.stdout.readline():
        assert demo.poll() is None
    demo.send_signal(number)
    _, err = demo.communicate(timeout=30)
    assert (demo.returncode, err) == (code, "")
    assert os.listdir(tmp_path) == []
    assert running_with(tmp_path) == []


@pytest.mark.parametrize(
    ("words", "line", "processes"),
    [(("--nodes", "3"), "leads epoch", 4), (("--brokers", "2"), "brokers are registered", 6)],
)
def test_a_demo_that_is_killed_takes_its_processes_with_it(
    tmp_path: Path, words: tuple[str, ...], line: str, processes: int
) -> None:
    demo = subprocess.Popen(
        [*COMMAND, "demo", *words], stdout=subprocess.PIPE, env=environment(TMPDIR=str(tmp_path)), text=True
    )
    assert demo.stdout is not None
    while line not in demo.stdout.readline():
        assert demo.poll() is None
    assert len(running_with(tmp_path)) == processes
    demo.kill()
    demo.communicate(timeout=30)
    wait_until(lambda: running_with(tmp_path) == [])


@pytest.mark.parametrize("is_terminal", [True, False])
def test_what_people_see(played: Played, copies: list[str], kernels: Kernels, is_terminal: bool) -> None:
    shown = io.StringIO()
    screen = TextScreen(Console(file=shown, force_terminal=is_terminal, width=100, highlight=False, soft_wrap=True))
    screen.say("node [1] leads")
    with screen.progress(3) as advance:
        for _ in range(3):
            advance()
    outcome = DemoOutcome(**played.report)
    verdict = judge(copies, ledger_of(played), kernels)
    screen.verdict(play.ended(outcome, verdict.image), None)
    cut_batches(copies[0], kernels, 1)
    verdict = judge(copies, ledger_of(played), kernels)
    screen.verdict(play.ended(outcome._replace(problems=verdict.problems), verdict.image), "/kept")
    text = shown.getvalue()
    assert "node [1] leads" in text
    assert ("3/3" in text) == is_terminal
    assert "identical, byte by byte" in text
    assert text.index("GREEN") < text.index("/kept") < text.index("the logs differ") < text.index("RED")
