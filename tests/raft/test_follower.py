"""The follower and the observer: what the lane hands up, lost connections, finding the leader (KIP-595)."""

from itertools import pairwise
from typing import Any

import pytest

from fastquorum.config import MS, QuorumConfig
from fastquorum.kernels.lane import FollowerSession
from fastquorum.raft import effects as fx
from fastquorum.raft import events as ev
from fastquorum.raft.election import ElectionState
from fastquorum.types import Endpoint
from fastquorum.wire import ErrorCode
from fastquorum.wire.messages.fetch import FetchRequest, FetchResponse

from .scenario import Replica, replica
from .wire_messages import (
    begin_request,
    end_request,
    endpoint,
    fetch_response,
    is_granted,
    vote_request,
    voter_set,
)

ELECTION_MS = QuorumConfig().election_timeout_us // MS
GONE_MS = 20 + 40 + ELECTION_MS // 4
"""Two attempts to reconnect, and the longest time that a follower then leaves to the others."""


def follower(log: str = "1:10 3:5", seed: int = 0) -> Replica:
    """Connected, and its last Fetch has just been handed up."""
    ready = replica(1).seeded(seed).follower(epoch=5, of=3).log(log)
    ready.step(ev.LeaderConnection(3, True))
    ready.forget()
    return ready


def attempt(node: Replica) -> int:
    session = node.raft.lane_session()
    assert isinstance(session, FollowerSession)
    return session.attempt


def span(first: int, end: int, epoch: int = 5, **more: Any) -> ev.RecordSpan:
    return ev.RecordSpan(1, first, end, epoch, epoch, **more)


# --- records ----------------------------------------------------------------------------------------------------------


def test_records_that_raft_had_to_see_are_appended_and_the_lane_fetches_on() -> None:
    node = follower()
    before = attempt(node)
    node.lane_hands_up(fetch_response(5, leader=3, high_watermark=16), span(15, 18))
    kinds = [type(each) for each in node.effects]
    assert kinds == [fx.CloseLane, fx.AppendSpan, fx.CommitTo]
    assert node.ordered(fx.CommitTo) == [fx.CommitTo(16)]
    assert attempt(node) == before + 1


def test_where_the_lane_has_asked_anew_before_that_was_decided_it_gets_another_connection() -> None:
    """Something else was decided in between, after which the lane went on. What it asked then is not answered yet, and
    nothing may be asked behind it (lane rule 7)."""
    node = follower()
    node.lane.fetch_sent_us = node.now_us
    before = attempt(node)
    node.lane_hands_up(fetch_response(5, leader=3, high_watermark=16), span(15, 18))
    kinds = [type(each) for each in node.effects]
    assert kinds == [fx.CloseLane, fx.AppendSpan, fx.CommitTo, fx.ConnectLeader]
    assert attempt(node) == before + 1
    node.lane.fetch_sent_us = -1
    node.step(ev.LeaderConnection(3, True))
    node.forget()
    node.lane_hands_up(fetch_response(5, leader=3, high_watermark=19), span(18, 20))
    assert fx.ConnectLeader not in [type(each) for each in node.effects], "this connection is as good as any"


