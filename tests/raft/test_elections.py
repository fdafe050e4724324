"""From silence to a leader: timeouts, pre-votes, votes, and what late or odd answers do (KIP-595, KIP-996)."""

from typing import Any

import pytest

from fastquorum.config import MS, QuorumConfig
from fastquorum.raft import effects as fx
from fastquorum.raft import events as ev
from fastquorum.raft.election import ElectionState
from fastquorum.wire import ErrorCode
from fastquorum.wire.messages.quorum import VoteRequest

from .scenario import replica
from .wire_messages import endpoint, key, vote_request, vote_response


def partition_of(voter_message: VoteRequest) -> VoteRequest.TopicData.PartitionData:
    return voter_message.topics[0].partitions[0]


def test_an_election_begins_with_pre_votes_that_change_nothing() -> None:
    voter = replica(1).unattached(epoch=5).log("3:7")
    voter.pass_deadline(until=voter.raft.role.PROSPECTIVE)
    assert not voter.ordered(fx.PersistElection)
    (to2, vote), (to3, _) = voter.requests(VoteRequest)
    assert (to2, to3) == (2, 3)
    assert (vote.cluster_id, vote.voter_id) == ("nR4bhG2JR8mYNL7GDwOfYA", 2)
    partition = partition_of(vote)
    assert (partition.replica_epoch, partition.pre_vote) == (5, True)
    assert (partition.last_offset_epoch, partition.last_offset) == (3, 7)
    assert (partition.replica_id, partition.replica_directory_id) == key(1)
    assert partition.voter_directory_id == key(2).directory_id


def test_a_majority_of_pre_votes_makes_a_candidate_of_the_next_epoch_which_votes_for_itself_first() -> None:
    voter = replica(1).prospective(epoch=5)
    voter.answer_vote(2, granted=True)
    assert (voter.role, voter.stored) == ("candidate", ElectionState(6, -1, key(1)))
    kinds = [type(each) for each in voter.effects]
    assert kinds.index(fx.PersistElection) < kinds.index(fx.SendRequest)
    assert [
        (to, partition_of(vote).replica_epoch, partition_of(vote).pre_vote) for to, vote in voter.requests(VoteRequest)
    ] == [
        (2, 6, False),
        (3, 6, False),
    ]


def test_a_majority_of_votes_makes_a_leader() -> None:
    candidate = replica(1).candidate(epoch=5)
    candidate.answer_vote(3, granted=True)
    assert (candidate.role, candidate.stored) == ("leader", ElectionState(5, 1))


@pytest.mark.parametrize("count", [2, 3, 4, 5, 6, 7])
def test_half_of_the_voters_is_no_majority(count: int) -> None:
    candidate = replica(1).voters(*range(1, count + 1)).candidate(epoch=5)
    majority = count // 2 + 1
    for other in range(2, majority):
        candidate.answer_vote(other, granted=True)
        assert candidate.role == "candidate"
    candidate.answer_vote(majority, granted=True)
    assert candidate.role == "leader"


def test_the_same_vote_twice_counts_once() -> None:
    candidate = replica(1).voters(1, 2, 3, 4, 5).candidate(epoch=5)
    candidate.answer_vote(2, granted=True)
    candidate.answer_vote(2, granted=True)
    assert candidate.role == "candidate"


def test_a_lost_election_is_waited_out_and_then_asked_about_again() -> None:
    candidate = replica(1).candidate(epoch=5)
    candidate.answer_vote(2, granted=False)
    candidate.answer_vote(3, granted=False)
    candidate.forget()
    candidate.elapse(900)
    assert (candidate.role, candidate.requests(VoteRequest)) == ("candidate", [])
    candidate.pass_deadline(until=candidate.raft.role.PROSPECTIVE)
    assert (candidate.epoch, candidate.voted) == (5, 1)


def test_a_candidate_asks_again_who_did_not_answer() -> None:
    candidate = replica(1).candidate(epoch=5)
    candidate.answer_vote(2, granted=False)
    candidate.forget()
    candidate.fails(3)
    assert candidate.requests(VoteRequest) == []
    candidate.elapse(20)
    assert [to for to, _ in candidate.requests(VoteRequest)] == [3]


