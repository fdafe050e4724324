"""BeginQuorumEpoch and EndQuorumEpoch as a voter gets them (KIP-595)."""

from collections.abc import Callable
from typing import Any

import pytest

from fastquorum.config import MS
from fastquorum.raft import effects as fx
from fastquorum.raft.election import ElectionState
from fastquorum.types import Endpoint
from fastquorum.wire import ErrorCode, Message

from .scenario import Replica, replica
from .wire_messages import begin_request, end_request, endpoint, error_of, key

NOT_LEADING: dict[str, Callable[[], Replica]] = {
    "unattached": lambda: replica(1).unattached(epoch=5),
    "unattached, voted": lambda: replica(1).unattached(epoch=5, voted=3),
    "prospective": lambda: replica(1).prospective(epoch=5),
    "candidate": lambda: replica(1).candidate(epoch=5),
    "observer": lambda: replica(9).unattached(epoch=5),
}


@pytest.mark.parametrize("setup", NOT_LEADING)
def test_everybody_follows_the_leader_of_its_own_epoch(setup: str) -> None:
    voter = NOT_LEADING[setup]()
    voted = voter.voted
    assert error_of(voter.receives(begin_request(5, by=2))) == ErrorCode.NONE
    assert (voter.role, voter.leader_id, voter.voted) == ("follower", 2, voted)


@pytest.mark.parametrize("setup", [*NOT_LEADING, "leader", "resigned", "follower"])
def test_everybody_follows_the_leader_of_a_higher_epoch(setup: str) -> None:
    more: dict[str, Callable[[], Replica]] = {
        "leader": lambda: replica(1).leader(epoch=5),
        "resigned": lambda: replica(1).resigned(epoch=5),
        "follower": lambda: replica(1).follower(epoch=5, of=3),
    }
    voter = (NOT_LEADING | more)[setup]()
    voter.receives(begin_request(6, by=2))
    assert (voter.role, voter.stored) == ("follower", ElectionState(6, 2))


def test_epoch_and_leader_are_durable_before_the_first_fetch() -> None:
    voter = replica(1).unattached(epoch=5)
    voter.receives(begin_request(6, by=2))
    kinds = [type(each) for each in voter.effects]
    assert kinds.index(fx.PersistElection) < kinds.index(fx.ConnectLeader)
    assert kinds.index(fx.PersistElection) < kinds.index(fx.SendResponse)


def test_the_leaders_endpoints_come_with_the_request_or_from_the_voter_set() -> None:
    voter = replica(1).unattached(epoch=5)
    voter.receives(begin_request(5, by=2))
    assert voter.ordered(fx.ConnectLeader) == [fx.ConnectLeader(2, endpoint(2))]
    moved = replica(1).unattached(epoch=5)
    moved.receives(begin_request(5, by=2, endpoints=(endpoint(77),)))
    assert moved.ordered(fx.ConnectLeader) == [fx.ConnectLeader(2, endpoint(77))]


def test_more_endpoints_of_the_same_leader_make_a_new_follower_and_as_many_do_not() -> None:
    voter = replica(1).follower(epoch=5, of=2).hears_leader()
    voter.receives(begin_request(5, by=2, endpoints=(endpoint(77),)))
    assert not voter.ordered(fx.ConnectLeader)
    voter.receives(begin_request(5, by=2, endpoints=(Endpoint("OTHER", "a", 1), endpoint(77))))
    assert voter.ordered(fx.ConnectLeader) == [fx.ConnectLeader(2, endpoint(77))]


def test_a_leader_without_known_address_is_remembered_but_cannot_be_followed() -> None:
    voter = replica(1).unattached(epoch=5).long_alone()
    assert error_of(voter.receives(begin_request(6, by=42))) == ErrorCode.NONE
    assert (voter.role, voter.stored) == ("unattached", ElectionState(6, 42))


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (begin_request(4, by=-1, to=key(2), cluster="another", topic="x"), ErrorCode.INCONSISTENT_CLUSTER_ID),
        (begin_request(4, by=-1, to=key(2), topic="x"), ErrorCode.INVALID_REQUEST),
        (begin_request(4, by=-1, to=key(2)), ErrorCode.FENCED_LEADER_EPOCH),
        (begin_request(5, by=-1, to=key(2)), ErrorCode.INVALID_REQUEST),
        (begin_request(5, by=3, to=key(2)), ErrorCode.INVALID_VOTER_KEY),
        (begin_request(5, by=3, to=key(1)), ErrorCode.NONE),
        (end_request(4, by=-1, cluster="another", topic="x"), ErrorCode.INCONSISTENT_CLUSTER_ID),
        (end_request(4, by=-1, topic="x"), ErrorCode.INVALID_REQUEST),
        (end_request(4, by=-1), ErrorCode.FENCED_LEADER_EPOCH),
        (end_request(5, by=-1), ErrorCode.INVALID_REQUEST),
        (end_request(5, by=3), ErrorCode.NONE),
    ],
)
def test_wrong_requests_are_answered_in_kafkas_order_of_checks(request_: Message, error: ErrorCode) -> None:
    voter = replica(1).unattached(epoch=5)
    assert error_of(voter.receives(request_)) == error
    learned = error in (ErrorCode.INVALID_VOTER_KEY, ErrorCode.NONE)
    assert voter.leader_id == (3 if learned else -1), "a wrong voter key is noticed after the leader is adopted"


