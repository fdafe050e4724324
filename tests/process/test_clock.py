"""The wall clock jumps: nobody is deposed, and nothing else happens, because only timestamps are taken from it."""

from pathlib import Path

import pytest

from tests.process.cluster import cluster
from tests.process.history import History
from tests.process.load import Load, fetch_committed
from tests.process.processes import WAIT_S
from tests.process.wall_clock import wall_clock

DAY_S = 86_400


@pytest.mark.long
@pytest.mark.parametrize("jump_s", [400 * DAY_S, -400 * DAY_S], ids=["forwards", "backwards"])
def test_a_jump_of_the_wall_clock_under_load_causes_no_election(tmp_path: Path, jump_s: int) -> None:
    with wall_clock(tmp_path) as clock, cluster(tmp_path / "quorum") as quorum:
        quorum.stop()
        quorum.start(*quorum.ids, environment=clock.environment)
        quorum.ready()
        history = History()
        with Load({node_id: quorum.endpoint(node_id) for node_id in quorum.ids}, history) as load:
            assert history.wait_acked(20, WAIT_S)
            leader, epoch = quorum.leader(), quorum.epoch()
            quorum.nodes[leader].append("before the jump", 10)
            quorum.nodes[leader].appended("before the jump")
            for jump in (jump_s, 0, jump_s):
                clock.jump(jump)
                assert history.wait_acked(100, WAIT_S)
            quorum.nodes[leader].append("after the jump", 10)
            assert "offset" in quorum.nodes[leader].appended("after the jump")
            assert (quorum.leader(), quorum.epoch()) == (leader, epoch)
            load.pause()
            read = [
                (offset, value)
                for offset, value in fetch_committed(quorum.kernels, quorum.endpoint(leader), 0)
                if not value.endswith(b"the jump")
            ]
            assert history.judge(read).problems == []
        # The shim did its work: what the leader stamped itself lies that far apart.
        stamps = {value: stamp for value, stamp in quorum.timestamps(leader) if value.endswith(b"the jump")}
        moved_s = (stamps[b"after the jump"] - stamps[b"before the jump"]) / 1000
        assert abs(moved_s - jump_s) < DAY_S
        assert quorum.ballots.violations == []
