"""A disk that fails or fills up: its node stops and says so, the quorum goes on, a restart needs no hands."""

import re
import subprocess
from pathlib import Path

import pytest

from fastquorum.errors import FatalError
from tests.cli.conftest import wait_until
from tests.privileges import mounted, strace
from tests.process.cluster import Cluster, cluster
from tests.process.judged import under_load
from tests.process.processes import WAIT_S

FAILED_S = 20.0
"""A failing node is gone within this; it is a bound, not a measure."""


# Once only: the next call would succeed, and nobody may try it. A thread's fiftieth: elections do not make so many,
# even some more than are needed, and so it befalls a node under load.
@pytest.mark.parametrize("injection", ["fdatasync:error=EIO:when=50", "pwrite64:error=EIO:when=50"])
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
            quorum.make_leader(victim)
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
            quorum.make_leader(victim)
        with under_load(quorum, value_bytes=4096) as (_, history):
            assert quorum.nodes[victim].ended(FAILED_S) == FatalError.exit_code
            said = quorum.nodes[victim].said("failed")[0]
            assert re.search("No space left on device.* make room on its file system", said["text"]), said
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


def test_a_disk_that_all_three_share_fills_up_and_space_brings_all_of_them_back(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "tmpfs", "size=3m") as place:
        quorum = Cluster(tmp_path)
        for node_id in quorum.ids:
            (place / f"node{node_id}").mkdir()
            (tmp_path / f"node{node_id}").symlink_to(place / f"node{node_id}")
        try:
            quorum.start(*quorum.ids)
            quorum.ready()
            with under_load(quorum, value_bytes=4096) as (load, _):
                # The last one may have room, but has no majority: it takes nothing any more.
                wait_until(lambda: len(quorum.alive) <= 1, FAILED_S)
                load.pause()
                ended = [node_id for node_id in quorum.ids if node_id not in quorum.alive]
                for node_id in ended:
                    assert quorum.nodes[node_id].ended() == FatalError.exit_code
                    assert "make room on its file system" in quorum.nodes[node_id].said("failed")[0]["text"]
                    quorum.note_state(node_id)
                grow(place)
                quorum.start(*ended)
                quorum.ready(*ended)
        finally:
            quorum.close()


def grow(place: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=512m", str(place)], check=True)
