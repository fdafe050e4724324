"""Hostile bytes: a clean decode or a WireError that says where; nothing else, and no big allocation."""

import random
import struct
import tracemalloc

import pytest

from fastquorum import wire
from fastquorum.errors import UnsupportedVersion, WireError
from fastquorum.wire import Message, decode, encode
from fastquorum.wire.messages.fetch import FetchRequest, FetchResponse
from fastquorum.wire.messages.metadata import MetadataRequest
from fastquorum.wire.messages.quorum import VoteRequest
from fastquorum.wire.messages.topics import CreateTopicsRequest, DescribeTopicPartitionsRequest
from fastquorum.wire.records.metadata import METADATA_RECORDS, decode_metadata_record, encode_metadata_record

from .golden import Frame, smallest_frames

SMALLEST = pytest.mark.parametrize("frame", smallest_frames(), ids=lambda frame: frame.id)


def attempt(frame: Frame, raw: bytes) -> WireError | None:
    """Decode `raw` in the place of the frame's bytes; the error, if it is one of ours. Others fail the test."""
    try:
        if frame.kind == "request":
            wire.decode_request(raw)
        else:
            wire.decode_response(raw, frame.api_key, frame.version)
    except WireError as error:
        return error
    return None


@SMALLEST
def test_truncation_at_every_byte(frame: Frame) -> None:
    for size in range(min(len(frame.raw), 400)):
        error = attempt(frame, frame.raw[:size])
        assert error is not None
        assert error.position <= size
        assert error.message


@SMALLEST
def test_trailing_bytes(frame: Frame) -> None:
    error = attempt(frame, frame.raw + b"\0")
    assert error is not None
    assert error.position == len(frame.raw)


@SMALLEST
def test_flipped_bits(frame: Frame) -> None:
    chance = random.Random(frame.id)
    for _ in range(200):
        raw = bytearray(frame.raw)
        for _ in range(chance.choice((1, 1, 1, 2, 8))):
            raw[chance.randrange(len(raw))] ^= 1 << chance.randrange(8)
        attempt(frame, bytes(raw))


@SMALLEST
def test_random_bytes(frame: Frame) -> None:
    chance = random.Random(frame.id)
    for size in (0, 1, 2, 3, 4, 7, 8, 20, 100):
        attempt(frame, frame.raw[:4] + chance.randbytes(size))
        attempt(frame, chance.randbytes(size))


@pytest.mark.parametrize("key", METADATA_RECORDS)
def test_truncated_metadata_records(key: int) -> None:
    cls = METADATA_RECORDS[key]
    for version in range(cls.__wire__.versions.last + 1):
        raw = encode_metadata_record(cls(), version)
        for size in range(len(raw)):
            with pytest.raises(WireError):
                decode_metadata_record(raw[:size])
        with pytest.raises(WireError):
            decode_metadata_record(raw + b"\0")


def test_metadata_frames_of_another_kind() -> None:
    for raw in (b"\x02\x14\x00\x00", b"\x01\x06\x00\x00", b"\x01\x14\x01\x00", b"\x80\x80\x80\x80\x80\x80", b""):
        with pytest.raises(WireError):
            decode_metadata_record(raw)


@pytest.mark.parametrize(
    ("cls", "version", "raw", "field"),
    [
        # a null topic array where the version has none; a count of 2^31-1 with nothing behind it
        (FetchRequest, 4, struct.pack(">iiiibi", -1, 500, 0, 1, 0, -1), "topics"),
        (FetchRequest, 4, struct.pack(">iiiibi", -1, 500, 0, 1, 0, 0x7FFF_FFFF), "topics"),
        (FetchRequest, 4, struct.pack(">iiiibi", -1, 500, 0, 1, 0, -2), "topics"),
        (MetadataRequest, 4, struct.pack(">ih", 1, -2) + b"\0", "topics[].name"),
        (MetadataRequest, 4, struct.pack(">ih", 1, 0x7FFF) + b"\0", "topics[].name"),
        (MetadataRequest, 4, struct.pack(">ih", 1, 2) + b"\xff\xfe\0", "topics[].name"),
        # compact: a count of 2^32-2; a varint of six bytes; one of more than 32 bits
        (VoteRequest, 2, b"\x00\x00\x00\x00\x00" + b"\xff\xff\xff\xff\x0f", "topics"),
        (VoteRequest, 2, b"\x00\x00\x00\x00\x00" + b"\xff\xff\xff\xff\xff\x01", "topics"),
        (VoteRequest, 2, b"\x00\x00\x00\x00\x00" + b"\xff\xff\xff\xff\x1f", "topics"),
        # tags: the same twice, unsorted, longer than the rest, more than there can be
        (VoteRequest, 2, b"\x00\x00\x00\x00\x00\x01" + b"\x02\x07\x00\x07\x00", "(tags)"),
        (VoteRequest, 2, b"\x00\x00\x00\x00\x00\x01" + b"\x02\x07\x00\x06\x00", "(tags)"),
        (VoteRequest, 2, b"\x00\x00\x00\x00\x00\x01" + b"\x01\x07\x05\x00", "(tags)"),
        (VoteRequest, 2, b"\x00\x00\x00\x00\x00\x01" + b"\xff\xff\xff\xff\x0f", "(tags)"),
        # a known tag whose size is not that of its value
        (FetchResponse, 16, bytes(10) + b"\x01" + b"\x01\x00\x02\x01\x00", "node_endpoints"),
        # a nullable struct's mark is -1 or 1
        (DescribeTopicPartitionsRequest, 0, b"\x01\x00\x00\x00\x00\x02", "cursor"),
    ],
)  # fmt: skip
def test_the_error_names_the_field(cls: type[Message], version: int, raw: bytes, field: str) -> None:
    with pytest.raises(WireError) as caught:
        decode(cls, version, raw)
    assert (caught.value.message, caught.value.version, caught.value.field) == (cls.__name__, version, field)
    assert 0 <= caught.value.position <= len(raw)


