"""The native message codec and its twin: the same bytes, values and errors, whatever the message and its faults."""

import enum
import gc
import random
import struct
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fastquorum.errors import WireError
from fastquorum.kernels import load
from fastquorum.kernels.messages import Alike, FieldLayout, MessageCodec, StructLayout, ValueKind, ValueLayout
from fastquorum.types import Uuid
from fastquorum.wire import API, Message, decode_request_header, decode_response_header
from fastquorum.wire.codec.codec import GENERATED, Codec
from fastquorum.wire.messages.fetch import FetchRequest, FetchResponse
from fastquorum.wire.messages.metadata import MetadataResponse
from fastquorum.wire.messages.quorum import VoteRequest
from fastquorum.wire.messages.topics import CreateTopicsResponse
from fastquorum.wire.types import Field, Shape
from tests.wire.golden import Frame, smallest_frames
from tests.wire.strategies import VERSIONED, messages

NATIVE = Codec(load("native"))
EVERY = pytest.mark.parametrize(
    ("cls", "version"), VERSIONED, ids=[f"{cls.__name__}-v{version}" for cls, version in VERSIONED]
)
FEW = settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck), database=None)


def codecs(cls: type[Message], version: int) -> tuple[MessageCodec, MessageCodec]:
    return GENERATED.of(cls, version), NATIVE.of(cls, version)


def outcome(call: Callable[[], Any]) -> Any:
    """What it gives, or the error that it raises."""
    try:
        return call()
    except WireError as error:
        return error


def same(one: Any, other: Any) -> None:
    """Equal, and of the same types all the way down: a repr tells True from 1 and a Uuid from bytes."""
    assert repr(one) == repr(other)
    assert one == other


@EVERY
def test_every_message_in_every_version(cls: type[Message], version: int) -> None:
    pure, native = codecs(cls, version)
    flexible = cls.__wire__.flexible.has(version)

    @FEW
    @given(messages(cls, version, flexible))
    def agree(message: Message) -> None:
        raw = pure.encode(message)
        assert native.encode(message) == raw
        for buffer in (raw, bytearray(raw), memoryview(raw)):
            same(native.decode(buffer), pure.decode(buffer))
        same(native.decode_prefix(b"??" + raw + b"!", 2), (pure.decode(raw), 2 + len(raw)))

    agree()


@EVERY
def test_values_that_do_not_fit(cls: type[Message], version: int) -> None:
    """Each field in turn, with values of every wrong kind; what the version lacks included."""
    pure, native = codecs(cls, version)
    for each in cls.__wire__.fields:
        for value in misfits(each):
            message = cls(**{each.name: value})
            same(outcome(lambda m=message: native.encode(m)), outcome(lambda m=message: pure.encode(m)))


def misfits(each: Field) -> list[Any]:
    wrong: list[Any] = [
        None,
        object,
        -(2**63) - 1,
        2**64,
        40_000,
        1.5,
        "x",
        "\ud800",
        "y" * 40_000,
        b"z",
        [None],
        (),
        [],
    ]
    return wrong if each.type.shape is not Shape.STRUCT else [*wrong, each.type.struct()]  # type: ignore[misc]


class Colour(enum.IntEnum):
    RED = 7


class Words(str):
    __slots__ = ()


@pytest.mark.parametrize(
    "values",
    [
        {"max_wait_ms": Colour.RED},
        {"max_wait_ms": True},
        {"max_wait_ms": np.int32(7)},
        {"rack_id": Words("a rack")},
        {"rack_id": "größer \N{SNOWMAN}" * 30},
        {"topics": ()},
        {"topics": (FetchRequest.FetchTopic(topic_id=Uuid(b"0123456789abcdef")),)},
        {"topics": [FetchRequest.FetchTopic(topic_id=b"0123456789abcdef")]},
        {"topics": [FetchRequest.FetchTopic(topic_id=bytearray(b"0123456789abcdef"))]},
        {"unknown_tags": ((5, b"five"), (300, b"x" * 300))},
        {"unknown_tags": ((300, b""), (5, b""))},
        {"unknown_tags": ((0, b"declared"),)},
        {"unknown_tags": [(5, b"five")]},
        {"cluster_id": "c" * 200},  # a tagged field of two bytes of length
        {"replica_state": FetchRequest.ReplicaState(replica_id=1, unknown_tags=((9, b"nine"),))},
        {"replica_state": None},
        {"forgotten_topics_data": None},
    ],
    ids=repr,
)
def test_values_of_unusual_types(values: dict[str, Any]) -> None:
    pure, native = codecs(FetchRequest, 17)
    message = FetchRequest(**values)
    same(outcome(lambda: native.encode(message)), outcome(lambda: pure.encode(message)))


