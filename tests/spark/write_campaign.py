"""kill -9 while a streaming query writes from Parquet to a quorum: of leaders, of Python workers, of an executor, and
of the driver; the query goes on from its checkpoint.

Each comes in the middle of a batch. In the end every row must be in the quorum once, and the rows of each file in their
order. `python -m tests.spark.campaign` runs it.
"""

import os
import random
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fastquorum.client.connection import Deadline
from fastquorum.client.quorum import QuorumClient
from fastquorum.kernels import load
from tests.interop.nodes import Nodes, running
from tests.process.processes import NodeProcess

FILES = 2
"""That come together: a task of a batch for each."""
ROWS = 4000
"""Rows of a file. A few of them fit into a batch of the log."""
PAD = "." * 80
START_S = 240.0
"""A session, and a batch, on a loaded machine."""
CLUSTER = "local-cluster[2,1,1024]"
THREADS = "local[2]"
DAEMON = "pyspark.daemon"
EXECUTOR = "CoarseGrainedExecutorBackend"


def value_of(file: int, row: int) -> str:
    return f"{file} {row} {PAD}"


class Campaign:
    """One query, perhaps in several lives. Deterministic in what it chooses, not in what comes of it."""

    def __init__(self, root: Path, nodes: Nodes, master: str, seed: int) -> None:
        self.kills: Counter[str] = Counter()
        self.in_the_midst = 0
        """Kills when some of a batch's rows were committed, and some were not."""
        self.epochs: list[int] = []
        self._root = root
        self._nodes = nodes
        self._random = random.Random(seed)
        self._files = 0
        self._source = root / "source"
        self._source.mkdir()
        self._client = QuorumClient([nodes.endpoint(each) for each in nodes.ids], load("native"))
        self._driver = self._start(master)

    def _start(self, master: str) -> NodeProcess:
        arguments = [str(self._source), str(self._root / "checkpoint"), self._nodes.bootstrap, master]
        errors = self._root / "driver.stderr"
        driver = NodeProcess(0, arguments, errors=errors, module="tests.spark.write_query")
        try:
            driver.wait_event("running", timeout_s=START_S)
        except BaseException:
            driver.close()
            raise
        return driver

    def close(self) -> None:
        """Nobody survives."""
        everybody = descendants(self._driver.pid) if self._driver.is_alive else []
        self._driver.close()
        kill(everybody)
        self._client.close()

    # --- rows ---------------------------------------------------------------------------------------------------------

    def add_files(self) -> None:
        """Some more rows for the query."""
        for file in range(self._files, self._files + FILES):
            rows = [value_of(file, row) for row in range(ROWS)]
            draft = self._root / f"{file}.draft"
            pq.write_table(pa.table({"value": rows}), draft)
            draft.rename(self._source / f"{file}.parquet")
        self._files += FILES

    @property
    def expected(self) -> int:
        return self._files * ROWS

    def in_the_middle(self) -> None:
        """Return in the middle of the batch that was added last: when some of its rows are there."""
        before = self.expected - FILES * ROWS
        self._wait_for(before + int(self._random.uniform(0.1, 0.8) * FILES * ROWS))

    def _wait_for(self, rows: int) -> None:
        """Return once so many are committed. Beside rows a log has a record for each epoch."""
        deadline = Deadline(START_S)
        while True:
            found = self._nodes.describe()
            if (there := found.partition.high_watermark - found.epoch) >= rows:
                self.in_the_midst += there < self.expected
                return
            failures = self._driver.reported("failed")
            assert not failures, failures
            assert self._driver.is_alive, self._driver.stderr[-4000:]
            assert not deadline.is_over, f"{found.partition.high_watermark} of {rows} records are there"

    # --- killing ------------------------------------------------------------------------------------------------------

    def kill_leader(self) -> None:
        before = self._nodes.describe()
        self._nodes.kill(before.leader_id)
        self.kills["leader"] += 1
        self.epochs.append(self._nodes.wait_epoch(before.epoch).epoch)
        self._nodes.start(before.leader_id)

    def kill_workers(self) -> None:
        """Every Python process that writes."""
        daemons = {pid for pid in descendants(self._driver.pid) if DAEMON in command_of(pid)}
        workers = [pid for pid in daemons if parent_of(pid) in daemons]
        assert workers, "nobody writes"
        kill(workers)
        self.kills["worker"] += 1

    def kill_executor(self) -> None:
        """One of them; its workers live until they notice."""
        executors = [pid for pid in descendants(self._driver.pid) if EXECUTOR in command_of(pid)]
        assert executors, "there are no executors"
        kill([self._random.choice(sorted(executors))])
        self.kills["executor"] += 1

    def kill_driver(self, master: str) -> None:
        """The driver and its JVM; executors live until they notice. Then the query goes on from its checkpoint."""
        everybody = descendants(self._driver.pid)
        kill([pid for pid in everybody if parent_of(pid) == self._driver.pid])
        self._driver.close()
        self.kills["driver"] += 1
        self._driver = self._start(master)
        kill(pid for pid in everybody if DAEMON in command_of(pid) or EXECUTOR in command_of(pid))

    # --- the verdict --------------------------------------------------------------------------------------------------

    def finish(self) -> dict[str, Any]:
        """Have everything written, end the query, and judge the log. AssertionError if a row is lost, there twice, or
        not in its place."""
        self._driver.tell("finish")
        self._driver.wait(lambda each: each["event"] in ("finished", "failed"), timeout_s=START_S)
        assert not self._driver.reported("failed"), self._driver.reported("failed")
        end = self._nodes.wait_caught_up().partition.high_watermark
        found = [(record.value or b"").decode() for _, record in self._client.read_all(0, end, Deadline(START_S))]
        figures = {"rows": len(found), **problems(found, self._files)}
        assert len(found) == self.expected, figures
        assert not any(problems(found, self._files).values()), figures
        return {"kills": dict(self.kills), "in_the_midst": self.in_the_midst, "epochs": self.epochs, **figures}


