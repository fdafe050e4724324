"""What a process does to its node: forks, hogs the interpreter, is killed, opens a directory twice."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fastquorum import sync
from fastquorum.errors import ClosedError, DirectoryError
from tests.api.nodes import QUICK, WAIT_S, trio, values_of


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


def test_a_read_only_directory_is_refused(tmp_path: Path) -> None:
    sync.open(str(tmp_path), node_id=1).close()
    if os.access("/proc/version", os.W_OK) or os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    tmp_path.chmod(0o500)
    with pytest.raises(DirectoryError):
        sync.open(str(tmp_path), node_id=1)


@pytest.mark.slow
def test_five_seconds_of_python_in_the_user_s_thread_cost_no_election(tmp_path: Path) -> None:
    with trio(tmp_path, fetch_timeout_us=1_000_000, election_timeout_us=500_000) as nodes:
        epoch = nodes.leader.epoch
        end = time.monotonic() + 5
        while time.monotonic() < end:
            sum(range(1000))
        assert {node.epoch for node in nodes.nodes.values()} == {epoch}
        nodes.append(b"x")
        assert nodes.leader.epoch == epoch


SERVER = """
import sys
from fastquorum import sync
node = sync.open(sys.argv[1], node_id=int(sys.argv[2]), voters=sys.argv[3], cluster_id="AAAAAAAAAAAAAAAAAAAAAQ",
                 election_timeout_us=150_000, fetch_timeout_us=400_000)
print("open", flush=True)
sys.stdin.read()
node.close()
"""


def test_a_stopped_process_comes_back_as_a_follower_and_acknowledges_nothing_stale(tmp_path: Path) -> None:
    from tests.api.nodes import Trio

    nodes = Trio(tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, nodes.path(1), "1", nodes.voters],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        nodes.open(2, 3)
        nodes.ready()
        if nodes.nodes[2].leader != 1:
            leader = nodes.leader
            leader.transfer_leadership(1, timeout=WAIT_S) if leader.leader == leader.node_id else None
        process.send_signal(signal.SIGSTOP)
        offset = nodes.append(b"while it sleeps")
        epoch = nodes.leader.epoch
        process.send_signal(signal.SIGCONT)
        assert nodes.append(b"after it woke") > offset
        assert nodes.leader.epoch >= epoch
        assert values_of(nodes.leader)[:1] == [b"while it sleeps"]
    finally:
        nodes.close()
        assert process.stdin is not None
        process.stdin.close()
        process.wait(WAIT_S)
        assert process.stdout is not None
        process.stdout.close()
