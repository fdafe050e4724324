"""What the platform does to a node in the foreground: its output is closed, full or unread; signals; process 1."""

import json
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from fastquorum import log
from fastquorum.cli.main import main
from fastquorum.types import Endpoint
from tests.cli.conftest import wait_until
from tests.conftest import ROOT
from tests.privileges import missing
from tests.process.test_command import QUICK, format_all

STOP_S = 20.0
RUN = (sys.executable, "-m", "fastquorum", "run")


@contextmanager
def started(*words: str, **streams: IO[bytes] | int) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(words, cwd=ROOT, env={**os.environ, **QUICK}, **streams)  # type: ignore[call-overload]
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def append(to: Endpoint) -> None:
    """It takes part: it listens, leads and commits."""
    place = f"{to.host}:{to.port}"
    assert main(["append", "--bootstrap", place, "--value", "x", "--timeout", "60"]) == 0


def is_closed(data: Path) -> bool:
    """Did the node stop in good order?"""
    return log.open(str(data)).verify().is_closed


def test_output_that_is_full_and_output_that_is_never_read_stop_no_node_and_signals_without_meaning_neither(
    tmp_path: Path,
) -> None:
    (endpoint,) = format_all(tmp_path, 1).values()
    data = tmp_path / "n1"
    read_fd, write_fd = os.pipe()
    os.set_blocking(write_fd, False)
    with suppress(BlockingIOError):
        while os.write(write_fd, bytes(4096)):
            pass
    os.set_blocking(write_fd, True)
    with (
        open("/dev/full", "wb") as full,
        started(*RUN, "--data", str(data), "--log-format", "json", stdout=full, stderr=write_fd) as process,
    ):
        append(endpoint)
        for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGPIPE, signal.SIGRTMIN, signal.SIGPROF):
            process.send_signal(number)
        append(endpoint)
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGHUP):  # as systemd and a closing terminal send them
            process.send_signal(number)
        assert process.wait(STOP_S) == 0
    os.close(read_fd)
    os.close(write_fd)
    assert is_closed(data)


def test_a_hangup_stops_a_node_without_output_in_good_order_unless_it_is_ignored(tmp_path: Path) -> None:
    (endpoint,) = format_all(tmp_path, 1).values()
    data = tmp_path / "n1"
    line = 'trap \'\' HUP; exec "$0" "$@" <&- >&- 2>&-'
    with started("sh", "-c", line, *RUN, "--data", str(data)) as process:
        append(endpoint)
        process.send_signal(signal.SIGHUP)
        append(endpoint)
        process.send_signal(signal.SIGQUIT)
        assert process.wait(STOP_S) == 0
    assert is_closed(data)


def catches(process_id: int, number: int) -> bool:
    """Does the process have a handler for the signal?"""
    for line in Path(f"/proc/{process_id}/status").read_text().splitlines():
        if line.startswith("SigCgt:"):
            return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def only_child(process: subprocess.Popen[bytes]) -> list[str]:
    return Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()


def test_process_1_ends_by_a_signal_that_comes_while_it_starts(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        missing("a process namespace needs root")
    format_all(tmp_path, 1)
    for number in (signal.SIGTERM, signal.SIGQUIT):
        with started("unshare", "--pid", "--fork", "--kill-child", *RUN, "--data", str(tmp_path / "n1")) as process:
            wait_until(lambda process=process: process.poll() is not None or bool(only_child(process)), 60)  # type: ignore[misc]
            (child,) = map(int, only_child(process))
            # The handler is the first thing there is: nearly all that takes time is imported after it.
            wait_until(lambda child=child, number=number: catches(child, number), 60)  # type: ignore[misc]
            os.kill(child, number)
            assert process.wait(STOP_S) in (128 + number, 0)  # 0: this test was slower than the start


def test_a_process_that_may_hardly_open_a_file_is_told_what_to_raise() -> None:
    for files in (10, 20):
        words = ["sh", "-c", f'ulimit -n {files}; exec "$0" "$@"', sys.executable, "-m", "fastquorum", "doctor"]
        answered = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
        assert answered.returncode == 1
        assert answered.stdout == ""
        assert "raise the limit" in answered.stderr
        assert "Traceback" not in answered.stderr


def test_a_shortage_of_descriptors_is_told_in_the_form_of_the_log(tmp_path: Path) -> None:
    """By whatever part of the node, in whatever thread."""
    (endpoint,) = format_all(tmp_path, 1).values()
    words = (*RUN, "--data", str(tmp_path / "n1"), "--log-format", "json")
    with started(*words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        append(endpoint)
        _, hard = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (3, hard))  # what is open stays open
        assert process.stderr is not None
        with process.stderr, socket.create_connection((endpoint.host, endpoint.port)):
            events = (json.loads(line) for line in process.stderr)
            line = next(each for each in events if each["event"] == "repeated_fault")
        assert line["level"] == "warning"
        where = f"{endpoint.host}:{endpoint.port}"
        assert f"no connection can be taken in at {where}: Too many open files" in line["message"]
