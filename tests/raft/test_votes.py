"""Votes and pre-votes: who gets one, from whom, and how a wrong request is answered (KIP-595, KIP-853, KIP-996)."""

from collections.abc import Callable
from typing import Any

import pytest

from fastquorum.raft import effects as fx
from fastquorum.raft.election import ElectionState
from fastquorum.types import ZERO_UUID, ReplicaKey
from fastquorum.wire import ErrorCode, Message

from .scenario import Replica, replica
from .wire_messages import directory, error_of, is_granted, key, vote_request

LOG = "1:10 4:3"
UP_TO_DATE, BEHIND = (4, 13), (4, 12)

SETUPS: dict[str, Callable[[], Replica]] = {
    "unattached": lambda: replica(1).unattached(epoch=5).log(LOG),
    "unattached, voted for 2": lambda: replica(1).unattached(epoch=5, voted=2).log(LOG),
    "unattached, voted for 3": lambda: replica(1).unattached(epoch=5, voted=3).log(LOG),
    "unattached, leader known": lambda: replica(1).unattached(epoch=5, leader=9).log(LOG),
    "prospective": lambda: replica(1).prospective(epoch=5).log(LOG),
    "prospective, voted for 2": lambda: replica(1).prospective(epoch=5, voted=2).log(LOG),
    "prospective, voted for 3": lambda: replica(1).prospective(epoch=5, voted=3).log(LOG),
    "prospective, leader known": lambda: replica(1).prospective(epoch=5, leader=3).log(LOG),
    "candidate": lambda: replica(1).candidate(epoch=5).log(LOG),
    "leader": lambda: replica(1).leader(epoch=5).log(LOG),
    "resigned": lambda: replica(1).resigned(epoch=5).log(LOG),
    "follower, not yet fetched": lambda: replica(1).follower(epoch=5, of=3).log(LOG),
    "follower, has fetched": lambda: replica(1).follower(epoch=5, of=3).log(LOG).hears_leader(),
    "follower, voted for 2": lambda: replica(1).follower(epoch=5, of=3, voted=2).log(LOG),
    "observer": lambda: replica(9).unattached(epoch=5).log(LOG),
}

GRANTS = {
    # set-up: (pre-vote up to date, pre-vote behind, vote up to date, vote behind), all in the replica's own epoch
    "unattached": (True, False, True, False),
    # Given again to whoever missed the answer, not to whoever has lost a part of its log since.
    "unattached, voted for 2": (True, False, True, False),
    "unattached, voted for 3": (True, False, False, False),
    "unattached, leader known": (True, False, False, False),
    "prospective": (True, False, True, False),
    "prospective, voted for 2": (True, False, True, False),
    "prospective, voted for 3": (True, False, False, False),
    "prospective, leader known": (True, False, False, False),
    "candidate": (True, False, False, False),
    "leader": (False, False, False, False),
    "resigned": (True, False, False, False),
    "follower, not yet fetched": (True, False, False, False),
    "follower, has fetched": (False, False, False, False),
    "follower, voted for 2": (True, False, False, False),
    "observer": (True, False, True, False),
}


@pytest.mark.parametrize(
    ("setup", "pre_vote", "is_up_to_date", "granted"),
    [
        (setup, pre_vote, is_up_to_date, row[(not pre_vote) * 2 + (not is_up_to_date)])
        for setup, row in GRANTS.items()
        for pre_vote in (True, False)
        for is_up_to_date in (True, False)
    ],
)
def test_the_vote_table(setup: str, pre_vote: bool, is_up_to_date: bool, granted: bool) -> None:
    voter = SETUPS[setup]()
    assert voter.epoch == 5
    log = UP_TO_DATE if is_up_to_date else BEHIND
    if pre_vote:
        # Only a pre-vote can claim records of the current epoch, such as the leader's own.
        log = (voter.fake_log.last_epoch, voter.fake_log.end_offset - (not is_up_to_date))
    answer = voter.receives(vote_request(5, by=2, log=log, pre_vote=pre_vote))
    assert (error_of(answer), is_granted(answer)) == (ErrorCode.NONE, granted)
    assert voter.epoch == 5, "nobody moves"


