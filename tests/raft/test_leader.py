"""The leader: check-quorum, heartbeats, resignation, and what it tells of its quorum (KIP-595, KIP-836)."""

from typing import Any

import pytest

from fastquorum.config import MS, QuorumConfig
from fastquorum.kernels.lane import LeaderSession
from fastquorum.raft import effects as fx
from fastquorum.raft import events as ev
from fastquorum.types import TOPIC_NAME
from fastquorum.wire import ErrorCode, encode_response
from fastquorum.wire.messages.quorum import BeginQuorumEpochRequest, EndQuorumEpochRequest
from fastquorum.wire.messages.quorum_admin import DescribeQuorumRequest, DescribeQuorumResponse

from .scenario import EPOCH_MS, Replica, replica
from .wire_messages import begin_response, directory, end_response, endpoint, key, vote_request


def begun(leader: Replica) -> list[int]:
    """To whom BeginQuorumEpoch went since last asked."""
    to = [node_id for node_id, _ in leader.requests(BeginQuorumEpochRequest)]
    leader.forget()
    return to


# --- BeginQuorumEpoch -------------------------------------------------------------------------------------------------


def test_a_new_leader_tells_every_other_voter_at_once() -> None:
    leader = replica(1).voters(1, 2, 3).starts()
    leader.elect_itself()
    ((to2, message), (to3, _)) = leader.requests(BeginQuorumEpochRequest)
    assert (to2, to3, message.voter_id, message.cluster_id) == (2, 3, 2, "nR4bhG2JR8mYNL7GDwOfYA")
    partition = message.topics[0].partitions[0]
    assert (partition.leader_id, partition.leader_epoch) == (1, 1)
    assert partition.voter_directory_id == directory(2)
    assert [(each.name, each.host, each.port) for each in message.leader_endpoints] == [endpoint(1)]


def test_then_every_half_fetch_timeout_those_that_have_not_fetched_within_it() -> None:
    leader = replica(1).leader(epoch=5)
    leader.answers(2, begin_response(5, leader=1))
    leader.answers(3, begin_response(5, leader=1))
    leader.elapse(500)
    leader.fetched_by(2)
    leader.elapse(500)
    assert begun(leader) == [3]
    leader.elapse(900)
    leader.fetched_by(2, 3)
    leader.elapse(100)
    assert begun(leader) == []


def test_a_voter_whose_fetch_is_parked_for_longer_than_that_is_not_silent() -> None:
    patient = QuorumConfig(fetch_timeout_us=2_000 * MS, fetch_wait_us_max=1_800 * MS)
    leader = replica(1).configured(patient).leader(epoch=5)
    leader.answers(2, begin_response(5, leader=1))
    leader.answers(3, begin_response(5, leader=1))
    leader.fetched_by(2, 3)
    leader.elapse(1_000)
    assert begun(leader) == []


def test_a_voter_that_does_not_answer_is_not_flooded() -> None:
    leader = replica(1).leader(epoch=5)
    leader.fetched_by(3)
    leader.elapse(1000)
    assert begun(leader) == [], "the first one is still in flight"


# --- check-quorum -----------------------------------------------------------------------------------------------------


def test_a_leader_that_nobody_fetches_from_resigns() -> None:
    """KAFKA-15489."""
    leader = replica(1).leader(epoch=5)
    leader.elapse(2999)
    assert leader.role == "leader"
    leader.elapse(1)
    assert leader.role == "resigned"
    assert leader.ordered(fx.CloseLane)


@pytest.mark.parametrize(
    ("voters", "fetching", "stays"),
    [
        ((1, 2), (), False),
        ((1, 2), (2,), True),
        ((1, 2, 3), (3,), True),
        ((1, 2, 3, 4, 5), (2,), False),
        ((1, 2, 3, 4, 5), (2, 5), True),
        ((1, 2, 3, 4, 5, 6), (2, 5), False),
        ((1, 2, 3, 4, 5, 6, 7), (2, 5, 6), True),
        ((1, 2, 3), (8, 9), False),
    ],
)
def test_it_needs_a_majority_with_itself(voters: tuple[int, ...], fetching: tuple[int, ...], stays: bool) -> None:
    leader = replica(1).voters(*voters).leader(epoch=5)
    for _ in range(8):
        leader.elapse(500)
        if leader.role == "leader":
            leader.fetched_by(*fetching)
    assert (leader.role == "leader") is stays


