"""Reading batches, and every way in which bytes can fail to be one."""

import struct
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fastquorum.errors import CorruptionError, DecompressedTooLarge, UsageError
from fastquorum.kernels import Attribute, BatchFault, Compression, Header, Kernels, Record, load

PLACE = {"base_offset": 40, "leader_epoch": 2, "timestamp_ms": 1000}
RECORDS = [
    Record(b"first", None, (), 1000, 40),
    Record(None, b"key", (Header("a", b"1"), Header("a", None), Header("", b"")), 990, 41),
    Record(b"", b"", (), 1005, 45),
]


def readers(kernels: Kernels) -> tuple[Callable[..., Any], ...]:
    """All that look at every record of a batch."""
    return kernels.check_records, kernels.decode_batch, kernels.decode_records, kernels.decode_values


def sealed(kernels: Kernels, batch: bytes | bytearray) -> bytes:
    """The batch with its length and checksum made right again."""
    fixed = bytearray(batch)
    struct.pack_into(">i", fixed, 8, len(fixed) - 12)
    struct.pack_into(">I", fixed, 17, kernels.crc32c(bytes(fixed[21:])))
    return bytes(fixed)


def with_field(kernels: Kernels, batch: bytes, layout: str, position: int, value: int) -> bytes:
    changed = bytearray(batch)
    struct.pack_into(layout, changed, position, value)
    return sealed(kernels, changed)


@pytest.mark.parametrize("compression", Compression)
def test_records_come_back(kernels: Kernels, compression: Compression) -> None:
    batch = kernels.encode_records(RECORDS, **PLACE, attributes=compression)
    assert kernels.decode_records(batch) == RECORDS
    assert kernels.decode_values(batch) == [b"first", None, b""]


@pytest.mark.parametrize("compression", Compression)
def test_a_batch_can_be_checked_without_being_taken_apart(kernels: Kernels, compression: Compression) -> None:
    batch = b"." + kernels.encode_records(RECORDS, **PLACE, attributes=compression)
    assert kernels.check_records(batch, 1) == kernels.decode_batch(batch, 1).info
    assert kernels.check_records(batch, 1, verify_crc=False) == kernels.decode_batch(batch, 1, verify_crc=False).info


def test_checking_a_batch_keeps_nothing_of_its_records() -> None:
    kernels = load("native")
    headers = (Header("", None),) * 200_000
    batch = kernels.encode_records([Record(None, None, headers)], **PLACE, attributes=Compression.ZSTD)
    assert len(batch) < 1_000
    tracemalloc.start()
    kernels.check_records(batch)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 3 * 2 * len(headers)  # no more than decompressed; columns take 32 bytes for each


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.LZ4])
def test_columns_are_slices_of_their_data(kernels: Kernels, compression: Compression) -> None:
    batch = kernels.encode_records(RECORDS, **PLACE, attributes=compression)
    columns = kernels.decode_batch(b"noise" + batch, 5)
    assert columns.info == kernels.batch_headers(b"noise" + batch, 5)[0]
    assert columns.offsets.tolist() == [40, 41, 45]
    assert columns.timestamps_ms.tolist() == [1000, 990, 1005]
    assert columns.key_lengths.tolist() == [-1, 3, 0]
    assert columns.value_lengths.tolist() == [5, -1, 0]
    assert columns.header_starts.tolist() == [0, 0, 3, 3]
    assert columns.header_key_lengths.tolist() == [1, 1, 0]
    assert columns.header_value_lengths.tolist() == [1, -1, 0]
    data = bytes(columns.data)
    assert data[columns.value_starts[0] :][:5] == b"first"
    assert data[columns.key_starts[1] :][:3] == b"key"
    assert data[columns.header_key_starts[0] :][:1] == b"a"
    assert data[columns.header_value_starts[0] :][:1] == b"1"
    for array in columns[2:]:
        assert array.dtype == np.int64
        assert array.ndim == 1
    if compression == Compression.NONE:
        assert data == b"noise" + batch


