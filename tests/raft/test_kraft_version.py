"""kraft.version is raised from 0 to 1: static voters tell the leader what they are, and it writes that into the log.
KIP-853; Kafka `LeaderState.maybeAppendUpgradedKRaftVersion`, `KafkaRaftClient.pollFollowerAsVoter`."""

from typing import Any

import pytest

from fastquorum.config import MS
from fastquorum.raft import effects as fx
from fastquorum.raft import events as ev
from fastquorum.types import ZERO_UUID, Endpoint, Uuid
from fastquorum.wire import ErrorCode
from fastquorum.wire.messages.quorum_admin import UpdateRaftVoterRequest, UpdateRaftVoterResponse
from fastquorum.wire.records.control_values import KRaftVersionRecord, VotersRecord
from tests.raft.scenario import CONFIG, Replica, replica
from tests.raft.test_follower import span
from tests.raft.wire_messages import CLUSTER, directory, endpoint, fetch_request, fetch_response, key, voter_set

NOT_ALL = "Invalid upgrade of kraft.version to KRAFT_VERSION_1 because not all of the voters support it"
ELSEWHERE = Endpoint("CONTROLLER", "elsewhere", 1)
OTHER = Uuid(b"o" * 16)


def update(leader: Replica, node_id: int, versions: tuple[int, int] = (0, 1), **changed: Any) -> ErrorCode:
    """This voter tells the leader what it is."""
    of, at = UpdateRaftVoterRequest, endpoint(node_id)
    fields: dict[str, Any] = {
        "cluster_id": CLUSTER,
        "current_leader_epoch": leader.epoch,
        "voter_id": node_id,
        "voter_directory_id": directory(node_id),
        "listeners": [of.Listener(name=at.name, host=at.host, port=at.port)],
        "kraft_version_feature": of.KRaftVersionFeature(
            min_supported_version=versions[0], max_supported_version=versions[1]
        ),
    }
    answer = leader.receives(of(**fields | changed))
    assert isinstance(answer, UpdateRaftVoterResponse)
    return ErrorCode(answer.error_code)


def static_leader(*reported: int) -> Replica:
    """Return a leader of the static voters 1, 2 and 3, which fetch; some of them have reported what they are."""
    leader = replica(1).static_voters(1, 2, 3).log("1:9 5:1").leader(epoch=5).fetched_by(2, 3)
    for node_id in reported:
        assert update(leader, node_id) is ErrorCode.NONE
    leader.forget()
    return leader


def raised(leader: Replica, **changed: Any) -> bool:
    """Whether the controller's wish was granted."""
    wish = {"kraft_version": 1, "epoch": leader.epoch, "end_offset": leader.fake_log.end_offset, **changed}
    leader.step(ev.KRaftVersionRaised(**wish))
    return leader.raft.describe().kraft_version == 1


# --- the leader -------------------------------------------------------------------------------------------------------


def test_the_version_and_the_voters_with_their_directories_are_appended_in_one_batch() -> None:
    leader = static_leader(2, 3)
    assert leader.raft.fault_of_raising(1) == ""
    assert raised(leader)
    (batch,) = leader.ordered(fx.AppendControl)
    version, voters = batch.records
    assert isinstance(version, KRaftVersionRecord)
    assert isinstance(voters, VotersRecord)
    assert (batch.epoch, version.kraft_version) == (5, 1)
    assert [each.voter_directory_id for each in voters.voters] == [directory(1), directory(2), directory(3)]
    assert leader.raft.voters == voter_set(1, 2, 3)
    assert leader.raft.describe().voters_offset == 11


def test_the_lane_goes_on_on_the_same_terms() -> None:
    leader = static_leader(2, 3)
    session = leader.raft.lane_session()
    assert raised(leader)
    assert not leader.ordered(fx.CloseLane)
    assert leader.raft.lane_session() == session


def test_nothing_is_appended_before_every_voter_was_heard() -> None:
    leader = static_leader(2)
    assert leader.raft.fault_of_raising(1) == NOT_ALL
    assert not raised(leader)
    assert not leader.ordered(fx.AppendControl)
    assert update(leader, 3) is ErrorCode.NONE
    assert raised(leader)


def test_nothing_is_appended_while_a_voter_does_not_support_the_version() -> None:
    leader = static_leader(2)
    assert update(leader, 3, (0, 0)) is ErrorCode.NONE
    assert leader.raft.fault_of_raising(1) == NOT_ALL
    assert not raised(leader)
    assert update(leader, 3, (0, 1)) is ErrorCode.NONE, "it was started anew, and does now"
    assert raised(leader)


