"""Epochs that others name: who is believed, how far, and that nobody outside the quorum can use epochs up (KIP-595,
KIP-853, KIP-996)."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastquorum.errors import ProtocolFatal, WireError
from fastquorum.raft import effects as fx
from fastquorum.raft import events as ev
from fastquorum.raft.claims import LEAP_EPOCH_MAX, LEAP_MAX
from fastquorum.raft.core import EPOCH_MAX
from fastquorum.raft.election import ElectionState
from fastquorum.types import TOPIC_NAME, ZERO_UUID, OffsetAndEpoch
from fastquorum.wire import ErrorCode, Message, decode_request, encode_request, request_header
from fastquorum.wire.messages.fetch import FetchResponse
from fastquorum.wire.messages.quorum_admin import UpdateRaftVoterRequest, UpdateRaftVoterResponse
from fastquorum.wire.messages.snapshot import FetchSnapshotResponse

from .scenario import WAIT_US, Replica, replica
from .wire_messages import (
    begin_request,
    begin_response,
    directory,
    end_request,
    end_response,
    endpoint,
    error_of,
    fetch_request,
    fetch_response,
    is_granted,
    vote_request,
    vote_response,
    voter_set,
)

STRANGER = 42
ROLES: dict[str, Callable[[], Replica]] = {
    "unattached": lambda: replica(1).unattached(epoch=5),
    "prospective": lambda: replica(1).prospective(epoch=5),
    "candidate": lambda: replica(1).candidate(epoch=5),
    "leader": lambda: replica(1).leader(epoch=5),
    "resigned": lambda: replica(1).resigned(epoch=5),
    "follower": lambda: replica(1).follower(epoch=5, of=3).hears_leader(),
    "observer": lambda: replica(9).unattached(epoch=5),
    "static voter": lambda: replica(1).static_voters(1, 2, 3).unattached(epoch=5),
}


def _wants_snapshot(epoch: int, leader: int, offset: int, of_epoch: int) -> FetchResponse:
    response = fetch_response(epoch, leader=leader)
    wanted = response.responses[0].partitions[0].snapshot_id
    wanted.end_offset, wanted.epoch = offset, of_epoch
    return response


def _update(epoch: int, by: int) -> Message:
    return UpdateRaftVoterRequest(current_leader_epoch=epoch, voter_id=by)


REQUESTS: dict[str, Callable[[int, int], Message]] = {
    "vote": lambda epoch, by: vote_request(epoch, by=by, log=(5, 1 << 40)),
    "vote without cluster id": lambda epoch, by: vote_request(epoch, by=by, log=(5, 1 << 40), cluster=None),
    "pre-vote": lambda epoch, by: vote_request(epoch, by=by, log=(5, 1 << 40), pre_vote=True),
    "begin": lambda epoch, by: begin_request(epoch, by=by, endpoints=(endpoint(by),)),
    "end": lambda epoch, by: end_request(epoch, by=by),
    "fetch": lambda epoch, by: fetch_request(epoch, by=by),
    "update": _update,
}
MOVING = ("vote", "pre-vote", "begin", "end")


@pytest.mark.parametrize("request_", REQUESTS)
@pytest.mark.parametrize("setup", ROLES)
@pytest.mark.parametrize("epoch", [5 + LEAP_MAX + 1, 1_000_000, EPOCH_MAX])
def test_an_epoch_that_leaps_is_not_believed_of_a_stranger(setup: str, request_: str, epoch: int) -> None:
    node = ROLES[setup]()
    role, election = node.role, node.raft.election
    node.receives(REQUESTS[request_](epoch, STRANGER))
    assert (node.role, node.raft.election) == (role, election)
    assert not node.ordered(fx.PersistElection)


@pytest.mark.parametrize("request_", MOVING)
@pytest.mark.parametrize("setup", ROLES)
@pytest.mark.parametrize("epoch", [LEAP_EPOCH_MAX + 1, EPOCH_MAX])
def test_an_epoch_that_no_elections_lead_to_is_believed_of_nobody(setup: str, request_: str, epoch: int) -> None:
    node = ROLES[setup]()
    node.receives(REQUESTS[request_](epoch, 2))
    assert node.epoch == 5


@pytest.mark.parametrize("request_", [each for each in REQUESTS if each != "fetch"])  # which has fields of all versions
@pytest.mark.parametrize("setup", ROLES)
def test_nor_is_it_in_an_older_version_of_the_request(setup: str, request_: str) -> None:
    """What such a version cannot say, as directories, makes nobody a voter; nor is a voter believed more in it."""
    make = REQUESTS[request_]
    for version in type(make(6, STRANGER)).__wire__.versions:
        for epoch, by in ((5 + LEAP_MAX + 1, STRANGER), (EPOCH_MAX, STRANGER), (LEAP_EPOCH_MAX + 1, 2)):
            node = ROLES[setup]()
            role, election, message = node.role, node.raft.election, make(epoch, by)
            try:
                frame = encode_request(request_header(message, version, 1, None), message)
            except WireError:
                assert request_ == "pre-vote"
                assert version < 2, "it can be said"
                continue
            node.receives(decode_request(frame)[1], version)
            assert node.epoch == 5
            assert by == 2 or (node.role, node.raft.election) == (role, election)


@pytest.mark.parametrize("directory_id", [ZERO_UUID, directory(99)])
def test_a_voters_id_without_its_directory_is_a_stranger(directory_id: object) -> None:
    node = replica(1).follower(epoch=5, of=3).hears_leader()
    node.receives(vote_request(6, by=2, directory_id=directory_id, pre_vote=True))  # type: ignore[arg-type]
    node.receives(vote_request(1_000_000, by=2, directory_id=directory_id))  # type: ignore[arg-type]
    assert (node.role, node.epoch) == ("follower", 5)


def test_static_voters_are_known_by_their_ids_alone() -> None:
    node = replica(1).static_voters(1, 2, 3).unattached(epoch=5)
    assert is_granted(node.receives(vote_request(1_000_000, by=2, directory_id=directory(99))))


@pytest.mark.parametrize("request_", MOVING)
@pytest.mark.parametrize("setup", ROLES)
@pytest.mark.parametrize("epoch", [6, 1_000_000, LEAP_EPOCH_MAX])
def test_a_voter_is_believed_however_long_it_was_away(setup: str, request_: str, epoch: int) -> None:
    node = ROLES[setup]()
    node.receives(REQUESTS[request_](epoch, 2))
    assert node.epoch == epoch


@pytest.mark.parametrize("request_", MOVING)
@pytest.mark.parametrize("epoch", [6, 5 + LEAP_MAX])
def test_a_voter_that_is_not_known_here_yet_counts_as_long_as_it_does_not_leap(request_: str, epoch: int) -> None:
    """Its record may be on its way (KIP-853)."""
    node = replica(1).unattached(epoch=5).long_alone()
    node.receives(REQUESTS[request_](epoch, STRANGER))
    assert node.epoch == epoch


@pytest.mark.parametrize("request_", MOVING)
@pytest.mark.parametrize("setup", ["leader", "follower"])
@pytest.mark.parametrize("epoch", [6, 5 + LEAP_MAX])
def test_whoever_leads_or_hears_its_leader_is_moved_by_no_stranger(setup: str, request_: str, epoch: int) -> None:
    """Else one request after the other, each a step ahead, would leave no leader its time, and use epochs up."""
    node = ROLES[setup]()
    role, election = node.role, node.raft.election
    node.receives(REQUESTS[request_](epoch, STRANGER))
    assert (node.role, node.raft.election) == (role, election)
    assert not node.ordered(fx.PersistElection)


@pytest.mark.parametrize("request_", MOVING)
def test_one_that_has_had_no_leader_for_long_is_moved_again(request_: str) -> None:
    node = replica(1).follower(epoch=5, of=3).hears_leader()
    node.elapse(WAIT_US // 1000 - 1)
    node.receives(REQUESTS[request_](6, STRANGER))
    assert (node.role, node.epoch) != ("follower", 6)
    assert node.epoch == 5
    node.elapse(2)
    node.receives(REQUESTS[request_](6, STRANGER))
    assert node.epoch == 6


@pytest.mark.parametrize("request_", MOVING)
@pytest.mark.parametrize("setup", ["unattached", "follower"])
def test_one_that_has_just_started_finds_out_who_leads_before_a_stranger_moves_it(setup: str, request_: str) -> None:
    """The leader of the others may be well, and would be deposed by the epoch."""
    node = {"unattached": replica(1).unattached(epoch=5), "follower": replica(1).follower(epoch=5, of=3)}[setup]
    for _ in range(9):
        node.elapse(node.config.election_timeout_us // 2_000)
        node.receives(REQUESTS[request_](6, STRANGER))
        assert node.epoch == 5


def test_a_leader_that_is_taken_for_gone_is_not_deposed_by_a_stranger_either() -> None:
    """The connection to it may be what is lost."""
    node = replica(1).follower(epoch=5, of=3).hears_leader()
    node.elapse(1)
    for _ in range(2):
        node.step(ev.LeaderConnection(3, False))
        node.elapse(60)
    node.receives(REQUESTS["vote"](6, STRANGER))
    assert node.epoch == 5


@pytest.mark.parametrize("setup", ["leader", "resigned"])
def test_whoever_led_waits_as_long(setup: str) -> None:
    node = ROLES["leader"]()
    if setup == "resigned":
        node.step(ev.ResignRequested(-1, 5))
        assert node.role == "resigned"
    node.receives(REQUESTS["vote"](6, STRANGER))
    assert node.epoch == 5


def test_a_candidate_has_its_time_and_so_has_one_that_got_a_vote() -> None:
    node = replica(1).prospective(epoch=5).long_alone()
    node.answer_vote(2, granted=True)
    assert (node.role, node.epoch) == ("candidate", 6)
    node.receives(REQUESTS["vote"](7, STRANGER))
    assert node.epoch == 6
    node = replica(1).unattached(epoch=5).long_alone()
    assert is_granted(node.receives(REQUESTS["vote"](6, 2)))
    node.receives(REQUESTS["vote"](7, STRANGER))
    assert node.epoch == 6


def _says_it_leads(node: Replica, epoch: int = 6) -> int:
    return error_of(node.receives(REQUESTS["begin"](epoch, STRANGER)))


def _follower_of_a_stranger(log: str = "1:10") -> Replica:
    node = replica(1).unattached(epoch=5).log(log).long_alone()
    assert _says_it_leads(node) == ErrorCode.NONE
    assert (node.role, node.leader_id) == ("follower", STRANGER)
    node.forget()
    return node


def test_whom_this_voter_voted_for_is_followed_at_once() -> None:
    """A majority of the voters that it does not know yet may need it."""
    node = replica(1).unattached(epoch=5).long_alone()
    assert is_granted(node.receives(REQUESTS["vote"](6, STRANGER)))
    assert _says_it_leads(node) == ErrorCode.NONE
    assert node.leader_id == STRANGER


def test_an_unproven_leader_puts_no_election_off_and_nobody_is_told_of_it() -> None:
    node = _follower_of_a_stranger()
    for _ in range(3):
        node.hears_leader().elapse(node.config.election_timeout_us // 1000)
        if node.role == "prospective":
            break
        assert is_granted(node.receives(vote_request(6, by=2, log=(6, 20), pre_vote=True)))
    assert node.role == "prospective", "though it is heard"
    answer: Any = node.receives(vote_request(4, by=2))
    assert (answer.topics[0].partitions[0].leader_id, answer.node_endpoints) == (-1, [])


def test_that_it_is_said_again_puts_no_election_off_either() -> None:
    node = replica(1).unattached(epoch=5).long_alone()
    node.elapse(node.config.election_timeout_us // 1000 - 1)
    deadline_us = node.raft._core.role.election_deadline_us
    for endpoints in range(1, 4):
        node.receives(begin_request(5, by=STRANGER, endpoints=(endpoint(STRANGER),) * endpoints))
        node.receives(end_request(5, by=STRANGER))
    assert node.role == "follower"
    node.elapse((deadline_us - node.now_us) // 1000 + 1)
    assert node.role == "prospective"


def test_an_unproven_leader_is_proven_by_a_voter_that_names_it_or_by_the_log() -> None:
    named = _follower_of_a_stranger()
    named.elapse(1)
    voter_id = next(each for each in (2, 3) if each in named._last_requests)
    named.answers(voter_id, fetch_response(6, leader=STRANGER, error=ErrorCode.NOT_LEADER_OR_FOLLOWER))
    logged = _follower_of_a_stranger()
    logged.lane_hands_up(
        fetch_response(6, leader=STRANGER),
        ev.RecordSpan(1, 10, 11, 6, 6, voter_sets=((10, voter_set(1, 2, 3, STRANGER)),)),
    )
    for node in (named, logged):
        for _ in range(8):
            node.hears_leader().elapse(node.config.election_timeout_us // 1000)
            assert (node.role, node.leader_id) == ("follower", STRANGER)
        assert not is_granted(node.receives(vote_request(6, by=2, log=(6, 20), pre_vote=True)))


def test_an_unproven_leader_does_not_prove_itself() -> None:
    node = _follower_of_a_stranger()
    node.lane_hands_up(fetch_response(6, leader=STRANGER))
    assert node.raft._core.is_leader_unproven


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_leader_that_removes_itself_stays_proven(is_restarted: bool) -> None:
    """It leads until that is committed (KIP-853)."""
    node = replica(1).unattached(epoch=5).log("1:10")
    node.receives(begin_request(6, by=3))
    if is_restarted:
        node.restarts()
    node.hears_leader().elapse(1)
    span = ev.RecordSpan(1, 10, 11, 6, 6, voter_sets=((10, voter_set(1, 2)),))
    node.lane_hands_up(fetch_response(6, leader=3), span)
    for _ in range(8):
        node.hears_leader().elapse(node.config.election_timeout_us // 1000)
        assert (node.role, node.leader_id) == ("follower", 3)
    answer: Any = node.receives(vote_request(4, by=2))
    assert answer.topics[0].partitions[0].leader_id == 3


def test_nor_does_a_restart_prove_it() -> None:
    node = _follower_of_a_stranger()
    node.restarts()
    assert node.leader_id == STRANGER
    answer: Any = node.receives(vote_request(4, by=2))
    assert answer.topics[0].partitions[0].leader_id == -1


def test_a_stranger_leads_if_a_voter_that_was_asked_says_so() -> None:
    """Its record has not come yet, but another's has."""
    node = replica(1).unattached(epoch=5)
    node.elapse(10)
    voter_id = next(each for each in (2, 3) if each in node._last_requests)
    answer = fetch_response(6, leader=STRANGER, error=ErrorCode.NOT_LEADER_OR_FOLLOWER, at=endpoint(STRANGER))
    node.answers(voter_id, answer)
    assert (node.role, node.epoch, node.leader_id) == ("follower", 6, STRANGER)
    assert not node.raft._core.is_leader_unproven


