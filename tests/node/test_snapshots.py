"""A snapshot takes the place of a log that the leader does not have any more: asked for, copied, installed, served."""

from typing import Any

from fastquorum.kernels import load
from fastquorum.storage.identity import LogKind
from fastquorum.types import METADATA_TOPIC_ID, OffsetAndEpoch, Voter, VoterSet
from fastquorum.wire import ErrorCode, Message
from fastquorum.wire.messages.fetch import FetchRequest, FetchResponse
from fastquorum.wire.messages.snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from tests.lane.builders import CLUSTER, fetch_response, value_batch
from tests.node.rig import Rig, endpoint, key, partition_of
from tests.storage.logs import checkpoint, checkpoint_path

SNAPSHOT = OffsetAndEpoch(50, 3)
VOTERS = VoterSet([Voter(key(node_id), (endpoint(node_id),), 0, 1) for node_id in (1, 2, 3)])
DATA = checkpoint(load("pure"), SNAPSHOT, voters=VOTERS, values=[b"state" * 40, b"more"])


# --- the follower's side ----------------------------------------------------------------------------------------------


def offered(rig: Rig, leader_id: int = 2, epoch: int = 5) -> int:
    """It follows, and its Fetch is answered with a snapshot; the connection on which it asks for it."""
    connection = rig.follow(leader_id=leader_id, epoch=epoch)
    ((header, message),) = rig.requests_on(connection)
    assert isinstance(message, FetchRequest)
    topic = FetchResponse.FetchableTopicResponse
    partition = topic.PartitionData(
        high_watermark=60,
        current_leader=topic.PartitionData.LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=epoch),
        snapshot_id=topic.PartitionData.SnapshotId(end_offset=SNAPSHOT.offset, epoch=SNAPSHOT.epoch),
        aborted_transactions=[],
        records=b"",
    )
    answer = FetchResponse(responses=[topic(topic_id=message.topics[0].topic_id, partitions=[partition])])
    rig.reply(connection, header, answer)
    rig.establish()
    (asking,) = [number for number in rig.outgoing(leader_id) if number != connection]
    return asking


def give(rig: Rig, connection: int, data: bytes = DATA, *, bytes_max: int = 100) -> list[int]:
    """Answer every piece that is asked for; their positions."""
    positions = []
    while True:
        requests = [each for each in rig.requests_on(connection) if isinstance(each[1], FetchSnapshotRequest)]
        if not requests:
            return positions
        ((header, message),) = requests
        positions.append(give_one(rig, connection, header, message, data, bytes_max))


def give_one(rig: Rig, connection: int, header: Any, message: Message, data: bytes, bytes_max: int) -> int:
    assert isinstance(message, FetchSnapshotRequest)
    wanted = message.topics[0].partitions[0]
    topic = FetchSnapshotResponse.TopicSnapshot
    part = topic.PartitionSnapshot(
        snapshot_id=topic.PartitionSnapshot.SnapshotId(end_offset=SNAPSHOT.offset, epoch=SNAPSHOT.epoch),
        current_leader=topic.PartitionSnapshot.LeaderIdAndEpoch(leader_id=2, leader_epoch=5),
        size=len(data),
        position=wanted.position,
        unaligned_records=data[wanted.position : wanted.position + bytes_max],
    )
    topics = [topic(name=message.topics[0].name, partitions=[part])]
    rig.reply(connection, header, FetchSnapshotResponse(topics=topics))
    return wanted.position


def test_a_follower_copies_the_snapshot_and_goes_on_behind_it() -> None:
    rig = Rig(1, 2, 3)
    positions = give(rig, offered(rig))
    assert positions == list(range(0, len(DATA), 100))
    assert (rig.log.start_offset, rig.log.end_offset, rig.log.flushed_end) == (50, 50, 50)
    assert rig.replica.high_watermark == 50
    assert rig.replica.raft.voters == VOTERS
    rig.establish()
    link = rig.shell._fetch_link
    assert link is not None
    ((_, message),) = rig.requests_on(link.connection)
    assert isinstance(message, FetchRequest)
    partition = message.topics[0].partitions[0]
    assert (partition.fetch_offset, partition.last_fetched_epoch, partition.high_watermark) == (50, 3, 50)


