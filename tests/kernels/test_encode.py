"""Writing batches: Kafka's bytes, and what is refused."""

import struct

import numpy as np
import pytest

from fastquorum.errors import RecordTooLarge, UsageError
from fastquorum.kernels import Attribute, Compression, Header, Kernels, Record
from fastquorum.kernels.rows import Packed, PackedHeaders

PLACE = {"base_offset": 5, "leader_epoch": 3, "timestamp_ms": 1_700_000_000_000}


def test_the_bytes_of_a_small_batch(kernels: Kernels) -> None:
    batch = kernels.encode_values([b"ab", b""], **PLACE)
    records = bytes.fromhex("10 00 00 00 01 04 6162 00  0c 00 00 02 01 00 00")
    header = struct.pack(
        ">hiqqqhii", 0, 1, PLACE["timestamp_ms"], PLACE["timestamp_ms"], -1, -1, -1, 2
    )  # attributes ... recordsCount
    crc = kernels.crc32c(header + records)
    assert batch == struct.pack(">qiibI", 5, 49 + len(records), 3, 2, crc) + header + records


def test_a_full_record(kernels: Kernels) -> None:
    record = Record(b"v", b"k", (Header("é", b"\x00"), Header("", None)), timestamp_ms=PLACE["timestamp_ms"] + 64)
    batch = kernels.encode_records([record], **PLACE)
    assert batch[61:] == bytes.fromhex("20 00 8001 00 02 6b 02 76 04 04 c3a9 02 00 00 01".replace(" ", ""))
    assert struct.unpack_from(">qq", batch, 27) == (PLACE["timestamp_ms"], PLACE["timestamp_ms"] + 64)


def test_values_and_records_and_columns_are_the_same_bytes(kernels: Kernels) -> None:
    values = [b"", b"a", b"x" * 63, b"y" * 64, b"z" * 8191, b"w" * 8192]
    batch = kernels.encode_values(values, **PLACE)
    assert kernels.encode_records([Record(value) for value in values], **PLACE) == batch
    edges = np.cumsum([2, *map(len, values)])
    data = b"##" + b"".join(values) + b"##"
    assert kernels.encode_columns(data, edges.astype(np.int64), **PLACE) == batch
    assert kernels.encode_columns(data, edges.astype(np.int32), **PLACE) == batch
    assert kernels.encode_columns(bytearray(data), memoryview(edges.astype(np.int32)), **PLACE) == batch


def test_values_may_be_any_buffer(kernels: Kernels) -> None:
    plain = kernels.encode_values([b"\x01\x00", b"\x02\x00", b"\x03\x00", b""], **PLACE)
    mixed = [bytearray(b"\x01\x00"), memoryview(b"\x02\x00"), np.array([3], dtype="<i2"), memoryview(b"")]
    assert kernels.encode_values(mixed, **PLACE) == plain


def test_the_header_fields_are_written(kernels: Kernels) -> None:
    attributes = Attribute.TRANSACTIONAL | Compression.ZSTD
    batch = kernels.encode_values(
        [b"a"] * 3, **PLACE, attributes=attributes, producer_id=2**40, producer_epoch=7, base_sequence=9
    )
    (info,) = kernels.batch_headers(batch)
    assert info == (
        *(0, len(batch), 5, 7, 3, 2, info.crc, attributes, PLACE["timestamp_ms"], PLACE["timestamp_ms"]),
        *(2**40, 7, 9, 3, True),
    )
    assert info.is_transactional
    assert not info.is_control
    assert info.compression == Compression.ZSTD


def test_offsets_may_leave_gaps_but_ascend(kernels: Kernels) -> None:
    records = [Record(b"a", offset=6), Record(b"b"), Record(b"c", offset=100)]
    batch = kernels.encode_records(records, **PLACE)
    assert [record.offset for record in kernels.decode_records(batch)] == [6, 7, 100]
    assert kernels.batch_headers(batch)[0].last_offset == 100
    for offsets in ([4], [5, 5], [7, 6], [5, 5 + 2**31]):
        with pytest.raises(UsageError):
            kernels.encode_records([Record(b"", offset=offset) for offset in offsets], **PLACE)


@pytest.mark.parametrize(
    "bad",
    [
        {"base_offset": -1},
        {"base_offset": 2**63},
        {"base_offset": 2**63 - 1},
        {"leader_epoch": 2**31},
        {"timestamp_ms": 2**63},
        {"attributes": 5},
        {"attributes": 0x80},
        {"attributes": -1},
        {"producer_id": 2**63},
        {"producer_epoch": 2**15},
        {"base_sequence": -(2**31) - 1},
    ],
    ids=str,
)
def test_what_no_header_can_hold_is_refused(kernels: Kernels, bad: dict[str, int]) -> None:
    for encode in (
        lambda **place: kernels.encode_values([b"a"], **place),
        lambda **place: kernels.encode_records([Record(b"a")], **place),
        lambda **place: kernels.encode_columns(b"a", np.array([0, 1]), **place),
        lambda **place: kernels.encode_rows(column([b"a"]), **place),
    ):
        with pytest.raises(UsageError):
            encode(**(PLACE | bad))