def test_requests_without_answer_are_repeated_with_another_correlation_id() -> None:
    slow = QuorumConfig(election_timeout_us=10_000 * MS)
    candidate = replica(1).configured(slow).candidate(epoch=5)
    first = candidate.last_request(2).correlation_id
    candidate.elapse(2000)
    assert candidate.last_request(2).correlation_id != first
    candidate.answers(2, vote_response(5, granted=True), correlation_id=first)
    assert candidate.role == "candidate", "the answer came after it was given up"


def test_an_answer_from_before_a_change_of_role_is_dropped() -> None:
    voter = replica(1).prospective(epoch=5)
    late = voter.last_request(3).correlation_id
    voter.answer_vote(2, granted=True)
    voter.answers(3, vote_response(5, granted=True), correlation_id=late)
    assert voter.role == "candidate"


def test_rejected_pre_votes_end_the_attempt() -> None:
    voter = replica(1).prospective(epoch=5)
    voter.answer_vote(2, granted=False)
    assert voter.role == "prospective"
    voter.answer_vote(3, granted=False)
    assert (voter.role, voter.epoch) == ("unattached", 5)
    assert not voter.ordered(fx.PersistElection)


def test_who_lost_its_leader_and_the_pre_vote_follows_it_again() -> None:
    voter = replica(1).follower(epoch=5, of=3)
    voter.pass_deadline(until=voter.raft.role.PROSPECTIVE)
    voter.answer_vote(2, granted=False, leader=3)
    voter.answer_vote(3, granted=False, leader=3)
    assert (voter.role, voter.leader_id, voter.epoch) == ("follower", 3, 5)


def test_an_unanswered_pre_vote_is_tried_again_without_a_new_epoch() -> None:
    """KAFKA-16164: a partitioned voter does not come back with a higher epoch than everybody else's."""
    voter = replica(1).prospective(epoch=5)
    voter.elapse(60_000)
    assert voter.epoch == 5
    assert not voter.ordered(fx.PersistElection)


