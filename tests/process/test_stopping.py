"""Graceful stops: in time even when nobody answers, and one after another without losing anything."""

import signal
from pathlib import Path

import pytest

from fastquorum import log
from tests.process.cluster import cluster
from tests.process.history import History
from tests.process.load import Load, fetch_committed
from tests.process.processes import WAIT_S

STOP_S = 5.0


def test_sigterm_ends_a_node_in_time_whoever_else_is_dead_or_hangs(tmp_path: Path) -> None:
    with cluster(tmp_path) as quorum:
        leader = quorum.leader()
        hung, dead = (node_id for node_id in quorum.ids if node_id != leader)
        quorum.nodes[hung].signal(signal.SIGSTOP)
        quorum.kill(dead)
        assert quorum.nodes[leader].stop(STOP_S) == 0
        quorum.nodes[hung].signal(signal.SIGCONT)
        assert quorum.nodes[hung].stop(STOP_S) == 0
        for node_id in (leader, hung):
            found = log.open(str(quorum.path(node_id))).verify()
            assert found.is_sound
            assert found.is_closed


def test_a_node_that_finds_nobody_stops_in_time_too(tmp_path: Path) -> None:
    with cluster(tmp_path) as quorum:
        quorum.stop()
        quorum.start(1)
        quorum.nodes[1].wait_event("opened")
        assert quorum.nodes[1].stop(STOP_S) == 0


@pytest.mark.long
def test_a_rolling_restart_under_load_loses_nothing(tmp_path: Path) -> None:
    with cluster(tmp_path, links=True) as quorum:
        history = History()
        with Load({node_id: quorum.endpoint(node_id) for node_id in quorum.ids}, history) as load:
            for node_id in (*quorum.ids, *quorum.ids):
                assert history.wait_acked(20, WAIT_S)
                assert quorum.stop(node_id) == {node_id: 0}
                assert history.wait_acked(20, WAIT_S)
                quorum.start(node_id)
                quorum.ready(node_id)
            load.pause()
            read = fetch_committed(quorum.kernels, quorum.endpoint(quorum.leader()), 0)
            assert history.judge(read).problems == []
            assert history.not_on_a_majority({node_id: quorum.records(node_id) for node_id in quorum.ids}) == []
        assert quorum.ballots.violations == []
        # Nobody is deposed but by its own stop: at most one election a restart, and the first.
        assert len(quorum.ballots.epochs) <= 1 + 2 * len(quorum.ids)
