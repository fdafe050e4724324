"""Questions that decide nothing are answered while the lane goes on: voters' Fetches do not wait for them."""

from typing import Any

import pytest

from fastquorum.types import OffsetAndEpoch
from fastquorum.wire import ErrorCode, Message
from fastquorum.wire.messages.quorum_admin import DescribeQuorumRequest, DescribeQuorumResponse
from fastquorum.wire.messages.snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from tests.lane.builders import CLUSTER
from tests.node.rig import Rig


def describe_quorum() -> DescribeQuorumRequest:
    topic = DescribeQuorumRequest.TopicData
    return DescribeQuorumRequest(
        topics=[topic(topic_name="__cluster_metadata", partitions=[topic.PartitionData(partition_index=0)])]
    )


def fetch_snapshot(snapshot: OffsetAndEpoch, epoch: int) -> FetchSnapshotRequest:
    topic = FetchSnapshotRequest.TopicSnapshot
    partition = topic.PartitionSnapshot(
        partition=0,
        current_leader_epoch=epoch,
        snapshot_id=topic.PartitionSnapshot.SnapshotId(end_offset=snapshot.offset, epoch=snapshot.epoch),
    )
    return FetchSnapshotRequest(
        cluster_id=CLUSTER, replica_id=9, topics=[topic(name="__cluster_metadata", partitions=[partition])]
    )


def record_steps(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What raft/ decides about from now on, while the lane stands."""
    steps: list[Any] = []
    step = rig.replica.raft.step

    def recorded(event: Any, *arguments: Any) -> Any:
        steps.append(event)
        return step(event, *arguments)

    monkeypatch.setattr(rig.replica.raft, "step", recorded)
    return steps


def test_a_leader_describes_the_quorum_as_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(1, 2, 3).lead()
    rig.fetch(rig.accept(), 2, 1)
    rig.append(b"x")
    rig.sync()
    steps = record_steps(rig, monkeypatch)
    answer = rig.answer_to(DescribeQuorumResponse, describe_quorum(), 2)
    partition = answer.topics[0].partitions[0]
    assert (partition.error_code, partition.leader_id, partition.high_watermark) == (ErrorCode.NONE, 1, 1)
    assert [(row.replica_id, row.log_end_offset) for row in partition.current_voters] == [(1, 2), (2, 1), (3, -1)]
    assert not steps
    assert not rig.shell.is_standing


@pytest.mark.parametrize("comes_on", ["a connection of its own", "a replica's"])
def test_a_leader_gives_a_piece_of_a_snapshot(monkeypatch: pytest.MonkeyPatch, comes_on: str) -> None:
    rig = Rig(1, 2, 3).lead()
    connection = rig.accept()
    if comes_on == "a replica's":
        rig.fetch(connection, 9, 1)
    steps = record_steps(rig, monkeypatch)
    request: Message = fetch_snapshot(OffsetAndEpoch(7, 1), rig.replica.raft.epoch)
    rig.ask(connection, request, 1)
    answer = rig.answers(connection)[-1]
    assert isinstance(answer, FetchSnapshotResponse)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.SNAPSHOT_NOT_FOUND
    assert not steps
    assert not rig.shell.is_standing


def test_a_follower_answers_as_before() -> None:
    rig = Rig(1, 2, 3)
    request = fetch_snapshot(OffsetAndEpoch(7, 1), rig.replica.raft.epoch)
    answer = rig.answer_to(FetchSnapshotResponse, request, 1)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