@pytest.mark.parametrize("leader", [-2, -5, -(2**31)])
def test_no_negative_id_leads(leader: int) -> None:
    """A bootstrap server has such an id, and its word counts."""
    node = replica(1).prospective(epoch=5)
    node.answers(2, vote_response(6, granted=False, leader=leader))
    assert (node.role, node.epoch, node.leader_id) == ("unattached", 6, -1)


ENDING: dict[str, FetchResponse] = {
    "INVALID_REQUEST": fetch_response(6, leader=STRANGER, error=ErrorCode.INVALID_REQUEST),
    "CLUSTER_AUTHORIZATION_FAILED": FetchResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    "cut": fetch_response(6, leader=STRANGER, diverging=(1, 3)),
    "begin anew": _wants_snapshot(6, STRANGER, 5, 1),
}


@pytest.mark.parametrize("answer", ENDING)
def test_what_ends_a_voter_if_its_leader_says_it_does_not_if_an_unproven_one_does(answer: str) -> None:
    node = _follower_of_a_stranger().committed(8)
    node.lane_hands_up(ENDING[answer])
    (notice,) = node.ordered(fx.Notice)
    assert notice.event == "leader_not_believed"
    assert "42" in notice.sentence
    assert not node.ordered(fx.Halt)
    assert not node.ordered(fx.TruncateLog)
    assert not node.ordered(fx.InstallSnapshot)
    assert node.raft.deadline_us >= 0, "it goes on"