def test_records_that_a_full_disk_has_no_room_for_are_asked_for_again_now_and_then() -> None:
    node = follower()
    node.fake_log.is_full = True
    fetches = []
    for _ in range(12):
        node.lane_hands_up(fetch_response(5, leader=3, high_watermark=16))
        assert node.raft.lane_session() is None, "nothing is fetched meanwhile"
        node.forget()
        node.elapse_to_deadline()
        fetches.append(node.now_us)
        assert node.ordered(fx.ConnectLeader)
        assert node.role == "follower"
    pauses = {after - before for before, after in pairwise(fetches)}
    assert pauses == {QuorumConfig().fetch_timeout_us // 4}, "seldom, but the leader is heard in time"


@pytest.mark.parametrize(("announced", "known"), [(99, 18), (17, 17), (-1, -1)])
def test_the_high_watermark_is_never_beyond_the_own_log(announced: int, known: int) -> None:
    node = follower()
    node.lane_hands_up(fetch_response(5, leader=3, high_watermark=announced), span(15, 18))
    assert node.raft.high_watermark == known


def test_a_lower_high_watermark_is_not_believed() -> None:
    node = follower().committed(14)
    node.lane_hands_up(fetch_response(5, leader=3, high_watermark=12), span(15, 18))
    assert not node.ordered(fx.CommitTo)
    assert node.raft.high_watermark == 14


def test_a_voter_set_takes_effect_when_it_is_appended_and_is_undone_when_it_is_truncated() -> None:
    node = follower()
    node.lane_hands_up(
        fetch_response(5, leader=3), span(15, 18, voter_sets=((16, voter_set(2, 3)),), kraft_versions=((15, 1),))
    )
    assert node.raft.voters.ids == (2, 3)
    assert node.raft.describe().role == "observer"
    node.lane_hands_up(fetch_response(5, leader=3, diverging=(5, 16)))
    assert node.raft.voters.ids == (1, 2, 3)
    assert node.raft.is_voter


def test_an_answer_of_no_use_is_not_repeated_at_once() -> None:
    node = follower()
    before = attempt(node)
    node.lane_hands_up(fetch_response(5, leader=3))
    assert node.raft.lane_session() is None
    node.elapse(20)
    assert attempt(node) == before + 1


# --- diverging logs ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("log", "diverging", "left"),
    [
        ("1:10 3:5", (1, 8), "1:8"),
        ("1:10 3:5", (2, 12), "1:10"),  # no epoch 2 here: to the end of epoch 1
        ("1:10 3:5", (3, 12), "1:10 3:2"),
        ("1:10 3:5", (0, 4), "1:4"),
        ("1:10 3:5", (0, 0), ""),
        ("3:5", (1, 3), ""),
        ("1:10 3:5", (4, 14), "1:10 3:5"),  # already shorter than that: nothing to cut
    ],
)
def test_a_diverging_log_is_cut_to_where_it_may_agree(log: str, diverging: tuple[int, int], left: str) -> None:
    node = follower(log)
    node.lane_hands_up(fetch_response(5, leader=3, diverging=diverging))
    assert str(node.fake_log) == left
    node.elapse(20)
    assert node.raft.lane_session() is not None


def test_what_is_committed_is_never_cut() -> None:
    """KAFKA-12460."""
    node = follower().committed(12)
    (*_, halt) = node.lane_hands_up(fetch_response(5, leader=3, diverging=(3, 11)))
    assert isinstance(halt, fx.Halt)
    assert "12" in str(halt.error)
    assert not node.ordered(fx.TruncateLog)


def test_not_even_if_only_the_own_log_says_so() -> None:
    node = follower().committed(12)
    (*_, halt) = node.lane_hands_up(fetch_response(5, leader=3, diverging=(2, 13)))
    assert isinstance(halt, fx.Halt), "the leader's end is above the high watermark, the common prefix is not"
    assert not node.ordered(fx.TruncateLog)


def test_the_high_watermark_outlives_a_change_of_leader() -> None:
    node = follower().committed(12)
    node.receives(begin_request(6, by=2))
    assert node.raft.high_watermark == 12
    (*_, halt) = node.lane_hands_up(fetch_response(6, leader=2, diverging=(1, 3)))
    assert isinstance(halt, fx.Halt)


# --- errors -----------------------------------------------------------------------------------------------------------


def test_not_leader_with_a_newer_leader_is_followed() -> None:
    node = follower()
    node.lane_hands_up(fetch_response(7, leader=2, error=ErrorCode.NOT_LEADER_OR_FOLLOWER))
    assert (node.role, node.stored) == ("follower", ElectionState(7, 2))


def test_fenced_without_a_leader_moves_the_epoch() -> None:
    node = follower()
    node.lane_hands_up(fetch_response(7, error=ErrorCode.FENCED_LEADER_EPOCH))
    assert (node.role, node.stored) == ("unattached", ElectionState(7))


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ],
)
def test_other_errors_are_backed_off_from_and_are_no_sign_of_life(error: ErrorCode) -> None:
    node = follower()
    for _ in range(50):
        if node.role == "follower" and node.raft.lane_session():
            node.lane_hands_up(fetch_response(5, leader=3, error=error))
        node.elapse(50)
    assert node.role != "follower"


def test_a_top_level_error_is_backed_off_from() -> None:
    node = follower()
    node.lane_hands_up(FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID))
    assert node.raft.lane_session() is None
    node.elapse(20)
    assert node.raft.lane_session() is not None


def test_a_partition_level_invalid_request_stops_the_replica() -> None:
    (*_, halt) = follower().lane_hands_up(fetch_response(5, leader=3, error=ErrorCode.INVALID_REQUEST))
    assert isinstance(halt, fx.Halt)


def test_an_answer_of_somebody_who_is_not_the_leader_is_dropped() -> None:
    node = follower()
    node.step(ev.FetchResponseReceived(2, -1, fetch_response(9, leader=2), None))
    assert (node.epoch, node.effects) == (5, [])


