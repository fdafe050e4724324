"""Power fails under all three nodes at once: what was never synced is gone, what was acknowledged is not.

Every byte that was only in the page cache is lost (`disks.py`).
"""

from pathlib import Path

import pytest

from tests.process.cluster import Cluster
from tests.process.disks import powered
from tests.process.history import History
from tests.process.load import Load, fetch_committed
from tests.process.processes import WAIT_S

LOSSES = 3


@pytest.mark.long
def test_a_power_loss_of_all_three_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    history = History()
    with powered(tmp_path) as disk:
        quorum = Cluster(tmp_path)
        for node_id in quorum.ids:
            (tmp_path / f"node{node_id}").symlink_to(disk.place / f"n{node_id}")
            (disk.place / f"n{node_id}").mkdir()
        try:
            quorum.start(*quorum.ids)
            quorum.ready()
            with Load({node_id: quorum.endpoint(node_id) for node_id in quorum.ids}, history) as load:
                for _ in range(LOSSES):
                    assert history.wait_acked(200, WAIT_S)
                    disk.lose_power()
                    for node_id in quorum.ids:
                        quorum.nodes[node_id].kill()
                    disk.unmount()
                    disk.mount()
                    for node_id in quorum.ids:
                        quorum.note_state(node_id)
                    quorum.start(*quorum.ids)
                    quorum.ready()
                assert history.wait_acked(20, WAIT_S)
                load.pause()
                read = fetch_committed(quorum.kernels, quorum.endpoint(quorum.leader()), 0)
            assert history.judge(read).problems == []
            assert history.not_on_a_majority({node_id: quorum.records(node_id) for node_id in quorum.ids}) == []
            assert quorum.ballots.violations == []
        finally:
            quorum.close()