def test_who_refused_a_pre_vote_is_asked_again_in_a_moment() -> None:
    """The refusal may come from a follower that has yet to notice that the leader is gone."""
    voter = replica(1).follower(epoch=5, of=3)
    voter.pass_deadline(until=voter.raft.role.PROSPECTIVE)
    voter.forget()
    voter.answer_vote(2, granted=False, leader=3)
    assert not voter.requests(VoteRequest)
    voter.elapse(QuorumConfig().election_timeout_us // MS // 10)
    assert [partition_of(vote).pre_vote for to, vote in voter.requests(VoteRequest) if to == 2] == [True]
    voter.answer_vote(2, granted=True)
    assert (voter.role, voter.epoch) == ("candidate", 6)


def test_an_answer_that_names_the_leader_ends_a_leaderless_attempt() -> None:
    voter = replica(1).prospective(epoch=5)
    voter.answer_vote(2, granted=False, leader=3)
    assert (voter.role, voter.leader_id) == ("follower", 3)
    assert voter.stored == ElectionState(5, 3)


def test_an_answer_of_a_higher_epoch_ends_the_attempt() -> None:
    voter = replica(1).prospective(epoch=5)
    voter.answer_vote(2, granted=False, epoch=8, error=ErrorCode.FENCED_LEADER_EPOCH)
    assert (voter.role, voter.stored) == ("unattached", ElectionState(8))


def test_an_answer_of_an_older_epoch_is_ignored() -> None:
    candidate = replica(1).candidate(epoch=5)
    candidate.answer_vote(2, granted=True, epoch=4)
    assert candidate.role == "candidate"


def test_a_voter_that_knows_no_pre_vote_makes_the_election_tell() -> None:
    voter = replica(1).prospective(epoch=5)
    voter.fails(2, unsupported=True)
    assert (voter.role, voter.epoch) == ("candidate", 6)


def test_so_does_a_top_level_unsupported_version() -> None:
    voter = replica(1).prospective(epoch=5)
    answer = vote_response(5, granted=False)
    answer.error_code, answer.topics = ErrorCode.UNSUPPORTED_VERSION, []
    voter.answers(2, answer)
    assert voter.role == "candidate"


def test_another_top_level_error_is_only_backed_off_from() -> None:
    voter = replica(1).prospective(epoch=5)
    answer = vote_response(5, granted=True)
    answer.error_code, answer.topics = ErrorCode.INVALID_REQUEST, []
    voter.answers(2, answer)
    assert voter.role == "prospective"
    voter.elapse(20)
    assert [to for to, _ in voter.requests(VoteRequest)] == [2]


def test_a_partition_level_invalid_request_stops_the_replica_as_it_stops_kafkas() -> None:
    voter = replica(1).prospective(epoch=5)
    (*_, halt) = voter.answer_vote(2, granted=False, error=ErrorCode.INVALID_REQUEST)
    assert isinstance(halt, fx.Halt)
    assert "INVALID_REQUEST" in str(halt.error)
    assert voter.raft.deadline_us == -1
    assert voter.elapse(60_000).raft.lane_session() is None


def test_a_refused_authorization_stops_the_replica() -> None:
    voter = replica(1).prospective(epoch=5)
    answer = vote_response(5, granted=False)
    answer.error_code, answer.topics = ErrorCode.CLUSTER_AUTHORIZATION_FAILED, []
    assert isinstance(voter.answers(2, answer)[-1], fx.Halt)


def test_a_higher_epoch_does_not_put_off_a_coming_election() -> None:
    voter = replica(1).prospective(epoch=5)
    deadline = voter.raft.deadline_us
    voter.elapse(500)
    voter.receives(vote_request(9, by=2, log=(0, 0), to=key(3)))
    assert voter.role == "unattached"
    voter.elapse((deadline - voter.now_us) // MS + 1)
    assert voter.role == "prospective"


def test_election_timeouts_lie_between_one_and_two_of_the_configured() -> None:
    for seed in range(40):
        voter = replica(1).seeded(seed).unattached(epoch=0)
        start = voter.now_us
        voter.pass_deadline(until=voter.raft.role.PROSPECTIVE)
        assert 1_000 * MS <= voter.now_us - start < 2_000 * MS


def test_after_the_last_epoch_of_int32_there_is_no_election() -> None:
    voter = replica(1).prospective(epoch=2**31 - 1)
    (*_, halt) = voter.answer_vote(2, granted=True)
    assert isinstance(halt, fx.Halt)
    assert not voter.ordered(fx.PersistElection)


def test_an_observer_never_stands() -> None:
    observer = replica(9).unattached(epoch=5)
    observer.elapse(60_000)
    assert observer.role == "unattached"
    assert not observer.requests(VoteRequest)


def test_a_voter_without_known_address_is_not_asked() -> None:
    voter = replica(1).with_endpoints(3).unattached(epoch=5)
    voter.pass_deadline(until=voter.raft.role.PROSPECTIVE)
    assert [to for to, _ in voter.requests(VoteRequest)] == [2]
    assert endpoint(2) == voter.last_request(2).endpoint


def test_a_voter_whose_disk_is_full_votes_but_does_not_stand() -> None:
    voter = replica(1).unattached(epoch=5)
    voter.fake_log.is_full = True
    voter.step(ev.RoomChanged())
    voter.elapse(60_000)
    assert voter.role == "unattached"
    answer: Any = voter.receives(vote_request(6, by=2))
    assert answer.topics[0].partitions[0].vote_granted


def test_a_voter_that_could_not_even_take_a_control_batch_helps_nobody_to_an_election() -> None:
    voter = replica(1).unattached(epoch=5)
    assert voter.role == "unattached"
    voter.fake_log.is_full = voter.fake_log.takes_nothing = True
    pre_vote: Any = voter.receives(vote_request(5, by=2, pre_vote=True))
    assert not pre_vote.topics[0].partitions[0].vote_granted
    vote: Any = voter.receives(vote_request(6, by=2))
    assert vote.topics[0].partitions[0].vote_granted, "a vote that is asked for is given: somebody else can help"


def test_a_sole_voter_that_starts_on_a_full_disk_waits_for_room() -> None:
    alone = replica(1).voters(1)
    alone.fake_log.is_full = True
    alone.starts().elapse(60_000)
    assert alone.role == "unattached"
    alone.fake_log.is_full = False
    alone.step(ev.RoomChanged())
    assert alone.role == "leader"


def test_a_replica_whose_disk_stalls_does_not_stand_until_it_syncs_again() -> None:
    voter = replica(1).unattached(epoch=5)
    voter.step(ev.DiskStalled())
    voter.elapse(60_000)
    assert voter.role == "unattached"
    voter.step(ev.DiskRecovered())
    voter.pass_deadline(until=voter.raft.role.PROSPECTIVE)
