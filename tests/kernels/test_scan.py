"""Walking logs: the recovery scan, listing, slicing, and placing a client's batch."""

import pytest

from fastquorum.errors import CorruptionError, UsageError
from fastquorum.kernels import INDEX_INTERVAL_BYTES, Attribute, BatchFault, Compression, Kernels


def batch(
    kernels: Kernels,
    offset: int,
    epoch: int = 1,
    count: int = 1,
    size: int = 10,
    timestamp: int = 7,
    attributes: int = 0,
) -> bytes:
    return kernels.encode_values(
        [bytes(size)] * count, base_offset=offset, leader_epoch=epoch, timestamp_ms=timestamp, attributes=attributes
    )


def test_a_good_log(kernels: Kernels) -> None:
    parts = [
        batch(kernels, 10, 1, 2, timestamp=50),
        batch(kernels, 12, 1, attributes=Attribute.CONTROL),
        batch(kernels, 13, 4, 5, timestamp=90),
        batch(kernels, 18, 6, timestamp=80),
    ]
    scan = kernels.scan(b"#" * 9 + b"".join(parts), 9, expected_offset=10)
    assert scan == (
        *(sum(map(len, parts)), 4, 1, 9, 10, 19, 1, 6, 90),
        ((1, 10), (4, 13), (6, 18)),
        (),
        None,
    )


def test_an_empty_log(kernels: Kernels) -> None:
    assert kernels.scan(b"") == (0, 0, 0, 0, -1, -1, -1, -1, -1, (), (), None)
    assert kernels.scan(b"abc", 3, expected_offset=7).next_offset == 7
    assert kernels.batch_headers(b"") == []


