"""How often each node of a contender syncs for a commit, seen by strace: whoever does not sync is not durable.

Counted are fsync, fdatasync, sync_file_range and msync, and every write to a file that was opened with O_SYNC or
O_DSYNC, or that asks for it itself (RWF_DSYNC). A sync that went through io_uring cannot be seen by strace.
"""

import re
import shutil
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.compare.cluster import Cluster, Plan
from bench.compare.workload import CLOSED

CALLS = "fsync,fdatasync,sync_file_range,msync,write,writev,pwrite64,pwritev,pwritev2,open,openat,io_uring_enter"
NO_STRACE = "no strace; Debian, Ubuntu: apt install strace"
DURABLE_FROM = 0.9
"""Syncs a commit on at least two of three nodes, one append in flight."""
SYNC = re.compile(r"^\d+\s+(fsync|fdatasync|sync_file_range|msync)\(")
MSYNC_ASYNC = re.compile(r"^\d+\s+msync\(.*MS_ASYNC")
OPENED_SYNCED = re.compile(r"\bopen(?:at)?\b.*\bO_D?SYNC\b")
PATH = re.compile(r'"([^"]*)"')
WRITE = re.compile(r"^\d+\s+p?writev?(?:64|2)?\(\d+<([^>]*)>")
WRITE_SYNCED = re.compile(r"^\d+\s+pwritev2\(.*RWF_D?SYNC")
RING = re.compile(r"^\d+\s+io_uring_enter\(")


@dataclass(frozen=True, slots=True)
class Counted:
    syncs: int
    ring_calls: int
    """io_uring_enter: what was done through them is not known."""


@dataclass(frozen=True, slots=True)
class SyncCount:
    commits: int
    per_commit: Sequence[float]
    """Syncs per commit of each node."""
    uses_ring: bool
    why_unknown: str = ""

    @property
    def is_durable(self) -> bool | None:
        """None: not known."""
        if self.why_unknown:
            return None
        is_synced = statistics.median(self.per_commit) >= DURABLE_FROM
        return None if self.uses_ring and not is_synced else is_synced


class Trace:
    """Reads on in what strace wrote about a node; remembers which files are synced with each write."""

    def __init__(self, file: Path) -> None:
        self._file, self._position, self._synced_paths = file, 0, set[str]()

    def more(self) -> Counted:
        with self._file.open("rb") as file:
            file.seek(self._position)
            text = file.read()
        whole = text.rpartition(b"\n")[0]
        self._position += len(whole) + 1 if whole else 0
        return self.count(whole.decode(errors="replace").splitlines())

    def count(self, lines: Iterable[str]) -> Counted:
        syncs = ring_calls = 0
        for line in lines:
            if OPENED_SYNCED.search(line):
                path = PATH.search(line)
                self._synced_paths.add(path[1] if path else "")
            elif SYNC.match(line):
                syncs += not MSYNC_ASYNC.match(line)
            elif WRITE_SYNCED.match(line):
                syncs += 1
            elif RING.match(line):
                ring_calls += 1
            elif self._synced_paths:
                written = WRITE.match(line)
                syncs += bool(written and self._is_synced(written[1]))
        return Counted(syncs, ring_calls)

    def _is_synced(self, path: str) -> bool:
        return any(path == each or path.endswith(f"/{each}") for each in self._synced_paths)


def tracer(file: Path) -> list[str]:
    """What goes before a node's command, so that `file` is told its syncs."""
    # -D: the node keeps its process id; --seccomp-bpf: calls that are not asked for do not stop it.
    options = ["-D", "-f", "--seccomp-bpf", "-qq", "-y", "-s", "0", "-e", f"trace={CALLS}", "-e", "signal=none"]
    return ["strace", *options, "-o", str(file), "--"]


def count_syncs(name: str, plan: Plan, directory: Path, warm_s: float, seconds: float) -> SyncCount:
    """Runs the contender once under strace, one append in flight."""
    if shutil.which("strace") is None:
        return SyncCount(0, (), False, NO_STRACE)
    files = [directory / f"node-{number}.strace" for number in (1, 2, 3)]

    with Cluster(name, plan, directory, lambda number: tracer(files[number])) as cluster:
        cluster.run(CLOSED[0], warm_s)
        traces = [Trace(file) for file in files]
        for trace in traces:
            trace.more()
        commits = cluster.run(CLOSED[0], seconds).commits
        counted = [trace.more() for trace in traces]
    per_commit = [each.syncs / commits for each in counted]
    return SyncCount(commits, per_commit, any(each.ring_calls > commits / 2 for each in counted))