def test_any_buffer_can_be_read(kernels: Kernels) -> None:
    batch = kernels.encode_records(RECORDS, **PLACE)
    for buffer in (bytearray(batch), memoryview(batch), np.frombuffer(batch, dtype=np.uint8)):
        assert kernels.decode_records(buffer) == RECORDS
        assert kernels.scan(buffer).valid_bytes == len(batch)


def test_log_append_time_is_every_records_timestamp(kernels: Kernels) -> None:
    batch = kernels.encode_records(RECORDS, **PLACE, attributes=Attribute.LOG_APPEND_TIME)
    assert [record.timestamp_ms for record in kernels.decode_records(batch)] == [1005] * 3
    assert kernels.decode_batch(batch).timestamps_ms.tolist() == [1005] * 3


def test_extreme_timestamps_wrap_and_come_back(kernels: Kernels) -> None:
    record = Record(b"", timestamp_ms=2**63 - 1)
    batch = kernels.encode_records([record], base_offset=0, leader_epoch=0, timestamp_ms=-(2**63))
    assert kernels.decode_records(batch)[0].timestamp_ms == 2**63 - 1
    assert kernels.decode_batch(batch).timestamps_ms.tolist() == [2**63 - 1]


def test_header_keys_that_are_no_text_do_not_stop_a_reader(kernels: Kernels) -> None:
    batch = kernels.encode_records([Record(b"", headers=(Header("AB", b""),))], **PLACE)
    broken = sealed(kernels, batch.replace(b"AB", b"\xff\xc3"))
    assert kernels.decode_records(broken)[0].headers == (Header("\ufffd\ufffd", b""),)


# --- faults of the header, by decode and by scan ----------------------------------------------------------------------


def faulty(kernels: Kernels) -> dict[str, tuple[bytes, BatchFault]]:
    good = kernels.encode_records(RECORDS, **PLACE)
    flipped = bytearray(good)
    flipped[-1] ^= 1
    return {
        "nothing": (b"", BatchFault.TRUNCATED),
        "eleven bytes": (good[:11], BatchFault.TRUNCATED),
        "one byte short": (good[:-1], BatchFault.TRUNCATED),
        "zero tail": (bytes(17), BatchFault.ZEROED),
        "long zero tail": (bytes(5000), BatchFault.ZEROED),
        "sixteen zeros": (bytes(16), BatchFault.LENGTH),
        "empty batch": (good[:8] + struct.pack(">i", 48) + good[12:], BatchFault.LENGTH),
        "negative length": (good[:8] + struct.pack(">i", -1) + good[12:], BatchFault.LENGTH),
        "magic 1": (good[:16] + b"\x01" + good[17:], BatchFault.MAGIC),
        "flipped bit": (bytes(flipped), BatchFault.CRC),
        "unknown compression": (with_field(kernels, good, ">h", 21, 5), BatchFault.ATTRIBUTES),
        "reserved attribute": (with_field(kernels, good, ">h", 21, 0x80), BatchFault.ATTRIBUTES),
        "highest attribute": (with_field(kernels, good, ">h", 21, -0x8000), BatchFault.ATTRIBUTES),
        "no records": (with_field(kernels, good, ">i", 57, 0), BatchFault.COUNT),
        "negative count": (with_field(kernels, good, ">i", 57, -1), BatchFault.COUNT),
        "negative delta": (with_field(kernels, good, ">i", 23, -1), BatchFault.COUNT),
        "more records than offsets": (with_field(kernels, good, ">i", 23, 1), BatchFault.COUNT),
        "negative offset": (with_field(kernels, good, ">q", 0, -1), BatchFault.OFFSET),
        "offsets run out": (with_field(kernels, good, ">q", 0, 2**63 - 6), BatchFault.OFFSET),
        "negative epoch": (with_field(kernels, good, ">i", 12, -1), BatchFault.EPOCH),
    }


FAULTS = list(faulty(__import__("fastquorum.kernels.pure", fromlist=["pure"])))