def test_the_index_has_an_entry_every_interval(kernels: Kernels) -> None:
    size = len(batch(kernels, 0, size=1000))
    log = b"".join(batch(kernels, i, size=1000) for i in range(20))
    step = -(-INDEX_INTERVAL_BYTES // size)
    assert kernels.scan(b"#" + log, 1).index == tuple((i, 1 + i * size) for i in range(step, 20, step))
    filling = INDEX_INTERVAL_BYTES - 61 - 9
    exact = b"".join(batch(kernels, i, size=filling) for i in range(3))
    assert len(exact) == 3 * INDEX_INTERVAL_BYTES
    assert kernels.scan(exact).index == ((1, INDEX_INTERVAL_BYTES), (2, 2 * INDEX_INTERVAL_BYTES))


@pytest.mark.parametrize(
    ("second", "arguments", "reason"),
    [
        ((11, 1), {}, BatchFault.OFFSET),  # a gap
        ((9, 1), {}, BatchFault.OFFSET),  # an overlap
        ((10, 0), {}, BatchFault.EPOCH),  # a fall
        ((10, 3), {"epoch_max": 2}, BatchFault.EPOCH),
        ((10, 2), {"batch_bytes_max": 78}, BatchFault.LENGTH),
    ],
)
def test_what_does_not_continue(
    kernels: Kernels, second: tuple[int, int], arguments: dict[str, int], reason: BatchFault
) -> None:
    first = batch(kernels, 9, 1)
    assert len(first) == 78
    scan = kernels.scan(first + batch(kernels, *second, size=11 if reason is BatchFault.LENGTH else 10), **arguments)
    assert scan.valid_bytes == 78
    assert scan.next_offset == 10
    assert scan.fault == (reason, 78, second[0], -1, -1)


def test_where_a_log_must_begin(kernels: Kernels) -> None:
    log = batch(kernels, 9, 3)
    assert kernels.scan(log, expected_offset=8).fault == (BatchFault.OFFSET, 0, 9, -1, -1)
    assert kernels.scan(log, expected_offset=8).next_offset == 8
    assert kernels.scan(log, epoch_min=4).fault == (BatchFault.EPOCH, 0, 9, -1, -1)
    assert kernels.scan(log, epoch_min=4).last_epoch == -1
    assert kernels.scan(log, expected_offset=9, epoch_min=3, epoch_max=3).fault is None


def test_records_are_not_looked_at(kernels: Kernels) -> None:
    compressed = bytearray(batch(kernels, 0, attributes=Compression.GZIP))
    compressed[61:] = b"x" * (len(compressed) - 61)
    compressed[17:21] = kernels.crc32c(bytes(compressed[21:])).to_bytes(4, "big")
    assert kernels.scan(compressed).fault is None


def test_headers_of_a_damaged_log(kernels: Kernels) -> None:
    log = bytearray(batch(kernels, 0) + batch(kernels, 1) + batch(kernels, 2) + bytes(100))
    log[78 + 70] ^= 1
    infos = kernels.batch_headers(log)
    assert [(info.position, info.base_offset, info.crc_valid) for info in infos] == [
        (0, 0, True),
        (78, 1, False),
        (156, 2, True),
    ]
    assert [info.crc_valid for info in kernels.batch_headers(log, 78, verify_crc=False)] == [None, None]
    log[78 + 16] = 1
    assert len(kernels.batch_headers(log)) == 1


def test_slices_are_whole_batches(kernels: Kernels) -> None:
    log = batch(kernels, 10, count=3) + batch(kernels, 13, count=3) + batch(kernels, 20, count=3)
    size, n = len(log) // 3, len(log)
    assert kernels.slice_batches(log, 0, n) == (0, n)
    assert kernels.slice_batches(log, 12, n) == (0, n)
    assert kernels.slice_batches(log, 12, n - 1) == (0, 2 * size)
    assert kernels.slice_batches(log, 12, 0) == (0, size)
    assert kernels.slice_batches(log, 13, 2 * size) == (size, n)
    assert kernels.slice_batches(log, 16, size) == (2 * size, n), "in a gap: what follows it"
    assert kernels.slice_batches(log, 23, n) == (n, n)
    assert kernels.slice_batches(log[:-1], 10, n) == (0, 2 * size), "a cut batch is none"
    assert kernels.slice_batches(log[:-1], 22, n) == (n - 1, n - 1)
    assert kernels.slice_batches(b"", 0, 1) == (0, 0)


def test_a_stamped_batch_stays_valid(kernels: Kernels) -> None:
    mine = bytearray(batch(kernels, 0, 0, count=4))
    kernels.stamp_batch(mine, 2**40, 77)
    assert mine == batch(kernels, 2**40, 77, count=4)


def test_only_one_whole_batch_can_be_stamped(kernels: Kernels) -> None:
    good = batch(kernels, 5)
    for bad, reason in (
        (b"", BatchFault.TRUNCATED),
        (good[:-1], BatchFault.TRUNCATED),
        (bytes(78), BatchFault.ZEROED),
        (good[:8] + (20).to_bytes(4, "big") + good[12:], BatchFault.LENGTH),
        (good[:16] + b"\x00" + good[17:], BatchFault.MAGIC),
        (good + b"\x00", BatchFault.LENGTH),
    ):
        data = bytearray(bad)
        with pytest.raises(CorruptionError) as caught:
            kernels.stamp_batch(data, 1, 1)
        assert caught.value.reason == reason
        assert data == bad
    for offset, epoch in ((-1, 0), (0, -1), (2**63, 0), (0, 2**31)):
        with pytest.raises(UsageError):
            kernels.stamp_batch(bytearray(good), offset, epoch)


def test_headers_of_producers_batches_only(kernels: Kernels) -> None:
    log = b"".join(
        kernels.encode_values(
            [b"x"] * 3,
            base_offset=3 * number,
            leader_epoch=1,
            timestamp_ms=5,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=7,
        )
        for number, producer_id in enumerate((-1, 9, -1, 0, -1))
    )
    infos = kernels.batch_headers(log + b"tail", producers_only=True)
    assert [(info.base_offset, info.producer_id, info.base_sequence) for info in infos] == [(3, 9, 7), (9, 0, 7)]
    assert all(info.crc_valid for info in infos)