def test_what_it_had_is_gone_and_what_follows_is_appended() -> None:
    rig = Rig(1, 2, 3)
    rig.log.append_batch(value_batch(0, 1), base_offset=0, next_offset=1, epoch=1, timestamp_ms=1)
    rig.log.request_flush()
    rig.sync()
    give(rig, offered(rig), bytes_max=10_000)
    rig.establish()
    link = rig.shell._fetch_link
    assert link is not None
    ((header, _),) = rig.requests_on(link.connection)
    records = value_batch(50, 5)
    frame = fetch_response(header.correlation_id, records, leader_id=2, high_watermark=51)
    rig.replica.on_frame(link.connection, frame, rig.now_us)
    rig.sync()
    assert rig.log.end_offset == 51
    assert rig.log.read(50, 1000) == records
    assert rig.replica.high_watermark == 51


def test_a_damaged_snapshot_is_not_installed_and_asked_for_again() -> None:
    rig = Rig(1, 2, 3)
    damaged = bytearray(DATA)
    damaged[-3] ^= 1
    give(rig, offered(rig), bytes(damaged), bytes_max=10_000)
    assert rig.log.end_offset == 0
    assert not rig.replica.stopped
    rig.pass_time(rig.config.retry_backoff_us + 1)
    rig.establish()
    link = rig.shell._fetch_link
    assert link is not None
    ((_, message),) = rig.requests_on(link.connection)
    assert isinstance(message, FetchRequest)
    assert message.topics[0].partitions[0].fetch_offset == 0


def test_a_log_that_begins_behind_a_snapshot_knows_its_voters_from_there() -> None:
    rig = Rig(9, 8, files={checkpoint_path(SNAPSHOT): DATA})
    assert (rig.log.start_offset, rig.replica.raft.voters) == (50, VOTERS)
    assert rig.replica.raft.describe().kraft_version == 1


# --- the leader's side ------------------------------------------------------------------------------------------------


def asking(position: int, epoch: int, max_bytes: int = 100) -> FetchSnapshotRequest:
    topic = FetchSnapshotRequest.TopicSnapshot
    partition = topic.PartitionSnapshot(
        current_leader_epoch=epoch,
        snapshot_id=topic.PartitionSnapshot.SnapshotId(end_offset=SNAPSHOT.offset, epoch=SNAPSHOT.epoch),
        position=position,
    )
    topics = [topic(name="__cluster_metadata", partitions=[partition])]
    return FetchSnapshotRequest(cluster_id=CLUSTER, replica_id=2, max_bytes=max_bytes, topics=topics)


def test_a_leader_sends_who_is_too_far_behind_to_its_snapshot_and_serves_it() -> None:
    rig = Rig(files={checkpoint_path(SNAPSHOT): DATA})
    rig.lead()
    follower, epoch = rig.accept(), rig.replica.raft.epoch
    rig.fetch(follower, 2, 0)
    (answer,) = rig.answers(follower)
    named = partition_of(answer).snapshot_id
    assert (named.end_offset, named.epoch) == SNAPSHOT
    copied = b""
    while len(copied) < len(DATA):
        rig.ask(follower, asking(len(copied), epoch), 1)
        (piece,) = rig.answers(follower)
        assert isinstance(piece, FetchSnapshotResponse)
        part = piece.topics[0].partitions[0]
        assert (part.error_code, part.size, part.position) == (0, len(DATA), len(copied))
        copied += part.unaligned_records
    assert copied == DATA


def test_who_has_the_snapshot_is_served_from_the_log_behind_it() -> None:
    rig = Rig(files={checkpoint_path(SNAPSHOT): DATA})
    rig.lead()
    follower = rig.accept()
    rig.fetch(follower, 2, 50, last_epoch=3)
    (answer,) = rig.answers(follower)
    assert rig.kernels.batch_headers(partition_of(answer).records or b"")[0].base_offset == 50


def test_a_consumer_that_is_too_far_behind_hears_of_the_snapshot_too() -> None:
    rig = Rig(files={checkpoint_path(SNAPSHOT): checkpoint(load("pure"), SNAPSHOT)}, kind=LogKind.METADATA)
    rig.lead()
    for offset, named in ((0, SNAPSHOT), (rig.log.end_offset + 1, OffsetAndEpoch(-1, -1))):
        topic = FetchRequest.FetchTopic
        partition = topic.FetchPartition(fetch_offset=offset, partition_max_bytes=1 << 20)
        request = FetchRequest(topics=[topic(topic_id=METADATA_TOPIC_ID, partitions=[partition])])
        answer = partition_of(rig.answer_to(FetchResponse, request, 13))
        assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert (answer.snapshot_id.end_offset, answer.snapshot_id.epoch) == named
