"""How a member follows the metadata log: whom it asks, what it takes in, and what ends it. KIP-595, KIP-630."""

from collections.abc import Sequence
from typing import Any

import pytest

from fastquorum.broker.follower import ActiveController, FollowerRequest, MetadataFollower
from fastquorum.broker.settings import MemberConfig
from fastquorum.errors import ImageFailed, ProtocolFatal, UsageError
from fastquorum.kernels import Kernels, load
from fastquorum.types import Endpoint, OffsetAndEpoch, Uuid
from fastquorum.wire import ErrorCode
from fastquorum.wire.message import Message
from fastquorum.wire.messages.fetch import FetchRequest, FetchResponse
from fastquorum.wire.messages.quorum_admin import DescribeQuorumRequest, DescribeQuorumResponse
from fastquorum.wire.messages.snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from fastquorum.wire.records.cluster import FeatureLevelRecord
from fastquorum.wire.records.metadata import encode_metadata_record
from fastquorum.wire.records.topics import RemoveTopicRecord, TopicRecord
from tests.broker.rig import BOOTSTRAP, CLUSTER_ID, MS, SECOND, SETTINGS, NoChance

KERNELS: Kernels = load("pure")
LEADER = Endpoint("CONTROLLER", "h2", 9093)
LEVEL = FeatureLevelRecord(name="metadata.version", feature_level=30)
Fetched = FetchResponse.FetchableTopicResponse


def topic(name: str) -> TopicRecord:
    return TopicRecord(name=name, topic_id=Uuid(name.encode().ljust(16, b"-")))


def batch(offset: int, epoch: int, *records: Message) -> bytes:
    values = [encode_metadata_record(each, 0) for each in records]
    return KERNELS.encode_values(values, base_offset=offset, leader_epoch=epoch, timestamp_ms=1)


class Reader:
    """A Follower, the time, and the request that waits."""

    def __init__(self) -> None:
        self.core = MetadataFollower(SETTINGS, MemberConfig(), KERNELS, NoChance())
        self.now = 1_000 * SECOND
        self.request: FollowerRequest | None = None
        self.look()

    def look(self) -> "Reader":
        request = self.core.poll(self.now)
        if request is not None:
            self.request = request
        return self

    def wait(self, us: int) -> "Reader":
        self.now += us
        return self.look()

    def answer(self, message: Message) -> "Reader":
        request = self.take()
        self.core.on_answer(request.number, message, self.now)
        return self.look()

    def take(self) -> FollowerRequest:
        request, self.request = self.request, None
        assert request is not None, "it asks nothing"
        return request

    def lose(self) -> "Reader":
        self.core.on_unanswered(self.take().number, "the connection failed", self.now)
        return self.look()

    @property
    def requested(self) -> Message:
        assert self.request is not None, "it asks nothing"
        return self.request.message

    @property
    def at(self) -> Endpoint:
        assert self.request is not None, "it asks nothing"
        return self.request.endpoint

    @property
    def fetch(self) -> FetchRequest.FetchTopic.FetchPartition:
        assert isinstance(self.requested, FetchRequest)
        return self.requested.topics[0].partitions[0]

    @property
    def topics(self) -> list[str]:
        return sorted(self.core.copy.image.topics.ids)

    # --- what servers say ---------------------------------------------------------------------------------------------

    def refuse(self, code: ErrorCode, leader: int = 2, epoch: int = 3, endpoint: Endpoint | None = LEADER) -> "Reader":
        """Not here; there, in that epoch."""
        partition = Fetched.PartitionData(error_code=code, high_watermark=-1, records=b"")
        partition.current_leader = Fetched.PartitionData.LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch)
        named = [] if endpoint is None else [(leader, endpoint)]
        return self.answer(
            FetchResponse(
                responses=[Fetched(partitions=[partition])],
                node_endpoints=[FetchResponse.NodeEndpoint(node_id=n, host=at.host, port=at.port) for n, at in named],
            )
        )

    def voters(self, *ids: int) -> "Reader":
        assert isinstance(self.requested, DescribeQuorumRequest)
        topic = DescribeQuorumResponse.TopicData
        rows = [topic.PartitionData.ReplicaState(replica_id=each) for each in ids]
        return self.answer(
            DescribeQuorumResponse(topics=[topic(partitions=[topic.PartitionData(current_voters=rows)])])
        )

    def give(self, *batches: bytes, committed: int, **more: Any) -> "Reader":
        """Batches, and up to where they are committed."""
        partition = Fetched.PartitionData(high_watermark=committed, records=b"".join(batches), **more)
        return self.answer(FetchResponse(responses=[Fetched(partitions=[partition])]))

    def diverge(self, epoch: int, end_offset: int) -> "Reader":
        return self.give(
            committed=0, diverging_epoch=Fetched.PartitionData.EpochEndOffset(epoch=epoch, end_offset=end_offset)
        )

    def point_to(self, snapshot: OffsetAndEpoch) -> "Reader":
        named = Fetched.PartitionData.SnapshotId(end_offset=snapshot.offset, epoch=snapshot.epoch)
        return self.give(committed=snapshot.offset, snapshot_id=named)

    def part(self, snapshot: OffsetAndEpoch, data: bytes, position: int, end: int, **more: Any) -> "Reader":
        assert isinstance(self.requested, FetchSnapshotRequest)
        topic = FetchSnapshotResponse.TopicSnapshot
        partition = topic.PartitionSnapshot(
            snapshot_id=topic.PartitionSnapshot.SnapshotId(end_offset=snapshot.offset, epoch=snapshot.epoch),
            size=len(data),
            position=position,
            unaligned_records=data[position:end],
            **more,
        )
        return self.answer(FetchSnapshotResponse(topics=[topic(partitions=[partition])]))


