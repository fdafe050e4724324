"""`fastquorum format` and `run` as an operator uses them: signals, exit codes, a disk that fails; one clear line."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from fastquorum import log
from fastquorum.client.connection import Connection, Deadline, NotSent
from fastquorum.kernels import load
from fastquorum.types import Endpoint
from tests.conftest import ROOT
from tests.privileges import strace
from tests.process.cluster import CLUSTER_ID, fixed_ports
from tests.process.command import fastquorum, refusal
from tests.process.history import History
from tests.process.load import Load, batch_of, fetch_committed, produce

STOP_S = 5.0
QUICK = {"FASTQUORUM_QUORUM_ELECTION_TIMEOUT_MS": "150", "FASTQUORUM_QUORUM_FETCH_TIMEOUT_MS": "400"}


class Run:
    """`fastquorum run` in the foreground of a process of its own."""

    def __init__(self, data: Path, *words: str, prefix: list[str] | None = None) -> None:
        self.process = subprocess.Popen(
            [
                *(prefix or []),
                sys.executable,
                "-m",
                "fastquorum.cli",
                "run",
                "--data",
                str(data),
                *words,
                "--until-stdin-ends",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, **QUICK},
        )
        assert self.process.stdout is not None
        self.printed = self.process.stdout.readline()
        """The line that says where it listens; empty if it ended before."""

    def signal(self, *numbers: int) -> None:
        for number in numbers:
            self.process.send_signal(number)

    def ended(self, timeout_s: float) -> tuple[int, str]:
        """Exit code and stderr."""
        _, errors = self.process.communicate(timeout=timeout_s)
        return self.process.returncode, errors


@contextmanager
def running(data: Path, *words: str, prefix: list[str] | None = None) -> Iterator[Run]:
    run = Run(data, *words, prefix=prefix)
    try:
        yield run
    finally:
        run.process.kill()
        run.process.communicate()


def format_all(root: Path, count: int) -> dict[int, Endpoint]:
    ports = fixed_ports(count)
    voters = ",".join(f"{node_id}@127.0.0.1:{port}" for node_id, port in enumerate(ports, 1))
    for node_id in range(1, count + 1):
        words = ("--node-id", str(node_id), "--cluster-id", CLUSTER_ID, "--voters", voters)
        made = fastquorum("format", "--data", str(root / f"n{node_id}"), *words)
        assert made.returncode == 0, made.stderr
    return {node_id: Endpoint("", "127.0.0.1", port) for node_id, port in enumerate(ports, 1)}


def append_one(endpoint: Endpoint, value: bytes) -> int:
    connection = Connection(endpoint, Deadline(10))
    try:
        answer, _ = produce(connection, batch_of(load("native"), [value]))
        assert answer.error_code == 0
        return answer.base_offset
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("numbers", "code"),
    [((signal.SIGTERM, signal.SIGTERM), 0), ((signal.SIGINT, signal.SIGQUIT), 130)],  # twice at once, as by timeout(1)
)
def test_a_signal_stops_it_in_time_and_leaves_a_closed_log(tmp_path: Path, numbers: tuple[int, ...], code: int) -> None:
    endpoint = format_all(tmp_path, 1)[1]
    with running(tmp_path / "n1") as run:
        assert f"{endpoint.host}:{endpoint.port}" in run.printed
        run.signal(*numbers)
        assert run.ended(STOP_S) == (code, "")
    found = log.open(str(tmp_path / "n1")).verify()
    assert found.is_closed
    assert found.findings == []


def test_a_signal_is_heard_whichever_thread_the_kernel_gives_it_to(tmp_path: Path) -> None:
    """Sent to a process that is just being continued, the kernel passes the main thread over."""
    format_all(tmp_path, 1)
    for _ in range(3):
        with running(tmp_path / "n1") as run:
            assert run.printed
            run.signal(signal.SIGSTOP, signal.SIGCONT, signal.SIGTERM)
            assert run.ended(STOP_S) == (0, "")


def test_three_commands_form_a_quorum_that_survives_kill_9(tmp_path: Path) -> None:
    endpoints = format_all(tmp_path, 3)
    history = History()
    with ExitStack() as stack:
        runs = {node_id: stack.enter_context(running(tmp_path / f"n{node_id}")) for node_id in endpoints}
        with Load(endpoints, history) as writers:
            assert history.wait_acked(50, 30)
            for node_id in endpoints:
                runs[node_id].process.kill()
                runs[node_id].process.communicate()
                runs[node_id] = stack.enter_context(running(tmp_path / f"n{node_id}"))
                assert history.wait_acked(50, 30)
            writers.pause()
            read = committed(endpoints)
        assert history.judge(read).problems == []
        for run in runs.values():
            run.signal(signal.SIGTERM)
        ended = [run.ended(STOP_S) for run in runs.values()]
        assert [code for code, _ in ended] == [0] * 3
        # Whoever stops last may find that no majority is left.
        lines = [line for _, errors in ended for line in errors.splitlines()]
        assert [line for line in lines if "no leader is known" not in line] == []


def committed(endpoints: dict[int, Endpoint]) -> list[tuple[int, bytes]]:
    """What a consumer reads from whoever leads; asks around, each question a round trip."""
    for _ in range(200):
        for endpoint in endpoints.values():
            try:
                return fetch_committed(load("native"), endpoint, 0)
            except (AssertionError, NotSent):
                continue
    raise AssertionError("nobody leads")


def test_a_failing_disk_ends_it_with_a_code_of_its_own_and_one_line(tmp_path: Path) -> None:
    endpoint = format_all(tmp_path, 1)[1]
    prefix = strace(tmp_path / "strace.log", "fdatasync:error=EIO:when=30")
    acked: list[tuple[int, bytes]] = []
    with running(tmp_path / "n1", prefix=prefix) as run:
        assert run.printed
        connection = Connection(endpoint, Deadline(10))
        try:
            for number in range(1000):
                value = b"value %d" % number
                try:
                    answer, _ = produce(connection, batch_of(load("native"), [value]))
                except Exception:
                    break
                if answer.error_code != 0:
                    break
                acked.append((answer.base_offset, value))
        finally:
            connection.close()
        code, errors = run.ended(20)
    assert code == 5
    assert len(errors.strip().splitlines()) == 1, errors
    assert "start the process again" in errors
    with running(tmp_path / "n1") as run:
        assert run.printed
        found = committed({1: endpoint})
        assert found[: len(acked)] == acked
        assert len(found) <= len(acked) + 1


def test_two_commands_on_one_directory(tmp_path: Path) -> None:
    endpoint = format_all(tmp_path, 1)[1]
    with running(tmp_path / "n1") as run:
        assert run.printed
        first = append_one(endpoint, b"one")
        assert "in use by another process" in refusal(fastquorum("run", "--data", str(tmp_path / "n1")))
        assert append_one(endpoint, b"two") == first + 1
