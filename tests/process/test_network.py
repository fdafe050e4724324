"""Peers that vanish, pause, come back, or can be heard only one way; leaders that are stopped and continued."""

import signal
from pathlib import Path

import pytest

from fastquorum.client.connection import Connection, Deadline, NoAnswer
from fastquorum.wire import ErrorCode
from tests.process.cluster import Cluster, cluster
from tests.process.history import History
from tests.process.load import Load, batch_of, fetch_committed, produce
from tests.process.processes import WAIT_S

pytestmark = pytest.mark.long


def settled(quorum: Cluster, history: History, load: Load) -> None:
    """Everybody sees one quorum that works, and nothing acknowledged is missing."""
    assert history.wait_acked(20, WAIT_S)
    load.pause()
    leader = quorum.wait_leader(after_epoch=quorum.epoch() - 1)
    assert history.judge(fetch_committed(quorum.kernels, quorum.endpoint(leader), 0)).problems == []
    assert history.not_on_a_majority({node_id: quorum.records(node_id) for node_id in quorum.ids}) == []
    assert quorum.ballots.violations == []


def test_a_stopped_leader_that_comes_back_steps_down_and_acknowledges_nothing_stale(tmp_path: Path) -> None:
    with cluster(tmp_path) as quorum:
        old, epoch = quorum.leader(), quorum.epoch()
        history = History()
        with Load({node_id: quorum.endpoint(node_id) for node_id in quorum.ids}, history) as load:
            assert history.wait_acked(20, WAIT_S)
            client = Connection(quorum.endpoint(old), Deadline(WAIT_S))
            process = quorum.nodes[old]
            process.signal(signal.SIGSTOP)
            # Waits in the stopped leader's pipe and socket: the first things it sees when it comes back.
            process.append("asked-while-stopped", 10)
            process.tell("barrier 5")
            new = quorum.wait_leader(not_in=[old], after_epoch=epoch)
            assert history.wait_acked(50, WAIT_S)
            seen = len(process.events)
            process.signal(signal.SIGCONT)
            produced: str
            try:
                answer, _ = produce(client, batch_of(quorum.kernels, [b"asked-after"]))
                produced = ErrorCode(answer.error_code).name
            except NoAnswer:
                produced = "no answer"
            finally:
                client.close()
            led = process.wait(
                lambda each: each["event"] == "leadership" and each["epoch"] > epoch and each["leader"] >= 0, after=seen
            )
            assert led["leader"] != old or led["epoch"] > epoch + 1
            appended = process.appended("asked-while-stopped")
            barrier = process.wait_event("barrier")
            load.pause()
            log = fetch_committed(quorum.kernels, quorum.endpoint(quorum.leader()), 0)
            ours = {value: offset for offset, value in log if value.startswith(b"asked")}
            # Whatever it claimed is true in the log that counts, and what it denied is not there.
            if "offset" in appended:
                assert ours[b"asked-while-stopped"] == appended["offset"]
            elif not appended["maybe_committed"]:
                assert b"asked-while-stopped" not in ours
            if produced == "NONE":
                assert b"asked-after" in ours
            # A barrier answered by a deposed leader would let a reader miss what the new one acknowledged.
            newest = max(each.offset for each in history.acked())
            assert "error" in barrier or barrier["offset"] > newest
            read = [(offset, value) for offset, value in log if not value.startswith(b"asked")]
            assert history.judge(read).problems == []
            assert new != old
            process.wait_caught_up(log[-1][0] + 1)
        assert quorum.stop() == dict.fromkeys(quorum.ids, 0)
        logs = [quorum.records(node_id) for node_id in quorum.ids]
        assert logs[0] == logs[1] == logs[2]
        assert quorum.ballots.violations == []


def test_without_a_majority_nothing_is_acknowledged_and_it_returns_with_the_majority(tmp_path: Path) -> None:
    with cluster(tmp_path) as quorum:
        leader = quorum.leader()
        others = [node_id for node_id in quorum.ids if node_id != leader]
        process = quorum.nodes[leader]
        process.append("before", 20)
        assert "offset" in process.appended("before")
        quorum.kill(*others)
        # Appended while it still believes it leads, or refused: never acknowledged.
        process.append("alone", 1)
        alone = process.appended("alone")
        assert alone["error"] in ("AppendTimeout", "NotLeader")
        lost = process.wait(lambda each: each["event"] == "leadership" and each["leader"] == -1)
        assert lost["epoch"] >= 0
        process.append("nobody-leads", 1)
        refused = process.appended("nobody-leads")
        assert (refused["error"], refused["maybe_committed"]) == ("NotLeader", False)
        process.tell("barrier 1")
        assert "error" in process.wait_event("barrier")
        quorum.start(*others)
        quorum.ready(*others)
        back = quorum.append("after", after_epoch=lost["epoch"])
        values = [value for _, value in fetch_committed(quorum.kernels, quorum.endpoint(back), 0)]
        assert values.count(b"alone") <= 1
        assert [value for value in values if value != b"alone"] == [b"before", b"after"]
        if not alone["maybe_committed"]:
            assert b"alone" not in values


