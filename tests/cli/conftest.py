"""Runs the command as a user does, in a process of its own, or, where that would be slow, by its `main`."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from fastquorum.cli.main import main
from fastquorum.loopback import free_ports

COMMAND = (sys.executable, "-m", "fastquorum.cli")


class Ran(NamedTuple):
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str


@pytest.fixture
def fastquorum(capfd: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Calls the command inside this process."""

    def run(*words: object) -> Ran:
        capfd.readouterr()
        try:
            code = main([str(word) for word in words])
        except SystemExit as ended:  # argparse's way
            code = int(ended.code or 0)
        out, err = capfd.readouterr()
        return Ran(code, out, err)

    return run


def in_process(*words: object, stdin: str = "", environment: Mapping[str, str] | None = None) -> Ran:
    """Calls the command as a process, with text on its stdin, and more in its environment."""
    command = [*COMMAND, *map(str, words)]
    more = {**os.environ, **(environment or {})}
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60, env=more)
    return Ran(done.returncode, done.stdout, done.stderr)


class RunningCommand:
    """A `fastquorum run` in the background."""

    def __init__(self, data: Path | None, *words: str) -> None:
        """`data` is None where a file says it."""
        named = () if data is None else ("--data", str(data))
        self.process = subprocess.Popen(
            [*COMMAND, "run", *named, *words, "--until-stdin-ends"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.line = self.process.stdout.readline()

    def end(self, number: signal.Signals) -> Ran:
        """Send a signal, wait for the end; which has to come within 5 s."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=5)
        return Ran(self.process.returncode, out, err)


@pytest.fixture
def running() -> Iterator[Callable[..., RunningCommand]]:
    """Starts nodes; whatever still runs in the end is killed."""
    started: list[RunningCommand] = []

    def start(data: Path | None, *words: str) -> RunningCommand:
        started.append(RunningCommand(data, *words))
        return started[-1]

    yield start
    for each in started:
        if each.process.poll() is None:
            each.process.kill()
            each.process.communicate()


@pytest.fixture
def data(tmp_path: Path, fastquorum: Callable[..., Ran]) -> Path:
    """A formatted data directory of a quorum of one."""
    path = tmp_path / "n1"
    ran = fastquorum("format", "--data", path, "--node-id", 1, "--voters", f"1@127.0.0.1:{free_port()}")
    assert ran.code == 0, ran.err
    return path


def free_port() -> int:
    return free_ports(1)[0]


def files_of(directory: Path) -> dict[str, bytes]:
    """Every file below, for telling that nothing was changed."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


def running_with(directory: Path) -> list[int]:
    """The processes that were started with this directory for their temporary files."""
    found = []
    for each in Path("/proc").glob("[0-9]*/environ"):
        try:
            variables = each.read_bytes().split(b"\0")
        except OSError:  # it has ended, or is somebody else's
            continue
        if f"TMPDIR={directory}".encode() in variables:
            found.append(int(each.parent.name))
    return found


def wait_until(condition: Callable[[], bool], timeout_s: float = 10.0) -> None:
    """Look again until it holds."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.01)


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, **more}
