"""kafka-python and aiokafka as independent oracles: what we write they read, and the other way round."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from aiokafka.record import default_records as aiokafka_records
from hypothesis import given, settings
from hypothesis import strategies as st

from fastquorum.kernels import Attribute, Compression, Header, Kernels, Record

from .strategies import blobs

with warnings.catch_warnings():
    # kafka-python loads its schemas by an importlib function that Python 3.11 deprecates.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record import default_records as kafka_records

READERS: dict[str, Callable[[bytes], Any]] = {
    "kafka-python": kafka_records.DefaultRecordBatch,
    "aiokafka": aiokafka_records.DefaultRecordBatch,
    "aiokafka in Python": aiokafka_records._DefaultRecordBatchPy,
}
BUILDERS: dict[str, Callable[..., Any]] = {
    "kafka-python": kafka_records.DefaultRecordBatchBuilder,
    "aiokafka": aiokafka_records.DefaultRecordBatchBuilder,
    "aiokafka in Python": aiokafka_records._DefaultRecordBatchBuilderPy,
}
NO_PRODUCER = {"producer_id": -1, "producer_epoch": -1, "base_sequence": -1}
RECORDS = st.lists(
    st.builds(
        Record,
        value=st.none() | blobs(),
        key=st.none() | blobs(20),
        headers=st.lists(st.builds(Header, st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=2).map(
            tuple
        ),
        timestamp_ms=st.integers(0, 2**41),
        offset=st.just(-1),
    ),
    min_size=1,
    max_size=8,
)


def numbered(records: Sequence[Record], base_offset: int) -> list[Record]:
    return [record._replace(offset=base_offset + i) for i, record in enumerate(records)]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("compression", Compression)
@settings(max_examples=25)
@given(records=RECORDS, base_offset=st.integers(0, 2**50))
def test_they_read_what_we_write(
    kernels: Kernels, reader: str, compression: Compression, records: list[Record], base_offset: int
) -> None:
    batch = kernels.encode_records(
        records,
        base_offset=base_offset,
        leader_epoch=3,
        timestamp_ms=records[0].timestamp_ms,
        attributes=compression | Attribute.TRANSACTIONAL,
        producer_id=77,
        producer_epoch=5,
        base_sequence=9,
    )
    theirs = READERS[reader](batch)
    assert theirs.validate_crc()
    assert (theirs.base_offset, theirs.magic, theirs.is_transactional) == (base_offset, 2, True)
    assert (theirs.producer_id, theirs.producer_epoch, theirs.base_sequence) == (77, 5, 9)
    assert theirs.max_timestamp == max(record.timestamp_ms for record in records)
    assert theirs.next_offset == base_offset + len(records)
    assert [as_record(record) for record in theirs] == numbered(records, base_offset)


@pytest.mark.parametrize("builder", BUILDERS)
@pytest.mark.parametrize("compression", Compression)
@settings(max_examples=25)
@given(records=RECORDS)
def test_we_read_what_they_write(
    kernels: Kernels, builder: str, compression: Compression, records: list[Record]
) -> None:
    # The last value makes every section worth compressing: a client leaves it uncompressed otherwise.
    records = [*records, Record(bytes(2000), timestamp_ms=1)]
    batch = build(builder, compression, records)
    kernels.stamp_batch(batch, 40, 2)
    (info,) = kernels.batch_headers(batch)
    assert info.compression == compression
    assert info.crc_valid
    assert kernels.decode_records(batch) == numbered(records, 40)
    assert kernels.decode_values(batch) == [record.value for record in records]


@pytest.mark.parametrize("builder", BUILDERS)
@settings(max_examples=40)
@given(records=RECORDS)
def test_uncompressed_they_write_the_same_bytes(kernels: Kernels, builder: str, records: list[Record]) -> None:
    theirs = build(builder, Compression.NONE, records)
    place = {"base_offset": 7, "leader_epoch": 1, "timestamp_ms": records[0].timestamp_ms}
    kernels.stamp_batch(theirs, 7, 1)
    assert kernels.encode_records(records, **place) == theirs


def build(builder: str, compression: Compression, records: Sequence[Record]) -> bytearray:
    batch = BUILDERS[builder](
        magic=2, compression_type=int(compression), is_transactional=False, batch_size=1 << 20, **NO_PRODUCER
    )
    for offset, record in enumerate(records):
        headers = [tuple(header) for header in record.headers]
        assert batch.append(offset, record.timestamp_ms, record.key, record.value, headers)
    return bytearray(batch.build())


def as_record(theirs: Any) -> Record:
    headers = tuple(Header(key, value) for key, value in theirs.headers)
    return Record(theirs.value, theirs.key, headers, theirs.timestamp, theirs.offset)
