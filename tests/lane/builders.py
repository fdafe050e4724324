"""A lane with an in-memory log, and Fetch frames made and read by wire/: what the scenarios are told with."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fastquorum.kernels import Buffer, Kernels, Record
from fastquorum.kernels.lane import (
    Advanced,
    FetchAdmission,
    FollowerSession,
    HandUp,
    Lane,
    LaneIdentity,
    LaneLog,
    LaneTimeouts,
    LeaderSession,
    Output,
    Send,
)
from fastquorum.kernels.pure import batch_headers, crc32c, encode_records, encode_values, slice_batches
from fastquorum.types import METADATA_TOPIC_ID, TOPIC_NAME, ZERO_UUID, Endpoint, ReplicaKey, Uuid
from fastquorum.wire import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    request_header,
)
from fastquorum.wire.messages.fetch import FetchRequest, FetchResponse

CLUSTER = "zQ7x5mD8TGWqnRrxVv1bJg"
CONTROL = 0x20
GZIP = 0x01
RECORDS_MAX = 2**31 - 1
"""That a batch's header can count; its offsets may be one more."""
Partition = FetchResponse.FetchableTopicResponse.PartitionData

LaneMaker = Callable[[LaneIdentity, LaneLog, int], Lane]


def key(node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, Uuid(bytes([node_id]) * 16))


class Batch(NamedTuple):
    base_offset: int
    next_offset: int
    epoch: int
    data: bytes