@pytest.mark.parametrize(
    ("size", "field", "position"),
    [(0, "replica_id", 0), (3, "replica_id", 0), (4, "max_wait_ms", 4), (15, "max_bytes", 12), (20, "topics", 17)],
)
def test_a_truncated_run_names_the_field_that_is_cut(size: int, field: str, position: int) -> None:
    with pytest.raises(WireError) as caught:
        decode(FetchRequest, 4, encode(FetchRequest(), 4)[:size])
    assert (caught.value.field, caught.value.position) == (field, position)


def test_a_count_that_cannot_fit_is_refused_before_its_elements_are_read() -> None:
    vote = VoteRequest(topics=[VoteRequest.TopicData(partitions=[VoteRequest.TopicData.PartitionData()])])
    with pytest.raises(WireError) as caught:
        decode(VoteRequest, 0, encode(vote, 0)[:4])
    assert (caught.value.field, caught.value.position) == ("topics", 2)


def request_frame(message: Message, version: int) -> bytes:
    return wire.encode_request(wire.request_header(message, version, 1, None), message)


def test_elements_are_counted_over_the_whole_request_before_they_are_read() -> None:
    topic = VoteRequest.TopicData
    vote = VoteRequest(
        topics=[
            topic(partitions=[topic.PartitionData(), topic.PartitionData()]),
            topic(partitions=[topic.PartitionData(unknown_tags=((7, b"x"),))]),
        ]
    )
    raw = request_frame(vote, 2)  # two topics, three partitions, a tag
    assert wire.decode_request(raw, 6) == wire.decode_request(raw)
    for room, field in ((5, "topics[].partitions[].(tags)"), (4, "topics[].partitions"), (1, "topics"), (0, "topics")):
        with pytest.raises(WireError) as caught:
            wire.decode_request(raw, room)
        assert caught.value.field == field
    with pytest.raises(WireError, match="an array of 2, where 1 are taken"):
        wire.decode_request(raw, 1)


def test_tagged_fields_of_the_header_are_counted_too() -> None:
    header = wire.RequestHeader(request_api_key=52, request_api_version=2, correlation_id=1, client_id=None)
    header.unknown_tags = tuple((tag, b"") for tag in range(9))
    raw = encode(header, 2)
    assert wire.decode_request_header(raw, 9)[0] == header
    with pytest.raises(WireError, match="a tag section of 9, where 8 are taken"):
        wire.decode_request_header(raw, 8)


def test_a_huge_count_allocates_nothing() -> None:
    raw = struct.pack(">i", 0x7FFF_FFFF) + bytes(64)
    tracemalloc.start()
    with pytest.raises(WireError):
        decode(CreateTopicsRequest, 2, raw)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10_000_000  # the generated codec itself may be made here


def test_unknown_apis_and_versions_are_named() -> None:
    header = struct.pack(">hhih", 999, 0, 7, -1)
    with pytest.raises(UnsupportedVersion) as caught:
        wire.decode_request(header)
    assert caught.value.api_key == 999
    header = struct.pack(">hhih", 52, 9, 7, -1) + b"\0"
    with pytest.raises(UnsupportedVersion) as caught:
        wire.decode_request(header)
    assert (caught.value.api_key, caught.value.version) == (52, 9)
    parsed, position = wire.decode_request_header(header)  # what is needed to answer it can still be read
    assert (parsed.correlation_id, position) == (7, len(header))
    with pytest.raises(UnsupportedVersion):
        wire.decode_response(b"\0\0\0\0", 52, 3)
    with pytest.raises(UnsupportedVersion):
        encode(VoteRequest(), 3)


@pytest.mark.parametrize(
    ("cls", "version", "tag", "field"),
    [
        # replica_state is tag 1 from version 15 on; node_endpoints tag 0 from version 16 on
        (FetchRequest, 14, 1, "(tags)"),
        (FetchResponse, 15, 0, "(tags)"),
    ],
)
def test_a_tag_that_belongs_to_another_version_is_refused(
    cls: type[Message], version: int, tag: int, field: str
) -> None:
    """Kafka's generated classes do the same; a tag of no version is kept."""
    raw = encode(cls(), version)
    assert raw.endswith(b"\0")
    kept = decode(cls, version, raw[:-1] + b"\x01\x63\x01x")
    assert kept.unknown_tags == ((0x63, b"x"),)
    with pytest.raises(WireError, match=f"tag {tag} belongs to another version") as caught:
        decode(cls, version, raw[:-1] + bytes((1, tag, 1, 0)))
    assert caught.value.field == field