def following() -> Reader:
    """Return a reader that follows leader 2 in epoch 3, from the beginning."""
    return Reader().refuse(ErrorCode.FENCED_LEADER_EPOCH).voters(1, 2, 3)


# --- the leader -------------------------------------------------------------------------------------------------------


def test_it_asks_a_bootstrap_server_in_an_epoch_before_the_first() -> None:
    reader = Reader()
    assert reader.at == BOOTSTRAP[0]
    assert (reader.fetch.current_leader_epoch, reader.fetch.fetch_offset) == (0, 0)
    assert isinstance(reader.requested, FetchRequest)
    assert (reader.requested.cluster_id, reader.requested.replica_state.replica_id) == (CLUSTER_ID, 7)


def test_it_goes_where_it_is_sent_and_asks_who_votes_before_anything_counts() -> None:
    reader = Reader().refuse(ErrorCode.FENCED_LEADER_EPOCH)
    assert (reader.at, isinstance(reader.requested, DescribeQuorumRequest)) == (LEADER, True)
    assert reader.core.controller is None
    reader.voters(1, 2, 3)
    assert reader.core.controller == ActiveController(2, 3, LEADER)
    assert (reader.at, reader.fetch.current_leader_epoch, reader.fetch.fetch_offset) == (LEADER, 3, 0)


def test_who_names_nobody_is_passed_over() -> None:
    reader = Reader().refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=-1, epoch=2, endpoint=None)
    assert reader.request is None
    reader.wait(50 * MS)
    assert reader.at == BOOTSTRAP[1]
    assert "NOT_LEADER_OR_FOLLOWER" in reader.core.reason


def test_who_does_not_answer_is_passed_over_and_all_of_them_ever_more_rarely() -> None:
    reader = Reader()
    requested, waits = [], []
    for _ in range(12):
        requested.append(reader.at.host)
        reader.lose()
        waits.append((reader.core.deadline_us - reader.now) // MS)
        reader.wait(reader.core.deadline_us - reader.now)
    assert requested == ["h1", "h2"] * 6
    assert waits == [50, 50, 100, 100, 200, 200, 400, 400, 800, 800, 1000, 1000]


def test_a_leader_that_falls_silent_is_given_up() -> None:
    reader = following().wait(2_600 * MS)
    assert reader.core.leader is None
    late = reader.request
    reader.wait(100 * MS)
    assert reader.request is not late
    assert reader.at in BOOTSTRAP
    assert reader.fetch.current_leader_epoch == 0


def test_of_two_leaders_that_of_the_later_epoch_counts() -> None:
    reader = following().refuse(ErrorCode.FENCED_LEADER_EPOCH, 1, 5, BOOTSTRAP[0])
    assert reader.core.controller == ActiveController(1, 5, BOOTSTRAP[0])
    reader.refuse(ErrorCode.UNKNOWN_LEADER_EPOCH, 2, 3, LEADER)
    assert reader.core.controller is None, "it was told of an epoch that is over"
    reader.wait(SECOND).refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER, 2, 4, LEADER)
    assert reader.core.controller is None


def test_other_clusters_end_it() -> None:
    with pytest.raises(UsageError, match="not those of cluster"):
        Reader().answer(FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID))


def test_a_voters_id_ends_it() -> None:
    with pytest.raises(UsageError, match="broker id 7 is a controller's"):
        Reader().refuse(ErrorCode.FENCED_LEADER_EPOCH).voters(1, 7)


# --- the log ----------------------------------------------------------------------------------------------------------


def test_only_what_is_committed_is_in_the_image() -> None:
    reader = following().give(batch(0, 3, LEVEL, topic("a")), batch(2, 3, topic("b")), committed=2)
    assert (reader.topics, reader.core.copy.next_offset) == (["a"], 2)
    assert (reader.fetch.fetch_offset, reader.fetch.last_fetched_epoch) == (3, 3)
    reader.give(committed=3)
    assert reader.topics == ["a", "b"]


def test_it_is_fresh_as_of_the_fetch_that_left_nothing_to_be_read() -> None:
    reader = following()
    assert reader.core.fresh_us == -1
    sent = reader.now
    reader.now += 300 * MS
    reader.give(batch(0, 3, LEVEL), committed=1)
    assert reader.core.fresh_us == sent
    reader.give(batch(1, 3, topic("a")), committed=4)
    assert reader.core.fresh_us == sent, "there is more"


