"""What a snapshot covers is removed from the log: whatever crashes then, nothing from the new start on is lost."""

import random
import struct

import pytest

from fastquorum.errors import CorruptionError, OffsetOutOfRange
from fastquorum.kernels import Kernels, load
from fastquorum.storage.findings import Severity
from fastquorum.storage.log.mark import Mark, decode_mark, encode_mark, read_mark
from fastquorum.storage.log.snapshots import write_snapshot
from fastquorum.storage.names import DURABLE_MARK, LOG_DIRECTORY, join, parse_index, parse_segment, segment_name
from fastquorum.storage.offline import OfflineLog
from fastquorum.types import OffsetAndEpoch

from .logs import Rig, checkpoint
from .test_snapshot_crashes import SEEDS, check_it_goes_on, crashes, recoveries

EARLY, LATE = OffsetAndEpoch(9, 1), OffsetAndEpoch(19, 2)
MARK = join(LOG_DIRECTORY, DURABLE_MARK)


def rig_with_snapshots(kernels: Kernels) -> Rig:
    """Offsets 0 to 25 in epochs 1, 2 and 3 and five segments, two snapshots of its own; the last records not synced."""
    rig = Rig(kernels)
    for number in range(26):
        rig.append(1 if number < 12 else 2 if number < 20 else 3, b"%d" % number)
        if number == 23:
            rig.flush()
    for snapshot in (EARLY, LATE):
        batches = [checkpoint(kernels, snapshot)]
        state = write_snapshot(rig.disk, kernels, LOG_DIRECTORY, snapshot, batches)
        rig.log.snapshots.add(snapshot, state)
    rig.log.maintain(0)
    return rig


def bases(rig: Rig) -> list[int]:
    return [base for name in rig.disk.list(LOG_DIRECTORY) if (base := parse_segment(name)) is not None]


def test_whole_segments_go_and_the_log_begins_behind_them(kernels: Kernels) -> None:
    rig = rig_with_snapshots(kernels)
    before, old = rig.values(), bases(rig)
    freed = rig.log.bytes_before(LATE.offset)
    size = rig.log.sizes().size_bytes
    rig.log.remove_before(LATE.offset)
    start = rig.log.start_offset
    assert start == max(base for base in old if base <= LATE.offset) > EARLY.offset
    assert bases(rig) == [base for base in old if base >= start]
    assert rig.log.sizes().size_bytes == size - freed
    assert rig.values() == [value for value in before if value[0] >= start]
    assert rig.log.epochs.entries() == [(2, start), (3, 20)]
    assert list(rig.log.snapshots.ids) == [LATE]
    with pytest.raises(OffsetOutOfRange):
        rig.log.read(start - 1, 1)
    again = rig.reopen()
    assert again.values() == rig.values()
    assert again.log.epochs.entries() == [(2, start), (3, 20)]
    assert again.log.durable_mark.start_offset == start


def test_nothing_goes_from_the_segment_that_the_snapshot_ends_in(kernels: Kernels) -> None:
    rig = rig_with_snapshots(kernels)
    before = rig.values()
    rig.log.remove_before(3)
    assert rig.values() == before
    assert list(rig.log.snapshots.ids) == [EARLY, LATE]
    rig.log.remove_before(EARLY.offset)
    first = rig.log.start_offset
    assert 0 < first <= EARLY.offset
    assert list(rig.log.snapshots.ids) == [EARLY, LATE]


def test_indexes_of_closed_segments_go_with_them(kernels: Kernels) -> None:
    closed = rig_with_snapshots(kernels)
    closed.flush()
    closed.log.close()
    rig = Rig(kernels, closed.disk.copy())
    rig.log.remove_before(LATE.offset)
    left = [base for name in rig.disk.list(LOG_DIRECTORY) if (base := parse_index(name)) is not None]
    assert all(base >= rig.log.start_offset for base in left)


