"""What clients do wrong, and the error that Kafka 4.3.0 gives: asked of our leader, and of Kafka itself.

Raw requests by our own codec, so that they can be as wrong as wanted.
"""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from fastquorum.client.connection import Connection, Deadline
from fastquorum.kernels import BATCH_BYTES_MAX, Compression, load
from fastquorum.types import Uuid
from fastquorum.wire import ErrorCode, Message
from fastquorum.wire.messages.fetch import FetchRequest
from fastquorum.wire.messages.list_offsets import ListOffsetsRequest
from fastquorum.wire.messages.metadata import MetadataRequest
from fastquorum.wire.messages.produce import ProduceRequest

TOPIC: Final = "quorum"
OTHER: Final = "another"
OTHER_ID: Final = Uuid(b"another topic id")
ANSWER_S: Final = 30.0
KERNELS: Final = load("native")

MAGIC: Final = slice(16, 17)
CRC: Final = slice(17, 21)
COVERED: Final = 21
"""Where what the checksum covers begins."""
ATTRIBUTES: Final = slice(21, 23)
LAST_OFFSET_DELTA: Final = slice(23, 27)
COUNT: Final = slice(57, 61)

Edit = Callable[[bytearray], None]


# --- batches and requests ---------------------------------------------------------------------------------------------


def batch(
    *values: bytes, producer: tuple[int, int, int] = (-1, -1, -1), compression: Compression = Compression.NONE
) -> bytes:
    """Encode a batch as a client sends it. `producer`: id, epoch, first sequence."""
    producer_id, epoch, sequence = producer
    return KERNELS.encode_values(
        values or (b"one", b"two"),
        base_offset=0,
        leader_epoch=0,
        timestamp_ms=1_795_000_000_000,
        attributes=compression,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
    )


def altered(data: bytes, *edits: Edit, seal: bool = True) -> bytes:
    """Edited, its checksum made right again."""
    changed = bytearray(data)
    for edit in edits:
        edit(changed)
    if seal:
        changed[CRC] = struct.pack(">I", KERNELS.crc32c(bytes(changed[COVERED:])))
    return bytes(changed)


def put(where: slice, layout: str, value: int) -> Edit:
    def edit(data: bytearray) -> None:
        data[where] = struct.pack(layout, value)

    return edit


def flip(position: int) -> Edit:
    def edit(data: bytearray) -> None:
        data[position] ^= 0xFF

    return edit


def produce(
    records: bytes | None, *, topic: str = TOPIC, topic_id: Uuid | None = None, partition: int = 0, acks: int = -1
) -> ProduceRequest:
    data = ProduceRequest.TopicProduceData
    part = data(name=topic, partition_data=[data.PartitionProduceData(index=partition, records=records)])
    if topic_id is not None:
        part.name, part.topic_id = "", topic_id
    return ProduceRequest(acks=acks, timeout_ms=20_000, topic_data=[part])


def fetch(
    offset: int,
    *,
    topic: str = TOPIC,
    topic_id: Uuid | None = None,
    partition: int = 0,
    epoch: int = -1,
    wait_ms: int = 0,
    bytes_max: int = 1 << 20,
) -> FetchRequest:
    wanted = FetchRequest.FetchTopic.FetchPartition(
        partition=partition, fetch_offset=offset, current_leader_epoch=epoch, partition_max_bytes=bytes_max
    )
    part = FetchRequest.FetchTopic(topic=topic, partitions=[wanted])
    if topic_id is not None:
        part.topic, part.topic_id = "", topic_id
    return FetchRequest(
        replica_id=-1, max_wait_ms=wait_ms, min_bytes=1, max_bytes=bytes_max, session_epoch=-1, topics=[part]
    )


def list_offsets(timestamp: int, *, topic: str = TOPIC, partition: int = 0, epoch: int = -1) -> ListOffsetsRequest:
    part = ListOffsetsRequest.ListOffsetsTopic
    wanted = part.ListOffsetsPartition(partition_index=partition, timestamp=timestamp, current_leader_epoch=epoch)
    return ListOffsetsRequest(replica_id=-1, topics=[part(name=topic, partitions=[wanted])])


