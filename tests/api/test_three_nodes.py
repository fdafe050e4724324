"""Three real nodes in one process: elect, commit, lose their leader, come back."""

from itertools import islice
from pathlib import Path

import pytest

from fastquorum import log, sync
from fastquorum.errors import AppendTimeout, ClosedError, NotLeader, NotReady, UsageError
from tests.api.nodes import WAIT_S, Trio, caught_up, trio, values_of


def test_what_the_leader_acknowledges_every_node_delivers(tmp_path: Path) -> None:
    with trio(tmp_path) as nodes:
        offsets = [nodes.leader.append(b"%d" % number, timeout=WAIT_S) for number in range(50)]
        assert offsets == sorted(set(offsets))
        for node in nodes.nodes.values():
            caught_up(node, offsets[-1] + 1)
            assert values_of(node) == [b"%d" % number for number in range(50)]


def test_a_batch_lies_together_and_is_resumed_in_its_middle(tmp_path: Path) -> None:
    with trio(tmp_path) as nodes:
        first = nodes.leader.append([b"a", b"b", b"c"], timeout=WAIT_S)
        batches = list(nodes.leader.committed(first + 1, follow=False))
        assert [[record.value for record in batch.records] for batch in batches] == [[b"b", b"c"]]
        assert batches[0].next_offset == first + 3
        assert {record.epoch for record in batches[0].records} == {nodes.leader.epoch}


def test_a_follower_names_the_leader_and_where_it_listens(tmp_path: Path) -> None:
    with trio(tmp_path) as nodes:
        leader, follower = nodes.leader, nodes.followers[0]
        with pytest.raises(NotLeader) as refused:
            follower.append(b"x")
        assert refused.value.leader_id == leader.node_id
        assert refused.value.endpoint is not None
        assert refused.value.endpoint == leader.endpoint
        assert not refused.value.maybe_committed
        with pytest.raises(NotLeader):
            follower.read_barrier(timeout=WAIT_S)


def test_a_crashed_leader_is_replaced_and_comes_back_with_everything(tmp_path: Path) -> None:
    with trio(tmp_path) as nodes:
        for number in range(20):
            nodes.append(b"before %d" % number)
        dead = nodes.leader.node_id
        nodes.crash(dead)
        for number in range(20):
            nodes.append(b"after %d" % number)
        expected = values_of(nodes.leader)
        assert len(expected) >= 40
        nodes.open(dead)
        caught_up(nodes.nodes[dead], nodes.leader.high_watermark)
        assert values_of(nodes.nodes[dead]) == expected


def test_after_a_stop_of_all_the_log_is_as_it_was_and_goes_on(tmp_path: Path) -> None:
    nodes = Trio(tmp_path)
    try:
        nodes.open(1, 2, 3)
        acknowledged = nodes.append(b"kept")
        epoch = nodes.leader.epoch
        nodes.close()
        for node_id in (1, 2, 3):
            verification = log.open(nodes.path(node_id)).verify()
            assert verification.is_sound
            assert verification.is_closed
        nodes.open(1, 2, 3)
        assert nodes.append(b"more") > acknowledged
        assert nodes.leader.epoch > epoch
        assert values_of(nodes.leader) == [b"kept", b"more"]
    finally:
        nodes.close()


def test_leadership_moves_to_the_voter_asked_for(tmp_path: Path) -> None:
    with trio(tmp_path) as nodes:
        old, other = nodes.leader, nodes.followers[0]
        assert old.transfer_leadership(old.node_id).leader_id == old.node_id
        for nobody in (9, -1):
            with pytest.raises(UsageError, match="is not among the voters"):
                old.transfer_leadership(nobody)
        for wrong in (None, "1", True, 2.0):
            with pytest.raises(UsageError, match="is not a node id"):
                old.transfer_leadership(wrong)  # type: ignore[arg-type]
        assert old.is_leader
        with pytest.raises(NotLeader):
            other.transfer_leadership(other.node_id)
        # Who is preferred stands first, but a voter that lags behind may still lose to another.
        try:
            after = old.transfer_leadership(other.node_id, timeout=WAIT_S)
            assert after.leader_id == other.node_id
        except NotReady:
            assert nodes.leader is not old
        nodes.append(b"under the new leader")