def test_what_a_voter_told_last_counts() -> None:
    leader = static_leader(2, 3)
    moved = UpdateRaftVoterRequest.Listener(name="CONTROLLER", host="elsewhere", port=1)
    assert update(leader, 3, listeners=[moved]) is ErrorCode.NONE
    assert raised(leader)
    third = leader.raft.voters.get(3)
    assert third is not None
    assert third.endpoints == (ELSEWHERE,)


def test_a_voter_that_was_counted_with_another_directory_than_it_tells_of_is_in_the_way() -> None:
    """Else it would go on to be counted, and be no voter."""
    leader = static_leader(2)
    assert update(leader, 3, voter_directory_id=OTHER) is ErrorCode.NONE
    assert "voter 3 fetches" in leader.raft.fault_of_raising(1)
    assert not raised(leader)
    assert not leader.ordered(fx.AppendControl)


@pytest.mark.parametrize("changed", [{"epoch": 4}, {"end_offset": 9}, {"end_offset": 11}])
def test_a_wish_of_another_epoch_or_about_another_log_is_not_granted(changed: dict[str, int]) -> None:
    leader = static_leader(2, 3)
    assert not raised(leader, **changed)
    assert not leader.ordered(fx.AppendControl)


def test_a_leader_that_is_full_or_stops_appends_nothing() -> None:
    full, stopping = static_leader(2, 3), static_leader(2, 3)
    full.fake_log.is_full = True
    assert not raised(full)
    stopping.step(ev.ShutdownRequested())
    assert not raised(stopping)
    assert not full.ordered(fx.AppendControl) + stopping.ordered(fx.AppendControl)


def test_a_follower_raises_nothing() -> None:
    follower = replica(1).static_voters(1, 2, 3).log("1:10").follower(epoch=5, of=3)
    assert follower.raft.fault_of_raising(1)
    assert not raised(follower)


def test_it_is_raised_once() -> None:
    leader = static_leader(2, 3)
    assert raised(leader)
    leader.forget()
    assert raised(leader), "it is"
    assert not leader.ordered(fx.AppendControl)
    assert update(leader, 2) is ErrorCode.UNSUPPORTED_VERSION


def test_the_only_voter_need_not_be_told_anything() -> None:
    alone = replica(1).static_voters(1).starts()
    assert raised(alone)
    assert alone.raft.voters == voter_set(1)


def test_in_its_next_lead_it_has_to_be_told_anew() -> None:
    leader = static_leader(2, 3)
    assert leader.raft.fault_of_raising(1) == ""
    leader.step(ev.ResignRequested(2, 5))
    assert leader.role == "resigned"
    leader.elect_itself()
    assert leader.epoch > 5
    assert leader.raft.fault_of_raising(1) == NOT_ALL


def test_from_then_on_a_directory_makes_a_voter() -> None:
    leader = static_leader(2, 3)
    assert raised(leader)
    third = fetch_request(5, by=3, at=12, last_epoch=5)
    assert leader.admits(third).admission.is_voter
    third.topics[0].partitions[0].replica_directory_id = OTHER
    assert not leader.admits(third).admission.is_voter


@pytest.mark.parametrize(
    "changed",
    [
        {"voter_directory_id": ZERO_UUID},
        {"listeners": []},
        {"listeners": [UpdateRaftVoterRequest.Listener(name="C", host="h", port=1)] * 17},
        {"listeners": [UpdateRaftVoterRequest.Listener(name="C", host="h" * 256, port=1)]},
        {"kraft_version_feature": UpdateRaftVoterRequest.KRaftVersionFeature(min_supported_version=-1)},
        {"kraft_version_feature": UpdateRaftVoterRequest.KRaftVersionFeature(max_supported_version=-1)},
    ],
)
def test_what_cannot_be_written_is_not_kept(changed: dict[str, Any]) -> None:
    leader = static_leader(2)
    assert update(leader, 3, **changed) is ErrorCode.INVALID_REQUEST
    assert leader.raft.fault_of_raising(1) == NOT_ALL


# --- followers, and whoever starts ------------------------------------------------------------------------------------


def test_a_follower_goes_by_it_from_the_record_on_and_is_back_where_it_was_if_that_is_cut_off() -> None:
    follower = replica(1).static_voters(1, 2, 3).log("1:10 5:5").follower(epoch=5, of=3)
    records = span(15, 17, voter_sets=((16, voter_set(1, 2, 3)),), kraft_versions=((15, 1),))
    follower.lane_hands_up(fetch_response(5, leader=3), records)
    assert follower.raft.describe().kraft_version == 1
    assert follower.raft.voters == voter_set(1, 2, 3)
    follower.lane_hands_up(fetch_response(5, leader=3, diverging=(5, 15)))
    assert follower.raft.describe().kraft_version == 0
    assert follower.raft.voters == voter_set(1, 2, 3, with_directories=False)


