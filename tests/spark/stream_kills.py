"""A stream from a quorum to Parquet while leaders are killed, and then the program that runs the stream, too.

All that was acknowledged must be in the Parquet once, and in the order of the offsets: what is in it is what a consumer
reads of the quorum in the end.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet

from tests.process.cluster import Cluster, cluster
from tests.process.history import History
from tests.process.load import Load, fetch_committed
from tests.process.processes import WAIT_S, NodeProcess

ACKED = 100
"""So many more are acknowledged between two kills."""
START_S = 240
"""A JVM that takes longer to start and to do little hangs."""
PACE_S = 0.02


class Stream:
    """The program that streams, and those that went on where one was killed."""

    def __init__(self, quorum: Cluster, directory: Path) -> None:
        self._bootstrap = ",".join(f"127.0.0.1:{port}" for port in quorum.ports.values())
        self._directory = directory
        self._errors = directory / "stream.stderr"
        self.batches: list[dict[str, Any]] = []
        self.restarts = -1
        self._process: NodeProcess | None = None

    def start(self) -> None:
        self.restarts += 1
        self._process = NodeProcess(
            0,
            [self._bootstrap, str(self._directory)],
            errors=self._errors,
            prefix=["setsid"],  # with its JVM, it can be killed as one
            module="tests.spark.stream_driver",
        )
        self._process.wait_event("started", timeout_s=START_S)

    @property
    def process(self) -> NodeProcess:
        assert self._process is not None, "it is not started"
        return self._process

    def wait_read(self, offset: int) -> None:
        """Return once it has read everything below."""
        self.process.wait(
            lambda each: each["event"] == "batch" and max(each["end"].values()) >= offset, timeout_s=START_S
        )

    def kill(self) -> None:
        """Python and JVM, at once."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self._over()

    def stop(self) -> None:
        self.process.tell("stop")
        self.process.wait_event("stopped", timeout_s=START_S)
        self._over()

    def dump(self) -> "pyarrow.Table":
        self.process.tell("dump")
        self.process.wait_event("dumped", timeout_s=START_S)
        return pyarrow.parquet.read_table(self._directory / "dump.parquet")

    def _over(self) -> None:
        self.process.ended(START_S)
        self.batches += self.process.reported("batch")
        self.process.close()
        self._process = None

    def close(self) -> None:
        if self._process is not None:
            if self._process.is_alive:
                os.killpg(self._process.pid, signal.SIGKILL)
            self._over()


@contextmanager
def streaming(root: Path) -> Iterator[tuple[Cluster, Load, Stream]]:
    """Three nodes, two writers, and a stream that reads what they write."""
    with cluster(root / "quorum") as quorum:
        endpoints = {node_id: quorum.endpoint(node_id) for node_id in quorum.ids}
        directory = root / "stream"
        directory.mkdir()
        stream = Stream(quorum, directory)
        try:
            with Load(endpoints, History(), pace_s=PACE_S) as load:
                stream.start()
                yield quorum, load, stream
        finally:
            stream.close()


def kill_leader(quorum: Cluster, load: Load, stream: Stream) -> None:
    """And see the stream go on under another one."""
    assert load.history.wait_acked(ACKED, WAIT_S)
    leader, epoch = quorum.leader(), quorum.epoch()
    quorum.kill(leader)
    quorum.wait_leader(not_in=[leader], after_epoch=epoch)
    assert load.history.wait_acked(ACKED, WAIT_S)
    stream.wait_read(max(each.offset for each in load.history.acked()))
    quorum.start(leader)
    quorum.ready(leader)


def judge(quorum: Cluster, load: Load, stream: Stream) -> dict[str, Any]:
    """Nothing lost, nothing twice, and in order. AssertionError."""
    load.pause()
    committed = fetch_committed(quorum.kernels, quorum.endpoint(quorum.leader()), 0)
    stream.wait_read(max(each.offset for each in load.history.acked()) + 1)
    found = stream.dump()
    stream.stop()
    whole = found.sort_by("offset")
    offsets = whole["offset"].to_pylist()
    assert offsets == list(range(len(offsets))), "an offset is missing, or there twice"
    users = whole.filter(pc.invert(whole["is_control"]))
    records = list(zip(users["offset"].to_pylist(), users["value"].to_pylist(), strict=True))
    problems = load.history.judge(records).problems
    assert problems == []
    assert records == committed[: len(records)]
    for name in pc.unique(found["file_name"]).to_pylist():
        part = found.filter(pc.equal(found["file_name"], name))["offset"].to_pylist()
        assert part == sorted(part), f"{name} is not in the order of the offsets"
    ends = {each["number"]: (each["start"], each["end"]) for each in stream.batches}
    for number, (start, _) in sorted(ends.items()):
        if number - 1 in ends:
            assert start == ends[number - 1][1], f"batch {number} does not begin where the one before it ended"
    return {
        "acknowledged": load.history.count("acked"),
        "unknown": load.history.count("unknown"),
        "in_parquet": len(records),
        "batches": len(ends),
        "restarts": stream.restarts,
        "lost": 0,
        "doubled": 0,
    }


def stream_kills(root: Path, kills: int, *, stops: bool = True, say: Any = lambda _: None) -> dict[str, Any]:
    """So many leader kills; after half of them the stream's own program is killed, and with `stops`, later stopped."""
    with streaming(root) as (quorum, load, stream):
        for number in range(kills):
            if number == kills // 2:
                assert load.history.wait_acked(ACKED, WAIT_S)
                stream.kill()
                stream.start()
            if stops and number == kills // 2 + 1:
                stream.stop()
                assert load.history.wait_acked(ACKED, WAIT_S)
                stream.start()
            kill_leader(quorum, load, stream)
            say(f"{number + 1}/{kills} kills, {load.history.count('acked')} acknowledged")
        return {"kills": kills, **judge(quorum, load, stream)}
