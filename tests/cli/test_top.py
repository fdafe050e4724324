"""`fastquorum top` over real nodes: all up, some down, nobody leading, and a terminal that is left as it was found."""

import io
import json
import os
import pty
import select
import signal
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rich.console import Console

from fastquorum import sync
from fastquorum.cli.top.comparing import compare
from fastquorum.cli.top.looking import Looker
from fastquorum.cli.top.showing import _drawn
from fastquorum.types import Endpoint
from tests.api.nodes import QUICK, WAIT_S, Trio, caught_up, trio
from tests.cli.conftest import COMMAND, Ran, environment, free_port
from tests.observe.test_three_nodes import STEADY, none_lags

Run = Callable[..., Ran]


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Trio]:
    with trio(tmp_path, **STEADY) as opened:
        opened.append(b"x")
        for node in opened.nodes.values():
            caught_up(node, opened.leader.end_offset)
        none_lags(opened.leader)
        yield opened


def where(nodes: Trio) -> tuple[str, ...]:
    metrics = ",".join(str(node.metrics_endpoint) for node in nodes.nodes.values())
    bootstrap = ",".join(f"127.0.0.1:{port}" for port in nodes.ports)
    return "--bootstrap", bootstrap, "--metrics", metrics


def test_once_as_json_tells_every_node(fastquorum: Run, nodes: Trio) -> None:
    ran = fastquorum("top", *where(nodes), "--once", "--interval", "0.2", "--format", "json")
    assert (ran.code, ran.err) == (0, "")
    report = json.loads(ran.out)
    leader = nodes.leader
    assert (report["leader"], report["epoch"], report["problem"]) == (leader.node_id, leader.epoch, "")
    assert report["highWatermark"] == leader.high_watermark
    assert report["commitsPerS"] == 0
    assert [each["id"] for each in report["nodes"]] == [1, 2, 3]
    for each in report["nodes"]:
        assert each["up"] is True
        assert each["role"] == ("leader" if each["id"] == leader.node_id else "follower")
        assert (each["epoch"], each["leader"], each["lag"]) == (leader.epoch, leader.node_id, 0)
        assert each["logEnd"] == each["highWatermark"] == leader.end_offset
        assert each["appendsPerS"] == 0  # of syncs there may be one still: the durable mark's
        assert each["connections"] > 0


def test_rates_are_those_between_the_looks(fastquorum: Run, nodes: Trio) -> None:
    bootstrap = [Endpoint("", "127.0.0.1", port) for port in nodes.ports]
    served = [str(each.metrics_endpoint).rpartition(":") for each in nodes.nodes.values()]
    metrics = [Endpoint("", host, int(port)) for host, _, port in served]
    with Looker(bootstrap, metrics, None, WAIT_S) as looker:
        before = looker.look()
        for number in range(30):
            nodes.append(b"%d" % number)
        for node in nodes.nodes.values():
            caught_up(node, nodes.leader.end_offset)
        now = looker.look()
    row = compare(before, now)
    elapsed_s = now.at_s - before.at_s
    assert row.commits_per_s == pytest.approx(30 / elapsed_s)
    for each in row.nodes:
        led = each.id == nodes.leader.node_id
        assert each.commits_per_s == pytest.approx(30 / elapsed_s)
        assert each.appends_per_s == pytest.approx(30 / elapsed_s if led else 0)
        assert each.fetches_per_s == pytest.approx(0 if led else 30 / elapsed_s)
        assert each.syncs_per_s is not None
        assert each.syncs_per_s > 0


def test_without_metrics_the_quorum_s_answers_are_shown(fastquorum: Run, nodes: Trio) -> None:
    ran = fastquorum("top", *where(nodes)[:2], "--once", "--interval", "0.05")
    assert ran.code == 0
    headline, header, *rows = ran.out.splitlines()
    assert "3 of 3 nodes up" in headline
    assert f"node {nodes.leader.node_id} leads epoch {nodes.leader.epoch}" in headline
    assert header.split()[:4] == ["NODE", "ROLE", "EPOCH", "LOG-END"]
    assert sorted(row.split()[1] for row in rows) == ["follower", "follower", "leader"]


def test_metrics_are_found_at_the_same_port_of_every_host(fastquorum: Run, tmp_path: Path) -> None:
    port = free_port()
    with sync.open(tmp_path, node_id=1, metrics=f"127.0.0.1:{port}", **QUICK) as one:
        one.wait_ready(WAIT_S)
        at = ("--bootstrap", str(one.endpoint), "--metrics-port", port)
        ran = fastquorum("top", *at, "--once", "--interval", "0.05", "--format", "json")
    assert ran.code == 0
    assert json.loads(ran.out)["nodes"][0]["cpuPercent"] >= 0