@pytest.mark.parametrize("build", [begin_request, end_request])
def test_a_second_leader_of_an_epoch_is_stopped_and_changes_nothing(build: Callable[..., Message]) -> None:
    voter = replica(1).follower(epoch=5, of=3)
    assert error_of(voter.receives(build(5, by=2))) == ErrorCode.INVALID_REQUEST
    assert (voter.role, voter.leader_id, voter.effects[:-1]) == ("follower", 3, [])


def test_nobody_can_make_a_replica_the_leader_of_an_epoch_that_it_did_not_win() -> None:
    voter = replica(1).unattached(epoch=5)
    assert error_of(voter.receives(begin_request(5, by=1))) == ErrorCode.INVALID_REQUEST
    assert (voter.role, voter.leader_id) == ("unattached", -1)
    voter.receives(begin_request(6, by=1))
    assert (voter.role, voter.stored) == ("unattached", ElectionState(6, 1))
    assert voter.ordered(fx.LeadershipChanged)[-1].leader_id == -1


def test_a_late_begin_does_not_make_a_resigned_leader_its_own_follower() -> None:
    """KAFKA-18379."""
    resigned = replica(1).resigned(epoch=5)
    assert error_of(resigned.receives(begin_request(5, by=1, endpoints=(endpoint(1), endpoint(7))))) == 0
    assert resigned.role == "resigned"


# --- EndQuorumEpoch ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("candidates", "backoff_ms"),
    [((1, 3, 4), 0), ((3, 1, 4), 250), ((3, 4, 1), 500), ((3, 1), 500), ((3, 4), 1000), ((), 1000)],
)
def test_who_comes_later_in_the_list_waits_longer(candidates: tuple[int, ...], backoff_ms: int) -> None:
    voter = replica(1).voters(1, 2, 3, 4).follower(epoch=5, of=2).hears_leader()
    voter.receives(end_request(5, by=2, candidates=candidates))
    if backoff_ms:
        voter.elapse(backoff_ms - 1)
        assert voter.role == "follower"
        voter.elapse(1)
    assert voter.role == "prospective"


def test_version_0_lists_ids_only() -> None:
    voter = replica(1).follower(epoch=5, of=2)
    voter.receives(end_request(5, by=2, candidates=(1,)), version=0)
    assert voter.role == "prospective"


def test_the_first_candidate_gets_pre_votes_since_the_leader_says_itself_that_it_is_gone() -> None:
    voter = replica(1).follower(epoch=5, of=2).hears_leader()
    voter.receives(end_request(5, by=2, candidates=(1, 3)))
    voter.answer_vote(2, granted=True, leader=2)
    assert voter.role == "candidate"


def test_a_good_fetch_after_it_sets_the_timer_anew() -> None:
    voter = replica(1).follower(epoch=5, of=2)
    voter.receives(end_request(5, by=2))
    voter.now_us += 900 * MS
    voter.hears_leader()
    voter.elapse(1500)
    assert voter.role == "follower"


def test_end_of_an_older_epoch_is_ignored_and_of_a_newer_one_followed() -> None:
    voter = replica(1).follower(epoch=5, of=3)
    assert error_of(voter.receives(end_request(4, by=2))) == ErrorCode.FENCED_LEADER_EPOCH
    voter.receives(end_request(7, by=2, candidates=(1,)))
    assert (voter.role, voter.epoch, voter.stored) == ("prospective", 7, ElectionState(7, 2))


def test_answers_at_the_first_version_carry_no_endpoints() -> None:
    voter = replica(1).follower(epoch=5, of=3)
    for build in (begin_request, end_request):
        old: Any = voter.receives(build(4), version=0)
        new: Any = voter.receives(build(4), version=1)
        assert (len(old.node_endpoints), len(new.node_endpoints)) == (0, 1)