# --- silence ----------------------------------------------------------------------------------------------------------


def test_a_voter_stands_when_its_leader_is_silent_for_the_fetch_timeout() -> None:
    node = follower()
    node.elapse(1999)
    assert node.role == "follower"
    node.elapse(1)
    assert node.role == "prospective"


def test_an_overdue_timer_is_checked_against_the_lanes_contacts() -> None:
    """Lane rule 6: Python stood still for 9 s, the lane did not."""
    node = follower()
    node.now_us += 8_000 * MS
    node.hears_leader()
    node.now_us += 1_000 * MS
    node.step(ev.TimerFired())
    assert node.role == "follower"
    node.elapse(1000)
    assert node.role == "prospective"


def test_what_waited_while_the_process_stood_still_is_looked_at_before_the_timer() -> None:
    node = follower()
    node.now_us += 9_000 * MS
    node.receives(vote_request(5, by=2, pre_vote=True))
    assert node.role == "follower"
    node.hears_leader()
    node.elapse(1)
    assert node.role == "follower"


def test_an_observer_never_stands_but_looks_for_a_leader_elsewhere() -> None:
    observer = replica(9).follower(epoch=5, of=3)
    observer.elapse(30_000)
    assert observer.role == "follower"
    assert {to for to, _ in observer.requests(FetchRequest)} == {1, 2, 3}


def test_once_the_connection_is_up_again_nobody_else_is_asked() -> None:
    node = follower()
    node.step(ev.LeaderConnection(3, False))
    ((whom, _),) = node.requests(FetchRequest)
    node.step(ev.LeaderConnection(3, True))
    node.fails(whom)
    node.forget()
    node.elapse(500)
    assert node.requests(FetchRequest) == []


def test_a_lost_connection_is_ordered_again_and_others_are_asked_meanwhile() -> None:
    node = follower()
    node.step(ev.LeaderConnection(3, False))
    assert len(node.requests(FetchRequest)) == 1
    node.forget()
    node.elapse(20)
    assert node.ordered(fx.ConnectLeader) == [fx.ConnectLeader(3, endpoint(3))]


def test_reconnecting_slows_down() -> None:
    observer = replica(9).follower(epoch=5, of=3)
    for _ in range(40):
        observer.elapse(100)
        observer.step(ev.LeaderConnection(3, False))
    assert len(observer.ordered(fx.ConnectLeader)) < 20


def test_a_new_leader_learned_from_others_is_followed() -> None:
    node = follower()
    node.step(ev.LeaderConnection(3, False))
    (destination,) = [to for to, _ in node.requests(FetchRequest)]
    node.answers(destination, fetch_response(6, leader=2, error=ErrorCode.NOT_LEADER_OR_FOLLOWER, at=endpoint(2)))
    assert (node.leader_id, node.epoch) == (2, 6)


def test_a_fetch_without_answer_is_given_up_after_the_request_timeout() -> None:
    patient = QuorumConfig(fetch_timeout_us=60_000 * MS)
    node = replica(1).configured(patient).follower(epoch=5, of=3)
    node.step(ev.LeaderConnection(3, True))
    node.lane.fetch_sent_us = node.now_us
    before = attempt(node)
    node.elapse(2100)
    assert attempt(node) == before + 1


def test_a_fetch_that_may_be_parked_for_longer_than_the_request_timeout_is_waited_for() -> None:
    patient = QuorumConfig(fetch_timeout_us=60_000 * MS, fetch_wait_us_max=10_000 * MS)
    node = replica(1).configured(patient).follower(epoch=5, of=3)
    node.step(ev.LeaderConnection(3, True))
    node.lane.fetch_sent_us = node.now_us
    before = attempt(node)
    node.elapse(14_900)
    assert attempt(node) == before
    node.elapse(200)
    assert attempt(node) == before + 1


def test_a_follower_that_is_flushing_is_left_alone() -> None:
    patient = QuorumConfig(fetch_timeout_us=60_000 * MS)
    node = replica(1).configured(patient).follower(epoch=5, of=3)
    node.step(ev.LeaderConnection(3, True))
    node.forget()
    node.elapse(10_000)
    assert node.effects == []


# --- a leader whose process is gone -----------------------------------------------------------------------------------


def in_contact(seed: int = 0) -> Replica:
    """Its leader has answered it just now."""
    return follower(seed=seed).hears_leader()


