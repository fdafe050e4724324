"""`fastquorum shell` as somebody has it before them: Tab, Ctrl-C, Ctrl-D, on a terminal."""

import fcntl
import os
import pty
import select
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.conftest import COMMAND, environment, wait_until
from tests.wire.golden import CLUSTER

WAIT_S = 30
PROMPT = b">> "
CTRL_C = b"\x03"
CTRL_D = b"\x04"


class Sitting:
    """A shell over c1 on a terminal of its own."""

    def __init__(self) -> None:
        self.terminal, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [*COMMAND, "shell", str(CLUSTER / "c1")],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment(TERM="dumb", COLUMNS="60"),
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY),  # so that Ctrl-C is a signal
        )
        os.close(theirs)

    def read(self, end: bytes) -> bytes:
        """Read the terminal up to and with `end`."""
        shown = b""
        deadline = time.monotonic() + WAIT_S
        while not shown.endswith(end):
            assert time.monotonic() < deadline, shown
            if select.select([self.terminal], [], [], 1)[0]:
                shown += os.read(self.terminal, 1)
        return shown

    def type(self, keys: bytes) -> None:
        os.write(self.terminal, keys)

    def ask(self, line: bytes) -> list[str]:
        """A line; the lines that follow it until the next prompt, without what was typed."""
        self.type(line + b"\n")
        return self.read(PROMPT).removesuffix(PROMPT).decode().splitlines()[1:]

    def wait_idle(self) -> None:
        """Until it waits for a key. Python's prompt overlooks a Ctrl-C that comes just before that."""
        status = Path(f"/proc/{self.process.pid}/stat")
        wait_until(lambda: status.read_text().rpartition(")")[2].split()[0] == "S", WAIT_S)

    def end(self) -> tuple[int, bytes]:
        """The exit code, and what was shown at last."""
        shown = b""
        with suppress(OSError):  # EIO: nobody has the other side open
            while data := os.read(self.terminal, 4096):
                shown += data
        return self.process.wait(WAIT_S), shown


@pytest.fixture
def sitting() -> Iterator[Sitting]:
    started = Sitting()
    shown = started.read(PROMPT)
    assert b"The image of offsets below 3836, epoch 3; help lists the commands\r\n" in shown
    yield started
    if started.process.poll() is None:
        started.process.kill()
    started.process.wait()
    os.close(started.terminal)


def test_tab_completes_commands_and_paths(sitting: Sitting) -> None:
    sitting.type(b"tr\t/im\tprod\t")
    assert sitting.read(b"producerIds/") == b"tree /image/producerIds/"
    assert sitting.ask(b"") == ["nextProducerId:", "  -1"]
    sitting.type(b"cd /image/topics/byN\tclicks-11\t")
    sitting.read(b"clicks-11/")
    assert sitting.ask(b"") == []
    assert sitting.ask(b"pwd") == ["/image/topics/byName/clicks-11"]


def test_tab_twice_shows_the_names_of_the_directory_alone(sitting: Sitting) -> None:
    sitting.type(b"ls /image/topics/by\t\t")
    shown = sitting.read(b"\n" + PROMPT + b"ls /image/topics/by").decode()
    assert shown.splitlines()[1].split() == ["byId/", "byName/"]


def test_a_listing_goes_into_columns(sitting: Sitting) -> None:
    assert sitting.ask(b"ls /image") == [
        "acls          configs          producerIds  topics",
        "clientQuotas  delegationToken  provenance",
        "cluster       features         scram",
    ]


def test_a_mistake_leaves_the_prompt(sitting: Sitting) -> None:
    assert sitting.ask(b"ls /nope") == ["ls: /nope: no such file or directory"]
    assert sitting.ask(b"history") == ["    1  ls /nope", "    2  history"]
    sitting.type(b"exit\n")
    assert sitting.end()[0] == 0


def test_ctrl_c_forgets_the_line(sitting: Sitting) -> None:
    sitting.type(b"cd /image")
    sitting.read(b"cd /image")
    sitting.wait_idle()
    sitting.type(CTRL_C)
    assert sitting.read(PROMPT) == b"^C\r\n>> "
    assert sitting.ask(b"pwd") == ["/"]


def test_ctrl_c_ends_a_command_that_goes_on(sitting: Sitting) -> None:
    """More is listed than a terminal holds that nobody reads: the shell waits in the midst of it."""
    sitting.type(b"find" + b" /" * 50 + b"\n")
    for _ in range(2):
        sitting.read(b"\n")  # the line itself, and the first that it lists
    sitting.type(CTRL_C)
    assert sitting.read(PROMPT).count(b"/local/version") < 50
    assert sitting.ask(b"pwd") == ["/"]


def test_ctrl_d_leaves(sitting: Sitting) -> None:
    sitting.type(CTRL_D)
    code, shown = sitting.end()
    assert (code, b"Traceback" in shown) == (0, False)
