"""The log of one replica: appending, syncing, truncating, rolling, reading back."""

import random
import tracemalloc
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from fastquorum.config import QuorumConfig
from fastquorum.errors import FsyncFailed, OffsetOutOfRange, StorageFailed
from fastquorum.kernels import Kernels, load
from fastquorum.kernels.lane import LaneLog
from fastquorum.raft.ports import LogView
from fastquorum.storage.log import reading
from fastquorum.storage.log.flushing import FlushResult
from fastquorum.storage.log.preparing import AHEAD_LEAST_BYTES, AHEAD_STEP_BYTES
from fastquorum.storage.names import DURABLE_MARK, EPOCH_CHECKPOINT, LOG_DIRECTORY, parse_index

from .logs import Rig


def test_an_empty_log_begins_at_zero_and_serves_the_lane_and_raft(kernels: Kernels) -> None:
    rig = Rig(kernels)
    lane_view: LaneLog = rig.log
    raft_view: LogView = rig.log
    assert (lane_view.start_offset, lane_view.end_offset, lane_view.flushed_end) == (0, 0, 0)
    assert (raft_view.last_epoch, raft_view.end_offset_for(3), raft_view.epoch_for(0)) == (0, (-1, -1), -1)
    assert rig.log.read(0, 100) == b""


def test_what_is_appended_is_read_back_from_memory_and_after_reopening(kernels: Kernels) -> None:
    rig = Rig(kernels)
    first, second = rig.append(1, b"a", b"b"), rig.append(2, b"c")
    assert rig.log.read(0, 1000) == first + second
    assert rig.log.read(1, 1) == first  # at least one batch
    assert rig.log.read(2, 1000) == second
    rig.flush()
    again = rig.reopen()
    assert again.values() == [(0, 1, b"a"), (1, 1, b"b"), (2, 2, b"c")]
    assert again.log.epochs.entries() == [(1, 0), (2, 2)]
    assert again.log.flushed_end == 3


def test_a_span_of_mixed_epochs_is_appended_as_scanned(kernels: Kernels) -> None:
    leader, follower = Rig(kernels), Rig(kernels)
    span = leader.append(1, b"a") + leader.append(1, b"b") + leader.append(4, b"c")
    cut = span + b"\0" * 5
    follower.log.append_scanned(cut, kernels.scan(cut, expected_offset=0))
    assert follower.values() == leader.values()
    assert [follower.log.epoch_for(offset) for offset in range(4)] == [1, 1, 4, -1]
    assert follower.log.end_offset_for(2) == (1, 2)


def test_segments_roll_and_old_ones_are_trimmed(kernels: Kernels) -> None:
    rig = Rig(kernels)
    for number in range(20):
        rig.append(1, b"%d" % number)
    names = [name for name in rig.disk.list(LOG_DIRECTORY) if name.endswith(".log")]
    assert len(names) > 2
    for name in names[:-1]:
        data = rig.disk.read_file(f"{LOG_DIRECTORY}/{name}")
        assert kernels.scan(data).fault is None
        assert kernels.scan(data).first_offset == int(name[:20])
    assert [value for _, _, value in rig.values()] == [b"%d" % number for number in range(20)]
    assert [value for _, _, value in rig.reopen().values()] == [b"%d" % number for number in range(20)]


def test_a_segment_may_end_before_it_is_full_but_not_before_it_has_something(kernels: Kernels) -> None:
    rig = Rig(kernels)
    rig.log.roll()
    rig.append(1, b"a")
    rig.log.roll()
    rig.log.roll()
    rig.append(1, b"b")
    names = [name for name in rig.disk.list(LOG_DIRECTORY) if name.endswith(".log")]
    assert [int(name[:20]) for name in names] == [0, 1]
    assert [value for _, _, value in rig.reopen().values()] == [b"a", b"b"]


def test_a_segment_holds_no_more_records_than_its_index_can_address(kernels: Kernels) -> None:
    rig = Rig(kernels)
    rig.append_crowded(1, 2**30)
    assert rig.log.fits(100, 2**30)
    assert not rig.log.fits(100, 2**30 + 1)
    assert rig.log.make_room(100, 2**30 + 1)
    assert rig.bases() == [0, 2**30]


@pytest.mark.parametrize("count", [2**31 - 1, 2**31])
def test_an_empty_segment_takes_whatever_a_batch_counts(kernels: Kernels, count: int) -> None:
    rig = Rig(kernels)
    for number in range(3):
        assert rig.log.make_room(100, count)
        rig.append_crowded(1, count)
        assert rig.log.end_offset == (number + 1) * count
    assert rig.bases() == [0, count, 2 * count]
    rig.flush()
    assert rig.reopen().log.end_offset == 3 * count