def test_a_single_voter_never_resigns_for_want_of_fetches() -> None:
    only = replica(1).voters(1).leader(epoch=5)
    only.elapse(3_600_000)
    assert only.role == "leader"


def test_followers_that_fetch_but_never_advance_do_not_keep_a_leader() -> None:
    """KAFKA-15911."""
    leader = replica(1).leader(epoch=5)
    for _ in range(6):
        leader.elapse(500)
        if leader.role == "leader":
            leader.fetched_by(2, 3, progress=False)
    assert leader.role == "resigned"


def test_a_timer_s_turn_decides_nothing_while_every_voter_is_heard() -> None:
    leader = replica(1).leader(epoch=5)
    for _ in range(8):
        leader.elapse(500)
        leader.fetched_by(2, 3)
        assert leader.renews()
        leader.forget()
        leader.step(ev.TimerFired())
        assert leader.effects == []
    leader.elapse(999)
    assert leader.renews()
    leader.now_us += 1 * MS
    assert not leader.renews()  # they are told again who leads
    leader.now_us += 3_000 * MS
    assert not leader.renews()  # and it resigns


def test_a_voter_that_is_silent_is_told_who_leads_though_a_majority_is_heard() -> None:
    leader = replica(1).leader(epoch=5)
    leader.now_us += 1_000 * MS
    leader.fetched_by(2)
    assert not leader.renews()
    leader.fetched_by(3)
    assert leader.renews()


def test_a_leader_that_shuts_down_decides_in_every_turn() -> None:
    leader = replica(1).leader(epoch=5).fetched_by(2, 3)
    assert leader.renews()
    leader.step(ev.ShutdownRequested())
    assert not leader.renews()


def test_a_process_that_stood_still_looks_at_the_lanes_contacts_before_it_resigns() -> None:
    """Lane rule 6: the deadline is overdue, but the lane went on serving Fetches meanwhile."""
    leader = replica(1).leader(epoch=5)
    leader.now_us += 10_000 * MS
    leader.fetched_by(2)
    leader.step(ev.TimerFired())
    assert leader.role == "leader"
    leader.elapse(3000)
    assert leader.role == "resigned"


def test_what_waited_while_the_process_stood_still_is_looked_at_before_the_timer() -> None:
    """The first frame after a stall may be anybody's, and the sign of life the one behind it."""
    leader = replica(1).leader(epoch=5)
    leader.now_us += 10_000 * MS
    leader.receives(vote_request(5, by=3, pre_vote=True))
    assert leader.role == "leader"
    leader.fetched_by(2)
    leader.elapse(1)
    assert leader.role == "leader"


def test_a_leader_that_was_stopped_with_its_whole_process_resigns_when_it_wakes() -> None:
    leader = replica(1).leader(epoch=5).fetched_by(2, 3)
    leader.now_us += 10_000 * MS
    leader.step(ev.TimerFired())
    assert leader.role == "resigned"


# --- resignation ------------------------------------------------------------------------------------------------------


def test_a_resigned_leader_closes_the_lane_first_and_keeps_its_epoch() -> None:
    leader = replica(1).leader(epoch=5).log("5:3")
    leader.step(ev.ResignRequested(-1, 5))
    assert isinstance(leader.effects[0], fx.CloseLane)
    assert (leader.role, leader.epoch, leader.leader_id) == ("resigned", 5, 1)
    assert leader.raft.lane_session() is None
    assert leader.ordered(fx.LeadershipChanged) == [fx.LeadershipChanged(5, -1, None, False)]
    assert not leader.ordered(fx.PersistElection)


def successors(leader: Replica) -> list[int]:
    _, message = leader.requests(EndQuorumEpochRequest)[0]
    partition = message.topics[0].partitions[0]
    assert [each.candidate_id for each in partition.preferred_candidates] == partition.preferred_successors
    return partition.preferred_successors


def test_the_most_complete_follower_should_stand_first() -> None:
    leader = replica(1).voters(1, 2, 3, 4, 5).leader(epoch=5).log("5:9")
    leader.fetched_by(2, end=4).fetched_by(4, end=9).fetched_by(5, end=4).fetched_by(9, end=9)
    leader.step(ev.ResignRequested(-1, 5))
    assert successors(leader) == [4, 2, 5, 3]


