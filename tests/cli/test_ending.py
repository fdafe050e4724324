"""How commands end by SIGINT, SIGTERM and SIGHUP: with their exit codes, no word too much, and nothing half made."""

import fcntl
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fastquorum.cli.main import EXIT_BROKEN_PIPE, EXIT_CODES
from fastquorum.cli.node.signals import STOPPING
from fastquorum.errors import FastQuorumError
from tests.cli.conftest import COMMAND
from tests.conftest import ROOT
from tests.wire.golden import CLUSTER

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
WAIT_S = 60


@contextmanager
def begun(*words: object, **settings: object) -> Iterator["subprocess.Popen[bytes]"]:
    """With pipes for its output."""
    process = subprocess.Popen(
        [*COMMAND, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **settings,  # type: ignore[call-overload]
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("by", [signal.SIGTERM])
def test_what_it_was_making_is_taken_away(by: signal.Signals, tmp_path: Path) -> None:
    """Asked twice at once, as timeout(1) does, which signals the process and then its group."""
    out = tmp_path / "out"
    code = f"""
import os, signal, sys
from fastquorum.spark import exporting
def export(*_):
    open({str(out)!r} + "/part", "w").close()
    for _ in range(2):
        os.kill(os.getpid(), {int(by)})
exporting.export = export
sys.argv = ["fastquorum", "log", "export", {str(CLUSTER)!r}, "--out", {str(out)!r}]
from fastquorum.cli.__main__ import main
sys.exit(main())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=WAIT_S)
    assert (done.returncode, done.stdout, done.stderr) == (128 + by, b"", b"")
    assert not out.exists()


@pytest.mark.parametrize("by", SIGNALS)
def test_a_signal_while_something_is_imported_is_heard_when_that_is_done(by: signal.Signals) -> None:
    """A weak reference's callback is where importlib swallows what is raised."""
    code = f"""
import os, signal, sys, weakref
class Gone: pass
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "fastquorum.cli.demo.screen":
            gone = Gone()
            reference = weakref.ref(gone, lambda _: os.kill(os.getpid(), {int(by)}))
            del gone
sys.meta_path.insert(0, Interrupting())
sys.argv = ["fastquorum", "demo"]
from fastquorum.cli.__main__ import main
sys.exit(main())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=WAIT_S)
    assert (done.returncode, done.stderr) == (128 + by, b"")  # the demo may have begun to tell what it does


@pytest.mark.parametrize("by", SIGNALS)
def test_a_signal_in_the_last_import_ends_a_command_that_is_over_before_it_is_looked_again(by: signal.Signals) -> None:
    code = f"""
import os, signal, sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "fastquorum.missing":
            os.kill(os.getpid(), {int(by)})
def run(_):
    try:
        import fastquorum.missing
    except ImportError:
        return 0
sys.meta_path.insert(0, Interrupting())
from fastquorum.cli import random_uuid
random_uuid.run = run
sys.argv = ["fastquorum", "random-uuid"]
from fastquorum.cli.__main__ import main
sys.exit(main())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=WAIT_S)
    assert (done.returncode, done.stdout, done.stderr) == (128 + by, b"", b"")


def test_a_signal_that_was_put_off_goes_to_whoever_handles_it_when_the_import_is_over() -> None:
    """A node's own handlers are such: they stop it in order."""
    code = f"""
import os, signal, sys, time
from fastquorum.ending import end
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "missing":
            os.kill(os.getpid(), {int(signal.SIGTERM)})
sys.meta_path.insert(0, Interrupting())
signal.signal(signal.SIGALRM, signal.SIG_IGN)
signal.signal(signal.SIGTERM, end)
try:
    import missing
except ImportError:
    pass
heard = []
signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
until_s = time.monotonic() + {WAIT_S}
while not heard and time.monotonic() < until_s:
    time.sleep(0.001)
print(heard, signal.getsignal(signal.SIGALRM) is signal.SIG_IGN)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=WAIT_S * 2)
    assert (done.stdout, done.stderr) == (f"[{int(signal.SIGTERM)}] True\n", "")


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGHUP])
def test_a_reader_that_hangs_keeps_nobody(by: signal.Signals) -> None:
    with begun("wire", "spec", "--format", "json") as process:
        assert process.stdout is not None
        fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, 4096)
        assert os.read(process.stdout.fileno(), 1), "the rest waits for a reader"
        process.send_signal(by)
        assert process.wait(WAIT_S) == 128 + by


def test_a_reader_that_is_slow_gets_everything_though_the_pipe_does_not_wait() -> None:
    """Whoever starts it may have made the pipe non-blocking, and has it read later."""
    whole = subprocess.run([*COMMAND, "metrics", "grafana"], capture_output=True, timeout=WAIT_S, check=True).stdout
    read_fd, write_fd = os.pipe()
    assert fcntl.fcntl(read_fd, fcntl.F_SETPIPE_SZ, 4096) < len(whole)
    os.set_blocking(write_fd, False)
    with open(read_fd, "rb") as reader:
        process = subprocess.Popen([*COMMAND, "metrics", "grafana"], stdout=write_fd)
        os.close(write_fd)
        assert (reader.read(), process.wait(WAIT_S)) == (whole, 0)


def test_every_code_that_a_command_can_end_with_is_listed() -> None:
    """In README, and where `--help` of the whole command ends."""
    kinds = [FastQuorumError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    ending = (*SIGNALS, *STOPPING, signal.SIGPIPE)
    codes = {0, EXIT_BROKEN_PIPE, *(each.exit_code for each in kinds), *(128 + number for number in ending)}
    readme = (ROOT / "README.md").read_text().partition("Exit codes: ")[2].partition("\n\n")[0]
    for listed in (EXIT_CODES, " ".join(readme.split())):
        assert {int(each) for each in re.findall(r"\b(\d+) [a-z]", listed)} == codes, listed
