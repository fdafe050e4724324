"""Nodes that are stopped for a while, come late, or join as observers, while others commit."""

import signal
from contextlib import ExitStack
from pathlib import Path

import pytest

from fastquorum import sync
from tests.api.nodes import caught_up
from tests.process.cluster import Cluster, cluster
from tests.process.faults.observers import observer
from tests.process.faults.settings import PATIENT
from tests.process.judged import under_load
from tests.process.processes import WAIT_S

pytestmark = pytest.mark.long

LONG_MS = 10_000
VALUE_BYTES = 60_000
LATE_BYTES = 12_000_000
"""More than the leader keeps of its log in memory."""


def test_a_follower_that_is_stopped_for_long_disturbs_nobody(tmp_path: Path) -> None:
    """For longer than its fetch timeout: it comes back, finds its leader where it left it, and catches up."""
    settings = {**PATIENT, "controller.quorum.fetch.timeout.ms": 1_000}
    with cluster(tmp_path, settings=settings) as quorum:
        leader, epoch = quorum.leader(), quorum.epoch()
        victim = next(node_id for node_id in quorum.ids if node_id != leader)
        with under_load(quorum) as (_, history):
            assert history.wait_acked(20, WAIT_S)
            quorum.nodes[victim].signal(signal.SIGSTOP)
            quorum.nodes[leader].tell("wait 1.5")
            quorum.nodes[leader].wait_event("waited")
            assert history.wait_acked(100, WAIT_S)
            quorum.nodes[victim].signal(signal.SIGCONT)
            quorum.nodes[victim].wait_caught_up(quorum.nodes[leader].status()["high_watermark"])
            assert (quorum.leader(), quorum.epoch()) == (leader, epoch)


def test_a_leader_that_is_stopped_for_less_than_the_fetch_timeout_leads_on(tmp_path: Path) -> None:
    settings = {**PATIENT, "controller.quorum.fetch.timeout.ms": LONG_MS, "controller.quorum.request.timeout.ms": 5_000}
    with cluster(tmp_path, settings=settings) as quorum:
        leader, epoch = quorum.leader(), quorum.epoch()
        other = next(node_id for node_id in quorum.ids if node_id != leader)
        with under_load(quorum) as (_, history):
            assert history.wait_acked(20, WAIT_S)
            quorum.nodes[leader].signal(signal.SIGSTOP)
            quorum.nodes[other].tell("wait 1")
            quorum.nodes[other].wait_event("waited")
            quorum.nodes[leader].signal(signal.SIGCONT)
            assert history.wait_acked(100, WAIT_S)
            assert (quorum.leader(), quorum.epoch()) == (leader, epoch)


def test_a_voter_that_comes_late_catches_up_while_the_others_commit(tmp_path: Path) -> None:
    quorum = Cluster(tmp_path, settings={**PATIENT, "metadata.log.segment.bytes": 8 << 20})
    try:
        quorum.start(1, 2)
        quorum.ready(1, 2)
        leader, epoch = quorum.leader(), quorum.epoch()
        with under_load(quorum, value_bytes=VALUE_BYTES) as (_, history):
            assert history.wait_acked(LATE_BYTES // VALUE_BYTES, WAIT_S)
            quorum.start(3)
            quorum.nodes[3].wait_caught_up(quorum.nodes[leader].status()["high_watermark"])
            assert history.wait_acked(20, WAIT_S)
        assert (quorum.leader(), quorum.epoch()) == (leader, epoch)
        assert history.count("refused") == 0
    finally:
        quorum.close()


def test_observers_join_under_load_and_nobody_s_commits_fail(tmp_path: Path) -> None:
    with cluster(tmp_path, settings=PATIENT) as quorum:
        leader, epoch = quorum.leader(), quorum.epoch()
        with under_load(quorum, value_bytes=2_000) as (_, history), ExitStack() as joined:
            assert history.wait_acked(200, WAIT_S)
            observers: list[sync.Quorum] = []
            for count in (1, 10):
                for number in range(len(observers), count):
                    path = tmp_path / f"observer{number}"
                    observers.append(joined.enter_context(observer(quorum, path, 100 + number)))
                end_offset = quorum.nodes[leader].status()["high_watermark"]
                assert history.wait_acked(100, WAIT_S)
                for each in observers:
                    assert each.role == "observer"
                    caught_up(each, end_offset)
            assert (quorum.leader(), quorum.epoch()) == (leader, epoch)
            assert history.count("refused") == 0
        assert (quorum.leader(), quorum.epoch()) == (leader, epoch)