@pytest.mark.parametrize(
    "records",
    [
        b"r" * 5_000,
        bytearray(b"r" * 5_000),
        memoryview(b"r" * 100_000),
        memoryview(b"0123456789")[::2],
        memoryview(struct.pack("4i", 1, 2, 3, 4)).cast("i"),
        np.arange(4, dtype=np.uint8),
    ],
    ids=["bytes", "bytearray", "view", "steps", "integers", "numpy"],
)
def test_records_in_any_buffer(records: Any) -> None:
    pure, native = codecs(FetchResponse, 17)
    partition = FetchResponse.FetchableTopicResponse.PartitionData(records=records)
    message = FetchResponse(responses=[FetchResponse.FetchableTopicResponse(partitions=[partition])])
    try:
        expected = pure.encode(message)
    except (BufferError, TypeError, WireError) as error:
        with pytest.raises(type(error)):
            native.encode(message)
    else:
        assert native.encode(message) == expected


def test_another_class_than_the_codecs() -> None:
    pure, native = codecs(VoteRequest, 2)
    error = outcome(lambda: native.encode(FetchRequest()))
    assert "expected VoteRequest" in str(error)
    same(error, outcome(lambda: pure.encode(FetchRequest())))


def test_a_slot_that_was_never_set() -> None:
    pure, native = codecs(VoteRequest, 2)
    bare = object.__new__(VoteRequest)
    error = outcome(lambda: native.encode(bare))
    assert isinstance(error, WireError)
    same(error, outcome(lambda: pure.encode(bare)))


SMALLEST = pytest.mark.parametrize("frame", smallest_frames(), ids=lambda frame: frame.id)


def bodies(frame: Frame) -> tuple[MessageCodec, MessageCodec, bytes]:
    api = API[frame.api_key]
    if frame.kind == "request":
        return *codecs(api.request, frame.version), frame.raw[decode_request_header(frame.raw)[1] :]
    start = decode_response_header(frame.raw, frame.api_key, frame.version)[1]
    return *codecs(api.response, frame.version), frame.raw[start:]