def test_an_empty_segment_does_not_take_more_records_than_it_can_address(kernels: Kernels) -> None:
    assert not Rig(kernels).log.fits(200, 2**31 + 1)


def test_the_next_segment_is_made_ready_before_it_is_needed(kernels: Kernels) -> None:
    rig = Rig(kernels)
    name = f"{LOG_DIRECTORY}/next-segment.tmp"
    while name not in rig.disk.entries:
        rig.append(1, b"x" * 40)
        rig.log.maintain(0)
    spare = rig.disk.entries[name]
    while len(rig.log._segments) == 1:
        rig.append(1, b"x" * 40)
    assert rig.disk.entries[f"{LOG_DIRECTORY}/{rig.log._segments[1].base_offset:020d}.log"] is spare
    assert len(rig.reopen().values()) == rig.log.end_offset
    rig.log.maintain(0)
    rig.log.close()
    assert name not in rig.disk.entries


def test_a_closed_log_has_no_zero_tail_and_a_mark_at_its_end(kernels: Kernels) -> None:
    rig = Rig(kernels)
    batches = rig.append(1, b"a") + rig.append(3, b"b")
    rig.log.close()
    assert rig.disk.read_file(f"{LOG_DIRECTORY}/{0:020d}.log") == batches
    assert rig.disk.read_file(f"{LOG_DIRECTORY}/{EPOCH_CHECKPOINT}") == b"0\n2\n1 0\n3 1\n"
    assert rig.log.durable_mark.at == (2, 0, len(batches))
    with pytest.raises(StorageFailed):
        rig.append(3, b"c")


def test_the_end_of_a_flush_is_sampled_before_it_begins(kernels: Kernels) -> None:
    rig = Rig(kernels)
    rig.append(1, b"a")
    rig.log.request_flush()
    rig.append(1, b"b")
    rig.log.request_flush()
    assert len(rig.flusher.pending) == 1
    assert rig.log.flush_done(rig.flusher.run(), 0) == FlushResult(0, 1)
    assert rig.log.flushed_end == 1
    assert rig.log.is_flushing  # what was written meanwhile
    assert rig.log.flush_done(rig.flusher.run(), 0) == FlushResult(0, 2)
    assert not rig.log.is_flushing


def test_a_flush_that_a_truncation_overtook_says_nothing(kernels: Kernels) -> None:
    rig = Rig(kernels)
    rig.append(1, b"a")
    rig.flush()
    rig.append(1, b"b")
    rig.append(1, b"c")
    rig.log.request_flush()
    rig.log.truncate_to(1)
    rig.append(2, b"B")
    rig.append(2, b"C")
    assert rig.log.flush_done(rig.flusher.run(), 0) is None
    assert rig.log.flushed_end == 1
    rig.flush()
    assert rig.log.flushed_end == 3
    assert rig.values() == [(0, 1, b"a"), (1, 2, b"B"), (2, 2, b"C")]


def test_a_roll_during_a_flush_leaves_both_files_to_the_next_one(kernels: Kernels) -> None:
    rig = Rig(kernels)
    rig.append(1, b"a")
    rig.log.request_flush()
    while len(rig.log._segments) == 1:
        rig.append(1, b"x" * 50)
    assert rig.log.flushed_end == 0
    assert rig.log.flush_done(rig.flusher.run(), 0) == FlushResult(0, 1)
    rig.log.request_flush()
    assert len(rig.flusher.pending[0][1]) == 2
    rig.log.flush_done(rig.flusher.run(), 0)
    assert rig.log.flushed_end == rig.log.end_offset


def test_a_failed_flush_latches_the_log(kernels: Kernels) -> None:
    rig = Rig(kernels)
    rig.append(1, b"a")
    rig.log.request_flush()
    token, _ = rig.flusher.pending.pop()
    with pytest.raises(FsyncFailed) as caught:
        rig.log.flush_done(token, 5)
    assert caught.value.errno_code == 5
    assert rig.log.failed
    assert rig.log.flushed_end == 0
    for refused in (lambda: rig.append(1, b"b"), rig.log.request_flush, lambda: rig.log.truncate_to(0)):
        with pytest.raises(StorageFailed):
            refused()


def test_nothing_is_written_once_the_flusher_has_failed_though_nobody_has_said_so_yet(kernels: Kernels) -> None:
    rig = Rig(kernels)
    rig.append(1, b"a")
    rig.log.request_flush()
    rig.flusher.failed = True
    with pytest.raises(StorageFailed):
        rig.append(1, b"b")
    assert rig.log.end_offset == 1