@pytest.mark.parametrize("setup", SETUPS)
def test_a_pre_vote_stores_nothing(setup: str) -> None:
    voter = SETUPS[setup]()
    role, election = voter.role, voter.raft.election
    voter.receives(vote_request(5, by=2, log=UP_TO_DATE, pre_vote=True))
    assert (voter.role, voter.raft.election) == (role, election)
    assert not voter.ordered(fx.PersistElection)


@pytest.mark.parametrize("setup", SETUPS)
def test_in_a_higher_epoch_everybody_votes_for_an_up_to_date_candidate(setup: str) -> None:
    voter = SETUPS[setup]()
    log = (5, 99) if setup == "leader" else UP_TO_DATE
    answer = voter.receives(vote_request(6, by=2, log=log))
    assert is_granted(answer)
    assert voter.role == "unattached"
    assert voter.stored == ElectionState(6, -1, key(2))


@pytest.mark.parametrize("setup", SETUPS)
def test_a_candidate_of_a_higher_epoch_with_an_older_log_moves_the_epoch_but_gets_no_vote(setup: str) -> None:
    voter = SETUPS[setup]()
    answer = voter.receives(vote_request(7, by=2, log=(3, 1000)))
    assert not is_granted(answer)
    assert voter.stored == ElectionState(7)


def test_the_epoch_of_the_last_record_counts_before_the_length_of_the_log() -> None:
    assert not is_granted(replica(1).unattached(5).log("4:3").receives(vote_request(6, log=(3, 500))))
    assert is_granted(replica(1).unattached(5).log("3:500").receives(vote_request(6, log=(4, 3))))


def test_the_vote_is_durable_before_it_is_told() -> None:
    voter = replica(1).unattached(epoch=5)
    voter.receives(vote_request(6, by=2))
    kinds = [type(each) for each in voter.effects]
    assert kinds.index(fx.PersistElection) < kinds.index(fx.SendResponse)
    assert len(voter.ordered(fx.PersistElection)) == 1


def test_a_vote_is_given_once_an_epoch_but_repeated_to_the_same_candidate() -> None:
    voter = replica(1).unattached(epoch=5)
    assert is_granted(voter.receives(vote_request(6, by=2)))
    assert not is_granted(voter.receives(vote_request(6, by=3)))
    assert is_granted(voter.receives(vote_request(6, by=2)))
    assert len(voter.ordered(fx.PersistElection)) == 1


def test_a_restarted_voter_remembers_its_vote() -> None:
    voter = replica(1).unattached(epoch=5)
    voter.receives(vote_request(6, by=2))
    voter.restarts()
    assert not is_granted(voter.receives(vote_request(6, by=3)))


def test_a_voter_that_came_back_with_an_empty_disk_is_not_the_one_that_was_voted_for() -> None:
    voter = replica(1).unattached(epoch=5, voted=2)
    assert not is_granted(voter.receives(vote_request(5, by=2, directory_id=directory(99))))


def test_without_stored_directory_id_the_id_alone_counts() -> None:
    voter = replica(1).persisted(5, voted=ReplicaKey(2, ZERO_UUID))
    assert is_granted(voter.receives(vote_request(5, by=2, directory_id=directory(99))))


def test_giving_a_vote_puts_the_own_election_off() -> None:
    voter = replica(1).unattached(epoch=5)
    voter.now_us = voter.raft.deadline_us - 1
    voter.receives(vote_request(6, by=2))
    voter.elapse(999)
    assert voter.role == "unattached"
    voter.elapse(1001)
    assert voter.role == "prospective"


def test_a_refused_candidate_does_not_put_the_own_election_off() -> None:
    voter = replica(1).unattached(epoch=5).log("5:5")
    voter.elapse(900)
    voter.receives(vote_request(6, by=2, log=(1, 1)))
    voter.elapse(1100)
    assert voter.role == "prospective"


def test_a_prospective_that_gives_its_vote_counts_its_pre_votes_anew() -> None:
    voter = replica(1).voters(1, 2, 3, 4, 5).prospective(epoch=5)
    voter.answer_vote(4, granted=True)
    assert is_granted(voter.receives(vote_request(5, by=2)))
    voter.answer_vote(5, granted=True)
    assert voter.role == "prospective"
    assert voter.voted == 2


