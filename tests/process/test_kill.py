"""kill -9 at failpoints and at random: nothing acknowledged is lost or doubled, nobody votes twice, nobody needs hands.

`python -m tests.process.campaign kills --cycles 300` is the long run of the same.
"""

import contextlib
import signal
from pathlib import Path

import pytest

from fastquorum.client.connection import Connection, Deadline, NoAnswer
from tests.process.campaign import campaign
from tests.process.cluster import cluster
from tests.process.history import History
from tests.process.load import Load, batch_of, fetch_committed, produce
from tests.process.processes import WAIT_S


@pytest.mark.long
def test_ten_kills_lose_nothing_and_need_no_hands(tmp_path: Path) -> None:
    with campaign(tmp_path, seed=1) as running:
        for _ in range(10):
            running.cycle()
        figures = running.finish()
    assert figures["cycles"] == 10
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


@pytest.mark.parametrize("kernels", ["native", pytest.param("pure", marks=pytest.mark.long)])
@pytest.mark.parametrize(("point", "acknowledged"), [("before", 4), ("after", 5)])
def test_killed_beside_an_acknowledgement_it_has_what_it_acknowledged(
    tmp_path: Path, point: str, acknowledged: int, kernels: str
) -> None:
    with cluster(tmp_path, 1, kernels={1: kernels}) as quorum:
        quorum.stop(1)
        quorum.start(1, failpoints=f"{point}-send-produce-response=crash@5")
        quorum.ready(1)
        values = [b"%d" % number for number in range(5)]
        answered = 0
        connection = Connection(quorum.endpoint(1), Deadline(WAIT_S))
        with contextlib.closing(connection), contextlib.suppress(NoAnswer):
            for value in values:
                answer, _ = produce(connection, batch_of(quorum.kernels, [value]))
                assert answer.error_code == 0
                answered += 1
        assert (answered, quorum.nodes[1].ended()) == (acknowledged, -signal.SIGKILL)
        quorum.start(1)
        quorum.ready(1)
        assert [value for _, value in fetch_committed(quorum.kernels, quorum.endpoint(1), 0)] == values