def test_an_observer_believes_the_leader_that_it_found() -> None:
    """All the voters that it knew may have been replaced."""
    node = replica(9).unattached(epoch=5)
    node.answers(2, fetch_response(6, leader=STRANGER, error=6, at=endpoint(STRANGER)))
    assert node.leader_id == STRANGER
    node.lane_hands_up(ENDING["INVALID_REQUEST"])
    assert node.ordered(fx.Halt)


@pytest.mark.parametrize("leader", [-1, 2, STRANGER])
@pytest.mark.parametrize("epoch", [7, 6 + LEAP_MAX, LEAP_EPOCH_MAX])
def test_what_an_unproven_leader_answers_leads_to_no_other_epoch(epoch: int, leader: int) -> None:
    node = _follower_of_a_stranger()
    for _ in range(3):
        error = ErrorCode.FENCED_LEADER_EPOCH
        node.lane_hands_up(fetch_response(epoch, leader=leader, error=error, at=endpoint(abs(leader))))
    assert node.epoch == 6


@pytest.mark.parametrize("log", [(0, 0), (1, 10), (3, 12), (4, 9)])
@pytest.mark.parametrize("pre_vote", [False, True])
def test_a_stranger_that_would_not_get_this_vote_moves_nobody(pre_vote: bool, log: tuple[int, int]) -> None:
    node = replica(1).unattached(epoch=5).log("1:4 4:6").long_alone()
    answer = node.receives(vote_request(6, by=STRANGER, log=log, pre_vote=pre_vote))
    assert error_of(answer) == ErrorCode.VOTER_NOT_FOUND
    assert not is_granted(answer)
    assert (node.epoch, node.raft.election.voted_key) == (5, None)
    assert is_granted(node.receives(vote_request(6, by=STRANGER, log=(4, 10), pre_vote=pre_vote)))