def loses_its_leader(node: Replica, *, refusals: int) -> Replica:
    """The connection ends, and so many attempts to have it again fail at once."""
    node.step(ev.LeaderConnection(3, False))
    for _ in range(refusals):
        tries_again(node)
        node.step(ev.LeaderConnection(3, False))
    return node


def tries_again(node: Replica) -> None:
    node.forget()
    for _ in range(100):
        if node.ordered(fx.ConnectLeader):
            return
        node.elapse(10)
    raise AssertionError("the connection is not ordered again")


def grants_pre_vote(node: Replica, log: tuple[int, int] = (3, 15)) -> bool:
    return is_granted(node.receives(vote_request(node.epoch, by=2, pre_vote=True, log=log)))


def test_a_voter_whose_leader_refuses_two_connections_stands_without_waiting_for_the_fetch_timeout() -> None:
    node = loses_its_leader(in_contact(), refusals=2)
    assert node.role == "follower", "not before it has left some time to the others"
    node.elapse(ELECTION_MS // 4)
    assert node.role == "prospective"


def test_the_voters_of_a_leader_that_is_gone_stand_at_different_times() -> None:
    waits = set()
    for seed in range(20):
        node = loses_its_leader(in_contact(seed), refusals=2)
        refused_us = node.now_us
        node.pass_deadline(until=node.raft.role.PROSPECTIVE)
        waits.add(node.now_us - refused_us)
    assert len(waits) == 20
    assert max(waits) <= ELECTION_MS * MS // 4


def test_one_refusal_is_not_enough() -> None:
    node = loses_its_leader(in_contact(), refusals=1)
    node.elapse(GONE_MS)
    assert node.role == "follower"
    assert not grants_pre_vote(node)


def test_a_connection_that_is_lost_again_is_no_refusal() -> None:
    node = in_contact()
    for _ in range(5):
        loses_its_leader(node, refusals=1)
        node.elapse(60)
        node.step(ev.LeaderConnection(3, True))
    node.elapse(GONE_MS)
    assert node.role == "follower"


def test_a_leader_that_was_never_heard_is_given_the_fetch_timeout() -> None:
    """Where it is looked for may be wrong, and others may reach it all the time."""
    node = replica(1).follower(epoch=5, of=3)
    started_us = node.now_us
    loses_its_leader(node, refusals=5)
    node.elapse(GONE_MS)
    assert node.role == "follower"
    node.pass_deadline(until=node.raft.role.PROSPECTIVE)
    assert node.now_us - started_us == QuorumConfig().fetch_timeout_us


def test_a_leader_that_is_connected_again_is_not_gone() -> None:
    node = loses_its_leader(in_contact(), refusals=2)
    node.step(ev.LeaderConnection(3, True))
    assert not grants_pre_vote(node)
    node.elapse(ELECTION_MS)
    assert node.role == "follower"


def test_a_leader_that_is_heard_again_is_not_gone() -> None:
    node = loses_its_leader(in_contact(), refusals=2)
    node.lane_hands_up(fetch_response(5, leader=3, high_watermark=16), span(15, 18))
    assert not grants_pre_vote(node, log=(5, 18))
    node.elapse(ELECTION_MS)
    assert node.role == "follower"


def test_an_attempt_that_times_out_is_no_refusal() -> None:
    """A host that is gone sends nothing at all, and then the fetch timeout decides."""
    patient = QuorumConfig(fetch_timeout_us=60_000 * MS)
    node = replica(1).configured(patient).follower(epoch=5, of=3)
    node.step(ev.LeaderConnection(3, True))
    node.hears_leader().step(ev.LeaderConnection(3, False))
    for _ in range(5):
        tries_again(node)
        node.elapse(patient.request_timeout_us // MS)
        node.step(ev.LeaderConnection(3, False))
    node.elapse(GONE_MS)
    assert node.role == "follower"
    assert not grants_pre_vote(node)


def test_a_voter_stands_no_later_than_it_would_have_for_silence() -> None:
    node = in_contact()
    silent_from_us = node.now_us
    node.elapse(1930)
    loses_its_leader(node, refusals=2)
    node.pass_deadline(until=node.raft.role.PROSPECTIVE)
    assert node.now_us - silent_from_us <= QuorumConfig().fetch_timeout_us


def test_pre_votes_are_refused_until_the_leader_is_gone_and_then_given_to_whoever_is_up_to_date() -> None:
    node = in_contact()
    assert not grants_pre_vote(node)
    loses_its_leader(node, refusals=2)
    assert not grants_pre_vote(node, log=(3, 14))
    assert grants_pre_vote(node)
    assert node.role == "follower"


def test_an_observer_whose_leader_is_gone_does_not_stand() -> None:
    observer = replica(9).follower(epoch=5, of=3)
    observer.step(ev.LeaderConnection(3, True))
    loses_its_leader(observer.hears_leader(), refusals=2)
    observer.elapse(10_000)
    assert observer.role == "follower"


def test_a_leader_that_resigned_and_ended_has_said_who_stands_first() -> None:
    node = in_contact()
    node.receives(end_request(5, by=3, candidates=(2, 1)))
    resigned_us = node.now_us
    loses_its_leader(node, refusals=2)
    node.pass_deadline(until=node.raft.role.PROSPECTIVE)
    assert node.now_us - resigned_us == QuorumConfig().election_backoff_us_max // 2


def test_a_voter_whose_disk_is_full_does_not_stand_for_a_leader_that_is_gone_before_there_is_room() -> None:
    node = in_contact()
    node.fake_log.is_full = True
    node.step(ev.RoomChanged())
    loses_its_leader(node, refusals=2)
    node.elapse(ELECTION_MS // 2)
    assert node.role == "follower"
    node.fake_log.is_full = False
    node.step(ev.RoomChanged())
    node.elapse(2 * ELECTION_MS)
    assert node.role == "prospective"


# --- finding the leader -----------------------------------------------------------------------------------------------


def test_who_knows_no_leader_asks_the_voters_in_turn() -> None:
    lost = replica(9).unattached(epoch=5).starts()
    for _ in range(6):
        to, _fetch = lost.requests(FetchRequest)[-1]
        lost.fails(to)
        lost.elapse(20)
    destinations = [to for to, _ in lost.requests(FetchRequest)]
    assert sorted(destinations[:3]) == [1, 2, 3]
    assert destinations[:3] == destinations[3:6]


def test_the_question_claims_what_is_flushed_and_no_more() -> None:
    lost = replica(9).unattached(epoch=5).log("1:4 5:3")
    lost.fake_log.unflushed = 4
    lost.starts()
    (_, fetch) = lost.requests(FetchRequest)[0]
    partition = fetch.topics[0].partitions[0]
    assert (partition.fetch_offset, partition.last_fetched_epoch, partition.current_leader_epoch) == (3, 1, 5)
    assert (fetch.replica_state.replica_id, fetch.max_wait_ms) == (9, 0)


def test_bootstrap_servers_are_asked_under_negative_ids() -> None:
    servers = (Endpoint("CONTROLLER", "a", 1), Endpoint("CONTROLLER", "b", 2))
    lost = replica(9).bootstrap(*servers).starts()
    (request,) = lost.ordered(fx.SendRequest)
    assert (request.destination, request.endpoint) in [(-2, servers[0]), (-3, servers[1])]


def test_the_answer_names_the_leader_and_where_it_listens() -> None:
    lost = replica(9).bootstrap(Endpoint("CONTROLLER", "a", 1)).starts()
    lost.answers(-2, fetch_response(4, leader=42, error=ErrorCode.FENCED_LEADER_EPOCH, at=endpoint(42)))
    assert (lost.role, lost.stored) == ("follower", ElectionState(4, 42))
    assert lost.ordered(fx.ConnectLeader) == [fx.ConnectLeader(42, endpoint(42))]


def test_a_leader_that_answers_itself_is_followed_and_its_records_are_fetched_by_the_lane() -> None:
    lost = replica(1).unattached(epoch=5).starts()
    ((to, _),) = lost.requests(FetchRequest)
    lost.answers(to, fetch_response(5, leader=to, high_watermark=3))
    assert (lost.role, lost.leader_id) == ("follower", to)
    assert not lost.ordered(fx.AppendSpan)


def test_a_server_that_knows_nothing_new_is_asked_again_after_a_moment() -> None:
    lost = replica(9).bootstrap(Endpoint("CONTROLLER", "a", 1)).starts()
    lost.answers(-2, fetch_response(0, error=ErrorCode.NOT_LEADER_OR_FOLLOWER))
    lost.forget()
    assert lost.requests(FetchRequest) == []
    lost.elapse(20)
    assert len(lost.requests(FetchRequest)) == 1


def test_addresses_learned_from_configuration_are_used() -> None:
    lost = replica(1).unattached(epoch=5).starts()
    lost.step(ev.EndpointsChanged(42, (endpoint(42),)))
    ((to, _),) = lost.requests(FetchRequest)
    lost.answers(to, fetch_response(6, leader=42, error=ErrorCode.NOT_LEADER_OR_FOLLOWER))
    assert (lost.role, lost.leader_id) == ("follower", 42)