def test_leadership_events_begin_with_now_and_end_with_the_handle(tmp_path: Path) -> None:
    with trio(tmp_path) as nodes:
        node = nodes.followers[0]
        now = next(node.leadership())
        assert (now.leader_id, now.is_self) == (nodes.leader.node_id, False)
        events = node.leadership()
        next(events)
        nodes.crash(nodes.leader.node_id)
        assert next(event for event in events if event.leader_id >= 0 and event.epoch > now.epoch)
        node.close()
        assert list(islice(events, 3)) == []
        with pytest.raises(ClosedError):
            node.append(b"x")


def test_without_a_majority_an_append_times_out_and_may_commit_later(tmp_path: Path) -> None:
    with trio(tmp_path, fetch_timeout_us=3_000_000) as nodes:
        nodes.append(b"all three")
        leader, gone = nodes.leader, [node.node_id for node in nodes.followers]
        for node_id in gone:
            nodes.crash(node_id)
        with pytest.raises(AppendTimeout) as timeout:
            leader.append(b"nobody there", timeout=0.1)
        assert timeout.value.maybe_committed
        with pytest.raises(NotReady):
            leader.read_barrier(timeout=0.1)
        pending = leader.append_nowait(b"waits")
        nodes.open(*gone)
        try:
            committed_at = pending.result(timeout=WAIT_S)
            assert values_of(leader)[-2:] == [b"nobody there", b"waits"]
            assert leader.high_watermark > committed_at
        except NotLeader:
            # It resigned before they were back: then it cannot know, and the next leader has them or not.
            nodes.append(b"settled")


def test_a_leader_without_followers_resigns_and_says_so_to_who_waits(tmp_path: Path) -> None:
    with trio(tmp_path) as nodes:
        leader = nodes.leader
        for node in nodes.followers:
            nodes.crash(node.node_id)
        pending = leader.append_nowait(b"nobody there")
        with pytest.raises(NotLeader) as lost:
            pending.result(timeout=WAIT_S)
        assert lost.value.maybe_committed
        with pytest.raises(NotLeader):
            leader.append(b"refused at once")


def test_a_barrier_is_past_everything_acknowledged_before_it(tmp_path: Path) -> None:
    with trio(tmp_path) as nodes:
        for _ in range(10):
            offset = nodes.leader.append(b"x", timeout=WAIT_S)
            assert nodes.leader.read_barrier(timeout=WAIT_S) > offset


def test_a_node_alone_of_three_is_not_ready(tmp_path: Path) -> None:
    nodes = Trio(tmp_path)
    try:
        nodes.open(2)
        with pytest.raises(NotReady):
            nodes.nodes[2].wait_ready(timeout=0.5)
        with pytest.raises(NotLeader) as refused:
            nodes.nodes[2].append(b"x")
        assert refused.value.leader_id == -1
    finally:
        nodes.close()


def test_the_last_of_three_stops_in_time(tmp_path: Path) -> None:
    with trio(tmp_path) as nodes:
        leader = nodes.leader
        for node in nodes.followers:
            nodes.crash(node.node_id)
        closed = leader.close  # a leader that nobody hears: it ends by itself, or this test is stopped
        closed()
        with pytest.raises(ClosedError):
            leader.wait_ready(timeout=1)
        # The directory is free again.
        sync.open(nodes.path(leader.node_id), **nodes.open_options(leader.node_id)).close()


def test_describe_tells_the_leader_s_view(tmp_path: Path) -> None:
    with trio(tmp_path) as nodes:
        nodes.append(b"x")
        leader = nodes.leader.describe()
        assert (leader.role, leader.leader_id, leader.voters) == ("leader", leader.node_id, (1, 2, 3))
        assert {peer.node_id for peer in leader.replicas} <= {1, 2, 3} - {leader.node_id}
        follower = nodes.followers[0].describe()
        assert (follower.role, follower.replicas) == ("follower", ())
        assert follower.leader_id == leader.node_id
