"""Native against pure: the same input must give the same bytes, or the same error with the same fields."""

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from fastquorum.kernels import Compression, Record
from fastquorum.kernels.rows import Packed, PackedHeaders

from .conftest import Twins
from .strategies import INT64, PLACEMENTS, RECORDS, batches, blobs, logs, mutated, outcome

EDGES_64 = st.sampled_from([-(2**63), -(2**31) - 1, -1, 0, 1, 2**31 - 1, 2**31, 2**62, 2**63 - 2, 2**63 - 1])
ANY_PLACEMENT = st.fixed_dictionaries(
    {
        "base_offset": st.one_of(st.integers(-1, 100), EDGES_64),
        "leader_epoch": st.one_of(st.integers(-2, 2), st.sampled_from([-(2**31), 2**31 - 1])),
        "timestamp_ms": st.one_of(INT64, EDGES_64),
        "attributes": st.integers(0, 0x1FF),
        "producer_id": EDGES_64,
        "producer_epoch": st.sampled_from([-(2**15), -1, 0, 2**15 - 1]),
        "base_sequence": st.sampled_from([-(2**31), -1, 0, 2**31 - 1]),
    }
)


def same(twins: Twins, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
    """Both sets' outcome of a call, which must be one."""
    pure = outcome(getattr(twins.pure, name), *args, **kwargs)
    native = outcome(getattr(twins.native, name), *args, **kwargs)
    assert native == pure
    return pure


# --- encoding ---------------------------------------------------------------------------------------------------------


@settings(max_examples=150)
@given(records=RECORDS, place=PLACEMENTS)
def test_encode_records(twins: Twins, records: list[Record], place: dict[str, int]) -> None:
    what, batch = same(twins, "encode_records", records, **place)
    assert what == "value"
    same(twins, "decode_records", batch)


@settings(max_examples=100)
@given(
    records=RECORDS,
    gaps=st.lists(st.one_of(st.just(-1), st.integers(-2, 3), EDGES_64), min_size=12, max_size=12),
    place=ANY_PLACEMENT,
)
def test_encode_records_at_the_edges(
    twins: Twins, records: list[Record], gaps: list[int], place: dict[str, int]
) -> None:
    offset, placed = place["base_offset"], []
    for record, gap in zip(records, gaps, strict=False):
        offset = min(max(-1, offset + gap), 2**63 - 1)
        placed.append(record if gap == -1 else record._replace(offset=offset))
    same(twins, "encode_records", placed, **place)


@settings(max_examples=100)
@given(values=st.lists(blobs(), max_size=100), place=st.one_of(PLACEMENTS, ANY_PLACEMENT))
def test_encode_values_and_columns(twins: Twins, values: list[bytes], place: dict[str, int]) -> None:
    batch = same(twins, "encode_values", values, **place)
    edges = np.cumsum([0, *map(len, values)])
    for offsets in (edges.astype(np.int64), edges.astype(np.int32)):
        assert same(twins, "encode_columns", b"".join(values), offsets, **place) == batch


@settings(max_examples=60)
@given(data=st.binary(max_size=20), edges=st.lists(st.integers(-2, 22), max_size=6))
def test_encode_columns_with_any_offsets(twins: Twins, data: bytes, edges: list[int]) -> None:
    place = {"base_offset": 0, "leader_epoch": 0, "timestamp_ms": 0}
    for dtype in (np.int64, np.int32):
        same(twins, "encode_columns", data, np.array(edges, dtype=dtype), **place)
        same(twins, "encode_columns", data, np.array(sorted(edges), dtype=dtype), **place)


def packed(items: list[bytes | None]) -> Packed:
    ends = np.cumsum([0, *(len(item or b"") for item in items)]).astype(np.int32)
    return Packed(
        b"".join(item or b"" for item in items), ends, np.array([item is not None for item in items], np.uint8)
    )


def packed_headers(records: list[Record]) -> PackedHeaders:
    pairs = [pair for record in records for pair in record.headers]
    ends = np.cumsum([0, *(len(record.headers) for record in records)]).astype(np.int32)
    return PackedHeaders(ends, packed([name.encode() for name, _ in pairs]), packed([value for _, value in pairs]))


@settings(max_examples=100)
@given(records=RECORDS, place=st.one_of(PLACEMENTS, ANY_PLACEMENT))
def test_encode_rows_is_encode_records_of_columns(twins: Twins, records: list[Record], place: dict[str, int]) -> None:
    records = [record._replace(timestamp_ms=-1, offset=-1) for record in records]
    expected = same(twins, "encode_records", records, **place)
    values, keys = packed([record.value for record in records]), packed([record.key for record in records])
    assert same(twins, "encode_rows", values, keys, packed_headers(records), **place) == expected
    bare = same(twins, "encode_records", [Record(record.value) for record in records], **place)
    assert same(twins, "encode_rows", values, **place) == bare


COLUMN = st.builds(
    lambda data, ends, valid, dtype: Packed(data, np.array(ends, dtype), np.array(valid, np.uint8)),
    st.binary(max_size=8),
    st.one_of(
        st.lists(st.integers(-1, 9), max_size=4), st.lists(st.integers(0, 8), min_size=2, max_size=4).map(sorted)
    ),
    st.lists(st.integers(0, 1), max_size=3),
    st.sampled_from([np.int32, np.int64, np.int16]),
)


@settings(max_examples=150)
@given(
    values=COLUMN,
    keys=st.none() | COLUMN,
    headers=st.none() | st.builds(PackedHeaders, COLUMN.map(lambda column: column.ends), COLUMN, COLUMN),
)
def test_encode_rows_with_any_columns(
    twins: Twins, values: Packed, keys: Packed | None, headers: PackedHeaders | None
) -> None:
    same(twins, "encode_rows", values, keys, headers, base_offset=0, leader_epoch=0, timestamp_ms=0)


# --- decoding ---------------------------------------------------------------------------------------------------------


def all_readers(twins: Twins, data: bytes) -> None:
    """Everything that reads bytes, with and without the checksum: damage gets past the CRC only without it."""
    for verify_crc in (True, False):
        for decode in ("check_records", "decode_batch", "decode_records", "decode_values"):
            same(twins, decode, data, verify_crc=verify_crc, decompressed_bytes_max=5000)
        same(twins, "batch_headers", data, verify_crc=verify_crc)
        same(twins, "batch_headers", data, verify_crc=verify_crc, producers_only=True)
        same(twins, "scan", data, verify_crc=verify_crc)


@settings(max_examples=300)
@given(data=mutated(batches()))
def test_damaged_batches(twins: Twins, data: bytes) -> None:
    all_readers(twins, data)


@settings(max_examples=100)
@given(data=mutated(logs()), position=st.integers(0, 100), offset=st.integers(-1, 1010), size=st.integers(-1, 5000))
def test_damaged_logs(twins: Twins, data: bytes, position: int, offset: int, size: int) -> None:
    all_readers(twins, data)
    same(twins, "slice_batches", data, offset, size)
    position = min(position, len(data))
    same(twins, "scan", data, position, expected_offset=offset, epoch_min=2, epoch_max=6, batch_bytes_max=size + 100)
    same(twins, "decode_batch", data, position)


@settings(max_examples=100)
@given(data=st.binary(max_size=200))
def test_random_bytes(twins: Twins, data: bytes) -> None:
    all_readers(twins, data)
    same(twins, "slice_batches", data, 0, 100)


@settings(max_examples=300)
@given(
    records=st.lists(st.binary(max_size=30) | st.integers(1, 60).map(bytes), max_size=3).map(b"".join),
    count=st.integers(1, 4),
    last_delta=st.integers(0, 5),
    compression=st.sampled_from([Compression.NONE, Compression.NONE, *Compression]),
)
def test_random_record_sections(
    twins: Twins, records: bytes, count: int, last_delta: int, compression: Compression
) -> None:
    """Random bytes behind a good header, so that what reads records sees them."""
    header = struct.pack(
        ">qiibIhiqqqhii", 5, 49 + len(records), 1, 2, 0, compression, last_delta, 0, 0, -1, -1, -1, count
    )
    all_readers(twins, header + records)


@settings(max_examples=200)
@given(batch=batches(), hits=st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 255)), min_size=1, max_size=2))
def test_damaged_records_of_good_batches(twins: Twins, batch: bytes, hits: list[tuple[int, int]]) -> None:
    data = bytearray(batch)
    for i, byte in hits:
        data[61 + i % (len(data) - 61)] = byte
    all_readers(twins, bytes(data))