def answer_of(connection: Connection, message: Message, version: int) -> Any:
    """The partition's answer, or the topic's of Metadata."""
    response: Any = connection.request(message, version, Deadline(ANSWER_S))
    match message:
        case ProduceRequest():
            return response.responses[0].partition_responses[0]
        case FetchRequest():
            return response if response.error_code else response.responses[0].partitions[0]
        case MetadataRequest():
            return response.topics[0]
        case _:
            return response.topics[0].partitions[0]


# --- the faults -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fault:
    """One wrong request, and the error it deserves."""

    name: str
    message: Message
    version: int
    error: ErrorCode


def _wrong_batches() -> Iterator[tuple[str, bytes, ErrorCode]]:
    good = batch()
    yield "wrong CRC", altered(good, flip(CRC.start), seal=False), ErrorCode.CORRUPT_MESSAGE
    yield "damaged record", altered(good, flip(len(good) - 2), seal=False), ErrorCode.CORRUPT_MESSAGE
    yield "magic of the future", altered(good, put(MAGIC, ">b", 3)), ErrorCode.CORRUPT_MESSAGE
    for magic in (0, 1):
        yield f"magic {magic}", altered(good, put(MAGIC, ">b", magic)), ErrorCode.INVALID_RECORD
    for count in (-1, 0, 1, 3, 2**31 - 1):
        yield f"{count} records of two", altered(good, put(COUNT, ">i", count)), ErrorCode.INVALID_RECORD
    for delta in (-1, 0, 5):
        yield f"last offset {delta} of 1", altered(good, put(LAST_OFFSET_DELTA, ">i", delta)), ErrorCode.INVALID_RECORD
    three = altered(good, put(COUNT, ">i", 3), put(LAST_OFFSET_DELTA, ">i", 2))
    yield "three of two records", three, ErrorCode.INVALID_RECORD
    # Kafka's producers never do these; its broker does not expect them.
    for codec in (5, 6, 7):
        yield f"codec {codec}", altered(good, put(ATTRIBUTES, ">h", codec)), ErrorCode.UNKNOWN_SERVER_ERROR
    for codec in (Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD):
        plain = altered(good, put(ATTRIBUTES, ">h", codec))
        yield f"not {codec.name.lower()}", plain, ErrorCode.UNKNOWN_SERVER_ERROR
    yield "control batch", altered(good, put(ATTRIBUTES, ">h", 0x20)), ErrorCode.INVALID_RECORD
    yield "two batches", good + good, ErrorCode.INVALID_RECORD
    yield "half a batch", good[:70], ErrorCode.INVALID_RECORD
    yield "no batch", b"", ErrorCode.INVALID_RECORD
    yield "too large", batch(b"v" * (BATCH_BYTES_MAX + 1)), ErrorCode.MESSAGE_TOO_LARGE


