"""What Apache Kafka 4.3.0 wrote: every batch is valid, as kafka-dump-log says, and encodes to the same bytes."""

import gzip
import re
from pathlib import Path

import pytest

from fastquorum.kernels import BatchInfo, Kernels

CLUSTER = Path(__file__).parents[1] / "golden" / "kafka-4.3.0" / "cluster"
SEGMENTS = sorted(CLUSTER.glob("c?/__cluster_metadata-0/*.log"))
CHECKPOINTS = sorted(CLUSTER.glob("c?/__cluster_metadata-0/*.checkpoint")) + sorted(CLUSTER.glob("c?/*.checkpoint"))
BATCH = re.compile(
    r"baseOffset: (\d+) lastOffset: (\d+) count: (\d+) baseSequence: (-?\d+) .*? producerId: (-?\d+) "
    r"producerEpoch: (-?\d+) partitionLeaderEpoch: (\d+) isTransactional: (\w+) isControl: (\w+) .*? "
    r"position: (\d+) CreateTime: (\d+) size: (\d+) magic: (\d+) compresscodec: none crc: (\d+) isvalid: (\w+)"
)
RECORD = re.compile(
    r"\| offset: (\d+) CreateTime: (\d+) keySize: (-?\d+) valueSize: (-?\d+) sequence: -1 headerKeys: \[\]"
)


def relative(path: Path) -> str:
    return str(path.relative_to(CLUSTER))


def test_the_golden_data_is_there() -> None:
    assert len(SEGMENTS) == 3
    assert len(CHECKPOINTS) == 29


@pytest.mark.parametrize("path", SEGMENTS + CHECKPOINTS, ids=relative)
def test_kafkas_files_are_valid_and_encode_to_the_same_bytes(kernels: Kernels, path: Path) -> None:
    data = path.read_bytes()
    scan = kernels.scan(data, expected_offset=0)
    assert scan.fault is None
    assert scan.valid_bytes == len(data)
    infos = kernels.batch_headers(data)
    assert len(infos) == scan.batch_count
    assert sum(info.records_count for info in infos) == scan.record_count == scan.next_offset
    assert sum(info.is_control for info in infos) == scan.control_count
    again = []
    for info in infos:
        place = {
            "base_offset": info.base_offset,
            "leader_epoch": info.leader_epoch,
            "timestamp_ms": info.base_timestamp_ms,
            "attributes": info.attributes,
        }
        records = kernels.decode_records(data, info.position)
        again.append(kernels.encode_records(records, **place))
        if not info.is_control:
            assert kernels.encode_values(kernels.decode_values(data, info.position), **place) == again[-1]
            columns = kernels.decode_batch(data, info.position)
            assert columns.key_lengths.tolist() == [-1] * info.records_count
            starts, lengths = columns.value_starts.tolist(), columns.value_lengths.tolist()
            values = [data[start : start + size] for start, size in zip(starts, lengths, strict=True)]
            assert values == [record.value for record in records]
    assert b"".join(again) == data


@pytest.mark.parametrize(
    ("dump", "file"),
    [
        ("dump-c1.txt.gz", "c1/__cluster_metadata-0/00000000000000000000.log"),
        ("dump-c2.txt.gz", "c2/__cluster_metadata-0/00000000000000000000.log"),
        ("dump-c1-checkpoint-3829.txt.gz", "c1/__cluster_metadata-0/00000000000000003829-0000000003.checkpoint"),
    ],
)
def test_kafkas_dump_says_the_same(kernels: Kernels, dump: str, file: str) -> None:
    text = gzip.decompress((CLUSTER / dump).read_bytes()).decode()
    data = (CLUSTER / file).read_bytes()
    infos = kernels.batch_headers(data)
    assert [batch.groups() for batch in BATCH.finditer(text)] == [dump_fields(info) for info in infos]
    records = [record for info in infos for record in kernels.decode_records(data, info.position)]
    assert [tuple(map(int, line.groups())) for line in RECORD.finditer(text)] == [
        (record.offset, record.timestamp_ms, size(record.key), size(record.value)) for record in records
    ]


def test_the_epochs_are_those_of_the_checkpoint(kernels: Kernels) -> None:
    for path in SEGMENTS:
        lines = (path.parent / "leader-epoch-checkpoint").read_text().splitlines()
        entries = tuple(tuple(map(int, line.split())) for line in lines[2:])
        assert kernels.scan(path.read_bytes()).epoch_starts == entries
        assert tuple(kernels.EpochCache(entries).entries()) == entries


def test_the_uncommitted_tail_of_the_last_leader_is_found(kernels: Kernels) -> None:
    c1, c2, c3 = (kernels.scan(path.read_bytes()) for path in SEGMENTS)
    assert (c1.next_offset, c2.next_offset, c3.next_offset) == (3836, 4447, 3836)
    start, end = kernels.slice_batches(SEGMENTS[1].read_bytes(), 3836, 2**31 - 1)
    assert end - start == 28_538


def size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def dump_fields(info: BatchInfo) -> tuple[str, ...]:
    """A header as kafka-dump-log prints it, in the order of BATCH."""
    fields = (
        *(info.base_offset, info.last_offset, info.records_count, info.base_sequence, info.producer_id),
        *(info.producer_epoch, info.leader_epoch, info.is_transactional, info.is_control, info.position),
        *(info.max_timestamp_ms, info.size_bytes, info.magic, info.crc, info.crc_valid),
    )
    return tuple(str(field).lower() for field in fields)
