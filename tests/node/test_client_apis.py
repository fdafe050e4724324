"""The client APIs: produce checks, fetches that wait, offsets, order of answers, and who is named as the leader."""

from typing import Any

import pytest

from fastquorum.config import MS, QuorumConfig
from fastquorum.kernels import Attribute, Compression, Header, Record, load
from fastquorum.node.clients.fetch import SLICE_BYTES, SLICE_FETCHES
from fastquorum.node.clients.parked_fetches import STALE_MIN
from fastquorum.node.clients.produce import CONTENT_BYTES_MAX, METADATA_RECORDS_MAX, SWEEP_MIN
from fastquorum.node.clients.server import api_versions
from fastquorum.node.lane.fences import FIRST_EPOCHS, fence_batch
from fastquorum.node.lane.producer_states import NAMED
from fastquorum.node.network.requests import UNANSWERED_MAX
from fastquorum.raft import events as ev
from fastquorum.storage.identity import LogKind
from fastquorum.types import METADATA_TOPIC_ID, Uuid
from fastquorum.wire import API, ApiKey, ErrorCode, Message
from fastquorum.wire.messages.fetch import FetchRequest, FetchResponse
from fastquorum.wire.messages.handshake import ApiVersionsRequest, ApiVersionsResponse
from fastquorum.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from fastquorum.wire.messages.metadata import MetadataRequest, MetadataResponse
from fastquorum.wire.messages.produce import ProduceRequest, ProduceResponse
from fastquorum.wire.messages.quorum import VoteRequest
from fastquorum.wire.messages.quorum_admin import DescribeQuorumRequest
from fastquorum.wire.messages.snapshot import FetchSnapshotRequest
from fastquorum.wire.records.cluster import NoOpRecord
from fastquorum.wire.records.metadata import encode_metadata_record
from tests.node.rig import TOPIC, WALL_CLOCK_MS, Rig, partition_of

NO_OP = encode_metadata_record(NoOpRecord(), 0)
ProducePartition = ProduceResponse.TopicProduceResponse.PartitionProduceResponse


def batch(rig: Rig, *values: bytes) -> bytes:
    """Return a batch as a client would send it."""
    return rig.kernels.encode_values(values or (b"x",), base_offset=0, leader_epoch=0, timestamp_ms=1_000)


def produce(records: bytes | None, *, topic: str = TOPIC, acks: int = -1, timeout_ms: int = 1_000) -> ProduceRequest:
    data = ProduceRequest.TopicProduceData
    partition = data.PartitionProduceData(index=0, records=records)
    return ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=[data(name=topic, partition_data=[partition])])


def produced(answer: Any) -> ProducePartition:
    assert isinstance(answer, ProduceResponse)
    return answer.responses[0].partition_responses[0]


def refusal(rig: Rig, records: bytes, *, topic: str = TOPIC) -> ErrorCode:
    """NONE if the batch was appended, and waits for its commit."""
    client = rig.accept()
    rig.ask(client, produce(records, topic=topic), 9)
    found = rig.answers(client)
    return ErrorCode(produced(found[0]).error_code) if found else ErrorCode.NONE


def describe_quorum() -> Message:
    topic = DescribeQuorumRequest.TopicData
    return DescribeQuorumRequest(
        topics=[topic(topic_name="__cluster_metadata", partitions=[topic.PartitionData(partition_index=0)])]
    )


def fetch(offset: int, *, wait_ms: int = 500, min_bytes: int = 1, topic: str = TOPIC, epoch: int = -1) -> FetchRequest:
    partition = FetchRequest.FetchTopic.FetchPartition(
        fetch_offset=offset, partition_max_bytes=1 << 20, current_leader_epoch=epoch
    )
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=min_bytes,
        max_bytes=1 << 20,
        topics=[FetchRequest.FetchTopic(topic=topic, partitions=[partition])],
    )