def test_a_vote_leaves_the_lane_no_time_to_do_anything_for_the_old_epoch() -> None:
    voter = replica(1).leader(epoch=5).log("5:3")
    voter.receives(vote_request(6, by=2, log=(5, 3)))
    assert [type(each) for each in voter.effects[:3]] == [fx.CloseLane, fx.PersistElection, fx.SendResponse]


# --- wrong requests, in Kafka's order of checks -----------------------------------------------------------------------

ALL_WRONG: dict[str, Any] = {
    "cluster": "another",
    "topic": "another",
    "log": (9, 1),
    "by": -1,
    "to": ReplicaKey(1, directory(99)),
}
"""A request of epoch 9 in which everything is wrong; each test puts more of it right."""


def without(*right: str, **changed: Any) -> Message:
    return vote_request(changed.pop("epoch", 9), **{k: v for k, v in ALL_WRONG.items() if k not in right}, **changed)


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (without(), ErrorCode.INCONSISTENT_CLUSTER_ID),
        (without("cluster"), ErrorCode.INVALID_REQUEST),
        (without("cluster", "topic"), ErrorCode.INVALID_REQUEST),
        (without("cluster", "topic", "log", epoch=4, log=(3, -1)), ErrorCode.INVALID_REQUEST),
        (without("cluster", "topic", "log", epoch=4, log=(-1, 1)), ErrorCode.INVALID_REQUEST),
        (without("cluster", "topic", "log", epoch=4), ErrorCode.FENCED_LEADER_EPOCH),
        (without("cluster", "topic", "log"), ErrorCode.INVALID_REQUEST),
        (without("cluster", "topic", "log", "by"), ErrorCode.INVALID_VOTER_KEY),
        (without("cluster", "topic", "log", "by", "to"), ErrorCode.NONE),
    ],
)
def test_wrong_votes_are_answered_in_kafkas_order_of_checks(request_: Message, error: ErrorCode) -> None:
    voter = replica(1).unattached(epoch=5)
    assert error_of(voter.receives(request_)) == error
    moved = error in (ErrorCode.INVALID_VOTER_KEY, ErrorCode.NONE)
    assert voter.epoch == (9 if moved else 5)


def test_cluster_and_topic_errors_are_top_level_and_the_others_are_not() -> None:
    voter = replica(1).unattached(epoch=5)
    for wrong in (without(), without("cluster")):
        answer: Any = voter.receives(wrong)
        assert answer.error_code != 0
        assert not answer.topics
    fenced: Any = voter.receives(vote_request(4))
    assert fenced.error_code == 0
    assert fenced.topics[0].partitions[0].leader_epoch == 5


def test_a_request_for_another_voter_moves_the_epoch_before_it_is_refused() -> None:
    """A running Kafka 4.3.0 does the same."""
    voter = replica(1).unattached(epoch=5)
    answer = voter.receives(vote_request(8, to=key(2)))
    assert error_of(answer) == ErrorCode.INVALID_VOTER_KEY
    assert voter.stored == ElectionState(8)


def test_a_request_without_cluster_id_or_voter_key_is_accepted() -> None:
    assert is_granted(replica(1).unattached(5).receives(vote_request(6, cluster=None, to=None)))


def test_a_pre_vote_may_name_records_of_the_current_epoch_and_a_vote_may_not() -> None:
    voter = replica(1).unattached(epoch=5)
    assert is_granted(voter.receives(vote_request(5, log=(5, 1), pre_vote=True)))
    assert error_of(voter.receives(vote_request(5, log=(5, 1)))) == ErrorCode.INVALID_REQUEST


def test_somebody_outside_the_voter_set_is_judged_like_anybody_else() -> None:
    assert is_granted(replica(1).unattached(5).long_alone().receives(vote_request(6, by=42)))


def test_answers_name_the_leader_and_where_it_listens() -> None:
    follower = replica(1).follower(epoch=5, of=3)
    answer: Any = follower.receives(vote_request(4))
    assert [(each.node_id, each.host, each.port) for each in answer.node_endpoints] == [(3, "host3", 9003)]
    assert answer.topics[0].partitions[0].leader_id == 3
    old: Any = follower.receives(vote_request(4), version=0)
    assert old.node_endpoints == []