def test_a_crash_at_any_operation_leaves_the_old_start_or_the_new_one() -> None:
    kernels = load("pure")
    model = rig_with_snapshots(kernels)
    old, flushed_end = model.values(), model.log.flushed_end
    model.log.remove_before(LATE.offset)
    new_start = model.log.start_offset
    outcomes = set()
    for rig, crashed in crashes(lambda: rig_with_snapshots(kernels), lambda rig: rig.log.remove_before(LATE.offset)):
        for seed in range(SEEDS):
            disk = rig.disk.crash(random.Random(seed))
            assert OfflineLog(disk, kernels).verify().is_sound
            for recovered in recoveries(disk, kernels, seed):
                survivor = Rig(kernels, recovered.copy())
                start = survivor.log.start_offset
                assert start in (0, new_start)
                assert survivor.log.end_offset >= flushed_end
                assert survivor.values() == [each for each in old if start <= each[0] < survivor.log.end_offset]
                assert survivor.log.snapshots.latest == LATE
                outcomes.add(start)
                assert crashed or start == new_start
            check_it_goes_on(survivor)
    assert outcomes == {0, new_start}


def test_without_the_mark_a_half_removed_log_is_found_all_the_same() -> None:
    """The mark may be damaged: the earliest segments go first, so what is left has no gap."""
    kernels = load("pure")
    for rig, _ in crashes(lambda: rig_with_snapshots(kernels), lambda rig: rig.log.remove_before(LATE.offset)):
        disk = rig.disk.copy()
        disk.entries.pop(MARK, None)
        survivor = Rig(kernels, disk)
        assert survivor.log.end_offset == 26
        assert survivor.log.start_offset <= LATE.offset


def test_segments_left_below_the_start_are_told_and_swept_away(kernels: Kernels) -> None:
    rig = rig_with_snapshots(kernels)
    left = rig.disk.read_file(join(LOG_DIRECTORY, segment_name(0)))
    rig.log.remove_before(LATE.offset)
    rig.disk.write_file(join(LOG_DIRECTORY, segment_name(0)), left)
    found = OfflineLog(rig.disk, kernels).verify()
    assert found.is_sound
    assert [each.severity for each in found.findings if segment_name(0) in each.path] == [Severity.NOTE]
    assert found.start_offset == rig.log.start_offset
    again = rig.reopen()
    assert 0 not in bases(again)
    assert again.values() == rig.values()


def test_the_first_segment_missing_is_corruption(kernels: Kernels) -> None:
    rig = rig_with_snapshots(kernels)
    rig.log.remove_before(LATE.offset)
    rig.flush()
    rig.log.close()
    rig.disk.entries.pop(join(LOG_DIRECTORY, segment_name(rig.log.start_offset)))
    with pytest.raises(CorruptionError, match=segment_name(rig.log.start_offset)):
        rig.reopen()


def test_on_a_full_disk_what_is_prepared_makes_room_for_the_mark(kernels: Kernels) -> None:
    rig = rig_with_snapshots(kernels)
    rig.disk.room_bytes = 0
    rig.log.remove_before(LATE.offset)
    assert rig.log.start_offset > 0
    assert rig.disk.room_bytes > 0


def test_a_mark_of_the_second_version_is_read_and_knows_of_nothing_committed(kernels: Kernels) -> None:
    rig = rig_with_snapshots(kernels)
    rig.flush()
    rig.log.note_committed(rig.log.end_offset)
    rig.log.close()
    mark = read_mark(rig.disk, kernels, LOG_DIRECTORY)
    assert mark is not None
    assert mark.committed == mark.at.offset
    body = struct.pack(">8sIqqqqI", b"FQMARK\r\n", 2, *mark.at, mark.start_offset, mark.epochs_crc)
    old = body + kernels.crc32c(body).to_bytes(4, "big")
    assert decode_mark(kernels, old) == mark._replace(committed=0)
    rig.disk.write_file(MARK, old)
    assert rig.reopen().log.committed_offset == 0


def test_a_mark_of_the_first_version_is_read_and_begins_at_0(kernels: Kernels) -> None:
    rig = rig_with_snapshots(kernels)
    rig.flush()
    rig.log.close()
    mark = read_mark(rig.disk, kernels, LOG_DIRECTORY)
    assert mark is not None
    body = struct.pack(">8sIqqqI", b"FQMARK\r\n", 1, *mark.at, mark.epochs_crc)
    old = body + kernels.crc32c(body).to_bytes(4, "big")
    assert decode_mark(kernels, old) == Mark(mark.at, mark.epochs_crc, 0)
    rig.disk.write_file(MARK, old)
    again = rig.reopen()
    assert again.values() == rig.values()
    assert decode_mark(kernels, encode_mark(kernels, mark)) == mark