def offset_at(
    rig: Rig, timestamp_ms: int, version: int = 7
) -> ListOffsetsResponse.ListOffsetsTopicResponse.ListOffsetsPartitionResponse:
    topic = ListOffsetsRequest.ListOffsetsTopic
    partition = topic.ListOffsetsPartition(partition_index=0, timestamp=timestamp_ms)
    request = ListOffsetsRequest(replica_id=-1, topics=[topic(name=TOPIC, partitions=[partition])])
    return rig.answer_to(ListOffsetsResponse, request, version).topics[0].partitions[0]


# --- produce ----------------------------------------------------------------------------------------------------------


def test_a_produce_is_answered_when_it_is_committed() -> None:
    rig = Rig(1, 2, 3).lead()
    client, follower = rig.accept(), rig.accept()
    rig.ask(client, produce(batch(rig, b"a", b"b")), 9)
    rig.sync()
    assert rig.answers(client) == []
    rig.fetch(follower, 2, 1)
    rig.fetch(follower, 2, 3)
    (answer,) = rig.answers(client)
    assert (produced(answer).error_code, produced(answer).base_offset) == (0, 1)


def test_a_produce_that_is_not_committed_in_time_says_so() -> None:
    rig = Rig(1, 2, 3).lead()
    client = rig.accept()
    rig.ask(client, produce(batch(rig), timeout_ms=100), 9)
    rig.pass_time(99 * MS)
    assert rig.answers(client) == []
    rig.pass_time(2 * MS)
    (answer,) = rig.answers(client)
    assert produced(answer).error_code == ErrorCode.REQUEST_TIMED_OUT


def test_answered_produces_are_let_go_of_though_their_deadline_is_far() -> None:
    rig = Rig(1, 2, 3).lead()
    follower, client = rig.accept(), rig.accept()
    for number in range(3 * SWEEP_MIN):
        rig.ask(client, produce(batch(rig), timeout_ms=2**31 - 1), 9)
        rig.ask(client, produce(batch(rig), timeout_ms=1_000), 9)
        rig.sync()
        rig.fetch(follower, 2, 1 + 2 * number)
        assert len(rig.replica._clients._produces._deadlines) <= 2 * SWEEP_MIN
    assert rig.replica._clients.deadline_us >= 0


def test_a_produce_without_acks_is_appended_and_never_answered() -> None:
    rig = Rig().lead()
    client = rig.accept()
    rig.ask(client, produce(batch(rig), acks=0), 9)
    rig.sync()
    assert rig.answers(client) == []
    assert rig.replica.high_watermark == 2


def damaged(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda data: None, ErrorCode.INVALID_RECORD),
        (lambda data: b"", ErrorCode.INVALID_RECORD),
        (damaged, ErrorCode.CORRUPT_MESSAGE),
        (lambda data: data[:-1], ErrorCode.INVALID_RECORD),
        (lambda data: data[:10], ErrorCode.INVALID_RECORD),
        (lambda data: data + data, ErrorCode.INVALID_RECORD),
        (lambda data: data[:16] + b"\1" + data[17:], ErrorCode.INVALID_RECORD),
        (lambda data: data[:16] + b"\3" + data[17:], ErrorCode.CORRUPT_MESSAGE),
        (lambda data: data[:22] + b"\5" + data[23:], ErrorCode.UNKNOWN_SERVER_ERROR),
        (lambda data: data + bytes(10_000), ErrorCode.MESSAGE_TOO_LARGE),
    ],
)
def test_what_is_not_one_good_batch_is_refused_and_changes_nothing(change: Any, code: ErrorCode) -> None:
    rig = Rig(config=QuorumConfig(preallocate_bytes=4096, batch_bytes_max=4_000)).lead()
    answer = rig.answer_to(ProduceResponse, produce(change(batch(rig))), 9)
    assert produced(answer).error_code == code
    assert rig.log.end_offset == 1
    assert rig.shell._appends.records == 0


