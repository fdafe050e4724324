"""A node that starts - for the first time, or after kill -9 with a torn tail - and stops again: each system call that
it makes on a file of its directory is refused, the first time, and every time.

What it calls is looked at first, on a copy; then a copy for each refusal. The node goes on, or ends and says why;
started again it has all that was acknowledged.
"""

import contextlib
import re
import shutil
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from fastquorum import log
from fastquorum.errors import FatalError, UsageError
from fastquorum.storage.names import LOG_DIRECTORY
from tests.privileges import strace
from tests.process.history import History
from tests.process.injected.injection import Fault, met
from tests.process.injected.running import VALUE_BYTES, VICTIM, CommandCluster, Outcome, wrong_lines
from tests.process.load import Load, fetch_committed
from tests.process.processes import WAIT_S

ERRORS: Final = {
    "openat": "EMFILE",
    "mkdir": "ENOSPC",
    "read": "EIO",
    "pread64": "EIO",
    "write": "ENOSPC",
    "pwrite64": "EIO",
    "writev": "ENOSPC",
    "fdatasync": "EIO",
    "fsync": "EIO",
    "rename": "ENOSPC",
    "unlink": "EIO",
    "ftruncate": "EIO",
    "fallocate": "ENOSPC",
    "fcntl": "ENOLCK",
    "newfstatat": "EIO",
    "getdents64": "EIO",
    "lseek": "EIO",
    "mmap": "ENOMEM",
}
"""What each call on a file is answered."""
ACKS: Final = 40
ENDS: Final = (UsageError.exit_code, 3, FatalError.exit_code)
"""With which a start may end that did not come to be."""
_CALL: Final = re.compile(r"^\d+ +(\w+)\(")


class Refusal(NamedTuple):
    fault: Fault
    file: str
    """In the node's directory."""

    def __str__(self) -> str:
        return f"{self.fault} of {self.file}"


class Start:
    """A directory in some state, and what was acknowledged in it."""

    def __init__(self, root: Path, kernels: str) -> None:
        self.root = root
        self.kernels = kernels
        self.history = History()
        self.turn = threading.Lock()
        """Held while a copy runs: all copies have the same port."""
        root.mkdir(parents=True, exist_ok=True)
        self.ports = self.cluster(root).ports

    def cluster(self, root: Path) -> CommandCluster:
        """The same node, with its directory below `root`."""
        quorum = CommandCluster(root, 1, kernels={VICTIM: self.kernels}, settings={"metadata.log.segment.bytes": 65536})
        quorum.ports = getattr(self, "ports", quorum.ports)
        return quorum

    def copy(self, root: Path) -> CommandCluster:
        shutil.copytree(self.root, root, dirs_exist_ok=True)
        return self.cluster(root)

    def refusals(self, root: Path) -> list[Refusal]:
        """What it calls on its files while it starts, serves, and stops."""
        quorum, trace = self.copy(root), root / "strace.log"
        place = f"{quorum.path(VICTIM)}/"
        with contextlib.closing(quorum):
            words = ["strace", "-D", "-f", "-y", "-qq", "-o", str(trace), "-e", f"trace={','.join(ERRORS)}"]
            quorum.start(VICTIM, prefix=words)
            quorum.ready()
            _load(quorum, History(), 1)
            assert quorum.stop() == {VICTIM: 0}
        found: dict[tuple[str, str], None] = {}
        for line in trace.read_text(errors="replace").splitlines():
            call = _CALL.match(line)
            if call is not None and place in line:
                found[call[1], re.split(r'[">]', line.partition(place)[2])[0]] = None
        return [
            Refusal(Fault(call, ERRORS[call], when), file)
            for call, file in found
            if not file.endswith("(deleted)")
            for when in ("1", "1+")
        ]


def first(start: Start) -> None:
    """It is formatted, and never ran."""


def killed(start: Start) -> None:
    """Killed under load after some segments, with garbage behind the last batch."""
    with contextlib.closing(start.cluster(start.root)) as quorum:
        quorum.start(VICTIM)
        quorum.ready()
        _load(quorum, start.history, ACKS, value_bytes=VALUE_BYTES)
        quorum.nodes[VICTIM].kill()
        last = max((quorum.path(VICTIM) / LOG_DIRECTORY).glob("0*.log"))
        batches = log.open(str(quorum.path(VICTIM))).batches()
        ends = [each.info.position + each.info.size_bytes for each in batches if each.segment_base == int(last.stem)]
        with last.open("r+b") as file:
            file.seek(max(ends, default=0))
            file.write(b"\x07" * 200)


STATES: Final[dict[str, Callable[[Start], None]]] = {"first": first, "killed": killed}


def refuse(start: Start, refusal: Refusal, root: Path) -> Outcome:
    """One start that is refused something, and the next one, which is not."""
    trace = root / "strace.log"
    history = History()
    history.by_value.update(start.history.by_value)
    fault = refusal.fault
    with start.turn, contextlib.closing(start.copy(root)) as quorum:
        injection = f"{fault.call}:error={fault.error}:when={fault.when}"
        quorum.start(VICTIM, prefix=strace(trace, injection, of=quorum.path(VICTIM) / refusal.file))
        victim = quorum.nodes[VICTIM]
        with contextlib.suppress(AssertionError):
            quorum.ready()
            _load(quorum, history, ACKS // 8, value_bytes=64, wait_s=2.0)
        is_up = victim.is_alive and bool(victim.reported("ready") or victim.reported("disk_full"))
        problems = [] if is_up or not victim.is_alive else [f"neither ready nor ended: {victim.events}"]
        try:
            code = victim.stop()
        except subprocess.TimeoutExpired:
            return Outcome([*problems, "does not stop"], met(trace), "hangs")
        if code not in ((0, FatalError.exit_code) if is_up else ENDS):
            problems.append(f"ended with {code}: {victim.events}")
        failed = victim.reported("failed")
        end = f"ended with {code}: {failed[0]['message']}" if failed else f"ended with {code}"
        problems += wrong_lines(victim)
        quorum.start(VICTIM)
        try:
            quorum.ready()
            _load(quorum, history, ACKS, value_bytes=65)
            problems += history.judge(fetch_committed(quorum.kernels, quorum.endpoint(VICTIM), 0)).problems
        except AssertionError as error:
            return Outcome([*problems, f"does not start again: {error}"], met(trace), end)
        if (codes := quorum.stop()) != {VICTIM: 0}:
            problems.append(f"exit codes of a graceful stop: {codes}")
        found = log.open(str(quorum.path(VICTIM))).verify().findings
        problems += [str(each) for each in found if each.severity == "corrupt"]
        return Outcome(problems, met(trace), end)


def _load(quorum: CommandCluster, history: History, acks: int, *, wait_s: float = WAIT_S, **how: Any) -> None:
    with Load({VICTIM: quorum.endpoint(VICTIM)}, history, **how) as load:
        history.wait_acked(acks, wait_s)
        load.pause()