class MemoryLog:
    """LaneLog in memory: what is written, what is synced; one sync at a time, its end sampled when it began."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.start_offset = 0
        self.flushed_end = 0
        """What the log says is synced; `durable_end` is what a crash leaves, whatever it says."""
        self.durable_end = 0
        self.generation = 0
        self.syncing: tuple[int, int] | None = None
        self.begun = (0, 0)
        self.sync_again = False
        self.record_room: int | None = None
        """How many more records the segment in use takes; None: any number."""

    @property
    def end_offset(self) -> int:
        return self.batches[-1].next_offset if self.batches else self.start_offset

    @property
    def last_epoch(self) -> int:
        return self.batches[-1].epoch if self.batches else 0

    @property
    def is_flushing(self) -> bool:
        return self.syncing is not None

    def fits(self, size_bytes: int, record_count: int) -> bool:
        return self.record_room is None or record_count <= self.record_room

    def append_batch(self, batch: Buffer, *, base_offset: int, next_offset: int, epoch: int, timestamp_ms: int) -> None:
        assert base_offset == self.end_offset, f"written at {base_offset}, the log ends at {self.end_offset}"
        assert epoch >= self.last_epoch
        data = bytes(batch)
        headers = batch_headers(data)
        assert sum(header.size_bytes for header in headers) == len(data)
        assert headers[-1].last_offset + 1 == next_offset
        for header in headers:
            assert header.crc_valid
            assert header.leader_epoch == epoch
            part = data[header.position : header.position + header.size_bytes]
            self.batches.append(Batch(header.base_offset, header.last_offset + 1, epoch, part))
        assert self.batches[-1].next_offset == next_offset

    def read(self, offset: int, bytes_max: int) -> bytes:
        data = b"".join(batch.data for batch in self.batches if batch.next_offset > offset)
        start, end = slice_batches(data, offset, bytes_max)
        return data[start:end]

    def request_flush(self) -> None:
        if self.syncing is None:
            self.syncing = self.begun = (self.generation, self.end_offset)
        else:
            self.sync_again = True

    def finish_sync(self) -> tuple[int, int]:
        """The sync under way ends well; what the log then tells the lane."""
        assert self.syncing is not None
        generation, end = self.syncing
        if self.begun[0] == self.generation:
            self.durable_end = max(self.durable_end, self.begun[1])
        self.note_synced(generation, end)
        self.syncing = None
        if self.sync_again:
            self.sync_again = False
            self.request_flush()
        return generation, end

    def note_synced(self, generation: int, end: int) -> None:
        if generation == self.generation:
            self.flushed_end = max(self.flushed_end, end)

    def truncate(self, end_offset: int) -> None:
        self.generation += 1
        self.batches = [batch for batch in self.batches if batch.next_offset <= end_offset]
        self.flushed_end = min(self.flushed_end, self.end_offset)
        self.durable_end = min(self.durable_end, self.end_offset)

    def crash(self) -> None:
        """Lose what was not synced."""
        self.truncate(self.durable_end)
        self.flushed_end = self.durable_end
        self.syncing, self.sync_again = None, False

    # --- contents, for scenarios ------------------------------------------------------------------------------------

    def control(self, epoch: int) -> "MemoryLog":
        """A control batch at the end, as a new leader writes it; synced."""
        self.put(control_batch(self.end_offset, epoch))
        return self

    def values(self, epoch: int, count: int = 1) -> "MemoryLog":
        self.put(value_batch(self.end_offset, epoch, count))
        return self

    def put(self, data: bytes) -> None:
        header = batch_headers(data)[0]
        self.append_batch(
            data,
            base_offset=header.base_offset,
            next_offset=header.last_offset + 1,
            epoch=header.leader_epoch,
            timestamp_ms=header.max_timestamp_ms,
        )
        self.flushed_end = self.durable_end = self.end_offset

    @property
    def bytes(self) -> bytes:
        return b"".join(batch.data for batch in self.batches)


def value_batch(base_offset: int, epoch: int, count: int = 1) -> bytes:
    values = [b"value %d" % (base_offset + number) for number in range(count)]
    return encode_values(values, base_offset=base_offset, leader_epoch=epoch, timestamp_ms=1_000)


def crowded_batch(base_offset: int, epoch: int, count: int) -> bytes:
    """So many records in a few bytes, as its header says: those of a compressed batch are not looked at again."""
    batch = bytearray(value_batch(base_offset, epoch))
    batch[21:23] = GZIP.to_bytes(2, "big")
    batch[23:27] = (count - 1).to_bytes(4, "big")
    batch[57:61] = min(count, RECORDS_MAX).to_bytes(4, "big")
    batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4, "big")
    return bytes(batch)


def control_batch(base_offset: int, epoch: int) -> bytes:
    record = Record(value=b"\0\0\0\0\0\1\1\1\0", key=b"\0\0\0\2")
    return encode_records([record], base_offset=base_offset, leader_epoch=epoch, timestamp_ms=1_000, attributes=CONTROL)


# --- frames -----------------------------------------------------------------------------------------------------------


def fetch_request(
    node_id: int,
    offset: int,
    *,
    epoch: int = 5,
    last_epoch: int | None = None,
    version: int = 18,
    correlation_id: int = 1,
    high_watermark: int = 0x7FFF_FFFF_FFFF_FFFF,
    max_wait_ms: int = 500,
    max_bytes: int = 1 << 20,
    cluster_id: str | None = CLUSTER,
    directory_id: Uuid | None = None,
    topic_id: Uuid = METADATA_TOPIC_ID,
    change: Callable[[FetchRequest], None] | None = None,
) -> bytes:
    """A Fetch as Kafka's raft client sends it, written by wire/; `change` makes it unusual."""
    partition = FetchRequest.FetchTopic.FetchPartition(
        current_leader_epoch=epoch,
        fetch_offset=offset,
        last_fetched_epoch=epoch if last_epoch is None else last_epoch,
        replica_directory_id=key(node_id).directory_id if directory_id is None else directory_id,
        high_watermark=high_watermark,
    )
    message = FetchRequest(
        cluster_id=cluster_id,
        max_wait_ms=max_wait_ms,
        max_bytes=max_bytes,
        topics=[FetchRequest.FetchTopic(topic=TOPIC_NAME, topic_id=topic_id, partitions=[partition])],
    )
    if version < 15:
        message.replica_id = node_id
    else:
        message.replica_state.replica_id = node_id
    if change is not None:
        change(message)
    return encode_request(request_header(message, version, correlation_id, f"raft-client-{node_id}"), message)


