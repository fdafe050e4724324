"""A node without a majority says whom it cannot reach, since when and why; and why leadership changed: everywhere."""

import asyncio
import logging
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fastquorum as fq
from fastquorum import sync
from fastquorum.cli.main import main
from fastquorum.errors import NotLeader, NotReady
from fastquorum.loopback import free_ports
from fastquorum.node.causes import CAUSES
from fastquorum.node.io.logged import LOGGER
from tests.api.nodes import CLUSTER_ID, QUICK, WAIT_S, trio, voters
from tests.cli.conftest import wait_until
from tests.observe.builders import get, scrape


@pytest.fixture
def silent() -> Iterator[int]:
    """A port where connections are taken by the system, and nobody ever answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def alone(ports: list[int], **more: Any) -> dict[str, Any]:
    return {**QUICK, "node_id": 1, "voters": voters(ports), "cluster_id": CLUSTER_ID, **more}


@pytest.mark.parametrize("kernels", ["native", "pure"])
def test_whoever_waits_or_asks_hears_whom_it_cannot_reach(tmp_path: Path, kernels: str, silent: int) -> None:
    ports = [*free_ports(2), silent]
    expected = [f"node 2 at 127.0.0.1:{ports[1]} cannot be reached for", "Connection refused"]
    expected += [f"node 3 at 127.0.0.1:{silent} cannot be reached for"]
    with sync.open(tmp_path, **alone(ports, kernels=kernels, metrics="127.0.0.1:0")) as quorum:
        wait_until(lambda: len(quorum.describe().unreachable) == 2, WAIT_S)
        with pytest.raises(NotReady) as not_ready:
            quorum.wait_ready(timeout=0.01)
        errors: list[Exception] = [not_ready.value]
        with pytest.raises(NotReady, match="what is committed is not known"):
            next(quorum.committed(follow=False))
        for use in (lambda: quorum.append(b"x", timeout=1), lambda: quorum.read_barrier(timeout=1)):
            with pytest.raises(NotLeader) as not_leader:
                use()
            errors.append(not_leader.value)
        for error in errors:
            assert all(each in str(error) for each in expected), error
        second, third = quorum.describe().unreachable
        assert (second.node_id, second.endpoint.port, second.reason) == (2, ports[1], "Connection refused")
        assert (third.node_id, third.endpoint.port) == (3, silent)
        assert second.unreachable_s > 0
        shown = get(quorum.metrics_endpoint, "/metrics").body
        assert "fastquorum_peer_unreachable_seconds{" in shown
        assert 'peer="2",reason="Connection refused"' in shown
        assert expected[0] in get(quorum.metrics_endpoint, "/readyz").body


@pytest.mark.parametrize("kernels", ["native", "pure"])
@pytest.mark.parametrize(("timeout", "error"), [(None, NotLeader), (0.05, NotReady)])
def test_who_opens_a_producer_where_no_leader_is_known_waits_no_longer_than_was_said(
    tmp_path: Path, kernels: str, timeout: float | None, error: type[Exception]
) -> None:
    """In both APIs: nobody waits without a limit for an election that may never come."""

    async def opened() -> None:
        async with (
            fq.open(tmp_path / "async", **alone(free_ports(3), kernels=kernels)) as quorum,
            quorum.producer(id="p", timeout=timeout),
        ):
            pytest.fail("nobody leads")

    with (
        pytest.raises(NotLeader),
        sync.open(tmp_path / "sync", **alone(free_ports(3), kernels=kernels)) as quorum,
        quorum.producer(id="p", timeout=timeout),
    ):
        pytest.fail("nobody leads")
    with pytest.raises(error):
        asyncio.run(asyncio.wait_for(opened(), WAIT_S))


@pytest.mark.parametrize("kernels", ["native", "pure"])
def test_two_voters_at_one_address_under_two_names_are_told(tmp_path: Path, kernels: str) -> None:
    (port,) = free_ports(1)
    both = f"1@127.0.0.1:{port},2@localhost:{port}"
    with sync.open(tmp_path, **alone([port], kernels=kernels) | {"voters": both}) as quorum:
        wait_until(lambda: any("another node" in each.reason for each in quorum.describe().unreachable), WAIT_S)
        with pytest.raises(NotReady, match=f"node 2 at localhost:{port} .* another node"):
            quorum.wait_ready(timeout=0.01)


def test_the_command_that_describes_a_quorum_hands_it_on(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ports = free_ports(3)
    with sync.open(tmp_path, **alone(ports)) as quorum:
        wait_until(lambda: len(quorum.describe().unreachable) == 2, WAIT_S)
        words = ["quorum", "describe", "--status", "--bootstrap", f"127.0.0.1:{ports[0]}", "--timeout", "2"]
        assert main(words) == 3
        printed = capfd.readouterr().err
        assert f"node 2 at 127.0.0.1:{ports[1]} cannot be reached for" in printed
        assert f"node 3 at 127.0.0.1:{ports[2]} cannot be reached for" in printed


def test_a_node_that_is_reached_again_is_no_longer_named(tmp_path: Path) -> None:
    with trio(tmp_path) as nodes:
        nodes.append(b"x")
        wait_until(lambda: all(not node.describe().unreachable for node in nodes.nodes.values()), WAIT_S)
        gone = nodes.followers[0].node_id
        leader = nodes.leader
        nodes.crash(gone)
        nodes.open(gone)
        nodes.ready()
        wait_until(lambda: all(not node.describe().unreachable for node in nodes.nodes.values()), WAIT_S)
        assert leader.node_id in nodes.nodes


def test_a_program_s_own_log_tells_of_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "fastquorum")
    ports = free_ports(3)

    def lines(level: int) -> list[str]:
        found = [each for each in caplog.records if each.name == "fastquorum" and each.levelno == level]
        return [each.getMessage() for each in found]

    async def wait() -> None:
        async with fq.open(tmp_path / "1", **alone(ports)):
            async with asyncio.timeout(WAIT_S):
                while len(lines(logging.WARNING)) < 2:
                    await asyncio.sleep(0.05)

    asyncio.run(wait())
    wait_until(lambda: any("it has stopped" in each for each in lines(logging.INFO)), WAIT_S)
    assert sorted(each.partition(" cannot")[0] for each in lines(logging.WARNING)) == [
        f"node 1: node 2 at 127.0.0.1:{ports[1]}",
        f"node 1: node 3 at 127.0.0.1:{ports[2]}",
    ]
    assert any("it listens, of cluster" in each for each in lines(logging.INFO))


def test_a_handler_that_hangs_holds_up_no_node(tmp_path: Path) -> None:
    let_go, hangs = threading.Event(), threading.Event()

    class Hanging(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            hangs.set()
            let_go.wait()

    handler = Hanging()
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    try:
        with sync.open(tmp_path, **QUICK, node_id=1) as quorum:
            quorum.wait_ready(WAIT_S)
            assert hangs.wait(WAIT_S)
            quorum.append(b"x", timeout=WAIT_S)
    finally:
        let_go.set()
        LOGGER.removeHandler(handler)
        LOGGER.setLevel(logging.NOTSET)


def test_a_handler_that_raises_loses_its_own_line_only(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    seen: list[str] = []

    class Raising(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen.append(record.getMessage())
            raise ValueError("the program's own fault")

    class Behind(logging.Handler):
        has_come = threading.Event()

        def emit(self, record: logging.LogRecord) -> None:
            self.has_come.set()

    handler, behind = Raising(), Behind()
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    try:
        for _ in range(2):
            sync.open(tmp_path, **QUICK, node_id=1).close()
        # Or more: what another node said before may still be on its way.
        wait_until(lambda: sum("it has stopped" in each for each in seen) >= 2, WAIT_S)
        # The last line's error is written before another line is.
        LOGGER.removeHandler(handler)
        LOGGER.addHandler(behind)
        sync.open(tmp_path, **QUICK, node_id=1).close()
        assert behind.has_come.wait(WAIT_S)
    finally:
        LOGGER.removeHandler(handler)
        LOGGER.removeHandler(behind)
        LOGGER.setLevel(logging.NOTSET)
    assert "the program's own fault" in capfd.readouterr().err


def test_the_log_of_a_program_that_closes_nothing_says_that_its_node_stopped(tmp_path: Path) -> None:
    program = (
        "import logging, sys, fastquorum as fq; logging.basicConfig(level=20, format='%(message)s')\n"
        "quorum = fq.sync.open(sys.argv[1], node_id=1)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "n1")], capture_output=True, text=True, timeout=300, check=True
    )
    assert "node 1: it has stopped\n" in ran.stderr


def test_why_leadership_changed_is_told(tmp_path: Path) -> None:
    with trio(tmp_path) as nodes:
        leader, follower = nodes.leader, nodes.followers[0]
        assert next(leader.leadership()).reason.endswith("a majority voted for this node")
        changes = follower.leadership()
        next(changes)
        nodes.have_lead(follower)
        mine = next(each for each in leader.leadership() if each.leader_id == follower.node_id)
        assert "another node" in mine.reason
        theirs = next(each for each in changes if each.is_self)
        assert theirs.reason.endswith("a majority voted for this node")


@pytest.mark.parametrize("kernels", ["native", "pure"])
def test_why_leadership_changed_last_is_in_what_a_node_says_of_itself(tmp_path: Path, kernels: str) -> None:
    with trio(tmp_path, kernels=kernels, metrics="127.0.0.1:0") as nodes:
        old, heir = nodes.leader, nodes.followers[0]
        nodes.have_lead(heir)
        won, lost = heir.describe().last_change, old.describe().last_change
        assert won is not None
        assert lost is not None
        assert won.reason.endswith("a majority voted for this node")
        assert lost.cause in CAUSES
        assert "another node" in lost.reason
        page = scrape(heir.metrics_endpoint)
        counts = {cause: page.value("fastquorum_leadership_changes_total", cause=cause) for cause in CAUSES}
        assert counts[won.cause] >= 1
        # Without a majority it resigns, and says so to whoever waits.
        for node_id in [each for each in nodes.nodes if each != heir.node_id]:
            nodes.crash(node_id)
        wait_until(lambda: heir.leader == -1, WAIT_S)
        last = heir.describe().last_change
        assert last is not None
        assert last.cause == "quorum_lost"
        assert scrape(heir.metrics_endpoint).value("fastquorum_leadership_changes_total", cause="quorum_lost") >= 1
        with pytest.raises(NotReady, match=f"leadership last changed for: {last.reason}"):
            heir.wait_ready(timeout=0.01)


def test_before_any_change_there_is_no_cause(tmp_path: Path) -> None:
    with sync.open(tmp_path, **alone(free_ports(3))) as quorum:
        assert quorum.describe().last_change is None
        with pytest.raises(NotReady) as not_ready:
            quorum.wait_ready(timeout=0.01)
        assert "last changed" not in str(not_ready.value)


def test_the_command_that_describes_a_quorum_without_a_leader_says_why_it_has_none(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with trio(tmp_path) as nodes:
        left = nodes.leader
        for node_id in [each for each in nodes.nodes if each != left.node_id]:
            nodes.crash(node_id)
        wait_until(lambda: left.leader == -1, WAIT_S)
        assert main(["quorum", "describe", "--status", "--bootstrap", str(left.endpoint), "--timeout", "2"]) == 3
        assert "leadership last changed for: no majority of voters fetched in time" in capfd.readouterr().err
