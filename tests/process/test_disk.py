"""A disk that fails or fills up: its node stops and says so, the quorum goes on, a restart needs no hands."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fastquorum.errors import FatalError
from tests.privileges import mounted, strace
from tests.process.cluster import Cluster, cluster
from tests.process.history import History
from tests.process.load import Load, fetch_committed
from tests.process.processes import WAIT_S

FAILED_S = 20.0
"""A failing node is gone within this; it is a bound, not a measure."""


@contextmanager
def under_load(quorum: Cluster, value_bytes: int = 64) -> Iterator[tuple[Load, History]]:
    """Writers while something breaks; afterwards nothing acknowledged may be missing anywhere it counts."""
    history = History()
    endpoints = {node_id: quorum.endpoint(node_id) for node_id in quorum.ids}
    with Load(endpoints, history, value_bytes=value_bytes) as load:
        yield load, history
        assert history.wait_acked(20, WAIT_S)
        load.pause()
        leader = quorum.leader()
        assert history.judge(fetch_committed(quorum.kernels, quorum.endpoint(leader), 0)).problems == []
    assert history.not_on_a_majority({node_id: quorum.records(node_id) for node_id in quorum.ids}) == []
    assert quorum.ballots.violations == []


def make_leader(quorum: Cluster, node_id: int) -> None:
    while (leader := quorum.leader()) != node_id:
        epoch = quorum.epoch()
        quorum.nodes[leader].tell(f"transfer {node_id}")
        quorum.wait_leader(after_epoch=epoch)


# Once only: the next call would succeed, and nobody may try it.
@pytest.mark.parametrize("injection", ["fdatasync:error=EIO:when=25", "pwrite64:error=EIO:when=40"])
@pytest.mark.parametrize("role", ["leader", "follower"])
def test_an_error_of_the_disk_stops_the_node_and_nothing_acknowledged_is_lost(
    tmp_path: Path, role: str, injection: str
) -> None:
    with cluster(tmp_path, settings={"log.mark.interval.ms": 60_000}) as quorum:
        victim = 3
        quorum.stop(victim)
        quorum.start(victim, prefix=strace(tmp_path / "strace.log", injection))
        quorum.ready(victim)
        if role == "leader":
            make_leader(quorum, victim)
        with under_load(quorum) as (_, history):
            assert quorum.nodes[victim].ended(FAILED_S) == FatalError.exit_code
            said = quorum.nodes[victim].said("failed")[0]
            assert said["error"] in ("FsyncFailed", "StorageFailed", "StateStoreFailed")
            assert str(quorum.path(victim)) in said["text"] or "node3" in said["text"]
            assert "check the device and restart" in said["text"]
            assert "EIO" in (tmp_path / "strace.log").read_text()
            assert history.wait_acked(20, WAIT_S)  # the other two go on
            quorum.note_state(victim)
            quorum.start(victim)
            quorum.ready(victim)


@pytest.mark.parametrize("role", ["leader", "follower"])
def test_a_full_disk_stops_one_node_and_space_brings_it_back(tmp_path: Path, role: str) -> None:
    victim = 3
    with mounted(tmp_path / f"node{victim}", "tmpfs", "size=1m") as place, cluster(tmp_path) as quorum:
        if role == "leader":
            make_leader(quorum, victim)
        with under_load(quorum, value_bytes=4096) as (_, history):
            assert quorum.nodes[victim].ended(FAILED_S) == FatalError.exit_code
            said = quorum.nodes[victim].said("failed")[0]
            assert re.search("No space left on device", said["text"]), said
            assert history.wait_acked(20, WAIT_S)
            quorum.note_state(victim)
            # Still full: a clear end again, and still no harm to the others.
            quorum.start(victim)
            quorum.nodes[victim].wait_ended(2.0)
            quorum.kill(victim)
            assert history.wait_acked(20, WAIT_S)
            grow(place)
            quorum.start(victim)
            quorum.ready(victim)


def grow(place: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=512m", str(place)], check=True)
