"""A graceful stop from every role (KIP-595, EndQuorumEpoch)."""

import pytest

from fastquorum.config import MS
from fastquorum.raft import effects as fx
from fastquorum.raft import events as ev
from fastquorum.raft.raft import SHUTDOWN_US_MAX
from fastquorum.wire import ErrorCode
from fastquorum.wire.messages.quorum import EndQuorumEpochRequest

from .scenario import Replica, replica
from .wire_messages import begin_request, end_response, error_of, fetch_request, is_granted, vote_request


def shut_down(stopping: Replica) -> Replica:
    stopping.step(ev.ShutdownRequested())
    return stopping


def is_done(stopping: Replica) -> bool:
    return bool(stopping.ordered(fx.ShutdownComplete))


def test_a_follower_stops_at_once() -> None:
    stopping = shut_down(replica(1).follower(epoch=5, of=3))
    assert [type(each) for each in stopping.effects] == [fx.CloseLane, fx.ShutdownComplete]
    assert stopping.raft.lane_session() is None
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


@pytest.mark.parametrize("role", ["unattached", "prospective", "candidate"])
def test_a_voter_that_does_not_lead_stops_at_once(role: str) -> None:
    """It has nothing to hand over, and whoever needs its vote does not lead for long without it."""
    assert is_done(shut_down(getattr(replica(1), role)(epoch=5)))


def test_a_leader_does_not_wait_for_voters_that_cannot_be_reached() -> None:
    stopping = shut_down(replica(1).leader(epoch=5))
    stopping.fails(2)
    assert not is_done(stopping)
    stopping.fails(3)
    assert is_done(stopping)


def test_a_leader_does_not_wait_for_too_few_voters_once_they_are_told() -> None:
    stopping = shut_down(replica(1).leader(epoch=5))
    stopping.fails(2)
    assert not is_done(stopping)
    stopping.answers(3, end_response(5))
    assert is_done(stopping), "node 3 alone is no majority"
    waits = shut_down(replica(1).voters(1, 2, 3, 4, 5).leader(epoch=5))
    for node_id in (2, 3, 4):
        waits.answers(node_id, end_response(5))
    waits.fails(5)
    assert not is_done(waits), "2, 3 and 4 can elect one of them"


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