@SMALLEST
def test_hostile_bytes(frame: Frame) -> None:
    """Cut anywhere, with flipped bits, with bytes set to the numbers that lengths and counts break on."""
    pure, native, raw = bodies(frame)
    same(native.decode(raw), pure.decode(raw))
    chance = random.Random(frame.id)
    hostile = [raw[:size] for size in range(min(len(raw), 300))] + [raw + b"\0"]
    for _ in range(300):
        damaged = bytearray(raw)
        for _ in range(chance.choice((1, 1, 2, 8)) if raw else 0):
            damaged[chance.randrange(len(raw))] = chance.choice((0, 1, 2, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        hostile.append(bytes(damaged))
    for damaged in hostile:
        same(outcome(lambda d=damaged: native.decode(d)), outcome(lambda d=damaged: pure.decode(d)))
        same(outcome(lambda d=damaged: native.decode_prefix(d)), outcome(lambda d=damaged: pure.decode_prefix(d)))


@SMALLEST
def test_elements_are_counted(frame: Frame) -> None:
    """Whatever number is taken, both read the message or both say the same of it."""
    pure, native, raw = bodies(frame)
    for most in (0, 1, 2, 3, 5, 8, 40):
        same(
            outcome(lambda n=most: native.decode_prefix(raw, 0, n)),
            outcome(lambda n=most: pure.decode_prefix(raw, 0, n)),
        )


@FEW
@given(st.binary(max_size=64), st.sampled_from(VERSIONED))
def test_random_bytes(raw: bytes, which: tuple[type[Message], int]) -> None:
    pure, native = codecs(*which)
    same(outcome(lambda: native.decode_prefix(raw)), outcome(lambda: pure.decode_prefix(raw)))


def test_a_position_beyond_the_buffer() -> None:
    pure, native = codecs(VoteRequest, 2)
    same(outcome(lambda: native.decode_prefix(b"\0\0\0", 4)), outcome(lambda: pure.decode_prefix(b"\0\0\0", 4)))


def test_fresh_defaults_are_nobody_elses() -> None:
    _, native = codecs(FetchResponse, 4)
    one, other = native.decode(native.encode(FetchResponse())), native.decode(native.encode(FetchResponse()))
    assert one.responses is not other.responses
    assert one.node_endpoints == []
    assert one.node_endpoints is not other.node_endpoints


def test_nothing_leaks() -> None:
    """Good messages and refused ones, thousands of times: not an object more."""
    _, native = codecs(MetadataResponse, 12)
    topic = MetadataResponse.MetadataResponseTopic(name="t" * 50, partitions=[])
    message = MetadataResponse(brokers=[], topics=[topic, topic], cluster_id="c" * 300)
    raw = native.encode(message)
    unfit = MetadataResponse(topics=[topic], throttle_time_ms="soon")  # type: ignore[arg-type]

    def go() -> None:
        for _ in range(200):
            native.encode(native.decode(raw))
            outcome(lambda: native.encode(unfit))
            for size in (1, 7, len(raw) - 60, len(raw) - 1):
                outcome(lambda s=size: native.decode(raw[:s]))

    def grown() -> int:
        """By so many blocks in 200 turns."""
        gc.collect()
        before = sys.getallocatedblocks()
        go()
        gc.collect()
        return sys.getallocatedblocks() - before

    go()
    # Other threads of this process may make something meanwhile; a leak is there every time, 200 blocks or more.
    assert min(grown() for _ in range(5)) < 100


class Bare:
    """No struct: its fields are in no slots."""

    number = 1
    unknown_tags = ()


def test_a_class_without_slots_is_refused() -> None:
    value = ValueLayout(ValueKind.INT8, nullable=False, compact=False, bytes_min=1)
    field = FieldLayout("number", "number", value, -1, 0, ignorable=False)
    with pytest.raises(TypeError, match="unknown_tags is not a slot"):
        load("native").message_codec(StructLayout(Bare, True, (field,), (), (), ()), GENERATED.of(VoteRequest, 2))


def test_an_array_that_is_alike_in_many_messages_is_written_as_a_list_is_in_every_version() -> None:
    of = CreateTopicsResponse.CreatableTopicResult
    configs = [of.CreatableTopicConfigs(name=f"name.{number}", value="x" * number) for number in range(300)]
    shared = Alike(configs)
    for version in (7, 5, 7, 6):  # by turns, as what it was written as last
        for name in ("one", "two"):
            listed = CreateTopicsResponse(topics=[of(name=name, configs=configs)])
            alike = CreateTopicsResponse(topics=[of(name=name, configs=shared), of(name="", configs=shared)])
            for codec in codecs(CreateTopicsResponse, version):
                once, twice = codec.encode(listed), codec.encode(alike)
                assert codec.decode(once).topics[0].configs == configs
                assert [each.configs for each in codec.decode(twice).topics] == [configs, configs]
            assert codec.encode(alike) == GENERATED.encode(alike, version)
    misfit = Alike([of.CreatableTopicConfigs(name="name", value="value", config_source=1 << 20)])
    for codec in codecs(CreateTopicsResponse, 7):
        with pytest.raises(WireError, match="config_source"):
            codec.encode(CreateTopicsResponse(topics=[of(configs=misfit)]))
    assert misfit.written is None


def test_an_array_that_is_alike_is_written_anew_by_a_codec_of_another_layout() -> None:
    """What it was written as is known by the layout itself, which lives as long as that is remembered."""
    shared = Alike([1, 2, 3])
    for _ in range(50):
        narrow, wide = array_of(ValueKind.INT8), array_of(ValueKind.INT32)
        assert narrow.encode(Holder(shared)) == bytes([0, 0, 0, 3, 1, 2, 3])
        assert wide.encode(Holder(shared)) == struct.pack(">4i", 3, 1, 2, 3)


class Holder:
    __slots__ = ("items", "unknown_tags")

    def __init__(self, items: list[int]) -> None:
        self.items, self.unknown_tags = items, ()


def array_of(kind: ValueKind) -> MessageCodec:
    element = ValueLayout(kind, False, False, 1)
    field = FieldLayout("items", "items", ValueLayout(ValueKind.ARRAY, False, False, 4, element), -1, 0, False)
    return load("native").message_codec(StructLayout(Holder, False, (field,), (), (), ()), GENERATED.of(VoteRequest, 0))