def fetch_response(
    correlation_id: int,
    records: bytes = b"",
    *,
    high_watermark: int = -1,
    leader_id: int = 1,
    epoch: int = 5,
    version: int = 18,
    topic_id: Uuid = METADATA_TOPIC_ID,
    change: Callable[[FetchResponse], None] | None = None,
) -> bytes:
    """A leader's answer, written by wire/; `change` makes it unusual."""
    partition = Partition(high_watermark=high_watermark, log_start_offset=0, aborted_transactions=[], records=records)
    partition.current_leader = Partition.LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=epoch)
    topic = FetchResponse.FetchableTopicResponse(topic=TOPIC_NAME, topic_id=topic_id, partitions=[partition])
    message = FetchResponse(responses=[topic])
    if change is not None:
        change(message)
    return encode_response(correlation_id, 1, version, message)


class Answer(NamedTuple):
    """What a leader's Send says."""

    connection: int
    correlation_id: int
    high_watermark: int
    records: bytes

    @property
    def offsets(self) -> list[int]:
        """Base offsets of its batches."""
        return [header.base_offset for header in batch_headers(self.records)]


def answers(out: list[Output], version: int = 18) -> list[Answer]:
    """The answers among the outputs, decoded by wire/."""
    found = []
    for send in out:
        if isinstance(send, Send):
            correlation_id, message = decode_response(bytes(send.frame), 1, version)
            assert isinstance(message, FetchResponse)
            partition = message.responses[0].partitions[0]
            assert partition.error_code == 0
            found.append(
                Answer(send.connection, correlation_id, partition.high_watermark, bytes(partition.records or b""))
            )
    return found


class Question(NamedTuple):
    """What a follower's Fetch says."""

    connection: int
    correlation_id: int
    offset: int
    last_epoch: int
    high_watermark: int


def questions(out: list[Output]) -> list[Question]:
    """The Fetches among the outputs, decoded by wire/."""
    found = []
    for send in out:
        if isinstance(send, Send):
            header, message = decode_request(bytes(send.frame))
            assert isinstance(message, FetchRequest)
            (partition,) = message.topics[0].partitions
            found.append(
                Question(
                    send.connection,
                    header.correlation_id,
                    partition.fetch_offset,
                    partition.last_fetched_epoch,
                    partition.high_watermark,
                )
            )
    return found


def advances(out: list[Output]) -> list[int]:
    return [output.high_watermark for output in out if isinstance(output, Advanced)]


def handed_up(out: list[Output]) -> bool:
    return [type(output) for output in out] == [HandUp]


# --- lanes that are open ----------------------------------------------------------------------------------------------


