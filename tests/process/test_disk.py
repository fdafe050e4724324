"""A disk that fails stops its node, one that fills up costs it the lead; the quorum goes on, and needs no hands."""

import subprocess
from pathlib import Path

import pytest

from fastquorum import sync
from fastquorum.errors import FatalError
from fastquorum.loopback import free_ports
from fastquorum.storage.names import LOG_DIRECTORY
from tests.cli.conftest import wait_until
from tests.privileges import fill, mounted, strace
from tests.process.cluster import CLUSTER_ID, Cluster, cluster
from tests.process.command import fastquorum, refusal
from tests.process.judged import under_load
from tests.process.processes import WAIT_S

pytestmark = pytest.mark.long

FAILED_S = 20.0
"""A failing node is gone within this; it is a bound, not a measure."""


# Once only: the next call would succeed, and nobody may try it. A thread's fiftieth of the log: elections do not make
# so many of them, even some more than are needed, and so it befalls a node under load.
@pytest.mark.parametrize("injection", ["fdatasync:error=EIO:when=50", "pwrite64:error=EIO:when=50"])
@pytest.mark.parametrize("role", ["leader", "follower"])
def test_an_error_of_the_disk_stops_the_node_and_nothing_acknowledged_is_lost(
    tmp_path: Path, role: str, injection: str
) -> None:
    with cluster(tmp_path, settings={"metadata.log.segment.bytes": 1 << 20}) as quorum:
        victim = 3
        quorum.stop(victim)
        segment = quorum.path(victim) / LOG_DIRECTORY / "00000000000000000000.log"
        quorum.start(victim, prefix=strace(tmp_path / "strace.log", injection, of=segment))
        quorum.ready(victim)
        if role == "leader":
            quorum.make_leader(victim)
        with under_load(quorum) as (_, history):
            assert quorum.nodes[victim].ended(FAILED_S) == FatalError.exit_code
            printed = quorum.nodes[victim].reported("failed")[0]
            assert printed["error"] in ("FsyncFailed", "StorageFailed", "StateStoreFailed")
            assert str(quorum.path(victim)) in printed["text"] or "node3" in printed["text"]
            assert "check the device" in printed["text"]
            assert "EIO" in (tmp_path / "strace.log").read_text()
            assert history.wait_acked(20, WAIT_S)  # the other two go on
            quorum.note_state(victim)
            quorum.start(victim)
            quorum.ready(victim)


@pytest.mark.parametrize("kernels", ["native", pytest.param("pure", marks=pytest.mark.long)])
@pytest.mark.parametrize("role", ["leader", "follower"])
def test_a_full_disk_costs_a_node_its_lead_and_room_brings_it_back_where_it_is(
    tmp_path: Path, role: str, kernels: str
) -> None:
    victim = 3
    with (
        mounted(tmp_path / f"node{victim}", "tmpfs", "size=2m") as place,
        cluster(tmp_path, kernels={victim: kernels}) as quorum,
    ):
        if role == "leader":
            quorum.make_leader(victim)
        with under_load(quorum, value_bytes=4096) as (_, history):
            wait_until(lambda: is_full(quorum, victim), WAIT_S)
            assert history.wait_acked(50, WAIT_S)  # the other two go on
            assert quorum.leader() != victim
            assert is_full(quorum, victim), "it stays so"
            grow(place)
            wait_until(lambda: not is_full(quorum, victim), WAIT_S)
            assert quorum.nodes[victim].is_alive
            quorum.make_leader(victim)
            assert history.wait_acked(50, WAIT_S)


def test_a_node_killed_on_a_full_disk_starts_on_it_again_and_catches_up_when_there_is_room(tmp_path: Path) -> None:
    victim = 3
    with (
        mounted(tmp_path / f"node{victim}", "tmpfs", "size=2m") as place,
        cluster(tmp_path) as quorum,
        under_load(quorum, value_bytes=4096) as (_, history),
    ):
        wait_until(lambda: is_full(quorum, victim), WAIT_S)
        quorum.kill(victim)
        assert history.wait_acked(50, WAIT_S)
        quorum.start(victim)
        wait_until(lambda: is_full(quorum, victim), WAIT_S)
        grow(place)
        quorum.ready(victim)


@pytest.mark.parametrize("left_bytes", [0, 4096, 65_536])
def test_a_first_start_on_a_full_disk_says_so_and_the_next_one_has_nothing_to_mend(
    tmp_path: Path, left_bytes: int
) -> None:
    with mounted(tmp_path / "disk", "tmpfs", "size=4m") as place:
        data = str(place / "node")
        voter = f"1@127.0.0.1:{free_ports(1)[0]}"
        only = ("--node-id", "1", "--cluster-id", CLUSTER_ID, "--voters", voter)
        assert fastquorum("format", "--data", data, *only).returncode == 0
        filling = fill(place, left_bytes)
        printed = refusal(fastquorum("run", "--data", data), exit_code=5)
        assert "make room" in printed
        assert "check the device" not in printed
        filling.unlink()
        with sync.open(data) as quorum:
            quorum.wait_ready(WAIT_S)
            quorum.append(b"value")


@pytest.mark.parametrize("kernels", ["native", pytest.param("pure", marks=pytest.mark.long)])
def test_a_disk_that_all_three_share_fills_up_and_room_brings_all_of_them_back(tmp_path: Path, kernels: str) -> None:
    with mounted(tmp_path / "disk", "tmpfs", "size=4m") as place:
        quorum = Cluster(tmp_path, kernels=dict.fromkeys((1, 2, 3), kernels))
        for node_id in quorum.ids:
            (place / f"node{node_id}").mkdir()
            (tmp_path / f"node{node_id}").symlink_to(place / f"node{node_id}")
        try:
            quorum.start(*quorum.ids)
            quorum.ready()
            with under_load(quorum, value_bytes=4096) as (load, _):
                # The last one may have room, but has no majority: it takes nothing any more.
                wait_until(lambda: sum(is_full(quorum, node_id) for node_id in quorum.ids) >= 2, WAIT_S)
                load.pause()
                assert quorum.alive == list(quorum.ids)
                grow(place)
                wait_until(lambda: not any(is_full(quorum, node_id) for node_id in quorum.ids), WAIT_S)
            assert quorum.alive == list(quorum.ids)
        finally:
            quorum.close()


def is_full(quorum: Cluster, node_id: int) -> bool:
    """Does it say so to a program that appends there?"""
    node = quorum.nodes[node_id]
    before = len(node.events)
    node.append("?", 0.5)
    appended = node.wait_event("appended", after=before)
    is_hindered = "no space is left" in appended.get("text", "")
    if is_hindered:
        assert (appended["error"], "make room" in appended["text"]) == ("NotLeader", True)
    return is_hindered


def grow(place: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=512m", str(place)], check=True)