def test_the_users_choice_comes_before_that() -> None:
    leader = replica(1).leader(epoch=5).fetched_by(2, end=9).fetched_by(3, end=2)
    leader.step(ev.ResignRequested(3, 5))
    assert successors(leader) == [3, 2]


def test_a_choice_that_is_no_voter_is_not_listed() -> None:
    leader = replica(1).leader(epoch=5).fetched_by(3, end=2)
    leader.step(ev.ResignRequested(9, 5))
    assert successors(leader) == [3, 2]


def test_a_request_to_resign_from_another_epoch_is_too_late() -> None:
    leader = replica(1).leader(epoch=5)
    leader.step(ev.ResignRequested(-1, 4))
    assert leader.role == "leader"


def test_end_quorum_epoch_is_repeated_until_it_is_acknowledged() -> None:
    leader = replica(1).leader(epoch=5)
    leader.step(ev.ResignRequested(-1, 5))
    leader.answers(2, end_response(5, leader=1))
    leader.fails(3)
    leader.forget()
    leader.elapse(20)
    assert [to for to, _ in leader.requests(EndQuorumEpochRequest)] == [3]
    leader.answers(3, end_response(5, leader=1))
    leader.forget()
    leader.elapse(900)
    assert leader.requests(EndQuorumEpochRequest) == []


def test_a_resigned_leader_moves_to_the_next_epoch_by_itself() -> None:
    leader = replica(1).resigned(epoch=5)
    leader.elapse(2000)
    assert leader.epoch == 6
    assert leader.role in ("unattached", "prospective")


def test_a_resigned_leader_cannot_be_voted_into_the_same_epoch_and_votes_for_nobody_in_it() -> None:
    resigned = replica(1).resigned(epoch=5)
    answer: Any = resigned.receives(vote_request(5, by=2, log=(4, 100)))
    assert answer.topics[0].partitions[0].vote_granted is False


def test_a_leader_whose_disk_stalls_resigns_and_stays_down_until_it_syncs() -> None:
    leader = replica(1).leader(epoch=5).log("5:8")
    leader.fake_log.unflushed = 3
    leader.step(ev.DiskStalled())
    assert leader.role == "resigned"
    leader.elapse(30_000)
    assert (leader.role, leader.epoch) == ("unattached", 6)
    leader.fake_log.unflushed = 2
    leader.pass_deadline(until=leader.role.PROSPECTIVE)


def test_a_leader_whose_disk_is_full_resigns_and_stays_down_until_it_has_room() -> None:
    leader = replica(1).leader(epoch=5).log("5:8")
    leader.fetched_by(2)
    leader.fake_log.is_full = True
    assert not leader.renews(), "its timer must not pass over that"
    leader.step(ev.RoomChanged())
    assert leader.role == "resigned"
    leader.elapse(30_000)
    assert (leader.role, leader.epoch) == ("unattached", 6)
    leader.fake_log.is_full = False
    leader.step(ev.RoomChanged())
    leader.pass_deadline(until=leader.role.PROSPECTIVE)