@pytest.mark.parametrize("name", FAULTS)
def test_faults_have_their_reason_and_place(kernels: Kernels, name: str) -> None:
    data, reason = faulty(kernels)[name]
    offset = struct.unpack_from(">q", data)[0] if len(data) >= 12 else -1
    stored, computed = -1, -1
    if reason is BatchFault.CRC:
        stored, computed = struct.unpack_from(">I", data, 17)[0], kernels.crc32c(data[21:])
    for decode in readers(kernels):
        with pytest.raises(CorruptionError) as caught:
            decode(b"xyz" + data, 3)
        assert caught.value == CorruptionError(reason, 3, offset, stored, computed)
    good = kernels.encode_values([b"before"], base_offset=39, leader_epoch=0, timestamp_ms=0)
    scan = kernels.scan(good + data)
    assert (scan.valid_bytes, scan.batch_count, scan.next_offset) == (len(good), 1, 40)
    if data:
        assert scan.fault == (reason, len(good), offset, stored, computed)
    else:
        assert scan.fault is None


def test_the_checksum_may_be_left_out(kernels: Kernels) -> None:
    data, _ = faulty(kernels)["flipped bit"]
    assert kernels.scan(data, verify_crc=False).fault is None
    assert kernels.decode_batch(kernels.encode_values([b"a"], **PLACE), verify_crc=False).info.crc_valid is None


def test_every_truncation_is_truncated(kernels: Kernels) -> None:
    batch = kernels.encode_records(RECORDS, **PLACE)
    for size in range(1, len(batch)):
        fault = kernels.scan(batch[:size]).fault
        assert fault is not None
        assert fault.reason is BatchFault.TRUNCATED
        with pytest.raises(CorruptionError) as caught:
            kernels.decode_batch(batch[:size])
        assert caught.value.reason == BatchFault.TRUNCATED


def test_every_flipped_bit_is_found(kernels: Kernels) -> None:
    """All but base offset and leader epoch (no checksum covers them; the log's continuity does)."""
    batch = kernels.encode_records(RECORDS, **PLACE)
    for i in [*range(8, 12), *range(16, len(batch))]:
        for bit in range(8):
            changed = bytearray(batch)
            changed[i] ^= 1 << bit
            assert kernels.scan(changed, expected_offset=40, epoch_min=2, epoch_max=2).fault is not None


# --- faults of the records --------------------------------------------------------------------------------------------


def records_section(kernels: Kernels, section: str, count: int = 1, last_delta: int = 0) -> bytes:
    header = kernels.encode_values([b"a"], **PLACE)[:61]
    batch = with_field(kernels, header + bytes.fromhex(section), ">i", 57, count)
    return with_field(kernels, batch, ">i", 23, last_delta)