def test_an_empty_batch_is_refused(kernels: Kernels) -> None:
    with pytest.raises(UsageError):
        kernels.encode_values([], **PLACE)
    with pytest.raises(UsageError):
        kernels.encode_records([], **PLACE)
    with pytest.raises(UsageError):
        kernels.encode_columns(b"", np.array([0], dtype=np.int64), **PLACE)
    with pytest.raises(UsageError):
        kernels.encode_rows(column([]), **PLACE)


@pytest.mark.parametrize(
    "offsets",
    [
        np.array([-1, 1]),
        np.array([0, 4]),
        np.array([2, 1, 3]),
        np.array([], dtype=np.int64),
        np.array([0.0, 1.0]),
        np.array([0, 1], dtype=np.uint64),
        np.array([[0, 1]]),
    ],
    ids=str,
)
def test_offsets_outside_the_data_are_refused(kernels: Kernels, offsets: np.ndarray) -> None:
    with pytest.raises(UsageError):
        kernels.encode_columns(b"abc", offsets, **PLACE)


def column(items: list[bytes | None]) -> Packed:
    ends = np.cumsum([0, *(len(item or b"") for item in items)]).astype(np.int32)
    return Packed(
        b"".join(item or b"" for item in items), ends, np.array([item is not None for item in items], np.uint8)
    )


def test_rows_of_columns_are_records(kernels: Kernels) -> None:
    records = [
        Record(b"a", b"k", (Header("x", b"1"), Header("y", None))),
        Record(None),
        Record(b"", None, (Header("", b""),)),
    ]
    headers = PackedHeaders(np.array([0, 2, 2, 3], np.int32), column([b"x", b"y", b""]), column([b"1", None, b""]))
    batch = kernels.encode_rows(column([b"a", None, b""]), column([b"k", None, None]), headers, **PLACE)
    assert batch == kernels.encode_records(records, **PLACE)
    # A slice of a longer column, as Arrow has them; and data behind a null, which is none.
    values = Packed(b"--a+++", np.array([2, 3, 6], np.int32), np.array([1, 0], np.uint8))
    assert kernels.encode_rows(values, **PLACE) == kernels.encode_records([Record(b"a"), Record(None)], **PLACE)


@pytest.mark.parametrize(
    ("values", "keys", "headers", "text"),
    [
        (
            Packed(b"a", np.array([0, 2], np.int32), np.array([1], np.uint8)),
            None,
            None,
            "values: ends must ascend within",
        ),
        (
            Packed(b"a", np.array([0, 1], np.int16), np.array([1], np.uint8)),
            None,
            None,
            "values: ends must be int32 or",
        ),
        (Packed(b"a", np.array([0, 1], np.int32), np.array([True])), None, None, "values: valid must be uint8"),
        (column([b"a"]), column([b"a", b"b"]), None, r"keys: valid must be uint8 of shape \(1,\)"),
        (
            column([b"a"]),
            None,
            PackedHeaders(np.array([0, 2], np.int32), column([b"x"]), column([b"y"])),
            r"headers: ends must ascend within 0\.\.1",
        ),
        (
            column([b"a"]),
            None,
            PackedHeaders(np.array([0, 1], np.int32), column([None]), column([b"y"])),
            "header 0 has no key",
        ),
    ],
    ids=["outside", "width", "flags", "keys", "headers", "name"],
)
def test_columns_that_do_not_fit_together_are_refused(
    kernels: Kernels, values: Packed, keys: Packed | None, headers: PackedHeaders | None, text: str
) -> None:
    with pytest.raises(UsageError, match=text):
        kernels.encode_rows(values, keys, headers, **PLACE)


def test_header_keys_must_be_text(kernels: Kernels) -> None:
    with pytest.raises(UsageError):
        kernels.encode_records([Record(b"", headers=(Header("\ud800", b""),))], **PLACE)


def test_more_than_a_batch_can_hold_is_refused_before_it_is_built(kernels: Kernels) -> None:
    value = bytes(2**20)
    with pytest.raises(RecordTooLarge) as caught:
        kernels.encode_values([value] * 2048, **PLACE)
    # The length and its varint, the value's varint, and 5 or 6 small bytes for each record, around 2 GiB of values.
    size_bytes = 61 + sum(2**20 + 4 + 4 + 4 + (1 if delta < 64 else 2) for delta in range(2048))
    assert (caught.value.size_bytes, caught.value.limit_bytes) == (size_bytes, 2**31 - 1)
    with pytest.raises(RecordTooLarge) as caught:
        kernels.encode_records([Record(value)] * 2048, **PLACE)
    assert caught.value.size_bytes == size_bytes


@pytest.mark.parametrize("compression", Compression)
def test_every_compression_round_trips(kernels: Kernels, compression: Compression) -> None:
    values = [bytes([i % 7]) * (i * 13) for i in range(200)]
    batch = kernels.encode_values(values, **PLACE, attributes=compression)
    assert kernels.decode_values(batch) == values
    assert (batch[61:] == kernels.encode_values(values, **PLACE)[61:]) == (compression == Compression.NONE)
    columns = kernels.encode_columns(
        b"".join(values), np.cumsum([0, *map(len, values)]), **PLACE, attributes=compression
    )
    assert columns == batch
    assert kernels.encode_records([Record(value) for value in values], **PLACE, attributes=compression) == batch
