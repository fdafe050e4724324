"""Batches that Apache Kafka 4.3.0 compressed: they hold what the plain one holds, to the byte."""

from pathlib import Path

import pytest

from fastquorum.kernels import Compression, Header, Kernels, Record
from fastquorum.kernels.compression import compress, decompress

GOLDEN = Path(__file__).parent / "golden"


def golden(compression: Compression) -> bytes:
    return (GOLDEN / f"kafka-{compression.name.lower()}.batch").read_bytes()


def made_of(i: int) -> Record:
    """Record i of the recipe in golden/README.md."""
    return Record(
        value=None if i % 7 == 0 else b"value %d " % i * (i * 3 % 20),
        key=None if i % 3 == 0 else b"key %d" % i,
        headers=(Header("h", b"\x01"), Header("n", None)) if i % 5 == 0 else (),
        timestamp_ms=1_700_000_000_000 + i,
        offset=100 + i,
    )


@pytest.mark.parametrize("compression", Compression)
def test_kafkas_batch_is_read(kernels: Kernels, compression: Compression) -> None:
    batch = golden(compression)
    records = kernels.decode_records(batch)
    assert records[:200] == [made_of(i) for i in range(200)]
    assert len(records[200].value or b"") == 1500
    info = kernels.decode_batch(batch).info
    assert (info.compression, info.crc_valid, info.is_transactional) == (compression, True, True)
    assert (info.base_offset, info.last_offset, info.leader_epoch, info.records_count) == (100, 300, 6, 201)
    assert (info.base_timestamp_ms, info.max_timestamp_ms) == (1_700_000_000_000, 1_700_000_000_199)
    plain = kernels.encode_records(
        records,
        base_offset=100,
        leader_epoch=6,
        timestamp_ms=info.base_timestamp_ms,
        attributes=info.attributes - compression,
        producer_id=77,
        producer_epoch=3,
        base_sequence=9,
    )
    assert plain == golden(Compression.NONE)


@pytest.mark.parametrize("compression", list(Compression)[1:])
def test_kafkas_section_is_the_plain_one(compression: Compression) -> None:
    plain, packed = golden(Compression.NONE)[61:], golden(compression)[61:]
    assert decompress(compression, packed, len(plain)) == plain


@pytest.mark.parametrize(("compression", "size"), [(Compression.SNAPPY, 16), (Compression.LZ4, 7)])
def test_we_frame_as_kafka_does(compression: Compression, size: int) -> None:
    plain = golden(Compression.NONE)[61:]
    assert compress(compression, plain)[:size] == golden(compression)[61 : 61 + size]