@pytest.mark.parametrize("end", range(13))
def test_truncation_follows_in_epochs_segments_and_after_reopening(kernels: Kernels, end: int) -> None:
    rig = Rig(kernels)
    for number in range(12):
        rig.append(1 + number // 4, b"%d" % number * 30)
    rig.flush()
    expected = rig.values()[:end]
    generation = rig.log.generation
    assert rig.log.truncate_to(end) == end
    assert rig.log.generation == generation + (end < 12)
    assert (rig.log.end_offset, rig.log.flushed_end) == (end, end)
    assert rig.log.last_epoch == (expected[-1][1] if expected else 0)
    assert rig.values() == expected
    again = rig.reopen()
    assert again.values() == expected
    rig.append(9, b"after")
    rig.flush()
    assert rig.reopen().values() == [*expected, (end, 9, b"after")]


def test_truncation_inside_a_batch_removes_it(kernels: Kernels) -> None:
    rig = Rig(kernels)
    rig.append(1, b"a")
    rig.append(1, b"b", b"c", b"d")
    assert rig.log.truncate_to(2) == 1
    assert rig.values() == [(0, 1, b"a")]


def test_offsets_outside_are_refused(kernels: Kernels) -> None:
    rig = Rig(kernels)
    rig.append(1, b"a")
    for offset in (-1, 2):
        with pytest.raises(OffsetOutOfRange) as caught:
            rig.log.read(offset, 10)
        assert (caught.value.offset, caught.value.start_offset, caught.value.end_offset) == (offset, 0, 1)
        with pytest.raises(OffsetOutOfRange):
            rig.log.truncate_to(offset)


def test_reads_from_disk_find_every_offset(kernels: Kernels) -> None:
    rig = Rig(kernels, config=QuorumConfig(segment_bytes=40_000, preallocate_bytes=4096))
    for number in range(120):
        rig.append(1, *(b"%d" % number * 20 for _ in range(1 + number % 7)))
    rig.flush()
    expected = rig.values()
    again = rig.reopen()  # nothing in memory
    assert again.values() == expected
    for offset, _, value in expected:
        data = again.log.read(offset, 1)
        assert any(record.offset == offset and record.value == value for record in kernels.decode_records(data))
        assert rig.log.read(offset, 3_000)[: len(data)] == data


def test_no_index_outlives_its_segment(kernels: Kernels) -> None:
    """One that is left alone tells of a segment that was lost, where the durable mark is lost, too."""
    rig = Rig(kernels, config=QuorumConfig(segment_bytes=40_000, preallocate_bytes=4096))
    for number in range(40):
        rig.append(1, b"%d" % number * 3000)
    rig.flush()
    rig.log.close()
    again = rig.reopen()
    indexed = indexed_bases(again)
    assert len(indexed) > 1
    again.log.truncate_to(1)
    assert indexed_bases(again) <= {0}
    again.log.close()
    again.disk.remove(f"{LOG_DIRECTORY}/{DURABLE_MARK}")
    assert again.reopen().values() == rig.values()[:1]


def indexed_bases(rig: Rig) -> set[int]:
    return {base for name in rig.disk.list(LOG_DIRECTORY) if (base := parse_index(name)) is not None}


def test_the_index_forgets_what_was_truncated(kernels: Kernels) -> None:
    rig = Rig(kernels, config=QuorumConfig(segment_bytes=100_000, preallocate_bytes=4096))
    for number in range(40):
        rig.append(1, b"%d" % number * 300)
    rig.log.truncate_to(10)
    for number in range(10, 60):
        rig.append(2, b"n%d" % number * 77)
    expected = rig.values()
    rig.log._tail.clear()
    assert rig.values() == expected
    for offset in range(60):
        assert kernels.decode_values(rig.log.read(offset, 1)) == [expected[offset][2]]


@pytest.mark.parametrize("value_bytes", [100, 3_000])
def test_a_log_is_looked_through_once_however_often_it_is_asked_for_timestamps(
    kernels: Kernels, monkeypatch: pytest.MonkeyPatch, value_bytes: int
) -> None:
    monkeypatch.setattr(reading, "WINDOW_BYTES", 2_000)
    rig = Rig(kernels, config=QuorumConfig(segment_bytes=100_000, preallocate_bytes=4096))
    times: list[int] = []

    def append(count: int) -> None:
        for _ in range(count):
            times.append(1_000 + 7 * (len(times) * 37 % 101))
            rig.append(1, bytes(value_bytes), timestamp_ms=times[-1])

    def check() -> None:
        for wanted in range(990, 1_720, 13):
            first = next((at for at, time_ms in enumerate(times) if time_ms >= wanted), None)
            found = rig.log.offset_for_timestamp(wanted)
            assert (None if found is None else found.offset) == first
        for end in range(0, len(times) + 1, 3):
            assert rig.log.max_timestamp_below(end) == max(times[:end], default=-1)

    append(30)
    check()
    append(60)
    rig.log.truncate_to(45)
    del times[45:]
    append(40)
    check()
    reads: list[int] = []
    for segment in rig.log._segments:
        read = segment.file.read

        def counted(position: int, size: int, read: Callable[[int, int], bytes] = read) -> bytes:
            reads.append(size)
            return read(position, size)

        monkeypatch.setattr(segment, "file", SimpleNamespace(read=counted, path=""))
    for wanted in range(1_000, 1_700, 7):
        reads.clear()
        rig.log.offset_for_timestamp(wanted)
        assert sum(reads) <= 2_000 + 2 * (value_bytes + 100)


def test_records_are_found_by_timestamp(kernels: Kernels) -> None:
    rig = Rig(kernels)
    for number in range(12):
        rig.append(1, b"x" * 30, b"y", timestamp_ms=1_000 + 10 * number)
    assert rig.log.max_timestamp_below(rig.log.end_offset) == 1_110
    for log in (rig.log, rig.reopen().log):
        assert log.offset_for_timestamp(0) == (1_000, 0, 1)
        assert log.offset_for_timestamp(1_051) == (1_060, 12, 1)
        assert log.offset_for_timestamp(1_110) == (1_110, 22, 1)
        assert log.offset_for_timestamp(1_111) is None


def test_no_objects_are_made_of_a_batch_that_is_looked_at_for_a_timestamp() -> None:
    count = 20_000
    rig = Rig(load("native"))
    rig.append(1, *[b"x" * 20] * count, timestamp_ms=1_000)
    tracemalloc.start()
    assert rig.log.offset_for_timestamp(1_000) == (1_000, 0, 1)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 150 * count  # the batch itself twice, and columns of it; as objects each has twice as much


def test_an_append_leaves_zeros_in_front_of_the_writer_where_upkeep_does_not(kernels: Kernels) -> None:
    rig = Rig(kernels, config=QuorumConfig(segment_bytes=8 << 20, preallocate_bytes=2 << 20))
    ends = set()
    for _ in range(200):
        rig.append(1, b"x" * 30_000)
        segment = rig.log._segments[-1]
        assert segment.prepared_bytes - segment.size_bytes >= AHEAD_LEAST_BYTES
        assert segment.file.size_bytes == segment.prepared_bytes
        ends.add(segment.prepared_bytes)
    assert sorted(ends) == [megabytes << 20 for megabytes in range(2, 7)]
    before = segment.prepared_bytes
    rig.log.maintain(now_us=0)
    assert segment.prepared_bytes == before + AHEAD_STEP_BYTES, "however much was appended"


def test_what_is_committed_is_in_the_mark_as_far_as_it_is_synced_and_known_after_a_crash(kernels: Kernels) -> None:
    rig = Rig(kernels, config=QuorumConfig(segment_bytes=100_000, mark_interval_us=1_000))
    rig.append(1, b"a", b"b")
    rig.flush()
    rig.append(1, b"c")
    rig.log.note_committed(3)
    rig.log.note_committed(1)
    assert rig.log.committed_offset == 3
    rig.log.maintain(now_us=0)
    assert (rig.log.durable_mark.at.offset, rig.log.durable_mark.committed) == (2, 2)
    rig.log.maintain(now_us=1_000)
    again = rig.reopen(rig.disk.crash(random.Random(1)))
    assert again.log.committed_offset == 2
    again.log.close()
    assert again.reopen().log.committed_offset == 2


def test_maintain_renews_the_mark_when_due_and_prepares_zeros(kernels: Kernels) -> None:
    rig = Rig(kernels, config=QuorumConfig(segment_bytes=100_000, preallocate_bytes=1024, mark_interval_us=1_000))
    rig.append(1, b"a")
    rig.log.maintain(now_us=5)
    assert rig.log.durable_mark.at.offset == 0  # nothing is synced yet
    rig.flush()
    rig.log.maintain(now_us=1_004)
    assert rig.log.durable_mark.at.offset == 0
    rig.log.maintain(now_us=1_005)
    assert rig.log.durable_mark.at.offset == 1
    written = rig.disk.read_file(f"{LOG_DIRECTORY}/{DURABLE_MARK}")
    for _ in range(30):
        rig.append(1, b"x" * 40)
        rig.log.maintain(now_us=1_006)
        segment = rig.log._segments[-1]
        assert segment.prepared_bytes - segment.size_bytes >= 256
        assert segment.file.size_bytes == segment.prepared_bytes
    assert rig.disk.read_file(f"{LOG_DIRECTORY}/{DURABLE_MARK}") == written
