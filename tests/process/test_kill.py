"""kill -9 at failpoints and at random: nothing acknowledged is lost or doubled, nobody votes twice, nobody needs hands.

`python -m tests.process.campaign --cycles 300` is the long run of the same.
"""

from pathlib import Path

import pytest

from tests.process.campaign import campaign
from tests.process.cluster import cluster
from tests.process.history import History
from tests.process.load import Load, fetch_committed


@pytest.mark.slow
def test_thirty_kills_lose_nothing_and_need_no_hands(tmp_path: Path) -> None:
    with campaign(tmp_path, seed=1) as running:
        for _ in range(30):
            running.cycle()
        figures = running.finish()
    assert figures["cycles"] == 30
    assert figures["acknowledged"] > 0
    assert figures["votes_seen"] > 0
    assert figures["failpoints_fired"]


def test_all_three_killed_at_once_come_back_with_everything(tmp_path: Path) -> None:
    with cluster(tmp_path) as quorum:
        history = History()
        with Load({node_id: quorum.endpoint(node_id) for node_id in quorum.ids}, history) as load:
            for _ in range(2):
                assert history.wait_acked(50, 30)
                quorum.kill(*quorum.ids)
                quorum.start(*quorum.ids)
                quorum.ready()
            assert history.wait_acked(20, 30)
            load.pause()
            read = fetch_committed(quorum.kernels, quorum.endpoint(quorum.leader()), 0)
        assert history.judge(read).problems == []
        assert quorum.ballots.violations == []
