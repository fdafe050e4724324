"""Start-up from every persisted state (Kafka `QuorumState`), and the only voter, which needs nobody."""

import pytest

from fastquorum.config import QuorumConfig
from fastquorum.kernels.lane import FollowerSession, LeaderSession
from fastquorum.raft import effects as fx
from fastquorum.raft.election import ElectionState
from fastquorum.raft.raft import Raft
from fastquorum.types import ZERO_UUID, ReplicaKey
from fastquorum.wire.messages.quorum import EndQuorumEpochRequest, VoteRequest
from fastquorum.wire.records.control_values import KRaftVersionRecord, LeaderChangeMessage, VotersRecord

from .fakes import FakeLog
from .scenario import Replica, replica
from .wire_messages import CLUSTER, directory, endpoint, key, voter_set


def test_without_anything_persisted_a_replica_is_unattached_in_epoch_0() -> None:
    fresh = replica(1).starts()
    assert (fresh.role, fresh.epoch, fresh.leader_id) == ("unattached", 0, -1)
    assert not fresh.ordered(fx.PersistElection)


def test_a_log_ahead_of_the_persisted_epoch_sets_the_epoch_and_no_vote() -> None:
    behind = replica(1).persisted(3, voted=key(1)).log("2:4 7:1").starts()
    assert (behind.role, behind.stored) == ("unattached", ElectionState(7))


def test_a_restarted_leader_has_resigned_and_says_so() -> None:
    former = replica(1).persisted(5, leader=1).log("5:3").starts()
    assert (former.role, former.epoch, former.leader_id) == ("resigned", 5, 1)
    assert [to for to, _ in former.requests(EndQuorumEpochRequest)] == [2, 3]
    assert former.ordered(fx.LeadershipChanged) == [fx.LeadershipChanged(5, -1, None, False)]


def test_a_restarted_leader_never_leads_the_same_epoch_again() -> None:
    former = replica(1).persisted(5, leader=1).log("5:3").starts()
    former.elect_itself()
    assert former.epoch == 7, "resigned 5, unattached 6, elected 7"


def test_who_voted_for_itself_goes_on_as_candidate_of_that_epoch() -> None:
    candidate = replica(1).persisted(5, voted=key(1)).starts()
    assert (candidate.role, candidate.epoch) == ("candidate", 5)
    assert [to for to, _ in candidate.requests(VoteRequest)] == [2, 3]


def test_an_own_vote_from_another_directory_is_somebody_elses() -> None:
    """KAFKA-16526: the disk was replaced; the vote that the old one cast must not count for this one."""
    assert replica(1).persisted(5, voted=ReplicaKey(1, directory(99))).starts().role == "unattached"


def test_an_own_vote_without_directory_id_is_the_own_one() -> None:
    assert replica(1).static_voters(1, 2).persisted(5, voted=ReplicaKey(1, ZERO_UUID)).starts().role == "candidate"


def test_an_observer_that_once_voted_for_itself_does_not_stand() -> None:
    assert replica(9).persisted(5, voted=key(9)).starts().role == "unattached"


@pytest.mark.parametrize("log", ["", "1:10 5:3"])
def test_a_follower_goes_on_following(log: str) -> None:
    follower = replica(1).persisted(5, leader=3, voted=key(2)).log(log).starts()
    assert (follower.role, follower.leader_id, follower.voted) == ("follower", 3, 2)
    assert follower.ordered(fx.ConnectLeader) == [fx.ConnectLeader(3, endpoint(3))]
    session = follower.raft.lane_session()
    assert isinstance(session, FollowerSession)
    assert (session.epoch, session.leader_id, session.high_watermark) == (5, 3, -1)


def test_a_leader_whose_address_is_unknown_is_remembered_and_looked_for() -> None:
    lost = replica(1).persisted(5, leader=9).starts()
    assert (lost.role, lost.leader_id) == ("unattached", 9)


