"""Snapshots in place of a log that is not there any more: who is sent one, how it is fetched, served and installed."""

from typing import Any

import pytest

from fastquorum.config import MS, QuorumConfig
from fastquorum.errors import ProtocolFatal
from fastquorum.raft import effects as fx
from fastquorum.raft import events as ev
from fastquorum.types import NO_NODE, TOPIC_NAME, OffsetAndEpoch
from fastquorum.wire import ErrorCode
from fastquorum.wire.messages.fetch import FetchRequest, FetchResponse
from fastquorum.wire.messages.snapshot import FetchSnapshotRequest, FetchSnapshotResponse

from .scenario import Replica, replica
from .wire_messages import CLUSTER, directory, fetch_request, fetch_response, voter_set

SNAPSHOT = OffsetAndEpoch(10, 4)
Part = FetchSnapshotResponse.TopicSnapshot.PartitionSnapshot


# --- who is sent a snapshot -------------------------------------------------------------------------------------------


def leader() -> Replica:
    """Epoch 6; its log holds offsets 10 to 17, of epochs 5 and 6."""
    return replica(1).log("5:4 6:4").snapshot(10, 4, 2_500_000, starts=True).leader(epoch=6)


def answered(leader: Replica, offset: int, last_epoch: int) -> Any:
    answer: Any = leader.receives(fetch_request(6, by=2, at=offset, last_epoch=last_epoch))
    return answer.responses[0].partitions[0]


@pytest.mark.parametrize(
    ("offset", "last_epoch"),
    [
        (0, 0),  # a new replica
        (9, 4),  # below the start
        (10, 3),  # at the start, but not what the snapshot ends with
        (12, 3),  # of an epoch that is older than all that is here
    ],
)
def test_whose_log_ends_where_nothing_is_left_is_sent_the_latest_snapshot(offset: int, last_epoch: int) -> None:
    partition = answered(leader(), offset, last_epoch)
    assert (partition.snapshot_id.end_offset, partition.snapshot_id.epoch) == SNAPSHOT
    assert (partition.diverging_epoch.epoch, partition.records) == (-1, b"")
    assert partition.current_leader.leader_id == 1


def test_whose_log_ends_with_the_snapshot_goes_on_there() -> None:
    assert leader().admits(fetch_request(6, by=2, at=10, last_epoch=4)).admission.fetch_offset == 10


def test_whose_log_parts_ways_later_is_told_where() -> None:
    partition = answered(leader(), 16, 5)
    assert (partition.diverging_epoch.epoch, partition.diverging_epoch.end_offset) == (5, 14)
    assert partition.snapshot_id.epoch == -1


def test_a_new_replica_is_sent_a_snapshot_even_where_the_whole_log_is_left() -> None:
    whole = replica(1).log("4:10 6:2").snapshot(10, 4).leader(epoch=6)
    assert answered(whole, 0, 0).snapshot_id.end_offset == 10
    assert whole.admits(fetch_request(6, by=2, at=4, last_epoch=4)).admission.fetch_offset == 4


# --- serving it -------------------------------------------------------------------------------------------------------


def asking(
    position: int = 0, *, snapshot: OffsetAndEpoch = SNAPSHOT, epoch: int = 6, topic: str = TOPIC_NAME, by: int = 2
) -> FetchSnapshotRequest:
    data = FetchSnapshotRequest.TopicSnapshot
    partition = data.PartitionSnapshot(
        current_leader_epoch=epoch,
        snapshot_id=data.PartitionSnapshot.SnapshotId(end_offset=snapshot.offset, epoch=snapshot.epoch),
        position=position,
        replica_directory_id=directory(by),
    )
    return FetchSnapshotRequest(cluster_id=CLUSTER, replica_id=by, topics=[data(name=topic, partitions=[partition])])