def test_what_recovery_finds_is_undone_too_if_it_is_cut_off() -> None:
    follower = replica(1).static_voters(1, 2, 3).log("1:10 5:7").kraft_version_at(15, 1).voters_at(16, 1, 2, 3)
    follower.follower(epoch=5, of=3)
    assert follower.raft.describe().kraft_version == 1
    assert follower.raft.quorum_at(15) == (voter_set(1, 2, 3, with_directories=False), 0)
    assert follower.raft.quorum_at(17) == (voter_set(1, 2, 3), 1)
    follower.lane_hands_up(fetch_response(5, leader=3, diverging=(5, 15)))
    assert follower.raft.describe().kraft_version == 0


# --- telling the leader -----------------------------------------------------------------------------------------------

FETCH_TIMEOUT_MS = CONFIG.fetch_timeout_us // MS


def static_follower() -> Replica:
    follower = replica(1).static_voters(1, 2, 3).telling_leaders().log("1:10").follower(epoch=5, of=3)
    follower.hears_leader().step(ev.LeaderConnection(3, True))
    return follower


def wait(follower: Replica, ms: int = FETCH_TIMEOUT_MS) -> list[tuple[int, UpdateRaftVoterRequest]]:
    """What it tells meanwhile, while it hears the leader."""
    for _ in range(ms // 100):
        follower.hears_leader().elapse(100)
    follower.hears_leader()
    fields = follower.requests(UpdateRaftVoterRequest)
    follower.forget()
    return fields


def answered(follower: Replica, error: ErrorCode = ErrorCode.NONE, leader: int = 3, epoch: int = 5) -> None:
    current = UpdateRaftVoterResponse.CurrentLeader(leader_id=leader, leader_epoch=epoch, host="host", port=1)
    follower.answers(3, UpdateRaftVoterResponse(error_code=error, current_leader=current))


def test_a_static_voter_tells_the_leader_what_it_is_and_that_once() -> None:
    follower = static_follower()
    assert wait(follower, FETCH_TIMEOUT_MS // 2) == [], "leads that are soon over are not worth it"
    ((leader, request),) = wait(follower)
    assert leader == 3
    assert (request.cluster_id, request.current_leader_epoch) == (CLUSTER, 5)
    assert (request.voter_id, request.voter_directory_id) == key(1)
    assert [Endpoint(each.name, each.host, each.port) for each in request.listeners] == [endpoint(1)]
    versions = request.kraft_version_feature
    assert (versions.min_supported_version, versions.max_supported_version) == (0, 1)
    answered(follower)
    assert wait(follower, 5 * FETCH_TIMEOUT_MS) == []


def test_it_tells_again_until_the_leader_takes_it() -> None:
    follower = static_follower()
    assert len(wait(follower)) == 1
    answered(follower, ErrorCode.REQUEST_TIMED_OUT)
    assert len(wait(follower)) == 1
    follower.fails(3)
    assert len(wait(follower)) == 1
    answered(follower, ErrorCode.UNSUPPORTED_VERSION)
    assert wait(follower, 5 * FETCH_TIMEOUT_MS) == []


def test_no_error_in_the_answer_stops_it() -> None:
    follower = static_follower()
    for error in (ErrorCode.INVALID_REQUEST, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_SERVER_ERROR):
        assert len(wait(follower)) == 1
        answered(follower, error)
    assert not follower.ordered(fx.Halt)


def test_it_follows_whom_the_answer_names_and_tells_that_one() -> None:
    follower = static_follower()
    wait(follower)
    answered(follower, ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=2, epoch=6)
    assert (follower.leader_id, follower.epoch) == (2, 6)
    follower.forget()
    follower.step(ev.LeaderConnection(2, True))
    ((leader, request),) = wait(follower)
    assert (leader, request.current_leader_epoch) == (2, 6)


@pytest.mark.parametrize("quiet", ["user log", "kraft.version 1", "observer"])
def test_others_tell_nothing(quiet: str) -> None:
    node = replica(4 if quiet == "observer" else 1).log("1:10")
    node = node.voters(1, 2, 3) if quiet == "kraft.version 1" else node.static_voters(1, 2, 3)
    if quiet != "user log":
        node.telling_leaders()
    assert wait(node.follower(epoch=5, of=3), 3 * FETCH_TIMEOUT_MS) == []