@pytest.mark.parametrize("behaviour", ["blackhole", "reset", "half-close"])
def test_an_isolated_leader_is_replaced_and_follows_when_the_network_heals(tmp_path: Path, behaviour: str) -> None:
    with cluster(tmp_path, links=True) as quorum:
        assert quorum.links is not None
        history = History()
        with Load({node_id: quorum.endpoint(node_id) for node_id in quorum.ids}, history) as load:
            assert history.wait_acked(20, WAIT_S)
            old, epoch = quorum.leader(), quorum.epoch()
            quorum.links.isolate(old, behaviour)  # type: ignore[arg-type]
            quorum.wait_leader(not_in=[old], after_epoch=epoch)
            assert history.wait_acked(20, WAIT_S)
            before = len(quorum.nodes[old].events)
            quorum.links.heal()
            quorum.nodes[old].wait_event("ready", after=before)
            settled(quorum, history, load)


@pytest.mark.parametrize("direction", ["hears nobody", "is heard by nobody"])
def test_a_follower_that_is_deaf_or_mute_does_not_disturb_the_others(tmp_path: Path, direction: str) -> None:
    """A partition one way: with pre-vote it deposes nobody (KIP-996), and it catches up when the way is free."""
    with cluster(tmp_path, links=True) as quorum:
        assert quorum.links is not None
        history = History()
        with Load({node_id: quorum.endpoint(node_id) for node_id in quorum.ids}, history) as load:
            assert history.wait_acked(20, WAIT_S)
            leader, epoch = quorum.leader(), quorum.epoch()
            victim, other = (node_id for node_id in quorum.ids if node_id != leader)
            ways = [(node_id, victim) for node_id in (leader, other)]
            quorum.links.set("blackhole", *(ways if direction == "hears nobody" else [(b, a) for a, b in ways]))
            # It misses its leader for a fetch timeout; then it asks for votes that it does not get.
            quorum.nodes[victim].wait_role("prospective")
            assert history.wait_acked(100, WAIT_S)
            assert (quorum.leader(), quorum.epoch()) == (leader, epoch)
            quorum.links.heal()
            quorum.nodes[victim].wait_role("follower")
            settled(quorum, history, load)


def test_a_follower_that_takes_its_leader_for_gone_by_mistake_does_not_depose_it(tmp_path: Path) -> None:
    with cluster(tmp_path, links=True, settings={"controller.quorum.fetch.timeout.ms": 60_000}) as quorum:
        assert quorum.links is not None
        history = History()
        with Load({node_id: quorum.endpoint(node_id) for node_id in quorum.ids}, history) as load:
            assert history.wait_acked(20, WAIT_S)
            leader, epoch = quorum.leader(), quorum.epoch()
            victim = next(node_id for node_id in quorum.ids if node_id != leader)
            quorum.links.set("reset", (victim, leader))
            # The other one refuses its pre-votes: it hears the leader.
            quorum.nodes[victim].wait_role("prospective")
            assert history.wait_acked(100, WAIT_S)
            assert (quorum.leader(), quorum.epoch()) == (leader, epoch)
            quorum.links.heal()
            quorum.nodes[victim].wait_role("follower")
            settled(quorum, history, load)


def test_a_network_that_delivers_single_bytes_is_slow_and_nothing_else(tmp_path: Path) -> None:
    patient = {"controller.quorum.fetch.timeout.ms": 4_000, "controller.quorum.request.timeout.ms": 4_000}
    with cluster(tmp_path, links=True, settings=patient) as quorum:
        assert quorum.links is not None
        history = History()
        epoch = quorum.epoch()
        with Load({node_id: quorum.endpoint(node_id) for node_id in quorum.ids}, history) as load:
            quorum.links.set("trickle", *[(a, b) for a in quorum.ids for b in quorum.ids if a != b])
            assert history.wait_acked(20, WAIT_S)
            quorum.links.heal()
            settled(quorum, history, load)
            assert quorum.epoch() == epoch