@pytest.mark.parametrize(
    ("section", "count", "last_delta"),
    [
        ("", 1, 0),
        ("0e 00 00 00 01 02 61", 1, 0),  # cut before the header count
        ("0e 00 00 00 01 02 61 00 00", 1, 0),  # a byte left over behind the records
        ("10 00 00 00 01 02 61 00 00", 1, 0),  # a byte left over inside the record
        ("0c 00 00 00 01 02 61 00", 1, 0),  # longer than its length
        ("01 00 00 00 01 02 61 00", 1, 0),  # negative length
        ("00 00 00 00 01 02 61 00", 1, 0),  # length 0
        ("fe ff ff ff 0f 00 00 00 01", 1, 0),  # huge length
        ("80 80 80 80 80 00 00 00 00", 1, 0),  # varint of six bytes
        ("8e 80 80 80 10 00 00 00 01 02 61 00", 1, 0),  # varint above 32 bits
        ("0e 00 00 02 01 02 61 00", 1, 0),  # offset delta beyond the last
        ("0e 00 00 01 01 02 61 00", 1, 0),  # negative offset delta
        ("0c 00 00 00 01 01 00 0c 00 00 00 01 01 00", 2, 1),  # the same delta twice
        ("0e 00 00 00 03 02 61 00", 1, 0),  # key length -2
        ("0e 00 00 00 01 03 61 00", 1, 0),  # value length -2
        ("0e 00 00 00 01 08 61 00", 1, 0),  # value beyond the record
        ("0e 00 00 00 01 02 61 01", 1, 0),  # negative header count
        ("0e 00 00 00 01 02 61 02", 1, 0),  # a header that is not there
        ("12 00 00 00 01 02 61 02 01 01", 1, 0),  # header key null
        ("12 00 00 00 01 02 61 02 00 03", 1, 0),  # header value length -2
        ("0c 00 00 00 01 01 00", 2, 1),  # a record less than counted
        ("0c 00 00 00 01 01 00 0c 00 00 02 01 01 00", 1, 1),  # a record more than counted
        ("0c 00 00 00 01 01 00", 2**31 - 1, 2**31 - 1),  # a count that no memory holds
    ],
)
def test_records_that_do_not_parse(kernels: Kernels, section: str, count: int, last_delta: int) -> None:
    batch = records_section(kernels, section, count, last_delta)
    assert kernels.scan(batch).fault is None, "scan does not look at records"
    for decode in readers(kernels):
        with pytest.raises(CorruptionError) as caught:
            decode(b"." + batch, 1)
        assert caught.value == CorruptionError(BatchFault.RECORD, 1, 40)


def test_long_varints_and_a_kept_last_offset_are_no_fault(kernels: Kernels) -> None:
    padded = records_section(kernels, "90 80 00 00 00 00 01 82 00 61 00", last_delta=9)
    assert kernels.decode_records(padded) == [Record(b"a", timestamp_ms=1000, offset=40)]


def test_a_timestamp_delta_has_at_most_64_bits(kernels: Kernels) -> None:
    good = records_section(kernels, "1e 00 ff ff ff ff ff ff ff ff ff 01 00 01 01 00")
    wrapped = (1000 - 2**63 + 2**63) % 2**64 - 2**63
    assert kernels.decode_records(good)[0].timestamp_ms == wrapped
    for bad in (
        "1e 00 ff ff ff ff ff ff ff ff ff 03 00 01 01 00",
        "20 00 ff ff ff ff ff ff ff ff ff 81 00 00 01 01 00",
    ):
        with pytest.raises(CorruptionError):
            kernels.decode_records(records_section(kernels, bad))


def test_a_compressed_section_that_is_none(kernels: Kernels) -> None:
    for compression in list(Compression)[1:]:
        batch = kernels.encode_records(RECORDS, **PLACE, attributes=compression)
        broken = sealed(kernels, batch[:61] + b"nonsense" + batch[69:-9])
        for decode in readers(kernels):
            with pytest.raises(CorruptionError) as caught:
                decode(b"." + broken, 1)
            assert caught.value == CorruptionError(BatchFault.COMPRESSION, 1, 40)


def test_a_compressed_section_over_the_cap(kernels: Kernels) -> None:
    for compression in list(Compression)[1:]:
        batch = kernels.encode_values([bytes(10_000)], **PLACE, attributes=compression)
        size_bytes = len(kernels.encode_values([bytes(10_000)], **PLACE)) - 61
        assert kernels.decode_values(batch, decompressed_bytes_max=size_bytes) == [bytes(10_000)]
        for decode in readers(kernels):
            with pytest.raises(DecompressedTooLarge) as caught:
                decode(b"." + batch, 1, decompressed_bytes_max=size_bytes - 1)
            assert caught.value == DecompressedTooLarge(position=1, offset=40, limit_bytes=size_bytes - 1)


def test_a_position_outside_the_buffer_is_the_callers_mistake(kernels: Kernels) -> None:
    batch = kernels.encode_values([b"a"], **PLACE)
    for position in (-1, len(batch) + 1):
        for call in (*readers(kernels), kernels.scan):
            with pytest.raises(UsageError):
                call(batch, position)
        with pytest.raises(UsageError):
            kernels.batch_headers(batch, position)