def test_a_piece_is_served_from_where_it_is_asked_for() -> None:
    serving = leader()
    serving.step(ev.RequestReceived(9, 1, asking(1_000_000), 7, 70))
    (served,) = serving.ordered(fx.SendSnapshotPart)
    assert (served.token, served.snapshot, served.position, served.bytes_max) == (9, SNAPSHOT, 1_000_000, 1 << 20)
    partition = served.response.topics[0].partitions[0]
    assert (partition.error_code, partition.size, partition.position) == (0, 2_500_000, 1_000_000)
    assert (partition.current_leader.leader_id, partition.current_leader.leader_epoch) == (1, 6)


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (asking(snapshot=OffsetAndEpoch(10, 3)), ErrorCode.SNAPSHOT_NOT_FOUND),
        (asking(snapshot=OffsetAndEpoch(0, 0)), ErrorCode.SNAPSHOT_NOT_FOUND),
        (asking(-1), ErrorCode.POSITION_OUT_OF_RANGE),
        (asking(2_500_000), ErrorCode.POSITION_OUT_OF_RANGE),
        (asking(epoch=5), ErrorCode.FENCED_LEADER_EPOCH),
        (asking(epoch=7), ErrorCode.UNKNOWN_LEADER_EPOCH),
        (asking(topic="other"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_what_cannot_be_served_is_refused(request_: FetchSnapshotRequest, code: ErrorCode) -> None:
    answer: Any = leader().receives(request_)
    assert answer.topics[0].partitions[0].error_code == code
    assert answer.topics[0].partitions[0].unaligned_records == b""


def test_a_follower_refuses_and_names_the_leader() -> None:
    answer: Any = replica(1).follower(epoch=6, of=3).receives(asking())
    partition = answer.topics[0].partitions[0]
    assert (partition.error_code, partition.current_leader.leader_id) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 3)


def test_a_voter_that_copies_a_snapshot_keeps_its_leader_while_it_gets_on() -> None:
    serving = leader()
    for number in range(6):
        serving.elapse(1_000)
        serving.step(ev.RequestReceived(number, 1, asking(number * 1_000), 7, 70))
    assert serving.role == "leader"
    for number in range(10, 14):
        serving.elapse(1_000)
        if serving.role == "leader":
            serving.step(ev.RequestReceived(number, 1, asking(5_000), 7, 70))  # the same piece again and again
    assert serving.role == "resigned"


# --- fetching it ------------------------------------------------------------------------------------------------------


def sent_to(node: Replica, snapshot: OffsetAndEpoch = SNAPSHOT) -> Replica:
    """A follower of 3 in epoch 6 whose Fetch was answered with a snapshot."""
    node.lane_hands_up(naming(snapshot))
    return node


def naming(snapshot: OffsetAndEpoch) -> FetchResponse:
    """What 3, as the leader of epoch 6, says to a Fetch that its log does not reach."""
    answer = fetch_response(6, leader=3)
    partition = answer.responses[0].partitions[0]
    partition.snapshot_id = type(partition).SnapshotId(end_offset=snapshot.offset, epoch=snapshot.epoch)
    return answer


def follower(text: str = "") -> Replica:
    return replica(1).log(text).follower(epoch=6, of=3)


def part(
    position: int, data: bytes, size: int, *, snapshot: OffsetAndEpoch = SNAPSHOT, error: int = 0, epoch: int = 6
) -> FetchSnapshotResponse:
    topic = FetchSnapshotResponse.TopicSnapshot
    partition = topic.PartitionSnapshot(
        error_code=error,
        snapshot_id=Part.SnapshotId(end_offset=snapshot.offset, epoch=snapshot.epoch),
        current_leader=Part.LeaderIdAndEpoch(leader_id=3, leader_epoch=epoch),
        size=size,
        position=position,
        unaligned_records=data,
    )
    return FetchSnapshotResponse(topics=[topic(name=TOPIC_NAME, partitions=[partition])])


def fetch_position(node: Replica) -> int:
    message: Any = node.last_request(3).message
    assert isinstance(message, FetchSnapshotRequest)
    partition = message.topics[0].partitions[0]
    assert (partition.snapshot_id.end_offset, partition.snapshot_id.epoch) == SNAPSHOT
    assert (message.replica_id, message.cluster_id, partition.current_leader_epoch) == (1, CLUSTER, 6)
    return partition.position


def test_a_snapshot_is_fetched_piece_by_piece_and_installed() -> None:
    node = sent_to(follower())
    assert node.raft.lane_session() is None
    assert fetch_position(node) == 0
    node.answers(3, part(0, b"abc", 5))
    assert fetch_position(node) == 3
    node.answers(3, part(3, b"de", 5))
    assert node.ordered(fx.WriteSnapshotPart) == [
        fx.WriteSnapshotPart(SNAPSHOT, 0, b"abc"),
        fx.WriteSnapshotPart(SNAPSHOT, 3, b"de"),
    ]
    assert node.ordered(fx.InstallSnapshot) == [fx.InstallSnapshot(SNAPSHOT)]
    node.step(ev.SnapshotInstalled(SNAPSHOT, True, voter_set(1, 2, 3, 4), 1))
    assert node.raft.high_watermark == 10
    assert node.ordered(fx.CommitTo) == [fx.CommitTo(10)]
    assert node.raft.voters.ids == (1, 2, 3, 4)
    session = node.raft.lane_session()
    assert session is not None
    assert session.high_watermark == 10


def test_where_the_lane_had_asked_anew_before_it_was_sent_to_one_it_gets_another_connection() -> None:
    ready = follower()
    ready.lane.fetch_sent_us = ready.now_us
    node = sent_to(ready)
    node.answers(3, part(0, b"abc", 3))
    node.forget()
    node.step(ev.SnapshotInstalled(SNAPSHOT, True, voter_set(1, 2, 3), 1))
    assert node.ordered(fx.ConnectLeader) != []


def test_without_voters_in_it_those_known_stay() -> None:
    node = sent_to(replica(1).static_voters(1, 2, 3).follower(epoch=6, of=3))
    node.answers(3, part(0, b"abc", 3))
    node.step(ev.SnapshotInstalled(SNAPSHOT, True))
    assert node.raft.voters.ids == (1, 2, 3)


def test_what_the_log_held_of_voters_is_gone_with_it() -> None:
    node = sent_to(replica(1).log("1:3").voters_at(2, 1, 2, 3, 9).follower(epoch=6, of=3))
    assert 9 in node.raft.voters.ids
    node.answers(3, part(0, b"abc", 3))
    node.step(ev.SnapshotInstalled(SNAPSHOT, True, voter_set(1, 2, 3), 1))
    assert node.raft.voters.ids == (1, 2, 3)


def test_a_damaged_snapshot_is_asked_for_anew_but_not_at_once() -> None:
    node = sent_to(follower())
    node.answers(3, part(0, b"abc", 3))
    node.forget()
    node.step(ev.SnapshotInstalled(SNAPSHOT, False))
    assert node.raft.lane_session() is None
    assert node.ordered(fx.ConnectLeader) == []
    node.elapse(20)
    assert node.ordered(fx.ConnectLeader) != []
    assert node.raft.high_watermark < 10


@pytest.mark.parametrize(
    "answer",
    [
        part(0, b"", 0, error=ErrorCode.SNAPSHOT_NOT_FOUND),
        part(0, b"", 0, error=ErrorCode.POSITION_OUT_OF_RANGE),
        part(0, b"", 5),
        part(0, b"abcdef", 5),
        part(1, b"abc", 5),
        part(0, b"abc", 5, snapshot=OffsetAndEpoch(11, 4)),
        FetchSnapshotResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR),  # Kafka 4.3.0's every partition error
    ],
)
def test_an_answer_of_no_use_ends_the_copy_and_the_leader_is_fetched_from_again(answer: FetchSnapshotResponse) -> None:
    node = sent_to(follower())
    node.forget()
    node.answers(3, answer)
    assert node.ordered(fx.WriteSnapshotPart) == []
    assert node.ordered(fx.DropSnapshotPart) == [fx.DropSnapshotPart()]
    node.elapse(20)
    assert node.ordered(fx.ConnectLeader) != []
    assert node.role == "follower"