def test_every_truncation_and_every_bit(twins: Twins) -> None:
    records = [Record(b"v", b"k"), Record(None, None, (("h", b"x"), ("g", None)), 9)]
    batch = twins.pure.encode_records(records, base_offset=9, leader_epoch=1, timestamp_ms=5)
    for size in range(len(batch)):
        all_readers(twins, batch[:size])
        all_readers(twins, batch[:size] + bytes(40))
    for bit in range(len(batch) * 8):
        data = bytearray(batch)
        data[bit // 8] ^= 1 << bit % 8
        all_readers(twins, bytes(data))


@settings(max_examples=100)
@given(data=mutated(batches()), base_offset=EDGES_64, epoch=st.integers(-1, 2**31 - 1))
def test_stamp_batch(twins: Twins, data: bytes, base_offset: int, epoch: int) -> None:
    mine, yours = bytearray(data), bytearray(data)
    assert outcome(twins.native.stamp_batch, mine, base_offset, epoch) == outcome(
        twins.pure.stamp_batch, yours, base_offset, epoch
    )
    assert mine == yours


# --- small kernels ----------------------------------------------------------------------------------------------------


@given(data=st.binary(max_size=3000), crc=st.integers(0, 2**32 - 1))
def test_crc32c(twins: Twins, data: bytes, crc: int) -> None:
    same(twins, "crc32c", data, crc)


@settings(max_examples=200)
@given(ends=st.lists(st.integers(-1, 20) | INT64, max_size=40), epoch_start=st.integers(-1, 20) | INT64)
def test_high_watermark(twins: Twins, ends: list[int], epoch_start: int) -> None:
    same(twins, "high_watermark", ends, epoch_start)


@settings(max_examples=100)
@given(
    limit=st.integers(0, 50),
    stream=st.lists(
        st.one_of(
            st.binary(max_size=50).map(lambda frame: struct.pack(">i", len(frame)) + frame),
            st.sampled_from([b"\xff\xff\xff\xff", b"\x80\x00\x00\x00", b"\x00\x00\x00\x33", b"\x7f\xff\xff\xff"]),
        ),
        max_size=6,
    ).map(b"".join),
    chunks=st.lists(st.integers(0, 40), min_size=1, max_size=30),
)
def test_frame_splitter(twins: Twins, limit: int, stream: bytes, chunks: list[int]) -> None:
    pure, native = twins.pure.FrameSplitter(limit), twins.native.FrameSplitter(limit)
    position = 0
    for size in chunks:
        chunk = stream[position : position + size]
        position += size
        expected = outcome(pure.feed, chunk)
        assert outcome(native.feed, chunk) == expected
        if expected[0] == "value":
            assert native.pending_bytes == pure.pending_bytes


# --- state machines ---------------------------------------------------------------------------------------------------


class EpochCacheMachine(RuleBasedStateMachine):
    """Any sequence of calls leaves both caches the same."""

    twins: Twins
    OFFSETS = st.integers(-1, 40) | EDGES_64
    EPOCHS = st.integers(-1, 20)

    def __init__(self) -> None:
        super().__init__()
        self.pure = self.twins.pure.EpochCache()
        self.native = self.twins.native.EpochCache()

    def both(self, name: str, *args: int) -> None:
        assert outcome(getattr(self.native, name), *args) == outcome(getattr(self.pure, name), *args)

    @rule(entries=st.lists(st.tuples(EPOCHS, OFFSETS), max_size=5), ascending=st.booleans())
    def start_again(self, entries: list[tuple[int, int]], ascending: bool) -> None:
        if ascending:
            entries = list(zip(*(sorted(set(column)) for column in zip(*entries, strict=True)), strict=False))
        made = outcome(self.twins.pure.EpochCache, entries), outcome(self.twins.native.EpochCache, entries)
        if made[0][0] == "value":
            assert made[1][0] == "value"
            self.pure, self.native = made[0][1], made[1][1]
        else:
            assert made[0] == made[1]

    @rule(epoch_step=st.integers(-1, 3), offset_step=st.integers(-1, 9))
    def assign_next(self, epoch_step: int, offset_step: int) -> None:
        offset = min(self.pure.latest_start + offset_step, 2**63 - 1)
        self.both("assign", self.pure.latest_epoch + epoch_step, offset)

    @rule(epoch=EPOCHS, offset=OFFSETS)
    def assign(self, epoch: int, offset: int) -> None:
        self.both("assign", epoch, offset)

    @rule(offset=OFFSETS)
    def truncate_to(self, offset: int) -> None:
        self.both("truncate_to", offset)

    @rule(offset=OFFSETS)
    def truncate_before(self, offset: int) -> None:
        self.both("truncate_before", offset)

    @rule(epoch=EPOCHS, offset=OFFSETS)
    def look_up(self, epoch: int, offset: int) -> None:
        self.both("epoch_for", offset)
        self.both("end_offset_for", epoch, offset)

    @invariant()
    def equal(self) -> None:
        assert self.native.entries() == self.pure.entries()
        assert len(self.native) == len(self.pure)
        assert self.native.latest_epoch == self.pure.latest_epoch
        assert self.native.latest_start == self.pure.latest_start


class AccumulatorMachine(RuleBasedStateMachine):
    """Any sequence of calls leaves both accumulators the same, and seals the same bytes."""

    twins: Twins
    LIMIT = 400

    def __init__(self) -> None:
        super().__init__()
        self.pure = self.twins.pure.Accumulator(self.LIMIT)
        self.native = self.twins.native.Accumulator(self.LIMIT)

    def both(self, name: str, *args: Any) -> None:
        assert outcome(getattr(self.native, name), *args) == outcome(getattr(self.pure, name), *args)

    @rule(offset=st.integers(0, 100) | EDGES_64, epoch=st.integers(-1, 3), timestamp=INT64)
    def open(self, offset: int, epoch: int, timestamp: int) -> None:
        self.both("open", offset, epoch, timestamp)

    @rule()
    def open_plainly(self) -> None:
        self.both("open", 7, 1, 5)

    @rule(value=blobs(400))
    def append(self, value: bytes) -> None:
        self.both("append", value)

    @rule(values=st.lists(blobs(150), max_size=6))
    def append_many(self, values: list[bytes]) -> None:
        self.both("append_many", values)

    @rule()
    def seal(self) -> None:
        self.both("seal")

    @rule()
    def discard(self) -> None:
        self.both("discard")

    @invariant()
    def equal(self) -> None:
        for name in ("is_open", "base_offset", "next_offset", "record_count", "size_bytes"):
            assert getattr(self.native, name) == getattr(self.pure, name), name


@pytest.mark.parametrize("machine", [EpochCacheMachine, AccumulatorMachine])
def test_any_sequence_of_calls(twins: Twins, machine: type[RuleBasedStateMachine]) -> None:
    class Machine(machine):
        pass

    Machine.twins = twins
    run_state_machine_as_test(Machine, settings=settings(max_examples=60, stateful_step_count=25, deadline=None))