def test_a_static_voter_of_a_newer_configuration_is_elected_with_the_vote_of_one_that_has_the_older_one() -> None:
    """Their logs say nothing of who votes."""
    node = replica(2).static_voters(1, 2, 3).unattached(epoch=5).log("1:4").long_alone()
    assert is_granted(node.receives(vote_request(6, by=4, log=(1, 4), pre_vote=True)))
    assert is_granted(node.receives(vote_request(6, by=4, log=(1, 4))))


def test_one_that_was_long_away_is_taken_along_by_the_pre_vote_of_a_voter_that_it_does_not_know() -> None:
    """All that it knew may be gone, so that nobody else would ever tell it of the epoch."""
    node = replica(3).voters(1, 2, 3).unattached(epoch=5).long_alone()
    assert is_granted(node.receives(vote_request(7, by=4, log=(6, 10), pre_vote=True)))
    assert node.epoch == 7


@pytest.mark.parametrize("request_", MOVING)
def test_an_observer_is_moved_by_no_stranger(request_: str) -> None:
    """In an epoch ahead of the quorum's it would find no leader, and could not have one elected."""
    node = replica(9).unattached(epoch=5)
    node.receives(REQUESTS[request_](6, STRANGER))
    assert (node.role, node.epoch) == ("unattached", 5)
    node.receives(REQUESTS[request_](6, 2))
    assert node.epoch == 6