def test_a_piece_that_does_not_come_is_asked_for_again() -> None:
    node = sent_to(replica(1).configured(QuorumConfig(fetch_timeout_us=9_000 * MS)).follower(epoch=6, of=3))
    node.answers(3, part(0, b"abc", 5))
    node.fails(3)
    node.forget()
    node.elapse(20)
    assert [message.topics[0].partitions[0].position for _, message in node.requests(FetchSnapshotRequest)] == [3]
    node.elapse(2_000)
    assert len(node.requests(FetchSnapshotRequest)) == 2


def test_pieces_are_signs_of_life_and_silence_is_not() -> None:
    node = sent_to(follower())
    for position in range(5):
        node.elapse(1_500)
        node.answers(3, part(position, b"x", 100))
    assert node.role == "follower"
    node.elapse(2_000)
    assert node.role == "prospective"


def test_a_new_leader_ends_the_copy() -> None:
    node = sent_to(follower())
    late = node.last_request(3).correlation_id
    node.answers(3, fetch_snapshot_error(7, leader=2))
    assert (node.leader_id, node.epoch) == (2, 7)
    node.forget()
    node.answers(3, part(0, b"abc", 5), correlation_id=late)
    assert node.ordered(fx.WriteSnapshotPart) == []


def fetch_snapshot_error(epoch: int, *, leader: int) -> FetchSnapshotResponse:
    answer = part(0, b"", 0, error=ErrorCode.NOT_LEADER_OR_FOLLOWER, epoch=epoch)
    answer.topics[0].partitions[0].current_leader.leader_id = leader
    return answer


