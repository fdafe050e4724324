"""Parts that only show with much data: windows of a scan, the bounded tail in memory, index entries."""

import pytest

from fastquorum.config import QuorumConfig
from fastquorum.kernels import Kernels
from fastquorum.storage.log import recovery, scanning
from fastquorum.storage.log.index import decode_index
from fastquorum.storage.log.reading import walk
from fastquorum.storage.log.scanning import scan_segment
from fastquorum.storage.log.tail import RecentTail
from fastquorum.storage.names import LOG_DIRECTORY

from .logs import Rig

ROOMY = QuorumConfig(segment_bytes=1 << 20, preallocate_bytes=4096)
WINDOWS = [1, 11, 12, 16, 17, 60, 61, 100, 333, 5_000, 1 << 20]


def uneven_log(kernels: Kernels) -> Rig:
    rig = Rig(kernels, config=ROOMY)
    for number in range(60):
        rig.append(1 + number // 25, bytes([number]) * (number * 37 % 400), b"y")
    return rig


@pytest.mark.parametrize("window_bytes", WINDOWS)
def test_a_scan_finds_the_same_in_windows_of_any_size(
    kernels: Kernels, monkeypatch: pytest.MonkeyPatch, window_bytes: int
) -> None:
    rig = uneven_log(kernels)
    segment = rig.log._segments[0]
    index = kernels.OffsetIndex(0)
    monkeypatch.setattr(scanning, "BLOCK_BYTES", window_bytes)
    monkeypatch.setattr(recovery, "WINDOW_BYTES", window_bytes)
    scan = scan_segment(kernels, segment.file, 0, segment.file.size_bytes, expected_offset=0, epoch_min=0, index=index)
    assert (scan.batch_count, scan.record_count, scan.next_offset, scan.end_position) == (
        60,
        120,
        120,
        segment.size_bytes,
    )
    assert scan.epoch_starts == ((1, 0), (2, 50), (3, 100))
    assert len(index) >= 2
    for relative_offset, position in decode_index(index.encode()):
        data = segment.file.read(position, 10_000)
        assert kernels.batch_headers(data)[0].last_offset == relative_offset
    expected = rig.values()
    assert rig.reopen(rig.disk.copy()).values() == expected
    bad = bytearray(rig.disk.read_file(f"{LOG_DIRECTORY}/{0:020d}.log"))
    thirtieth = kernels.batch_headers(bad)[30]
    bad[thirtieth.position + 70] ^= 1
    torn = rig.disk.copy()
    torn.write_file(f"{LOG_DIRECTORY}/{0:020d}.log", bytes(bad))
    again = rig.reopen(torn)
    assert again.values() == expected[:60]
    assert again.log.torn_tail is not None
    assert again.log.torn_tail.position == thirtieth.position


def test_a_scan_finds_batches_about_as_long_as_what_it_reads_at_once(
    kernels: Kernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanning, "BLOCK_BYTES", 4096)
    rig = Rig(kernels, config=ROOMY)
    sizes = [*range(3_900, 4_150, 7), 8_100, 8_192, 12_000, 1, *range(4_000, 4_010)]
    for size in sizes:
        rig.append(1, bytes(size))
    segment = rig.log._segments[0]
    scan = scan_segment(kernels, segment.file, 0, segment.size_bytes, expected_offset=0, epoch_min=0)
    assert (scan.batch_count, scan.end_position, scan.fault) == (len(sizes), segment.size_bytes, None)


@pytest.mark.parametrize("window_bytes", WINDOWS)
def test_a_walk_sees_every_batch_once(kernels: Kernels, window_bytes: int) -> None:
    segment = uneven_log(kernels).log._segments[0]
    found = [
        (window.position + info.position, info.base_offset)
        for window in walk(kernels, segment.file, 0, segment.file.size_bytes, window_bytes=window_bytes)
        for info in window.batches
    ]
    whole = kernels.batch_headers(segment.file.read(0, segment.size_bytes))
    assert found == [(info.position, info.base_offset) for info in whole]


def test_the_tail_in_memory_is_bounded_and_honest(kernels: Kernels) -> None:
    tail = RecentTail(kernels, bytes_max=1_000)
    batches = []
    for number in range(40):
        size = 1 + number * 53 % 300
        batch = kernels.encode_values([b"x" * size], base_offset=number, leader_epoch=1, timestamp_ms=0)
        batches.append(batch)
        tail.append(number, batch)
    first = tail.start_offset
    assert first is not None
    assert 0 < first < 40
    assert tail.read(first - 1, 100) is None
    for offset in range(first, 40):
        for bytes_max in (1, 150, 400, 900, 5_000):
            data = tail.read(offset, bytes_max)
            assert data is not None
            count = 1
            while offset + count < 40 and sum(map(len, batches[offset : offset + count + 1])) <= bytes_max:
                count += 1
            assert data == b"".join(batches[offset : offset + count])
    tail.append(40, b"".join(batches[:10]) * 2)  # larger than the bound: nothing is held
    assert tail.start_offset is None
    assert tail.read(40, 1) is None


def test_reads_respect_their_bound(kernels: Kernels) -> None:
    rig = uneven_log(kernels)
    for log in (rig.log, rig.reopen().log):
        for offset in range(0, 120, 7):
            for bytes_max in (1, 500, 2_000):
                data = log.read(offset, bytes_max)
                infos = kernels.batch_headers(data)
                assert infos[0].base_offset <= offset <= infos[0].last_offset
                assert len(data) <= max(bytes_max, infos[0].size_bytes)
                assert sum(info.size_bytes for info in infos) == len(data)