def test_one_bootstrap_server_finds_the_others_and_a_node_that_is_down_is_said_to_be(
    fastquorum: Run, nodes: Trio
) -> None:
    gone = nodes.followers[0].node_id
    arguments = where(nodes)
    leader_at = str(nodes.leader.endpoint)
    nodes.crash(gone)
    ran = fastquorum(
        "top", "--bootstrap", leader_at, *arguments[2:], "--once", "--interval", "0.05", "--format", "json"
    )
    assert ran.code == 0
    report = json.loads(ran.out)
    down = next(each for each in report["nodes"] if each["id"] == gone)
    assert (down["up"], down["role"]) == (False, "down")
    assert "Connection refused" in down["reason"]
    assert len(report["missingMetrics"]) == 1
    assert sum(each["up"] for each in report["nodes"]) == 2


def test_without_a_majority_it_says_that_nobody_leads(fastquorum: Run, nodes: Trio) -> None:
    arguments = where(nodes)
    left = nodes.followers[0]
    for node_id in [each for each in nodes.nodes if each != left.node_id]:
        nodes.crash(node_id)
    ran = fastquorum("top", *arguments, "--once", "--interval", "0.05")
    assert ran.code == 3
    assert "1 of 3 nodes up, NO LEADER: n" in ran.out


def test_where_nobody_answers_the_addresses_are_all_there_is(fastquorum: Run) -> None:
    ran = fastquorum("top", "--bootstrap", f"127.0.0.1:{free_port()}", "--once", "--interval", "0.05")
    assert ran.code == 3
    assert "0 of 1 nodes up, NO LEADER: no node answers" in ran.out
    assert "Connection refused" in ran.out


def test_to_a_pipe_it_prints_again_and_again_until_it_is_interrupted(nodes: Trio) -> None:
    command = [*COMMAND, "top", *where(nodes), "--interval", "0.05", "--format", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as top:
        assert top.stdout is not None
        for _ in range(2):
            assert json.loads(top.stdout.readline())["leader"] == nodes.leader.node_id
        top.send_signal(signal.SIGINT)
        _, err = top.communicate(timeout=20)
    assert (top.returncode, err) == (130, b"")


@pytest.mark.parametrize("how", ["q", "SIGINT", "SIGTERM"])
def test_a_terminal_is_left_as_it_was_found(nodes: Trio, how: str) -> None:
    ours, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    command = [*COMMAND, "top", *where(nodes), "--interval", "30"]
    known = environment(TERM="xterm", COLUMNS="200", LINES="40")
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=known) as top:
        shown = b""
        deadline = time.monotonic() + WAIT_S
        while b"q ends" not in shown:
            assert time.monotonic() < deadline, shown
            if select.select([ours], [], [], 1)[0]:
                shown += os.read(ours, 65536)
        assert b"\x1b[?1049h" in shown  # a screen of its own
        assert b"leads epoch" in shown
        if how == "q":
            os.write(ours, b"q")
        else:
            top.send_signal(signal.Signals[how])
        while top.poll() is None:
            assert time.monotonic() < deadline
            if select.select([ours], [], [], 0.1)[0]:
                shown += os.read(ours, 65536)
        while select.select([ours], [], [], 0)[0]:
            shown += os.read(ours, 65536)
    assert shown.rindex(b"\x1b[?1049l") > shown.rindex(b"\x1b[?1049h")
    assert shown.rindex(b"\x1b[?25h") > shown.rindex(b"\x1b[?25l")  # the cursor
    assert termios.tcgetattr(theirs) == before
    assert top.returncode == {"q": 0, "SIGINT": 130, "SIGTERM": 143}[how]
    os.close(ours)
    os.close(theirs)


@pytest.mark.parametrize("width", [80, 120, 200])
def test_whatever_the_width_columns_are_left_out_rather_than_cut(nodes: Trio, width: int) -> None:
    with Looker([Endpoint("", "127.0.0.1", port) for port in nodes.ports], (), None, WAIT_S) as looker:
        before = looker.look()
        drawn = Console(width=width, file=io.StringIO())
        drawn.print(_drawn(compare(before, looker.look()), 2.0, width))
    lines = drawn.file.getvalue().splitlines()  # type: ignore[attr-defined]
    header = next(line for line in lines if line.startswith("NODE"))
    assert {"ROLE", "LAG", "COMMITS/S", "COMMIT-P99"} <= set(header.split())
    assert ("FETCHES/S" in header) is (width == 200)
    assert "…" not in "".join(lines)


@pytest.mark.parametrize(
    "words", [("--metrics-port", "0"), ("--metrics-port", "65536"), ("--metrics", "h"), ("--interval", "0")]
)
def test_bad_arguments_are_wrong_usage(fastquorum: Run, words: tuple[str, str]) -> None:
    assert fastquorum("top", "--bootstrap", "h:1", *words, "--once").code == 2