def test_a_leader_whose_disk_is_full_serves_until_another_voter_has_its_log_but_not_for_ever() -> None:
    leader = replica(1).leader(epoch=5).log("5:8").fetched_by(2, 3, end=5)
    leader.fake_log.is_full = True
    leader.step(ev.RoomChanged())
    leader.elapse(1_000)
    assert leader.role == "leader"
    leader.fetched_by(3)
    leader.elapse_to_deadline()
    assert leader.role == "resigned"
    alone = replica(1).leader(epoch=5).log("5:8").fetched_by(2, 3, end=5)
    alone.fake_log.is_full = True
    alone.step(ev.RoomChanged())
    alone.elapse(QuorumConfig().fetch_timeout_us // MS)
    assert alone.role == "resigned"


def test_a_leader_that_has_room_again_before_it_gives_up_leads_on() -> None:
    leader = replica(1).leader(epoch=5).log("5:8").fetched_by(2, 3, end=5)
    leader.fake_log.is_full = True
    leader.step(ev.RoomChanged())
    leader.fake_log.is_full = False
    leader.step(ev.RoomChanged())
    leader.fetched_by(2, 3)
    leader.elapse(500)
    assert leader.role == "leader"


# --- the lane's session -----------------------------------------------------------------------------------------------


def test_the_terms_stand_while_nothing_but_the_high_watermark_moves() -> None:
    leader = replica(1).leader(epoch=5).log("1:4 5:3")
    before = leader.raft.lane_session()
    assert isinstance(before, LeaderSession)
    assert (before.epoch, before.epoch_start, before.endpoint) == (5, 4, endpoint(1))
    leader.fetched_by(2, 3).committed(7)
    leader.elapse(1000)
    assert leader.raft.lane_session() == before
    assert leader.raft.high_watermark == 7


# --- DescribeQuorum ---------------------------------------------------------------------------------------------------


def describe_request(topic: str = TOPIC_NAME, partition: int = 0) -> DescribeQuorumRequest:
    data = DescribeQuorumRequest.TopicData
    return DescribeQuorumRequest(
        topics=[data(topic_name=topic, partitions=[data.PartitionData(partition_index=partition)])]
    )


def described(node: Replica, version: int = 2) -> DescribeQuorumResponse:
    answer = node.receives(describe_request(), version)
    assert isinstance(answer, DescribeQuorumResponse)
    return answer


def test_a_leader_describes_its_quorum() -> None:
    leader = replica(1).leader(epoch=5).log("5:9")
    leader.fetched_by(2, end=8).fetched_by(9, end=5, caught_up=False).committed(8)
    leader.now_us += 250 * MS
    answer = described(leader)
    (partition,) = answer.topics[0].partitions
    assert (partition.leader_id, partition.leader_epoch, partition.high_watermark) == (1, 5, 8)
    assert (answer.error_message, partition.error_message) == ("", "")
    rows = [
        (each.replica_id, each.replica_directory_id, each.log_end_offset, each.last_fetch_timestamp)
        for each in partition.current_voters
    ]
    assert rows == [
        (1, directory(1), 9, EPOCH_MS),
        (2, directory(2), 8, EPOCH_MS - 250),
        (3, directory(3), -1, -1),
    ]
    assert [each.last_caught_up_timestamp for each in partition.current_voters] == [EPOCH_MS, EPOCH_MS - 250, -1]
    (observer,) = partition.observers
    assert (observer.replica_id, observer.log_end_offset, observer.last_caught_up_timestamp) == (9, 5, -1)
    assert [each.node_id for each in answer.nodes] == [1, 2, 3]
    assert [(each.name, each.host, each.port) for each in answer.nodes[0].listeners] == [endpoint(1)]


def test_an_observer_that_stopped_to_fetch_is_forgotten() -> None:
    leader = replica(1).voters(1).leader(epoch=5).fetched_by(9)
    leader.now_us += 300_000 * MS
    assert described(leader).topics[0].partitions[0].observers == []


def test_older_versions_leave_out_what_they_cannot_carry() -> None:
    leader = replica(1).leader(epoch=5).fetched_by(2, 9)
    for version in (0, 1, 2):
        assert encode_response(1, 55, version, described(leader, version))


def test_another_replica_says_who_leads() -> None:
    (partition,) = described(replica(1).follower(epoch=5, of=3)).topics[0].partitions
    assert partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (partition.leader_id, partition.leader_epoch, partition.high_watermark) == (3, 5, 0)
    assert "not the current leader" in (partition.error_message or "")


@pytest.mark.parametrize(("topic", "partition"), [("another", 0), (TOPIC_NAME, 1)])
def test_any_other_topic_or_partition_is_unknown(topic: str, partition: int) -> None:
    answer: Any = replica(1).leader(epoch=5).receives(describe_request(topic, partition))
    assert answer.error_code == 0
    assert answer.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_the_status_names_an_observer_as_such() -> None:
    assert replica(9).follower(epoch=5, of=3).raft.describe().role == "observer"
    status = replica(1).leader(epoch=5).raft.describe()
    assert (status.role, status.is_voter, status.voters.ids, status.kraft_version) == ("leader", True, (1, 2, 3), 1)
    assert status.voted_key is None
    assert replica(1).candidate(epoch=5).raft.describe().voted_key == key(1)
