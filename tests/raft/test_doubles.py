"""Two processes that act as one replica, and a replica that has lost what it had: both sides are told, in words."""

import pytest

from fastquorum.raft import effects as fx
from fastquorum.raft import events as ev
from fastquorum.wire import ErrorCode

from .scenario import EPOCH_MS, Replica, replica
from .wire_messages import (
    begin_request,
    directory,
    endpoint,
    fetch_request,
    fetch_response,
    key,
    vote_request,
    vote_response,
)


def notices(node: Replica) -> set[str]:
    return {each.event for each in node.ordered(fx.Notice)}


def sentence(node: Replica) -> str:
    (notice,) = {each.sentence for each in node.ordered(fx.Notice)}
    return notice


def fetches(leader: Replica, connection: int, at: int, by: int = 2) -> None:
    """A Fetch that goes to raft/ and is admitted; the lane serves its peer on that connection then."""
    leader.step(
        ev.RequestReceived(connection, 18, fetch_request(5, by=by, at=at, last_epoch=5), connection, 1, EPOCH_MS)
    )
    leader.fetched_by(by, end=at)
    leader.lane.peers[key(by)] = leader.lane.peers[key(by)]._replace(connection=connection)


def test_a_copy_that_leads_is_told_of_by_the_original() -> None:
    for request in (
        begin_request(6, by=1, endpoints=(endpoint(77),)),
        begin_request(5, by=1, endpoints=(endpoint(77),)),
    ):
        original = replica(1).unattached(epoch=5)
        original.receives(request)
        assert notices(original) == {"double"}
        notice = sentence(original)
        assert "node 1" in notice
        assert "host77:9077" in notice
        assert "host1:9001" in notice
        assert "stop one" in notice


def test_a_copy_of_the_leader_is_told_by_those_that_it_asks() -> None:
    copy = replica(1).prospective(epoch=5)
    copy.answers(2, vote_response(5, granted=False, leader=1))
    assert notices(copy) == {"double"}


def test_a_leader_that_others_name_is_no_double_of_itself() -> None:
    leader = replica(1).leader(epoch=5)
    leader.receives(begin_request(5, by=1))
    resigned = replica(1).resigned(epoch=5)
    resigned.receives(begin_request(5, by=1))
    assert notices(leader) == notices(resigned) == set()


def test_two_that_fetch_in_turn_as_one_replica_are_told_of_by_the_leader() -> None:
    leader = replica(1).leader(epoch=5).log("5:4")
    for _ in range(5):
        fetches(leader, 20, at=4)
        fetches(leader, 21, at=4)
    assert notices(leader) == {"double"}
    assert "node 2 at host2:9002" in sentence(leader)
    assert str(directory(2)) in sentence(leader)


def test_a_replica_that_reconnects_however_often_is_one() -> None:
    leader = replica(1).leader(epoch=5).log("5:4")
    for connection in range(20, 60):
        fetches(leader, connection, at=4)
    assert notices(leader) == set()


def test_the_one_whose_place_is_taken_again_and_again_says_so() -> None:
    follower = replica(1).follower(epoch=5, of=3).log("5:3")
    for _ in range(20):
        follower.lane_hands_up(fetch_response(5, leader=3, error=ErrorCode.NOT_LEADER_OR_FOLLOWER))
    for _ in range(4):
        follower.lane_hands_up(fetch_response(5, leader=3, error=ErrorCode.NOT_LEADER_OR_FOLLOWER, high_watermark=3))
    assert notices(follower) == set(), "it has looked for its leader on another connection itself"
    for _ in range(4):
        follower.lane_hands_up(fetch_response(5, leader=3, error=ErrorCode.NOT_LEADER_OR_FOLLOWER, high_watermark=3))
    assert notices(follower) == {"double"}
    assert "leader 3" in sentence(follower)
    assert "host1:9001" in sentence(follower)


@pytest.mark.parametrize("by", [2, 9])
def test_a_replica_that_comes_back_with_less_than_it_had_is_told_of(by: int) -> None:
    leader = replica(1).leader(epoch=5).log("5:4")
    fetches(leader, 20, at=4, by=by)
    leader.lane.peers[key(by)] = leader.lane.peers[key(by)]._replace(connection=-1)
    leader.now_us += 3_000_000
    fetches(leader, 21, at=1, by=by)
    assert notices(leader) == {"records_lost"}
    notice = sentence(leader)
    assert f"node {by}" in notice
    assert "offset 4" in notice
    assert str(directory(by)) in notice


