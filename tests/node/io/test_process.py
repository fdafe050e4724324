"""What a process does to its node: forks, hogs the interpreter, is killed, opens a directory twice."""

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fastquorum import log, sync
from fastquorum.errors import ClosedError, NotLeader, NotReady
from fastquorum.node.lane.producer_states import NAMED
from tests.api.nodes import QUICK, WAIT_S, Trio, values_of
from tests.cli.conftest import wait_until


def in_child(work: "object") -> int:
    """Exit code of a forked child that does the work."""
    child = os.fork()
    if child == 0:
        try:
            work()  # type: ignore[operator]
        except BaseException as error:
            os.write(2, f"{error!r}\n".encode())
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_forked_child_s_handle_is_poisoned_and_the_parent_s_is_not(tmp_path: Path) -> None:
    with sync.open(str(tmp_path), **QUICK, node_id=1) as node:
        node.wait_ready(WAIT_S)
        node.append(b"before", timeout=WAIT_S)
        listening = node._node._listening

        def in_vain() -> None:
            for use in (
                lambda: node.append(b"x"),
                node.wait_ready,
                node.read_barrier,
                lambda: next(node.committed()),
                node.describe,
            ):
                with pytest.raises(ClosedError, match="fork"):
                    use()
            node.close()  # nothing to do, nothing done
            assert listening.fileno() == -1

        assert in_child(in_vain) == 0
        assert node.append(b"after", timeout=WAIT_S) > 0
        assert values_of(node) == [b"before", b"after"]


def test_a_child_that_lives_on_keeps_neither_port_nor_directory(tmp_path: Path) -> None:
    node = sync.open(str(tmp_path), **QUICK, node_id=1)
    node.wait_ready(WAIT_S)
    go, gone = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(gone)
        os.read(go, 1)
        os._exit(0)
    try:
        node.close()
        with sync.open(str(tmp_path), **QUICK, node_id=1) as again:
            again.wait_ready(WAIT_S)
    finally:
        os.close(go)
        os.close(gone)
        os.waitpid(child, 0)


def test_a_second_process_is_refused_with_a_clear_word(tmp_path: Path) -> None:
    with sync.open(str(tmp_path), **QUICK, node_id=1):
        code = f"import fastquorum as fq; fq.sync.open({str(tmp_path)!r}, node_id=1)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
        assert "DirectoryError" in done.stderr
        assert "in use by another process" in done.stderr


def test_a_process_that_exits_without_closing_leaves_a_closed_directory(tmp_path: Path) -> None:
    code = (
        "import sys; from fastquorum import sync\n"
        "node = sync.open(sys.argv[1], node_id=1, election_timeout_us=100_000)\n"
        "node.wait_ready(20); node.append(b'kept', timeout=20)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert log.open(str(tmp_path)).verify().is_closed
    assert [record.value for record in log.open(str(tmp_path)).records()] == [b"kept"]


SERVER = """
import sys
from fastquorum import sync
node = sync.open(sys.argv[1], node_id=int(sys.argv[2]), voters=sys.argv[3], cluster_id="AAAAAAAAAAAAAAAAAAAAAQ",
                 election_timeout_us=int(sys.argv[4]), fetch_timeout_us=int(sys.argv[5]))
print("open", flush=True)
sys.stdin.read()
node.close()
"""


@contextlib.contextmanager
def server(nodes: Trio, node_id: int, election_timeout_us: int = 150_000) -> "Iterator[subprocess.Popen[str]]":
    """One node of the three in a process of its own."""
    fetch_timeout_us = nodes.options["fetch_timeout_us"]
    timeouts = (str(election_timeout_us), str(fetch_timeout_us))
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, nodes.path(node_id), str(node_id), nodes.voters, *timeouts],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "open\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


@contextlib.contextmanager
def leading_here(tmp_path: Path) -> Iterator[tuple[Trio, sync.Quorum]]:
    """Three nodes: this process's leads, as the others, in processes of their own, are slow to stand. All fetch."""
    nodes = Trio(tmp_path, fetch_timeout_us=2_000_000)
    with server(nodes, 2, election_timeout_us=30_000_000), server(nodes, 3, election_timeout_us=30_000_000):
        try:
            nodes.open(1)
            nodes.ready()
            node = nodes.nodes[1]
            assert node.is_leader
            end = node.append(b"first", timeout=WAIT_S) + 1
            wait_until(lambda: [each.end_offset for each in node.describe().replicas] == [end] * 2, WAIT_S)
            yield nodes, node
        finally:
            nodes.close()


@pytest.mark.slow
def test_five_seconds_of_python_in_the_leader_s_user_thread_cost_no_election(tmp_path: Path) -> None:
    with leading_here(tmp_path) as (_, node):
        epoch = node.epoch
        end = time.monotonic() + 5
        while time.monotonic() < end:
            sum(range(1000))
        assert (node.is_leader, node.epoch) == (True, epoch)
        node.append(b"x", timeout=WAIT_S)
        assert node.epoch == epoch


HELD_S = 5
Done = list[tuple[float, float, int]]


@contextlib.contextmanager
def producing(port: int, producer_id: int) -> Iterator[Callable[[], Done]]:
    """A Kafka client that has begun to produce; called, it ends: when each batch was sent and answered, its offset."""
    command = [sys.executable, "-m", "tests.node.io.producing_client", str(port), str(producer_id)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == "begun\n"
        yield lambda: json.loads(client.communicate(timeout=WAIT_S)[0])


@pytest.mark.slow
def test_a_call_that_holds_the_leaders_interpreter_stops_no_commit_of_a_kafka_client(tmp_path: Path) -> None:
    with leading_here(tmp_path) as (nodes, node):
        epoch = node.epoch
        with producing(nodes.ports[0], -1) as plain, producing(nodes.ports[0], NAMED | 77) as idempotent:
            begin = time.monotonic()
            ctypes.PyDLL(None).usleep(HELD_S * 1_000_000)  # with the GIL
            assert time.monotonic() >= begin + HELD_S
            clients = [plain(), idempotent()]
        assert (node.is_leader, node.epoch) == (True, epoch)
        for done in clients:
            offsets = [offset for _, _, offset in done]
            assert offsets == sorted(set(offsets))
            seconds = [int(answered - begin) for sent, answered, _ in done if sent >= begin]
            batches = [seconds.count(second) for second in range(HELD_S)]
            assert all(batches), f"committed in each second that the interpreter was held: {batches}"


def test_a_stopped_process_comes_back_and_acknowledges_nothing_stale(tmp_path: Path) -> None:
    nodes = Trio(tmp_path)
    with server(nodes, 1) as process:
        try:
            nodes.open(2, 3)
            nodes.ready()
            while nodes.nodes[2].leader != 1:  # whoever was elected at first: the one to be stopped shall lead
                for node in nodes.nodes.values():
                    with contextlib.suppress(NotLeader, NotReady):
                        node.transfer_leadership(1, timeout=1)
            process.send_signal(signal.SIGSTOP)
            try:
                offset = nodes.append(b"while it sleeps")
                epoch = nodes.leader.epoch
            finally:
                process.send_signal(signal.SIGCONT)
            assert nodes.append(b"after it woke") > offset
            assert nodes.leader.epoch >= epoch
            assert values_of(nodes.leader)[:1] == [b"while it sleeps"]
        finally:
            nodes.close()
