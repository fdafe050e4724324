"""Fetches that the lane handed up, as the leader and others judge them (KIP-595, KIP-630)."""

from typing import Any

import pytest

from fastquorum.raft import effects as fx
from fastquorum.types import METADATA_TOPIC_ID, TOPIC_NAME, ZERO_UUID, Uuid
from fastquorum.wire import ErrorCode, encode_response
from fastquorum.wire.messages.fetch import FetchRequest
from fastquorum.wire.messages.snapshot import FetchSnapshotRequest

from .scenario import Replica, replica
from .wire_messages import CLUSTER, directory, error_of, fetch_request, key


def leader() -> Replica:
    return replica(1).leader(epoch=5).log("1:10 3:5 5:4")


def test_a_fetch_that_continues_this_log_goes_to_the_lane() -> None:
    admitted = leader().admits(fetch_request(5, by=2, at=15, last_epoch=3))
    assert admitted.token == 1
    admission = admitted.admission
    assert (admission.connection, admission.correlation_id, admission.api_version) == (7, 70, 18)
    assert (admission.peer, admission.is_voter, admission.fetch_offset) == (key(2), True, 15)
    assert (admission.max_wait_us, admission.bytes_max, admission.request_high_watermark) == (500_000, 1024, -1)


@pytest.mark.parametrize(
    ("at", "last_epoch"),
    [(0, 0), (0, 5), (1, 1), (10, 1), (11, 3), (15, 3), (16, 5), (19, 5)],
)
def test_any_prefix_of_this_log_is_admitted(at: int, last_epoch: int) -> None:
    leader().admits(fetch_request(5, at=at, last_epoch=last_epoch))


@pytest.mark.parametrize(
    ("at", "last_epoch", "diverging"),
    [
        (11, 1, (1, 10)),  # longer in epoch 1 than here
        (12, 2, (1, 10)),  # an epoch that is not here: the one before it
        (16, 3, (3, 15)),
        (20, 5, (5, 19)),  # beyond the end
        (15, 4, (3, 15)),
        (3, 0, (0, 0)),  # before the first epoch
    ],
)
def test_a_log_that_is_not_a_prefix_is_told_where_the_two_part(
    at: int, last_epoch: int, diverging: tuple[int, int]
) -> None:
    node = leader().committed(12)
    answer: Any = node.receives(fetch_request(5, at=at, last_epoch=last_epoch))
    partition = answer.responses[0].partitions[0]
    assert (partition.diverging_epoch.epoch, partition.diverging_epoch.end_offset) == diverging
    assert (partition.error_code, partition.high_watermark, partition.records) == (0, 12, b"")
    assert (partition.current_leader.leader_id, partition.current_leader.leader_epoch) == (1, 5)


def test_an_observer_is_admitted_but_is_no_voter() -> None:
    assert not leader().admits(fetch_request(5, by=9, at=19, last_epoch=5)).admission.is_voter


def test_a_voters_id_from_another_directory_is_no_voter() -> None:
    """An impostor or a replaced disk is served like an observer, and never counted."""
    fetch = fetch_request(5, by=2, at=19, last_epoch=5, directory_id=directory(99))
    assert not leader().admits(fetch).admission.is_voter
    fetch = fetch_request(5, by=2, at=19, last_epoch=5, directory_id=ZERO_UUID)
    assert not leader().admits(fetch).admission.is_voter


def test_static_voters_count_by_id() -> None:
    static = replica(1).static_voters(1, 2, 3).leader(epoch=5)
    assert static.admits(fetch_request(5, by=2, directory_id=directory(99))).admission.is_voter


def test_who_names_no_id_is_served_but_is_nobody() -> None:
    admission = leader().admits(fetch_request(5, by=-1, at=19, last_epoch=5)).admission
    assert (admission.peer.id, admission.is_voter) == (-1, False)


def test_version_12_names_the_topic_and_its_replica_elsewhere() -> None:
    fetch = fetch_request(5, by=2, at=19, last_epoch=5, topic_id=ZERO_UUID)
    fetch.replica_state = FetchRequest.ReplicaState()
    admission = replica(1).static_voters(1, 2).leader(5).log("5:19").admits(fetch, version=12).admission
    assert (admission.peer.id, admission.is_voter, admission.api_version) == (2, True, 12)


WRONG: dict[str, Any] = {"cluster": "another", "topic_id": Uuid(bytes(16)), "wait_ms": -1, "last_epoch": 4}


def without(*right: str, **changed: Any) -> FetchRequest:
    return fetch_request(changed.pop("epoch", 9), **{k: v for k, v in WRONG.items() if k not in right}, **changed)