class Leading:
    """Replica 1 leads epoch 5 of voters 1, 2, 3 from `epoch_start`; the peers' connections are 10 times their ids."""

    def __init__(
        self,
        make: LaneMaker,
        *,
        voters: tuple[int, ...] = (1, 2, 3),
        log: MemoryLog | None = None,
        flushed: bool = True,
        batch_bytes_max: int = 1 << 20,
        fetch_wait_us_max: int = 500_000,
        have_directories: bool = True,
    ) -> None:
        """`have_directories`: False for static voters, which are known by their ids alone."""
        self.log = MemoryLog() if log is None else log
        self.epoch_start = self.log.end_offset
        self.log.control(5)
        if not flushed:
            self.log.flushed_end = self.epoch_start
        self.now_us = 1_000
        self.lane = make(LaneIdentity(key(1), CLUSTER, METADATA_TOPIC_ID), self.log, batch_bytes_max)
        self.session = LeaderSession(
            epoch=5,
            voters=tuple(key(voter) if have_directories else ReplicaKey(voter, ZERO_UUID) for voter in voters),
            epoch_start=self.epoch_start,
            high_watermark=-1,
            timeouts=LaneTimeouts(fetch_wait_us_max),
            endpoint=Endpoint("CONTROLLER", "localhost", 9093),
        )
        self.opened = self.lane.open_leader(self.session, self.now_us)
        self.correlation_id = 0
        self.versions: dict[int, int] = {}

    def admit(self, node_id: int, offset: int | None = None, **fields: Any) -> list[Output]:
        """raft/ validated a first Fetch of this peer (at the log's end unless said)."""
        self.correlation_id += 1
        admission = FetchAdmission(
            connection=fields.pop("connection", 10 * node_id),
            correlation_id=self.correlation_id,
            api_version=fields.pop("version", 18),
            peer=key(node_id),
            is_voter=fields.pop("is_voter", key(node_id) in self.session.voters),
            fetch_offset=self.log.end_offset if offset is None else offset,
            request_high_watermark=fields.pop("high_watermark", 0x7FFF_FFFF_FFFF_FFFF),
            max_wait_us=fields.pop("max_wait_us", 500_000),
            bytes_max=fields.pop("bytes_max", 1 << 20),
        )
        assert not fields
        self.versions[node_id] = admission.api_version
        return self.lane.admit(admission, self.now_us)

    def fetch(self, node_id: int, offset: int | None = None, **fields: Any) -> list[Output]:
        """A Fetch frame of this peer arrives (at the log's end unless said)."""
        self.correlation_id += 1
        connection = fields.pop("connection", 10 * node_id)
        fields.setdefault("version", self.versions.get(node_id, 18))
        at = self.log.end_offset if offset is None else offset
        frame = fetch_request(node_id, at, correlation_id=self.correlation_id, **fields)
        return self.lane.on_frame(connection, frame, self.now_us)

    def append(self, *values: bytes) -> tuple[int, list[Output]]:
        return self.lane.append(values or (b"value",), 1_000, self.now_us)

    def sync(self) -> list[Output]:
        """The sync under way ends."""
        return self.lane.on_flushed(*self.log.finish_sync(), self.now_us)

    def tick(self, after_us: int) -> list[Output]:
        self.now_us += after_us
        return self.lane.on_tick(self.now_us)


class Following:
    """Replica 2 follows replica 1 in epoch 5; its log holds the leader's first control batch, synced."""

    def __init__(
        self, make: LaneMaker, *, log: MemoryLog | None = None, attach: bool = True, version: int = 18
    ) -> None:
        self.log = MemoryLog().control(5) if log is None else log
        self.now_us = 1_000
        self.version = version
        self.lane = make(LaneIdentity(key(2), CLUSTER, METADATA_TOPIC_ID), self.log, 1 << 20)
        self.session = FollowerSession(
            epoch=5, leader_id=1, high_watermark=-1, attempt=1, fetch_bytes_max=1 << 20, fetch_wait_us_max=500_000
        )
        out = self.lane.open_follower(self.session, self.now_us)
        assert out == []
        self.questions_seen: list[Question] = []
        if attach:
            self.note(self.lane.attach_leader(70, version, self.now_us))

    def note(self, out: list[Output]) -> list[Output]:
        self.questions_seen += questions(out)
        return out

    def answer(self, records: bytes = b"", *, connection: int = 70, **fields: Any) -> list[Output]:
        """The leader answers the latest Fetch."""
        correlation_id = fields.pop("correlation_id", self.questions_seen[-1].correlation_id)
        frame = fetch_response(correlation_id, records, version=self.version, **fields)
        return self.note(self.lane.on_frame(connection, frame, self.now_us))

    def sync(self) -> list[Output]:
        return self.note(self.lane.on_flushed(*self.log.finish_sync(), self.now_us))


@dataclass
class Make:
    """How lanes are made: which twin, over which kernels."""

    lane: Callable[[LaneIdentity, LaneLog, Kernels, int], Lane]
    kernels: Kernels
    made: list[Lane] = field(default_factory=list)

    def __call__(self, identity: LaneIdentity, log: LaneLog, batch_bytes_max: int) -> Lane:
        lane = self.lane(identity, log, self.kernels, batch_bytes_max)
        self.made.append(lane)
        return lane
