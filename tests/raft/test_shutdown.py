"""A graceful stop from every role (KIP-595, EndQuorumEpoch)."""

from fastquorum.config import MS
from fastquorum.raft import effects as fx
from fastquorum.raft import events as ev
from fastquorum.raft.raft import SHUTDOWN_US_MAX
from fastquorum.wire import ErrorCode
from fastquorum.wire.quorum import EndQuorumEpochRequest

from .scenario import Replica, replica
from .wire_messages import begin_request, error_of, fetch_request, is_granted, vote_request


def shut_down(stopping: Replica) -> Replica:
    stopping.step(ev.ShutdownRequested())
    return stopping


def is_done(stopping: Replica) -> bool:
    return bool(stopping.ordered(fx.ShutdownComplete))


def test_a_follower_stops_at_once() -> None:
    stopping = shut_down(replica(1).follower(epoch=5, of=3))
    assert [type(each) for each in stopping.effects] == [fx.CloseLane, fx.ShutdownComplete]
    assert stopping.raft.lane_terms() is None
    assert stopping.raft.deadline_us == -1


def test_so_do_observers_and_the_only_voter() -> None:
    assert is_done(shut_down(replica(9).unattached(epoch=5)))
    assert is_done(shut_down(replica(1).voters(1).leader(epoch=5)))


def test_a_leader_resigns_and_waits_until_somebody_else_leads() -> None:
    stopping = shut_down(replica(1).leader(epoch=5).fetched_by(2, 3))
    assert stopping.role == "resigned"
    assert [to for to, _ in stopping.requests(EndQuorumEpochRequest)] == [2, 3]
    assert not is_done(stopping)
    assert is_granted(stopping.receives(vote_request(6, by=2, log=(5, 9))))
    assert not is_done(stopping)
    stopping.receives(begin_request(6, by=2))
    assert is_done(stopping)


def test_with_dead_peers_it_stops_at_the_deadline() -> None:
    stopping = shut_down(replica(1).leader(epoch=5))
    stopping.elapse(SHUTDOWN_US_MAX // MS - 1)
    assert (stopping.role, is_done(stopping)) == ("resigned", False)
    stopping.elapse(1)
    assert is_done(stopping)
    assert SHUTDOWN_US_MAX < 5_000 * MS


def test_an_unattached_voter_goes_on_voting_but_does_not_stand() -> None:
    stopping = shut_down(replica(1).unattached(epoch=5))
    stopping.elapse(2500)
    assert (stopping.role, is_done(stopping)) == ("unattached", False)
    assert is_granted(stopping.receives(vote_request(6, by=2)))


def test_a_candidate_finishes_its_election_and_resigns_what_it_won() -> None:
    stopping = shut_down(replica(1).candidate(epoch=5))
    assert (stopping.role, is_done(stopping)) == ("candidate", False)
    stopping.answer_vote(2, granted=True)
    assert (stopping.role, is_done(stopping)) == ("resigned", False)


def test_a_prospective_stops_when_it_finds_a_leader() -> None:
    stopping = shut_down(replica(1).prospective(epoch=5))
    assert not is_done(stopping)
    stopping.answer_vote(2, granted=False, leader=3)
    assert is_done(stopping)


def test_a_resigned_replica_stays_in_its_epoch() -> None:
    stopping = shut_down(replica(1).resigned(epoch=5))
    stopping.elapse(2900)
    assert (stopping.role, stopping.epoch) == ("resigned", 5)


def test_who_stops_does_not_serve_fetches_any_more() -> None:
    stopping = shut_down(replica(1).leader(epoch=5))
    assert error_of(stopping.receives(fetch_request(5))) == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_nothing_follows_the_end_and_asking_twice_is_harmless() -> None:
    stopping = shut_down(shut_down(replica(1).leader(epoch=5)))
    stopping.elapse(10_000)
    stopping.forget()
    assert stopping.step(ev.TimerFired()) == []
    assert len(stopping.ordered(fx.ShutdownComplete)) == 0