@pytest.mark.parametrize("setup", [each for each in ROLES if each not in ("leader", "follower", "observer")])
@pytest.mark.parametrize("second", MOVING)
@pytest.mark.parametrize("first", MOVING)
def test_strangers_move_a_replica_once_in_an_election_timeout(setup: str, first: str, second: str) -> None:
    """However many there are: else one request after the other would leave no voter its time to be elected."""
    node = ROLES[setup]().long_alone()
    node.receives(REQUESTS[first](7, STRANGER))
    node.receives(REQUESTS[second](8, STRANGER + 1))
    assert node.epoch == 7
    node.receives(vote_request(8, by=2, log=(5, 1 << 40)))
    assert node.epoch == 8, "a voter's own election is believed all the same"


@pytest.mark.parametrize("second", MOVING)
def test_and_again_in_the_next(second: str) -> None:
    node = replica(1).unattached(epoch=5).long_alone()
    node.receives(REQUESTS["vote"](6, STRANGER))
    node.elapse(node.config.election_timeout_us // 1000)
    node.receives(REQUESTS[second](7, STRANGER))
    assert node.epoch == 7


def test_a_pre_vote_and_the_vote_that_it_was_asked_for_count_as_one() -> None:
    """Else a stranger whose election timeout is shorter than this voter's would use up by the one what the other
    needs, and would never be elected."""
    node = replica(1).unattached(epoch=5).long_alone()
    assert is_granted(node.receives(vote_request(7, by=STRANGER, log=(5, 20), pre_vote=True)))
    assert error_of(node.receives(vote_request(8, by=STRANGER + 1, log=(5, 20)))) == ErrorCode.VOTER_NOT_FOUND
    assert error_of(node.receives(vote_request(9, by=STRANGER, log=(5, 20)))) == ErrorCode.VOTER_NOT_FOUND
    assert is_granted(node.receives(vote_request(8, by=STRANGER, log=(5, 20))))
    assert error_of(node.receives(vote_request(9, by=STRANGER, log=(5, 20)))) == ErrorCode.VOTER_NOT_FOUND
    assert node.epoch == 8


@pytest.mark.parametrize("meanwhile", ["a voter got the vote", "a leader was found"])
def test_but_not_once_somebody_who_is_known_may_lead(meanwhile: str) -> None:
    node = replica(1).unattached(epoch=5).long_alone()
    assert is_granted(node.receives(vote_request(7, by=STRANGER, log=(5, 20), pre_vote=True)))
    if meanwhile == "a voter got the vote":
        assert is_granted(node.receives(vote_request(7, by=2, log=(5, 20))))
    else:
        node.receives(begin_request(7, by=3))
        node.hears_leader().elapse(1)
    assert error_of(node.receives(vote_request(8, by=STRANGER, log=(5, 20)))) == ErrorCode.VOTER_NOT_FOUND
    assert node.epoch == 7


@pytest.mark.parametrize("request_", MOVING)
def test_of_one_that_leaps_where_no_leader_is_found_it_is_told(request_: str) -> None:
    """Whoever was away for as long as all voters were replaced does not find them by itself."""
    node = replica(1).unattached(epoch=5).long_alone()
    node.receives(REQUESTS[request_](5 + LEAP_MAX + 1, STRANGER))
    (notice,) = node.ordered(fx.Notice)
    assert (notice.event, notice.about) == ("epoch_not_believed", STRANGER)
    assert "`bootstrap`" in notice.sentence
    led = replica(1).follower(epoch=5, of=3).hears_leader()
    led.receives(REQUESTS[request_](5 + LEAP_MAX + 1, STRANGER))
    assert led.ordered(fx.Notice) == []


def test_whoever_stands_beside_an_unproven_leader_that_it_hears_says_so() -> None:
    """A static voter of an old configuration would stand again and again, and nobody would know why."""
    node = _follower_of_a_stranger()
    _stands_beside_it(node)
    (notice,) = node.ordered(fx.Notice)
    assert (notice.event, notice.about) == ("leader_not_believed", STRANGER)
    assert "stands for election beside it" in notice.sentence


def test_nothing_is_said_of_one_that_is_not_heard() -> None:
    node = _follower_of_a_stranger()
    node.elapse(node.config.fetch_timeout_us // 1000)
    assert node.role == "prospective"
    assert node.ordered(fx.Notice) == []


def test_a_snapshot_of_an_unproven_leader_goes_on_where_it_is_followed_again() -> None:
    """Else one that takes longer than the time from one election to the next would never be copied."""
    node = _follower_of_a_stranger()
    node.lane_hands_up(_wants_snapshot(6, STRANGER, 20, 6))
    node.answers(STRANGER, _part(0, b"abc", 5))
    _stands_beside_it(node)
    for other in (2, 3):
        node.answers(other, vote_response(6, leader=-1, granted=False))
    assert (node.role, node.leader_id) == ("follower", STRANGER)
    node.forget()
    node.answers(STRANGER, _part(3, b"de", 5))
    assert node.ordered(fx.WriteSnapshotPart) == [fx.WriteSnapshotPart(OffsetAndEpoch(20, 6), 3, b"de")]
    assert node.ordered(fx.InstallSnapshot) == [fx.InstallSnapshot(OffsetAndEpoch(20, 6))]


def test_what_came_of_a_snapshot_is_taken_in_though_its_leader_is_to_be_replaced() -> None:
    """Its last piece may come as this voter is to stand: it stands behind that."""
    node = _follower_of_a_stranger()
    node.lane_hands_up(_wants_snapshot(6, STRANGER, 20, 6))
    node.answers(STRANGER, _part(0, b"abc", 5))
    node.receives(end_request(6, by=STRANGER, candidates=(2, 1)))
    node.now_us += node.config.election_backoff_us_max  # no timer has had its turn yet
    node.answers(STRANGER, _part(3, b"de", 5))
    assert node.ordered(fx.InstallSnapshot) == [fx.InstallSnapshot(OffsetAndEpoch(20, 6))]
    node.step(ev.SnapshotInstalled(OffsetAndEpoch(20, 6), True, voter_set(1, 2, 3, STRANGER), 1))
    assert STRANGER in node.raft.voters.ids
    assert node.raft.high_watermark == 20
    assert node.raft.lane_session() is not None or node.role == "prospective"


def test_nothing_is_said_of_one_that_wants_to_be_replaced() -> None:
    node = _follower_of_a_stranger()
    node.hears_leader().elapse(1)
    node.receives(end_request(6, by=STRANGER))
    node.elapse(node.config.election_backoff_us_max // 1000)
    assert node.role == "prospective"
    assert node.ordered(fx.Notice) == []


def _stands_beside_it(node: Replica) -> None:
    for _ in range(4):
        if node.role == "prospective":
            return
        node.hears_leader().elapse(node.config.election_timeout_us // 1000)
    assert node.role == "prospective", "though the leader is heard"


def _part(position: int, data: bytes, size: int) -> FetchSnapshotResponse:
    """A piece of snapshot (20, 6), as the stranger sends it."""
    topic = FetchSnapshotResponse.TopicSnapshot
    part = topic.PartitionSnapshot
    partition = part(
        snapshot_id=part.SnapshotId(end_offset=20, epoch=6),
        current_leader=part.LeaderIdAndEpoch(leader_id=STRANGER, leader_epoch=6),
        size=size,
        position=position,
        unaligned_records=data,
    )
    return FetchSnapshotResponse(topics=[topic(name=TOPIC_NAME, partitions=[partition])])


def test_a_vote_for_a_stranger_puts_no_election_off() -> None:
    """Where one after the other asked for it, nobody would ever stand. Who is voted for is given the time as ever, if
    it is known here."""
    for by, waits in ((STRANGER, False), (2, True)):
        node = replica(1).unattached(epoch=5).long_alone()
        node.elapse(node.config.election_timeout_us // 1000 - 1)
        deadline_us = node.raft._core.role.election_deadline_us
        assert is_granted(node.receives(vote_request(6, by=by, log=(5, 1 << 40))))
        assert (node.raft._core.role.election_deadline_us > deadline_us) is waits
        if not waits:
            node.elapse(node.config.election_timeout_us // 1000 + 1)
            assert node.role == "prospective"


def test_a_voter_that_leads_takes_the_place_of_a_stranger_that_said_so() -> None:
    """Else the voter would be told that there is another leader of its epoch, and stop."""
    node = replica(1).unattached(epoch=5, voted=2).long_alone()
    node.receives(begin_request(5, by=STRANGER, endpoints=(endpoint(STRANGER),)))
    assert node.raft.election.leader_id == STRANGER
    assert error_of(node.receives(begin_request(5, by=2, endpoints=(endpoint(2),)))) == ErrorCode.NONE
    assert (node.role, node.raft.election.leader_id) == ("follower", 2)
    assert error_of(node.receives(begin_request(5, by=3, endpoints=(endpoint(3),)))) == ErrorCode.INVALID_REQUEST


def test_but_not_of_one_that_a_voter_has_named_and_that_is_heard() -> None:
    node = replica(1).unattached(epoch=5).long_alone()
    node.receives(begin_request(5, by=STRANGER, endpoints=(endpoint(STRANGER),)))
    node.hears_leader().elapse(1)
    voter_id = next(each for each in (2, 3) if each in node._last_requests)
    node.answers(voter_id, fetch_response(5, leader=STRANGER, error=ErrorCode.NOT_LEADER_OR_FOLLOWER))
    node.elapse(1)
    node.hears_leader().receives(begin_request(5, by=5 - voter_id, endpoints=(endpoint(5 - voter_id),)))
    assert node.raft.election.leader_id == STRANGER


def test_a_voter_that_leads_is_stopped_by_no_unproven_leader_of_its_epoch() -> None:
    node = replica(1).unattached(epoch=5).long_alone()
    node.receives(begin_request(5, by=STRANGER, endpoints=(endpoint(STRANGER),)))
    node.hears_leader()
    assert error_of(node.receives(begin_request(5, by=2, endpoints=(endpoint(2),)))) == ErrorCode.NONE
    assert node.raft.election.leader_id == 2


def test_where_elections_have_led_everybody_follows() -> None:
    """The epochs at the end are reached one by one, and the last one has its leader as any other."""
    node = replica(1).unattached(epoch=EPOCH_MAX - 1)
    assert is_granted(node.receives(vote_request(EPOCH_MAX, by=2)))
    node.receives(begin_request(EPOCH_MAX, by=2))
    assert (node.role, node.epoch) == ("follower", EPOCH_MAX)


def test_behind_the_last_epoch_a_replica_stops_and_says_what_to_do() -> None:
    node = replica(1).prospective(epoch=EPOCH_MAX)
    (halt,) = [each for each in node.answer_vote(2, granted=True) if isinstance(each, fx.Halt)]
    assert isinstance(halt.error, ProtocolFatal)
    assert "last one" in str(halt.error)
    assert "format" in str(halt.error)


RESPONSES: dict[str, Callable[[int], Message]] = {
    "vote": lambda epoch: vote_response(epoch, granted=True),
    "vote, fenced": lambda epoch: vote_response(epoch, granted=False, error=ErrorCode.FENCED_LEADER_EPOCH),
    "vote, with a leader": lambda epoch: vote_response(epoch, granted=False, leader=3),
    "begin": lambda epoch: begin_response(epoch, leader=3),
    "end": lambda epoch: end_response(epoch, leader=3),
    "fetch": lambda epoch: fetch_response(epoch, leader=3),
    "fetch, fenced": lambda epoch: fetch_response(epoch, error=ErrorCode.FENCED_LEADER_EPOCH, at=endpoint(3)),
}


@pytest.mark.parametrize("response", RESPONSES)
def test_a_response_moves_as_far_as_elections_lead_and_no_further(response: str) -> None:
    for epoch, moved in ((LEAP_EPOCH_MAX, True), (LEAP_EPOCH_MAX + 1, False), (EPOCH_MAX, False)):
        node = replica(1).prospective(epoch=5)
        node.answers(2, RESPONSES[response](epoch))
        assert node.epoch == (epoch if moved else 5), epoch
        assert moved or node.role == "prospective"


def test_what_a_voter_is_told_of_the_leader_moves_no_further_either() -> None:
    for epoch, moved in ((LEAP_EPOCH_MAX, True), (EPOCH_MAX, False)):
        voter = replica(1).static_voters(1, 2, 3).telling_leaders().follower(epoch=5, of=3).hears_leader()
        voter.elapse(voter.config.fetch_timeout_us // 1000 - 100)
        voter.hears_leader().elapse(200)
        assert voter.requests(UpdateRaftVoterRequest)
        response = UpdateRaftVoterResponse(error_code=ErrorCode.FENCED_LEADER_EPOCH)
        response.current_leader.leader_epoch, response.current_leader.leader_id = epoch, 2
        voter.answers(3, response)
        assert voter.epoch == (epoch if moved else 5)


def test_the_lanes_fetch_moves_no_further_either() -> None:
    follower = replica(1).follower(epoch=5, of=3).log("5:3")
    follower.lane_hands_up(fetch_response(EPOCH_MAX, leader=2, error=ErrorCode.FENCED_LEADER_EPOCH))
    assert (follower.role, follower.epoch) == ("follower", 5)


@pytest.mark.parametrize("epoch", [6, EPOCH_MAX])
def test_a_snapshot_of_an_epoch_that_its_leader_has_not_seen_is_not_fetched(epoch: int) -> None:
    """The log would go on from there, and the next start with it."""
    follower = replica(1).follower(epoch=5, of=3).log("5:3")
    response = fetch_response(5, leader=3)
    response.responses[0].partitions[0].snapshot_id.epoch = epoch
    response.responses[0].partitions[0].snapshot_id.end_offset = 100
    follower.lane_hands_up(response)
    follower.elapse(200)
    assert not [each for each in follower.ordered(fx.SendRequest) if "Snapshot" in type(each.message).__name__]


@given(
    setup=st.sampled_from(sorted(ROLES)),
    requests=st.lists(
        st.tuples(
            st.sampled_from(sorted(REQUESTS)), st.integers(-1, EPOCH_MAX) | st.integers(0, 300), st.just(STRANGER)
        ),
        max_size=6,
    ),
)
def test_whatever_strangers_send_costs_few_epochs(setup: str, requests: list[tuple[str, int, int]]) -> None:
    node = ROLES[setup]().long_alone()
    for request_, epoch, by in requests:
        node.receives(REQUESTS[request_](epoch, by))
        assert 5 <= node.epoch <= 5 + LEAP_MAX, "no time passes"
        assert node.stored is None or node.stored == ElectionState(*node.raft.election)