@pytest.mark.parametrize(
    ("fetch", "version", "error"),
    [
        (without(), 11, ErrorCode.UNSUPPORTED_VERSION),
        (without(), 18, ErrorCode.INCONSISTENT_CLUSTER_ID),
        (without("cluster"), 18, ErrorCode.INVALID_REQUEST),
        (without("cluster", topic="another"), 12, ErrorCode.INVALID_REQUEST),
        (without("cluster", "topic_id"), 18, ErrorCode.INVALID_REQUEST),
        (without("cluster", "topic_id", "wait_ms", at=-1), 18, ErrorCode.INVALID_REQUEST),
        (without("cluster", "topic_id", "wait_ms", "last_epoch", last_epoch=-1), 18, ErrorCode.INVALID_REQUEST),
        (without("cluster", "topic_id", "wait_ms", "last_epoch", last_epoch=10), 18, ErrorCode.INVALID_REQUEST),
        (without("cluster", "topic_id", "wait_ms", epoch=4), 18, ErrorCode.FENCED_LEADER_EPOCH),
        (without("cluster", "topic_id", "wait_ms", epoch=6), 18, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (without("cluster", "topic_id", "wait_ms", epoch=5), 18, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_wrong_fetches_are_answered_in_kafkas_order_of_checks(
    fetch: FetchRequest, version: int, error: ErrorCode
) -> None:
    follower = replica(1).follower(epoch=5, of=3)
    assert error_of(follower.receives(fetch, version)) == error
    assert (follower.role, follower.epoch) == ("follower", 5), "a Fetch moves nobody's epoch"


def test_version_and_cluster_and_topic_errors_are_top_level() -> None:
    node = leader()
    for fetch, version in ((without(), 11), (without(), 18), (without("cluster"), 18)):
        answer: Any = node.receives(fetch, version)
        assert answer.error_code != 0
        assert answer.responses == []


def test_a_leader_fences_older_epochs_and_a_fetch_in_its_own_name() -> None:
    node = leader()
    assert error_of(node.receives(fetch_request(4))) == ErrorCode.FENCED_LEADER_EPOCH
    assert error_of(node.receives(fetch_request(5, by=1))) == ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("version", [12, 16, 17, 18])
def test_every_error_names_the_leader_and_from_17_on_its_address(version: int) -> None:
    follower = replica(1).follower(epoch=5, of=3)
    answer: Any = follower.receives(fetch_request(5), version)
    partition = answer.responses[0].partitions[0]
    assert (partition.current_leader.leader_id, partition.current_leader.leader_epoch) == (3, 5)
    assert (partition.high_watermark, partition.records, partition.aborted_transactions) == (-1, b"", [])
    assert [(each.node_id, each.host) for each in answer.node_endpoints] == ([(3, "host3")] if version >= 17 else [])
    assert (answer.responses[0].topic, answer.responses[0].topic_id) == (TOPIC_NAME, METADATA_TOPIC_ID)


def test_a_resigned_leader_serves_nobody() -> None:
    answer = replica(1).resigned(epoch=5).receives(fetch_request(5))
    assert error_of(answer) == ErrorCode.NOT_LEADER_OR_FOLLOWER


# --- FetchSnapshot ----------------------------------------------------------------------------------------------------


def snapshot_request(epoch: int, *, cluster: str = CLUSTER, topic: str = TOPIC_NAME) -> FetchSnapshotRequest:
    data = FetchSnapshotRequest.TopicSnapshot
    snapshot_id = data.PartitionSnapshot.SnapshotId(end_offset=7, epoch=3)
    partition = data.PartitionSnapshot(current_leader_epoch=epoch, snapshot_id=snapshot_id, position=11)
    return FetchSnapshotRequest(cluster_id=cluster, replica_id=2, topics=[data(name=topic, partitions=[partition])])


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (snapshot_request(4, cluster="another", topic="x"), ErrorCode.INCONSISTENT_CLUSTER_ID),
        (snapshot_request(4, topic="x"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (snapshot_request(4), ErrorCode.FENCED_LEADER_EPOCH),
        (snapshot_request(6), ErrorCode.UNKNOWN_LEADER_EPOCH),
        (snapshot_request(5), ErrorCode.SNAPSHOT_NOT_FOUND),
    ],
)
def test_no_snapshot_is_there_to_be_fetched(request_: FetchSnapshotRequest, error: ErrorCode) -> None:
    assert error_of(leader().receives(request_)) == error


def test_the_refusal_can_be_encoded_and_names_the_leader() -> None:
    answer: Any = replica(1).follower(epoch=5, of=3).receives(snapshot_request(5))
    partition = answer.topics[0].partitions[0]
    assert partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (partition.current_leader.leader_id, partition.unaligned_records) == (3, b"")
    assert (partition.snapshot_id.end_offset, partition.snapshot_id.epoch, partition.position) == (7, 3, 11)
    for version in (0, 1):
        if version == 0:
            answer.node_endpoints = []
        assert encode_response(1, 59, version, answer)


def test_an_answered_fetch_leaves_the_lane_open() -> None:
    node = leader()
    node.receives(fetch_request(4))
    assert not node.ordered(fx.CloseLane)
