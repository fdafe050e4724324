"""A disk that is slow or hangs, under a follower and under the leader."""

from pathlib import Path

import pytest

from tests.process.faults.settings import PATIENT
from tests.process.faults.slow_disk import with_slow_disks
from tests.process.judged import under_load
from tests.process.processes import WAIT_S

pytestmark = pytest.mark.long

SLOW_S = 0.2


@pytest.mark.parametrize("how", ["slow", "hung"])
def test_a_follower_s_disk_keeps_nobody_waiting_and_deposes_nobody(tmp_path: Path, how: str) -> None:
    with with_slow_disks(tmp_path, settings=PATIENT) as (quorum, disks):
        leader, epoch = quorum.leader(), quorum.epoch()
        victim = next(node_id for node_id in quorum.ids if node_id != leader)
        with under_load(quorum) as (load, history):
            assert history.wait_acked(20, WAIT_S)
            disks[victim].hang()
            if how == "slow":
                disks[victim].slow_down(SLOW_S)
            assert history.wait_acked(300, WAIT_S)
            assert (quorum.leader(), quorum.epoch()) == (leader, epoch)
            load.pause()
            disks[victim].heal()
            quorum.nodes[victim].wait_caught_up(quorum.nodes[leader].status()["high_watermark"])
        assert (quorum.leader(), quorum.epoch()) == (leader, epoch)
        assert set(quorum.stop().values()) == {0}


# The flusher's syncs alone hang, or the replica's thread's, too: the durable mark is renewed every 20 ms.
@pytest.mark.parametrize("mark_ms", [600_000, 20])
def test_a_leader_whose_disk_hangs_gives_way_and_nothing_acknowledged_is_lost(tmp_path: Path, mark_ms: int) -> None:
    settings = {**PATIENT, "disk.stall.max.ms": 300, "log.mark.interval.ms": mark_ms}
    with with_slow_disks(tmp_path, settings=settings) as (quorum, disks):
        old, epoch = quorum.leader(), quorum.epoch()
        process = quorum.nodes[old]
        with under_load(quorum, beside=b"beside") as (_, history):
            assert history.wait_acked(20, WAIT_S)
            disks[old].hang()
            new = quorum.wait_leader(not_in=[old], after_epoch=epoch)
            after = quorum.epoch()
            assert history.wait_acked(50, WAIT_S)
            # While its disk hangs it stays down, and its own program is told so, in time.
            assert (quorum.leader(), quorum.epoch()) == (new, after)
            process.append("beside a disk that hangs", 0.5)
            assert process.appended("beside a disk that hangs")["error"] in ("NotLeader", "AppendTimeout")
            disks[old].heal()
            process.wait(lambda each: each["event"] == "ready" and each["epoch"] >= after)
            process.wait_caught_up(quorum.nodes[new].status()["high_watermark"])
            assert (quorum.leader(), quorum.epoch()) == (new, after)
        assert set(quorum.stop().values()) == {0}
