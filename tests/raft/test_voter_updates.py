"""UpdateRaftVoter: static voters of Kafka's tell the leader what they are; it changes nothing."""

from typing import Any

import pytest

from fastquorum.wire import ErrorCode
from fastquorum.wire.messages.quorum_admin import UpdateRaftVoterRequest, UpdateRaftVoterResponse
from tests.raft.scenario import Replica, replica
from tests.raft.wire_messages import CLUSTER, directory, endpoint

LISTENER = UpdateRaftVoterRequest.Listener(name="CONTROLLER", host="host2", port=9002)
VERSIONS = UpdateRaftVoterRequest.KRaftVersionFeature(min_supported_version=0, max_supported_version=1)

NEWER = UpdateRaftVoterRequest.KRaftVersionFeature(min_supported_version=1, max_supported_version=1)


def updated(node: Replica, **changed: Any) -> UpdateRaftVoterResponse:
    fields = {"cluster_id": CLUSTER, "current_leader_epoch": 5, "voter_id": 2, "voter_directory_id": directory(2)}
    request = UpdateRaftVoterRequest(
        **{**fields, "listeners": [LISTENER], "kraft_version_feature": VERSIONS, **changed}
    )
    answer = node.receives(request)
    assert isinstance(answer, UpdateRaftVoterResponse)
    return answer


def test_a_leader_of_static_voters_hears_them() -> None:
    leader = replica(1).static_voters(1, 2, 3).leader(epoch=5)
    before = leader.raft.voters
    answer = updated(leader)
    named = answer.current_leader
    assert answer.error_code == ErrorCode.NONE
    assert (named.leader_id, named.leader_epoch) == (1, 5)
    assert (named.host, named.port) == (endpoint(1).host, endpoint(1).port)
    assert leader.raft.voters == before


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"cluster_id": "another"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"current_leader_epoch": 4}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"current_leader_epoch": 6}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ({"listeners": []}, ErrorCode.INVALID_REQUEST),
        ({"kraft_version_feature": NEWER}, ErrorCode.INVALID_REQUEST),
        ({"voter_id": 9}, ErrorCode.VOTER_NOT_FOUND),
    ],
)
def test_what_is_wrong_with_it_is_said(changed: dict[str, Any], error: ErrorCode) -> None:
    assert updated(replica(1).static_voters(1, 2, 3).leader(epoch=5), **changed).error_code == error


def test_a_follower_names_the_leader() -> None:
    answer = updated(replica(1).static_voters(1, 2, 3).follower(epoch=5, of=3))
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (answer.current_leader.leader_id, answer.current_leader.port) == (3, endpoint(3).port)


def test_where_it_would_be_a_change_of_the_voters_it_is_refused() -> None:
    assert updated(replica(1).voters(1, 2, 3).checkpoint_voters(1, 2, 3).leader(epoch=5)).error_code == (
        ErrorCode.UNSUPPORTED_VERSION
    )