def test_an_observer_goes_on_following() -> None:
    assert replica(9).persisted(5, leader=3).starts().role == "follower"


def test_a_vote_for_somebody_else_is_kept() -> None:
    voter = replica(1).persisted(5, voted=key(2)).starts()
    assert (voter.role, voter.voted) == ("unattached", 2)


@pytest.mark.parametrize(
    ("stored", "epoch"),
    [
        (None, 1),
        (ElectionState(5), 6),
        (ElectionState(5, -1, key(2)), 6),
        (ElectionState(5, -1, key(1)), 5),
        (ElectionState(5, 1), 6),
        (ElectionState(5, 2), 6),
    ],
)
def test_the_only_voter_leads_at_once_from_any_state(stored: ElectionState | None, epoch: int) -> None:
    only = replica(1).voters(1)
    only.stored = stored
    only.starts()
    assert (only.role, only.epoch, only.stored) == ("leader", epoch, ElectionState(epoch, 1))
    assert not only.ordered(fx.SendRequest)
    assert isinstance(only.raft.lane_session(), LeaderSession)


def test_nothing_is_opened_before_the_replica_has_started() -> None:
    class NoRandom:
        def randrange(self, stop: int, /) -> int:
            return 0

    raft = Raft(
        key=key(1),
        cluster_id=CLUSTER,
        config=QuorumConfig(),
        log=FakeLog([]),
        random=NoRandom(),
        election=ElectionState(5, 2),
        voters=voter_set(1, 2),
    )
    assert (raft.lane_session(), raft.deadline_us) == (None, -1)


def test_the_voter_set_is_the_last_one_in_the_log() -> None:
    assert replica(1).voters(1, 2, 3).voters_at(4, 1, 2).log("1:9").starts().raft.voters.ids == (1, 2)


# --- the first batch of an epoch --------------------------------------------------------------------------------------


def first_batch(leader: Replica) -> tuple[object, ...]:
    (batch,) = leader.ordered(fx.AppendControl)
    return tuple(batch.records)


def test_an_epoch_begins_with_who_leads_and_who_voted() -> None:
    leader = replica(1).voters(1, 2, 3).starts()
    leader.elect_itself()
    (change,) = first_batch(leader)
    assert isinstance(change, LeaderChangeMessage)
    assert change.leader_id == 1
    assert [each.voter_id for each in change.voters] == [1, 2, 3]
    assert [each.voter_id for each in change.granting_voters] == [1, 2]


def test_the_first_leader_puts_the_checkpoints_voters_into_the_log() -> None:
    leader = replica(1).checkpoint_voters(1).starts()
    change, version, voters = first_batch(leader)
    assert isinstance(change, LeaderChangeMessage)
    assert isinstance(version, KRaftVersionRecord)
    assert version.kraft_version == 1
    assert isinstance(voters, VotersRecord)
    assert [(each.voter_id, each.voter_directory_id) for each in voters.voters] == [key(1)]
    assert [(each.name, each.host, each.port) for each in voters.voters[0].endpoints] == [endpoint(1)]


def test_a_leader_that_moved_puts_its_new_address_into_the_log() -> None:
    leader = replica(1).voters(1).with_endpoints(1, endpoint(77)).log("1:5").starts()
    assert len(first_batch(leader)) == 3
    assert leader.raft.voters[0].endpoints == (endpoint(1),)


def test_static_voters_never_get_into_the_log() -> None:
    assert len(first_batch(replica(1).static_voters(1).starts())) == 1


def test_the_lead_opens_after_it_is_durable_and_its_first_batch_is_ordered() -> None:
    only = replica(1).voters(1).log("3:4").starts()
    kinds = [type(each) for each in only.effects]
    assert kinds == [fx.PersistElection, fx.AppendControl, fx.LeadershipChanged]
    session = only.raft.lane_session()
    assert isinstance(session, LeaderSession)
    assert (session.epoch, session.epoch_start, session.high_watermark, session.voters) == (4, 4, -1, (key(1),))