@pytest.mark.parametrize("attributes", [Attribute.CONTROL, Attribute.TRANSACTIONAL])
def test_control_and_transactional_batches_are_not_taken(attributes: Attribute) -> None:
    rig = Rig().lead()
    data = bytearray(batch(rig))
    data[21:23] = int(attributes).to_bytes(2, "big")
    data[17:21] = rig.kernels.crc32c(bytes(data[21:])).to_bytes(4, "big")
    answer = rig.answer_to(ProduceResponse, produce(bytes(data)), 9)
    assert produced(answer).error_code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("compression", list(Compression)[1:])
def test_a_compressed_batch_holds_no_more_than_one_that_is_not_compressed(compression: Compression) -> None:
    rig = Rig(config=QuorumConfig(preallocate_bytes=4096, batch_bytes_max=1_000_000)).lead()
    place = {"base_offset": 0, "leader_epoch": 0, "timestamp_ms": 1_000, "attributes": compression}
    too_large, largest = (
        rig.kernels.encode_values([bytes(size_bytes)], **place)
        for size_bytes in (CONTENT_BYTES_MAX, CONTENT_BYTES_MAX - 100)
    )
    assert refusal(rig, too_large) == ErrorCode.MESSAGE_TOO_LARGE
    assert refusal(rig, largest) == ErrorCode.NONE


def test_a_marker_with_headers_is_no_fence() -> None:
    rig = Rig().lead()
    batch = fence_batch(rig.kernels, LogKind.USER, producer_id=NAMED, epoch=FIRST_EPOCHS[0], number=1, timestamp_ms=1)
    marker = rig.kernels.decode_records(batch)[0]
    data = bytearray(
        rig.kernels.encode_records(
            [marker._replace(headers=(Header("", None),) * 1_000)],
            base_offset=0,
            leader_epoch=0,
            timestamp_ms=1,
            attributes=Attribute.CONTROL | Attribute.TRANSACTIONAL,
            producer_id=NAMED,
            producer_epoch=FIRST_EPOCHS[0],
        )
    )
    assert refusal(rig, bytes(data)) == ErrorCode.INVALID_RECORD
    assert refusal(rig, batch) == ErrorCode.NONE


@pytest.mark.parametrize(
    "record", [Record(b"no record"), Record(None), Record(NO_OP, b"key"), Record(NO_OP, None, (Header("a", None),))]
)
def test_a_metadata_log_takes_metadata_records_only(record: Record) -> None:
    rig = Rig(kind=LogKind.METADATA).lead()
    data = rig.kernels.encode_records([Record(NO_OP), record], base_offset=0, leader_epoch=0, timestamp_ms=1_000)
    answer = produced(rig.answer_to(ProduceResponse, produce(data, topic="__cluster_metadata"), 9))
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert (answer.error_message or "").startswith("record 1: ")


def test_a_metadata_log_takes_so_many_records_in_one_batch_as_are_quickly_decoded() -> None:
    rig = Rig(kind=LogKind.METADATA).lead()
    too_many, most = (batch(rig, *[NO_OP] * count) for count in (METADATA_RECORDS_MAX + 1, METADATA_RECORDS_MAX))
    assert refusal(rig, too_many, topic="__cluster_metadata") == ErrorCode.MESSAGE_TOO_LARGE
    assert refusal(rig, most, topic="__cluster_metadata") == ErrorCode.NONE


@pytest.mark.parametrize(
    ("request_", "kind"), [(produce(b"x", topic="other"), ProduceResponse), (fetch(0, topic="other"), FetchResponse)]
)
def test_another_topic_is_unknown(request_: Any, kind: Any) -> None:
    answer = Rig().lead().answer_to(kind, request_, 9)
    found = produced(answer) if kind is ProduceResponse else partition_of(answer)
    assert found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_produce_that_the_lead_ends_under_is_sent_away() -> None:
    rig = Rig(1, 2, 3).lead()
    client = rig.accept()
    rig.ask(client, produce(batch(rig)), 9)
    rig.replica.request(ev.DiskStalled(), rig.now_us)
    (answer,) = rig.answers(client)
    assert produced(answer).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