def test_where_logs_part_ways_what_is_not_committed_is_let_go() -> None:
    reader = following().give(batch(0, 3, LEVEL), batch(1, 3, topic("a")), committed=1)
    reader.refuse(ErrorCode.FENCED_LEADER_EPOCH, 1, 5, BOOTSTRAP[0]).diverge(3, 1)
    assert (reader.fetch.fetch_offset, reader.fetch.last_fetched_epoch) == (1, 3)
    reader.give(batch(1, 5, topic("b")), committed=2)
    assert reader.topics == ["b"]


def test_controllers_that_lost_what_was_committed_end_it() -> None:
    reader = following().give(batch(0, 3, LEVEL), committed=1)
    with pytest.raises(ProtocolFatal, match="no longer holds what was committed below offset 1"):
        reader.diverge(2, 0)


def test_a_record_that_does_not_fit_ends_it() -> None:
    with pytest.raises(ImageFailed, match="REMOVE_TOPIC_RECORD at offset 0"):
        following().give(batch(0, 3, RemoveTopicRecord(topic_id=Uuid(b"t" * 16))), committed=1)


def damaged() -> bytes:
    data = bytearray(batch(0, 3, LEVEL))
    data[-1] ^= 1
    return bytes(data)


@pytest.mark.parametrize("records", [damaged(), batch(5, 3, LEVEL), b"nonsense"], ids=["damaged", "gap", "no batch"])
def test_records_that_are_not_the_next_are_not_taken(records: bytes) -> None:
    reader = following().give(records, committed=9)
    assert (reader.core.copy.next_offset, reader.core.leader) == (0, None)
    assert reader.core.reason
    reader.wait(SECOND)
    assert reader.at in BOOTSTRAP


def test_an_answer_of_another_shape_loses_the_leader_only() -> None:
    assert following().answer(FetchResponse()).core.leader is None
    assert following().answer(DescribeQuorumResponse()).core.leader is None


def test_an_answer_to_what_was_given_up_changes_nothing() -> None:
    reader = following()
    late = reader.take()
    reader.wait(2_600 * MS)
    partition = Fetched.PartitionData(high_watermark=1, records=batch(0, 3, LEVEL))
    reader.core.on_answer(late.number, FetchResponse(responses=[Fetched(partitions=[partition])]), reader.now)
    assert reader.core.copy.next_offset == 0


# --- snapshots --------------------------------------------------------------------------------------------------------

SNAPSHOT = OffsetAndEpoch(100, 2)
HELD = batch(0, 2, LEVEL, topic("s")) + batch(2, 2, topic("t"))


def copied(data: bytes, cuts: Sequence[int] = (100, 130)) -> Reader:
    reader = following().point_to(SNAPSHOT)
    position = 0
    for end in (*cuts, len(data)):
        assert isinstance(reader.requested, FetchSnapshotRequest)
        assert reader.requested.topics[0].partitions[0].position == position
        reader.part(SNAPSHOT, data, position, end)
        position = end
    return reader


def test_a_log_that_begins_later_begins_with_a_snapshot_piece_by_piece() -> None:
    reader = copied(HELD)
    assert (reader.topics, reader.core.copy.next_offset) == (["s", "t"], 100)
    assert (reader.fetch.fetch_offset, reader.fetch.last_fetched_epoch) == (100, 2)
    reader.give(batch(100, 3, topic("u")), committed=101)
    assert reader.topics == ["s", "t", "u"]


def test_a_damaged_snapshot_is_not_loaded() -> None:
    reader = copied(HELD[:-1] + bytes([HELD[-1] ^ 1]))
    assert (reader.topics, reader.core.copy.next_offset, reader.core.leader) == ([], 0, None)


def test_a_snapshot_that_is_gone_is_asked_for_no_more() -> None:
    reader = following().point_to(SNAPSHOT).part(SNAPSHOT, HELD, 0, 100)
    reader.part(SNAPSHOT, HELD, 100, 100, error_code=ErrorCode.SNAPSHOT_NOT_FOUND)
    assert reader.core.copy.next_offset == 0
    reader.wait(SECOND).refuse(ErrorCode.FENCED_LEADER_EPOCH)
    assert reader.fetch.fetch_offset == 0


@pytest.mark.parametrize(("position", "end"), [(10, 50), (0, 0)], ids=["another piece", "an empty one"])
def test_a_piece_that_was_not_asked_for_is_not_taken(position: int, end: int) -> None:
    reader = following().point_to(SNAPSHOT).part(SNAPSHOT, HELD, position, end)
    assert reader.core.leader is None


def test_a_snapshot_of_what_is_known_already_ends_it() -> None:
    reader = following().give(batch(0, 3, LEVEL), committed=1)
    with pytest.raises(ProtocolFatal, match="begin anew at offset 1"):
        reader.point_to(OffsetAndEpoch(1, 3))
