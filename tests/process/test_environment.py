"""What a container or an operator leaves a node: a read-only root, little memory, small stacks, a user without a name.

In each a quorum of one opens, appends, reads and stops: as a node in the foreground, and embedded in a program.
"""

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pytest

from fastquorum import log
from tests.conftest import ROOT
from tests.privileges import missing
from tests.process.test_command import QUICK, format_all

pytestmark = pytest.mark.long

WAIT_S: Final = 120.0
MEMORY_BYTES: Final = 192 << 20
"""Page cache and kernel memory of the process count, too; Python with a node takes some 50 MiB of it."""
ADDRESSES_BYTES: Final = 2 << 30
STACK_KIB: Final = 256
STRANGER: Final = 54_321
"""A user and group id that no passwd entry names."""
EMBEDDED: Final = """
import sys
from fastquorum import sync

with sync.open(sys.argv[1], node_id=1) as quorum:
    quorum.wait_ready(60)
    offset = quorum.append(b"x", timeout=60)
    (batch,) = [each for each in quorum.committed(offset, follow=False) if each.records]
    assert [record.value for record in batch.records] == [b"x"], batch
"""
FOREGROUND: Final = """
import signal, subprocess, sys

command = [sys.executable, "-m", "fastquorum"]
at = ["--bootstrap", sys.argv[2], "--timeout", "60"]
node = subprocess.Popen([*command, "run", "--data", sys.argv[1]])
try:
    subprocess.run([*command, "append", *at, "--value", "x"], check=True)
    done = subprocess.run([*command, "read", *at], check=True, capture_output=True, text=True)
    assert done.stdout.endswith("\\tx\\n"), done
    node.send_signal(signal.SIGTERM)
    assert node.wait(20) == 0
finally:
    node.kill()
"""
Prefix = tuple[str, ...]
HOWS: Final = ("a node", "embedded")


def lives(data: Path, how: str, prefix: Prefix = (), without: tuple[str, ...] = (), owner: int = 0) -> None:
    """A quorum of one under what the prefix makes of its environment, and `without` these variables."""
    if how == "a node":
        (endpoint,) = format_all(data.parent, 1).values()
        program, words = FOREGROUND, (str(data), f"{endpoint.host}:{endpoint.port}")
    else:
        data.mkdir()
        program, words = EMBEDDED, (str(data),)
    for each in (data, *data.rglob("*")) if owner else ():
        os.chown(each, owner, owner)
    environment = {name: value for name, value in (os.environ | QUICK).items() if name not in without}
    command = [*prefix, sys.executable, "-c", program, *words]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=WAIT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert log.open(str(data)).verify().is_closed


def shell(script: str, *words: str) -> Prefix:
    """A prefix that has a shell prepare what the command begins with."""
    return ("sh", "-ec", f'{script}; exec "$@"', "sh", *words)


@pytest.mark.parametrize("how", HOWS)
def test_a_read_only_root_is_enough_where_the_directory_can_be_written(tmp_path: Path, how: str) -> None:
    if os.geteuid() != 0:
        missing("a mount namespace needs root")
    if subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode != 0:
        missing("unshare is not allowed here")
    data = tmp_path / "n1"
    script = (
        'mount --make-rprivate /; mount --bind "$1" "$1"; mount -o remount,bind,ro /; '
        "if mountpoint -q /tmp; then mount -o remount,bind,ro /tmp; fi; "
        'if touch "$2" 2>/dev/null; then echo "it can be written" >&2; exit 1; fi; shift 2'
    )
    lives(data, how, ("unshare", "-m", *shell(script, str(data), str(tmp_path / "probe"))))


@contextmanager
def memory_group(limit_bytes: int) -> Iterator[Path]:
    """A control group, of version 2 or 1, in which no more memory may be used."""
    two, one = Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/memory")
    is_two = (two / "cgroup.controllers").exists() and "memory" in (two / "cgroup.subtree_control").read_text().split()
    group = (two if is_two else one) / f"fastquorum-test-{os.getpid()}"
    with ExitStack() as stack:
        try:
            group.mkdir()
            stack.callback(group.rmdir)
            (group / ("memory.max" if is_two else "memory.limit_in_bytes")).write_text(str(limit_bytes))
        except OSError as error:
            # Not `missing`: a container seldom may, and the limit of addresses below is tried everywhere.
            pytest.skip(f"no control group of memory can be made here: {error}")
        yield group


@pytest.mark.parametrize("how", HOWS)
def test_a_container_s_little_memory_is_enough(tmp_path: Path, how: str) -> None:
    with memory_group(MEMORY_BYTES) as group:
        lives(tmp_path / "n1", how, shell(f"echo $$ > {group}/cgroup.procs"))


@pytest.mark.parametrize("how", HOWS)
def test_a_limit_of_addresses_is_enough(tmp_path: Path, how: str) -> None:
    """Not the same as a limit of memory: what is reserved and never touched counts here, and there it does not."""
    lives(tmp_path / "n1", how, shell(f"ulimit -v {ADDRESSES_BYTES >> 10}"))


@pytest.mark.parametrize("how", HOWS)
def test_small_stacks_are_enough(tmp_path: Path, how: str) -> None:
    """The first thread's, and those that the C library gives every other one, which are as large by default."""
    _, hard = resource.getrlimit(resource.RLIMIT_STACK)
    assert hard == resource.RLIM_INFINITY or hard >= STACK_KIB << 10
    lives(tmp_path / "n1", how, shell(f"ulimit -s {STACK_KIB}"))


@pytest.mark.parametrize("how", HOWS)
def test_a_user_without_a_name_and_a_home_is_enough(tmp_path: Path, how: str) -> None:
    """An orchestrator picks such a user. It may read what root may, as this Python may be in root's home."""
    if os.geteuid() != 0:
        missing("to be another user needs root")
    ids = (f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups")
    reads = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
    homeless = ("HOME", "USER", "LOGNAME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")
    lives(tmp_path / "n1", how, ("setpriv", *ids, *reads), homeless, owner=STRANGER)