def produce_faults() -> Iterator[Fault]:
    good = batch()
    for name, records, error in _wrong_batches():
        yield Fault(f"produce: {name}", produce(records), 12, error)
    zstd = batch(b"v" * 500, compression=Compression.ZSTD)
    yield Fault("produce: zstd before its time", produce(zstd), 6, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    yield Fault("produce: unknown topic", produce(good, topic=OTHER), 12, unknown)
    yield Fault("produce: unknown topic id", produce(good, topic_id=OTHER_ID), 13, ErrorCode.UNKNOWN_TOPIC_ID)
    yield Fault("produce: unknown partition", produce(good, partition=7), 12, unknown)
    yield Fault("produce: partition -1", produce(good, partition=-1), 12, unknown)
    yield Fault("produce: acks 2", produce(good, acks=2), 12, ErrorCode.INVALID_REQUIRED_ACKS)


def read_faults() -> Iterator[Fault]:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    yield Fault("fetch: unknown topic", fetch(0, topic=OTHER), 12, unknown)
    yield Fault("fetch: unknown topic id", fetch(0, topic_id=OTHER_ID), 13, ErrorCode.UNKNOWN_TOPIC_ID)
    yield Fault("fetch: unknown partition", fetch(0, partition=7), 12, unknown)
    yield Fault("fetch: beyond the end", fetch(1 << 40), 12, ErrorCode.OFFSET_OUT_OF_RANGE)
    yield Fault("fetch: before the beginning", fetch(-5), 12, ErrorCode.OFFSET_OUT_OF_RANGE)
    yield Fault("fetch: epoch of the future", fetch(0, epoch=1 << 30), 12, ErrorCode.UNKNOWN_LEADER_EPOCH)
    twice = fetch(0)
    twice.topics[0].partitions += fetch(1 << 40).topics[0].partitions
    yield Fault("fetch: the same partition twice, the last beyond the end", twice, 12, ErrorCode.OFFSET_OUT_OF_RANGE)
    yield Fault("list offsets: unknown topic", list_offsets(-1, topic=OTHER), 7, unknown)
    yield Fault("list offsets: unknown partition", list_offsets(-1, partition=7), 7, unknown)
    yield Fault("list offsets: epoch of the future", list_offsets(-1, epoch=1 << 30), 7, ErrorCode.UNKNOWN_LEADER_EPOCH)
    yield Fault("list offsets: timestamp -9", list_offsets(-9), 11, ErrorCode.UNSUPPORTED_VERSION)
    yield Fault("list offsets: max timestamp before its time", list_offsets(-3), 6, ErrorCode.UNSUPPORTED_VERSION)
    both = list_offsets(-1)
    both.topics *= 2
    yield Fault("list offsets: the same partition twice", both, 7, ErrorCode.INVALID_REQUEST)
    topic = MetadataRequest.MetadataRequestTopic
    yield Fault("metadata: unknown topic", MetadataRequest(topics=[topic(name=OTHER)]), 12, unknown)
    by_id = MetadataRequest(topics=[topic(name=None, topic_id=OTHER_ID)])
    yield Fault("metadata: unknown topic id", by_id, 12, ErrorCode.UNKNOWN_TOPIC_ID)
    invalid = MetadataRequest(topics=[topic(name="no topic/name")])
    yield Fault("metadata: invalid topic", invalid, 12, ErrorCode.INVALID_TOPIC_EXCEPTION)


def faults() -> list[Fault]:
    return [*produce_faults(), *read_faults()]


# --- an idempotent producer's mistakes --------------------------------------------------------------------------------


class Step(NamedTuple):
    """One batch, and what is to come of it."""

    name: str
    epoch: int
    sequence: int
    records: int
    error: ErrorCode
    offset: int | None
    """Counted from the producer's first batch; None if it is refused."""


_OUT_OF_ORDER: Final = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
_FENCED: Final = ErrorCode.INVALID_PRODUCER_EPOCH
STEPS: Final = (
    Step("first", 1, 0, 2, ErrorCode.NONE, 0),
    Step("second", 1, 2, 1, ErrorCode.NONE, 2),
    Step("first again", 1, 0, 2, ErrorCode.NONE, 0),
    Step("second again", 1, 2, 1, ErrorCode.NONE, 2),
    Step("a gap", 1, 9, 1, _OUT_OF_ORDER, None),
    Step("an overlap", 1, 2, 2, _OUT_OF_ORDER, None),
    Step("a part of the first", 1, 1, 1, _OUT_OF_ORDER, None),
    Step("an older epoch", 0, 3, 1, _FENCED, None),
    Step("a newer epoch that does not begin at 0", 2, 3, 1, _OUT_OF_ORDER, None),
    Step("third", 1, 3, 1, ErrorCode.NONE, 3),
    Step("fourth", 1, 4, 1, ErrorCode.NONE, 4),
    Step("fifth", 1, 5, 1, ErrorCode.NONE, 5),
    Step("sixth", 1, 6, 1, ErrorCode.NONE, 6),
    Step("second again, the oldest of five", 1, 2, 1, ErrorCode.NONE, 2),
    Step("first again, too late", 1, 0, 2, _OUT_OF_ORDER, None),
    Step("a newer epoch", 2, 0, 1, ErrorCode.NONE, 7),
    Step("the epoch that is over", 1, 7, 1, _FENCED, None),
    Step("the newer epoch again", 2, 0, 1, ErrorCode.NONE, 7),
)


def taken_steps(connection: Connection, producer_id: int) -> list[Step]:
    """All steps of one producer, one after the other, with what came of each; on a topic where nobody else appends."""
    taken: list[Step] = []
    base = -1
    for step in STEPS:
        values = (b"v%d" % number for number in range(step.records))
        records = batch(*values, producer=(producer_id, step.epoch, step.sequence))
        answer = answer_of(connection, produce(records), 12)
        if base < 0:
            base = answer.base_offset
        error = ErrorCode(answer.error_code)
        offset = answer.base_offset - base if error is ErrorCode.NONE else None
        taken.append(step._replace(error=error, offset=offset))
    return taken