def problems(found: Sequence[str], files: int) -> dict[str, int]:
    """Every row of every file must be there once, and each file's in order."""
    counts = Counter(found)
    wanted = {value_of(file, row) for file in range(files) for row in range(ROWS)}
    out_of_order = 0
    last: dict[str, int] = {}
    for value in found:
        file, row, _ = value.split(" ", 2)
        out_of_order += last.get(file, -1) >= int(row)
        last[file] = int(row)
    return {
        "lost": sum(value not in counts for value in wanted),
        "doubled": sum(count - 1 for count in counts.values()),
        "out_of_order": out_of_order,
        "foreign": sum(value not in wanted for value in counts),
    }


# --- processes --------------------------------------------------------------------------------------------------------


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def parent_of(pid: int) -> int:
    """-1 if it is gone, or about to be."""
    fields = _stat(pid)
    return int(fields[1]) if fields and fields[0] != "Z" else -1


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def descendants(pid: int) -> list[int]:
    """Whoever was started by it, and by those."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (parent := parent_of(int(entry.name))) >= 0:
            children.setdefault(parent, []).append(int(entry.name))
    found: list[int] = []
    waiting = [pid]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def kill(pids: Sequence[int] | Iterator[int]) -> None:
    """SIGKILL, those that are still there."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


# --- campaigns --------------------------------------------------------------------------------------------------------


@contextmanager
def campaign(root: Path, master: str = THREADS, seed: int = 1) -> Iterator[Campaign]:
    """Three nodes and a query that writes to them; whatever happens, none is left behind."""
    with running(root) as nodes:
        hurt = Campaign(root, nodes, master, seed)
        try:
            yield hurt
        finally:
            hurt.close()


def write_kills(
    root: Path, kills: int, *, seed: int = 1, say: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """So many leaders, each in the middle of a batch; after half of them the driver, too. The figures;
    AssertionError."""
    with campaign(root, seed=seed) as hurt:
        for number in range(1, kills + 1):
            hurt.add_files()
            hurt.in_the_middle()
            hurt.kill_leader()
            say(f"leader {number} of {kills} killed, epoch {hurt.epochs[-1]}")
            if number == (kills + 1) // 2:
                hurt.add_files()
                hurt.in_the_middle()
                hurt.kill_driver(THREADS)
                say("driver killed, and started again")
        return hurt.finish()


def cluster_kills(root: Path, *, seed: int = 1, say: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """On a cluster of processes a leader, Spark's Python workers, an executor, the driver, and a leader again, each in
    the middle of a batch. The figures; AssertionError."""
    with campaign(root, CLUSTER, seed=seed) as hurt:
        for whom, kill in (
            ("leader", hurt.kill_leader),
            ("workers", hurt.kill_workers),
            ("an executor", hurt.kill_executor),
            ("driver", lambda: hurt.kill_driver(THREADS)),
            ("leader", hurt.kill_leader),
        ):
            hurt.add_files()
            hurt.in_the_middle()
            kill()
            say(f"{whom} killed")
        figures = hurt.finish()
    assert figures["kills"] == {"leader": 2, "worker": 1, "executor": 1, "driver": 1}
    assert figures["in_the_midst"] > 0
    return figures