# --- fetch ------------------------------------------------------------------------------------------------------------


def test_a_fetch_never_shows_what_is_not_committed() -> None:
    rig = Rig(1, 2, 3).lead()
    follower = rig.accept()
    rig.fetch(follower, 2, 1)
    rig.append(b"uncommitted")
    rig.sync()
    consumer = rig.accept()
    rig.ask(consumer, fetch(1, wait_ms=0), 12)
    (answer,) = rig.answers(consumer)
    assert partition_of(answer).records == b""
    assert partition_of(answer).high_watermark == 1


def test_a_fetch_waits_for_min_bytes_and_no_longer_than_max_wait() -> None:
    rig = Rig().lead()
    consumer = rig.accept()
    rig.ask(consumer, fetch(1, wait_ms=300, min_bytes=10_000), 12)
    rig.append(b"a little")
    rig.sync()
    rig.pass_time(299 * MS)
    assert rig.answers(consumer) == []
    rig.pass_time(2 * MS)
    (answer,) = rig.answers(consumer)
    assert b"a little" in (partition_of(answer).records or b"")


def test_a_fetch_is_answered_by_the_commit_that_it_waits_for() -> None:
    rig = Rig().lead()
    consumer = rig.accept()
    rig.ask(consumer, fetch(1), 12)
    rig.append(b"here")
    assert rig.answers(consumer) == []
    rig.sync()
    assert b"here" in (partition_of(rig.answers(consumer)[0]).records or b"")


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (fetch(99), ErrorCode.OFFSET_OUT_OF_RANGE),
        (fetch(-1), ErrorCode.OFFSET_OUT_OF_RANGE),
        (fetch(0, epoch=0), ErrorCode.FENCED_LEADER_EPOCH),
        (fetch(0, epoch=9), ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_a_fetch_that_cannot_be_served_is_answered_at_once(message: FetchRequest, code: ErrorCode) -> None:
    answer = Rig().lead().answer_to(FetchResponse, message, 12)
    assert partition_of(answer).error_code == code


def test_a_waiting_fetch_is_sent_away_when_the_lead_ends() -> None:
    rig = Rig(1, 2, 3).lead()
    rig.fetch(rig.accept(), 2, 1)
    consumer = rig.accept()
    rig.ask(consumer, fetch(1), 12)
    rig.replica.request(ev.DiskStalled(), rig.now_us)
    (answer,) = rig.answers(consumer)
    assert partition_of(answer).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_waiting_fetch_whose_connection_is_gone_is_forgotten() -> None:
    rig = Rig().lead()
    consumer = rig.accept()
    rig.ask(consumer, fetch(1), 12)
    rig.replica.on_disconnected(consumer, rig.now_us)
    assert rig.replica._clients.deadline_us == -1
    assert not rig.replica.connections.requests._waiting


def count_reads(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Where the log is read from now on."""
    reads: list[int] = []
    read = rig.log.read

    def counted(offset: int, bytes_max: int) -> bytes:
        reads.append(offset)
        return read(offset, bytes_max)

    monkeypatch.setattr(rig.log, "read", counted)
    return reads


def test_commits_that_are_not_enough_for_a_waiting_fetch_read_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig().lead()
    consumer = rig.accept()
    reads = count_reads(rig, monkeypatch)
    for wait_ms in (1 << 30, 300):
        rig.ask(consumer, fetch(0, wait_ms=wait_ms, min_bytes=5_000), 12)
    for _ in range(4):
        rig.append(bytes(1_000))
        rig.sync()
    assert not reads
    assert rig.answers(consumer) == []
    rig.append(bytes(1_000))
    rig.sync()
    assert reads == [0, 0]
    sizes = [len(partition_of(answer).records or b"") for answer in rig.answers(consumer)]
    assert len(sizes) == 2
    assert min(sizes) >= 5_000


@pytest.mark.parametrize("limit", ["max_bytes", "partition_max_bytes"])
def test_a_fetch_waits_for_no_more_than_one_answer_can_carry(limit: str) -> None:
    rig = Rig().lead()
    consumer = rig.accept()
    request = fetch(1, wait_ms=1 << 30, min_bytes=(1 << 31) - 1)
    setattr(request if limit == "max_bytes" else request.topics[0].partitions[0], limit, 2_000)
    rig.ask(consumer, request, 12)
    rig.append(bytes(1_500))
    rig.sync()
    assert rig.answers(consumer) == []
    rig.append(bytes(1_500))
    rig.sync()
    (answer,) = rig.answers(consumer)
    assert len(partition_of(answer).records or b"") > 1_500


def test_a_fetch_from_a_segment_that_has_ended_does_not_wait_for_more() -> None:
    """One answer carries records of one segment."""
    rig = Rig(config=QuorumConfig(preallocate_bytes=4096, segment_bytes=4_000)).lead()
    consumer = rig.accept()
    rig.ask(consumer, fetch(1, wait_ms=1 << 30, min_bytes=100_000), 12)
    rig.append(bytes(3_000))
    rig.sync()
    assert rig.answers(consumer) == []
    rig.append(bytes(3_000))
    rig.sync()
    (answer,) = rig.answers(consumer)
    assert len(partition_of(answer).records or b"") > 3_000
    rig.ask(consumer, fetch(1, wait_ms=1 << 30, min_bytes=100_000), 12)
    assert len(rig.answers(consumer)) == 1


def test_consumers_of_one_commit_are_answered_a_few_at_a_time() -> None:
    rig = Rig().lead()
    consumers = [rig.accept() for _ in range(300)]
    for consumer in consumers:
        rig.ask(consumer, fetch(1), 12)
    rig.append(b"for all of them")
    rig.sync()
    answered = [len(rig.answers(each)) for each in consumers]
    assert 0 < sum(answered) <= SLICE_FETCHES
    assert rig.replica.deadline_us <= rig.now_us, "the others are answered as soon as the thread has looked around"
    for _ in range(300):
        rig.replica.on_tick(rig.now_us)
    assert [a + len(rig.answers(each)) for a, each in zip(answered, consumers, strict=True)] == [1] * 300


def test_large_answers_are_made_a_few_at_a_time_however_many_ask_at_once() -> None:
    rig = Rig().lead()
    rig.append(bytes(SLICE_BYTES // 4))
    rig.sync()
    consumers = [rig.accept() for _ in range(40)]
    for consumer in consumers:
        rig.ask(consumer, fetch(1, wait_ms=0), 12)
    answered = [len(rig.answers(each)) for each in consumers]
    assert sum(answered) == 4, "the log is not read for all of them while the quorum waits"
    assert rig.replica.deadline_us <= rig.now_us, "the others are answered as soon as the thread has looked around"
    for _ in range(40):
        rig.replica.on_tick(rig.now_us)
    assert [a + len(rig.answers(each)) for a, each in zip(answered, consumers, strict=True)] == [1] * 40


def test_fetches_that_were_answered_leave_nothing_though_their_deadlines_are_far() -> None:
    rig = Rig().lead()
    consumer = rig.accept()
    parked = rig.replica._clients._fetches._parked
    for number in range(1, 2 * STALE_MIN):
        rig.ask(consumer, fetch(number, wait_ms=(1 << 31) - 1), 12)
        rig.append(b"x")
        rig.sync()
    assert len(rig.answers(consumer)) == 2 * STALE_MIN - 1
    assert len(parked._by_deadline) <= STALE_MIN + 1
    assert len(parked._by_size) <= STALE_MIN + 1
    assert not parked._of


# --- who leads --------------------------------------------------------------------------------------------------------


def test_a_follower_names_the_leader_and_where_it_listens() -> None:
    rig = Rig(1, 2, 3)
    rig.follow(leader_id=2, epoch=5)
    answer = rig.answer_to(FetchResponse, fetch(0, topic=""), 16)
    assert partition_of(answer).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    request = fetch(0, topic="")
    request.topics[0].topic_id = rig.replica._clients.context.topic_id
    answer = rig.answer_to(FetchResponse, request, 16)
    assert partition_of(answer).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition_of(answer).current_leader.leader_id == 2
    assert [(each.node_id, each.host, each.port) for each in answer.node_endpoints] == [(2, "host2", 9002)]
    refused = rig.answer_to(ProduceResponse, produce(batch(rig)), 10)
    assert produced(refused).current_leader.leader_id == 2
    assert [each.node_id for each in refused.node_endpoints] == [2]


def test_metadata_shows_the_voters_the_topic_and_its_leader() -> None:
    rig = Rig(1, 2, 3)
    rig.follow(leader_id=2, epoch=5)
    answer = rig.answer_to(MetadataResponse, MetadataRequest(topics=None), 12)
    assert [(each.node_id, each.host) for each in answer.brokers] == [(1, "host1"), (2, "host2"), (3, "host3")]
    (topic,) = answer.topics
    assert (topic.name, topic.partitions[0].leader_id, topic.partitions[0].leader_epoch) == (TOPIC, 2, 5)
    assert topic.topic_id not in (Uuid(), METADATA_TOPIC_ID)


def test_without_a_leader_metadata_says_so() -> None:
    answer = Rig(1, 2, 3).answer_to(MetadataResponse, MetadataRequest(topics=None), 12)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.LEADER_NOT_AVAILABLE


# --- offsets ----------------------------------------------------------------------------------------------------------


def test_offsets_are_listed_by_position_and_by_time() -> None:
    rig = Rig().lead()
    rig.append(b"a", b"b")
    rig.sync()
    assert offset_at(rig, -1).offset == 3
    assert offset_at(rig, -2).offset == 0
    found = offset_at(rig, WALL_CLOCK_MS)
    assert (found.offset, found.timestamp, found.leader_epoch) == (0, WALL_CLOCK_MS, 1)
    assert offset_at(rig, WALL_CLOCK_MS + 1).offset == -1
    assert offset_at(rig, -9).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_a_clients_batch_is_found_by_the_time_that_its_producer_wrote() -> None:
    """Not by the time at which it came."""
    rig = Rig().lead()
    later_ms = WALL_CLOCK_MS + 5_000
    client = rig.accept()
    rig.ask(client, produce(rig.kernels.encode_values([b"x"], base_offset=0, leader_epoch=0, timestamp_ms=later_ms)), 9)
    rig.append(b"y")
    rig.sync()
    for timestamp_ms in (WALL_CLOCK_MS + 1, later_ms, -3):
        found = offset_at(rig, timestamp_ms)
        assert (found.error_code, found.offset, found.timestamp) == (0, 1, later_ms)


@pytest.mark.parametrize(
    ("timestamp", "version", "offset"),
    [
        (-4, 8, 0),
        (-5, 9, -1),
        (-6, 11, -1),
        (-3, 6, None),
        (-4, 7, None),
        (-5, 8, None),
        (-6, 10, None),
        (-7, 11, None),
    ],
)
def test_nothing_is_tiered_and_what_a_version_cannot_ask_is_refused(
    timestamp: int, version: int, offset: int | None
) -> None:
    found = offset_at(Rig().lead(), timestamp, version)
    if offset is None:
        assert found.error_code == ErrorCode.UNSUPPORTED_VERSION
    else:
        assert (found.error_code, found.offset) == (0, offset)


def test_a_produce_that_names_a_partition_twice_appends_nothing() -> None:
    rig = Rig().lead()
    end_offset = rig.log.end_offset
    request = produce(batch(rig))
    request.topic_data *= 2
    answer = rig.answer_to(ProduceResponse, request, 12)
    codes = [each.error_code for topic in answer.responses for each in topic.partition_responses]
    assert codes == [ErrorCode.INVALID_REQUEST] * 2
    assert rig.log.end_offset == end_offset


def test_a_partition_whose_offset_is_asked_for_twice_is_refused() -> None:
    """Kafka refuses it, too; hundreds of thousands of looks into the log fit into one request."""
    topic = ListOffsetsRequest.ListOffsetsTopic
    first, other = topic.ListOffsetsPartition(timestamp=1), topic.ListOffsetsPartition(partition_index=1, timestamp=1)
    request = ListOffsetsRequest(
        replica_id=-1, topics=[topic(name=TOPIC, partitions=[first, other]), topic(name=TOPIC, partitions=[first])]
    )
    found = Rig().lead().answer_to(ListOffsetsResponse, request, 7)
    assert [[each.error_code for each in topic.partitions] for topic in found.topics] == [
        [ErrorCode.INVALID_REQUEST, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
        [ErrorCode.INVALID_REQUEST],
    ]


def test_of_a_partition_that_is_fetched_twice_the_last_counts_and_is_answered_once() -> None:
    """Thousands of times the same would be as many looks into the log, whenever a record is committed."""
    rig = Rig().lead()
    client = rig.accept()
    twice = fetch(0, min_bytes=1 << 20)
    twice.topics += [fetch(1 << 40).topics[0], fetch(rig.replica.high_watermark, min_bytes=1 << 20).topics[0]]
    rig.ask(client, twice, 12)
    assert rig.answers(client) == [], "there is nothing to read from where the last one begins"
    rig.append(b"x")
    rig.sync()
    rig.pass_time(500 * MS)
    (answer,) = rig.answers(client)
    assert isinstance(answer, FetchResponse)
    assert [len(topic.partitions) for topic in answer.responses] == [1]
    found = load("native").batch_headers(partition_of(answer).records or b"")
    assert [each.base_offset for each in found] == [1]


def test_offsets_end_at_the_high_watermark() -> None:
    rig = Rig(1, 2, 3).lead()
    rig.fetch(rig.accept(), 2, 1)
    rig.append(b"uncommitted")
    rig.sync()
    assert offset_at(rig, -1).offset == 1


# --- the connection ---------------------------------------------------------------------------------------------------


def test_answers_leave_in_the_order_of_the_requests() -> None:
    rig = Rig().lead()
    client = rig.accept()
    first = rig.ask(client, fetch(1), 12)
    second = rig.ask(client, MetadataRequest(topics=None), 12)
    third = rig.ask(client, ApiVersionsRequest(), 3)
    assert rig.answers(client) == []
    rig.append(b"x")
    rig.sync()
    assert [number for number, _ in rig.numbered_answers(client)] == [first, second, third]


@pytest.mark.parametrize(
    ("raft_request", "version"),
    [(describe_quorum(), 2), (VoteRequest(cluster_id="another"), 1), (FetchSnapshotRequest(), 0)],
)
def test_rafts_answers_wait_for_those_to_what_was_asked_before(raft_request: Message, version: int) -> None:
    rig = Rig().lead()
    client = rig.accept()
    numbers = [rig.ask(client, fetch(1), 12), rig.ask(client, raft_request, version)]
    assert rig.answers(client) == []
    rig.append(b"x")
    rig.sync()
    assert [number for number, _ in rig.numbered_answers(client)] == numbers


def test_a_voters_fetch_that_the_lane_answers_is_owed_nothing_by_anybody_else() -> None:
    rig = Rig(1, 2, 3).lead()
    voter = rig.accept()
    rig.fetch(voter, 2, 1)
    assert (len(rig.replica.connections.requests), rig.replica.connections.requests.kept_bytes) == (0, 0)


def test_a_client_that_leaves_too_much_unanswered_is_hung_up_on() -> None:
    rig = Rig().lead()
    client = rig.accept()
    for _ in range(UNANSWERED_MAX):
        rig.ask(client, fetch(1), 12)
    assert client in rig.transport.open
    rig.ask(client, fetch(1), 12)
    assert client not in rig.transport.open
    assert len(rig.replica.connections.requests) == 0


def test_an_api_that_is_not_served_closes_the_connection_without_an_answer() -> None:
    rig = Rig().lead()
    client = rig.accept()
    rig.replica.on_frame(client, bytes.fromhex("0013 0007 00000001 ffff 00 01 00000000 00 00"), rig.now_us)
    assert client not in rig.transport.open
    assert rig.transport.sent[client] == []


@pytest.mark.parametrize("leads", [True, False])
@pytest.mark.parametrize("api_key", [ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.METADATA])
def test_every_version_is_answered_by_a_leader_and_by_a_follower(api_key: ApiKey, leads: bool) -> None:
    rig = Rig().lead() if leads else Rig(1, 2, 3)
    if not leads:
        rig.follow()
    topic_id = rig.replica._clients.context.topic_id
    versions = API[api_key].versions
    for version in range(versions.first, versions.last + 1):
        client = rig.accept()
        rig.ask(client, some_request(rig, api_key, version, topic_id), version)
        rig.sync()
        rig.pass_time(10 * MS)
        assert len(rig.answers(client)) == 1, f"version {version}"


@pytest.mark.parametrize("version", [3, 9, 12])
def test_what_waits_when_the_lead_ends_is_answered_in_every_version(version: int) -> None:
    rig = Rig(1, 2, 3).lead()
    rig.fetch(rig.accept(), 2, 1)
    clients = [rig.accept(), rig.accept()]
    rig.ask(clients[0], produce(batch(rig)), version)
    rig.ask(clients[1], fetch(1), max(version, 4))
    rig.replica.request(ev.DiskStalled(), rig.now_us)
    assert [len(rig.answers(client)) for client in clients] == [1, 1]


def some_request(rig: Rig, api_key: ApiKey, version: int, topic_id: Uuid) -> Message:
    if api_key == ApiKey.PRODUCE:
        message = produce(batch(rig), topic=TOPIC if version < 13 else "")
        message.topic_data[0].topic_id = topic_id if version >= 13 else Uuid()
        return message
    if api_key == ApiKey.FETCH:
        request = fetch(0, wait_ms=5, topic=TOPIC if version < 13 else "")
        request.topics[0].topic_id = topic_id if version >= 13 else Uuid()
        return request
    if api_key == ApiKey.LIST_OFFSETS:
        topic = ListOffsetsRequest.ListOffsetsTopic
        return ListOffsetsRequest(
            replica_id=-1, topics=[topic(name=TOPIC, partitions=[topic.ListOffsetsPartition(timestamp=-2)])]
        )
    return MetadataRequest(topics=None if version else [])


# --- ApiVersions ------------------------------------------------------------------------------------------------------


def test_api_versions_tells_features_as_kafka_does() -> None:
    answer = api_versions(4, kraft_version=1, committed=6)
    assert [(each.name, each.min_version, each.max_version) for each in answer.supported_features] == [
        ("kraft.version", 0, 1)
    ]
    assert [(each.name, each.max_version_level) for each in answer.finalized_features] == [("kraft.version", 1)]
    assert answer.finalized_features_epoch == 6
    answer = api_versions(3, kraft_version=1, committed=6)
    assert answer.supported_features == [], "a client of version 3 cannot read of a level 0"
    assert [(each.name, each.max_version_level) for each in answer.finalized_features] == [("kraft.version", 1)]


def test_a_quorum_of_static_voters_has_no_level_to_tell() -> None:
    rig = Rig().lead()
    rig.append(b"committed")
    rig.sync()
    answer = rig.answer_to(ApiVersionsResponse, ApiVersionsRequest(), 4)
    assert answer.finalized_features == []
    assert answer.finalized_features_epoch == rig.replica.high_watermark - 1 == 1
    answer = rig.answer_to(ApiVersionsResponse, ApiVersionsRequest(), 2)
    assert (answer.supported_features, answer.finalized_features_epoch) == ([], -1)