def test_a_snapshot_below_what_is_committed_stops_the_replica() -> None:
    node = follower("4:20").committed(15)
    ordered = sent_to(node).effects
    (halt,) = [each for each in ordered if isinstance(each, fx.Halt)]
    assert isinstance(halt.error, ProtocolFatal)
    assert "everything below 15 is committed" in str(halt.error)


def test_an_observer_installs_snapshots_as_well() -> None:
    node = sent_to(replica(9).follower(epoch=6, of=3))
    message: Any = node.last_request(3).message
    assert isinstance(message, FetchSnapshotRequest)
    node.answers(3, part(0, b"abc", 3))
    node.step(ev.SnapshotInstalled(SNAPSHOT, True, voter_set(1, 2, 3), 1))
    assert node.leader_id == 3 != NO_NODE


def test_raft_s_own_fetch_after_it_names_the_snapshots_epoch() -> None:
    node = replica(1).snapshot(10, 4, starts=True).persisted(6).starts()
    fetches = node.requests(FetchRequest)
    assert fetches
    for _, fetch in fetches:
        partition = fetch.topics[0].partitions[0]
        assert (partition.fetch_offset, partition.last_fetched_epoch) == (10, 4)


def test_what_a_snapshot_covers_is_never_cut_away_though_nobody_said_since_the_start_that_it_is_committed() -> None:
    node = replica(1).log("4:20").snapshot(10, 4).follower(epoch=6, of=3)
    (*_, halt) = node.lane_hands_up(fetch_response(6, leader=3, diverging=(4, 8)))
    assert isinstance(halt, fx.Halt)
    assert "everything below 10 is committed" in str(halt.error)


def test_what_it_once_knew_to_be_committed_is_never_cut_away_after_a_start_either() -> None:
    node = replica(1).log("4:20")
    node.fake_log.committed_offset = 11
    node.follower(epoch=6, of=3)
    (*_, halt) = node.lane_hands_up(fetch_response(6, leader=3, diverging=(4, 8)))
    assert isinstance(halt, fx.Halt)
    assert "everything below 11 is committed" in str(halt.error)


def test_what_it_once_knew_to_be_committed_is_not_replaced_by_a_snapshot_of_less() -> None:
    node = replica(1).log("4:20")
    node.fake_log.committed_offset = 11
    node.follower(epoch=6, of=3)
    (*_, halt) = node.lane_hands_up(naming(OffsetAndEpoch(10, 4)))
    assert isinstance(halt, fx.Halt)
    assert "everything below 11 is committed" in str(halt.error)