def test_a_static_voter_that_comes_back_in_another_directory_without_its_records_is_told_of() -> None:
    leader = replica(1).static_voters(1, 2, 3).leader(epoch=5).log("5:4")
    fetches(leader, 20, at=4)
    leader.lane.peers[key(2)] = leader.lane.peers[key(2)]._replace(connection=-1)
    leader.now_us += 3_000_000
    request = fetch_request(5, by=2, at=0, last_epoch=0, directory_id=directory(99))
    leader.step(ev.RequestReceived(21, 18, request, 21, 1, EPOCH_MS))
    assert notices(leader) == {"records_lost"}
    assert str(directory(99)) in sentence(leader)


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("it_was", ["the leader", "voted for", "a candidate", "a follower"])
def test_a_voter_that_names_a_lower_epoch_than_it_was_in_is_told_of(it_was: str, static: bool) -> None:
    node = replica(1)
    if static:
        node.static_voters(1, 2, 3)
    if it_was == "the leader":
        node.follower(epoch=5, of=2)
    elif it_was == "voted for":
        node.unattached(epoch=5, voted=2)
    elif it_was == "a candidate":
        node.follower(epoch=4, of=3)
        node.receives(vote_request(5, by=2))
    else:
        node.leader(epoch=5)
        fetches(node, 20, at=0)
    node.forget()
    node.now_us += 30_000_000
    node.receives(fetch_request(0, by=2), connection=30)
    assert notices(node) == {"votes_forgotten"}
    notice = sentence(node)
    assert "node 2 at host2:9002" in notice
    assert "was in epoch 5, and is in epoch 0 now" in notice
    assert str(directory(2)) in notice


def test_a_vote_that_comes_from_a_lower_epoch_tells_it_too() -> None:
    node = replica(1).follower(epoch=5, of=2)
    node.now_us += 30_000_000
    node.receives(vote_request(1, by=2, pre_vote=True))
    assert notices(node) == {"votes_forgotten"}


def test_who_leads_next_knows_of_the_former_leader_what_it_knew_as_a_follower() -> None:
    node = replica(1).follower(epoch=5, of=2)
    node.elapse(60_000)
    node.elect_itself()
    node.now_us += 30_000_000
    node.forget()
    node.receives(fetch_request(0, by=2))
    assert notices(node) == {"votes_forgotten"}


def test_a_voter_that_was_never_heard_in_a_higher_epoch_has_forgotten_nothing() -> None:
    for sender, place in ((3, directory(3)), (2, directory(99)), (9, directory(9))):
        node = replica(1).follower(epoch=5, of=2)
        node.now_us += 30_000_000
        node.receives(fetch_request(0, by=sender, directory_id=place))
        assert notices(node) == set()


def test_an_epoch_that_nobody_has_heard_of_is_not_held_against_a_voter() -> None:
    node = replica(1).leader(epoch=5)
    node.receives(fetch_request(500, by=2))
    node.now_us += 30_000_000
    fetches(node, 20, at=0)
    assert notices(node) == set()


def test_what_was_sent_in_the_epoch_before_is_no_loss() -> None:
    node = replica(1).follower(epoch=4, of=3)
    node.receives(begin_request(5, by=2))
    node.receives(fetch_request(4, by=2))
    assert notices(node) == set()


def test_what_was_held_up_for_long_on_a_connection_that_was_there_before_is_no_loss() -> None:
    node = replica(1).follower(epoch=3, of=3)
    node.receives(vote_request(4, by=3), connection=20)
    node.receives(vote_request(5, by=2), connection=21)
    node.now_us += 60_000_000
    for connection in (19, 20, 21):
        node.receives(fetch_request(4, by=2), connection=connection)
    assert notices(node) == set()


def test_what_waited_for_a_new_connection_while_its_sender_went_on_is_no_loss() -> None:
    node = replica(1).follower(epoch=4, of=3)
    node.receives(vote_request(5, by=2), connection=20)
    node.now_us += 4_000_000
    node.receives(vote_request(4, by=2, pre_vote=True), connection=30)
    node.receives(vote_request(5, by=2), connection=30)
    assert notices(node) == set()


def test_what_was_held_up_on_its_way_is_no_loss() -> None:
    leader = replica(1).leader(epoch=5).log("5:4")
    fetches(leader, 20, at=4)
    fetches(leader, 19, at=1)
    assert notices(leader) == set()


def test_another_directory_is_another_replica() -> None:
    leader = replica(1).leader(epoch=5).log("5:4")
    fetches(leader, 20, at=4)
    leader.lane.peers[key(2)] = leader.lane.peers[key(2)]._replace(connection=-1)
    leader.now_us += 3_000_000
    request = fetch_request(5, by=2, at=1, last_epoch=5, directory_id=directory(99))
    leader.step(ev.RequestReceived(21, 18, request, 21, 1, EPOCH_MS))
    assert notices(leader) == set()
