"""Recovery: torn tails are cut, corruption is refused, and neither is mistaken for the other."""

import random

import pytest

from fastquorum.errors import CorruptionError, DirectoryError
from fastquorum.kernels import BatchFault, Kernels
from fastquorum.storage.log.mark import VERSION, encode_mark, read_mark
from fastquorum.storage.log.recovery import recover
from fastquorum.storage.names import DURABLE_MARK, EPOCH_CHECKPOINT, LOG_DIRECTORY
from fastquorum.storage.offline import OfflineLog
from fastquorum.storage.verifying import verify_log
from fastquorum.types import OffsetAndEpoch

from .fake_disk import Crashed, FakeDisk
from .logs import Rig, checkpoint, checkpoint_path, every_flip

FIRST = f"{LOG_DIRECTORY}/{0:020d}.log"
MARK = f"{LOG_DIRECTORY}/{DURABLE_MARK}"


def small_log(kernels: Kernels) -> tuple[Rig, list[int]]:
    """Three epochs, two segments, closed; and where each batch of the first segment ends."""
    rig = Rig(kernels)
    for number in range(9):
        rig.append(1 + number // 3, b"%d" % number, b"v")
    rig.log.close()
    data = rig.disk.read_file(FIRST)
    return rig, [0, *(info.position + info.size_bytes for info in kernels.batch_headers(data))]


def unmarked(disk: FakeDisk) -> FakeDisk:
    """Return the disk as Apache Kafka would have left it."""
    copy = disk.copy()
    copy.remove(MARK)
    return copy


def test_a_clean_directory_is_left_as_it_is_but_for_prepared_zeros(kernels: Kernels) -> None:
    rig, _ = small_log(kernels)
    before = rig.disk.contents()
    again = rig.reopen()
    assert again.values() == rig.reopen(rig.disk.copy()).values()
    again.log.close()
    assert again.disk.contents() == before


@pytest.mark.parametrize("has_mark", [True, False])
def test_a_tail_torn_at_any_byte_is_cut_to_the_last_whole_batch(kernels: Kernels, has_mark: bool) -> None:
    rig = Rig(kernels)
    rig.append(1, b"a")
    rig.flush()
    rig.log.maintain(0)
    marked = rig.log.durable_mark.at.position
    rig.append(1, b"b", b"c")
    rig.append(2, b"d")
    disk = rig.disk.copy() if has_mark else unmarked(rig.disk)
    whole = disk.read_file(FIRST)
    ends = {info.position + info.size_bytes: info.last_offset + 1 for info in kernels.batch_headers(whole)}
    for size in range(marked if has_mark else 0, rig.log._segments[0].size_bytes):
        for tail in (b"", bytes(40), b"\xff" * 7 + bytes(33)):
            left = whole[:size] + tail
            expected = max((end for at, end in ends.items() if left[:at] == whole[:at]), default=0)
            torn = disk.copy()
            torn.write_file(FIRST, left)
            again = rig.reopen(torn)
            assert again.log.end_offset == expected, (size, tail)
            position = again.log._segments[0].size_bytes
            assert set(torn.read_file(FIRST)[position:]) <= {0}
            again.append(7, b"new")
            again.flush()
            assert again.reopen().values() == again.values()


def test_below_the_mark_every_truncation_is_corruption_and_changes_nothing(kernels: Kernels) -> None:
    rig, _ = small_log(kernels)
    whole = rig.disk.read_file(FIRST)
    for size in range(len(whole)):
        cut = rig.disk.copy()
        cut.write_file(FIRST, whole[:size])
        before = cut.contents()
        with pytest.raises(CorruptionError) as caught:
            rig.reopen(cut)
        assert caught.value.path.endswith(".log")
        assert cut.contents() == before


def test_a_flip_of_any_bit_of_any_byte_is_detected_or_harmless(kernels: Kernels) -> None:
    rig, _ = small_log(kernels)
    truth = rig.reopen(rig.disk.copy())
    expected, epochs = truth.values(), truth.log.epochs.entries()
    detected = harmless = 0
    for name, at, bad in every_flip(rig.disk):
        before = bad.contents()
        try:
            again = rig.reopen(bad)
        except (CorruptionError, DirectoryError):
            detected += 1
            assert bad.contents() == before
            continue
        harmless += 1
        assert not name.endswith(".log"), (name, at)
        assert again.values() == expected, (name, at)
        assert again.log.epochs.entries() == epochs, (name, at)
    assert detected > 500
    assert harmless > 0


def test_corruption_below_the_mark_is_reported_with_everything(kernels: Kernels) -> None:
    rig, ends = small_log(kernels)
    data = bytearray(rig.disk.read_file(FIRST))
    data[ends[2] - 1] ^= 0xFF
    rig.disk.write_file(FIRST, bytes(data))
    with pytest.raises(CorruptionError) as caught:
        rig.reopen()
    error = caught.value
    assert (error.reason, error.position, error.offset) == (BatchFault.CRC, ends[1], 2)
    assert error.path == f"/fake/{FIRST}"
    assert error.stored_crc != error.computed_crc
    assert error.computed_crc >= 0


def test_without_a_mark_a_bad_batch_before_a_good_one_is_corruption(kernels: Kernels) -> None:
    rig, ends = small_log(kernels)
    disk = unmarked(rig.disk)
    data = bytearray(disk.read_file(FIRST))
    data[ends[1] + 30] ^= 1
    disk.write_file(FIRST, bytes(data))
    before = disk.contents()
    with pytest.raises(CorruptionError) as caught:
        rig.reopen(disk)
    assert caught.value.position == ends[1]
    assert disk.contents() == before


@pytest.mark.parametrize("zeros", [0, 500], ids=["closed", "with zeros laid ahead"])
def test_without_a_mark_one_good_batch_behind_is_enough(kernels: Kernels, zeros: int) -> None:
    """Even if it ends in a zero, as batches without record headers do, and more zeros follow."""
    rig = Rig(kernels)
    for value in (b"a", b"b", b"c"):
        rig.append(1, value)
    rig.log.close()
    disk = unmarked(rig.disk)
    data = bytearray(disk.read_file(FIRST))
    assert data[-1] == 0
    second = kernels.batch_headers(bytes(data))[1].position
    data[second + 30] ^= 1
    disk.write_file(FIRST, bytes(data) + bytes(zeros))
    assert not OfflineLog(disk, kernels).verify().is_sound
    with pytest.raises(CorruptionError) as caught:
        rig.reopen(disk)
    assert caught.value.position == second


def test_without_a_mark_a_bad_last_batch_is_a_torn_tail(kernels: Kernels) -> None:
    rig, _ = small_log(kernels)
    disk = unmarked(rig.disk)
    last = [name for name in disk.list(LOG_DIRECTORY) if name.endswith(".log")][-1]
    name = f"{LOG_DIRECTORY}/{last}"
    data = bytearray(disk.read_file(name))
    data[-1] ^= 1
    disk.write_file(name, bytes(data))
    expected = rig.reopen(rig.disk.copy()).values()[:-2]
    again = rig.reopen(disk)
    assert again.values() == expected
    assert again.log.torn_tail is not None
    assert again.log.torn_tail.reason is BatchFault.CRC


def test_a_bad_batch_above_the_mark_takes_whatever_follows_with_it(kernels: Kernels) -> None:
    rig = Rig(kernels)
    rig.append(1, b"a")
    rig.flush()
    rig.log.maintain(0)
    for number in range(3):
        rig.append(1, b"%d" % number)
    data = bytearray(rig.disk.read_file(FIRST))
    second = kernels.batch_headers(data)[1]
    data[second.position + 25] ^= 1
    rig.disk.write_file(FIRST, bytes(data))
    assert rig.reopen().values() == [(0, 1, b"a")]


@pytest.mark.parametrize("is_missing", [True, False])
def test_no_bad_end_is_torn_that_a_later_segment_goes_on_from(kernels: Kernels, *, is_missing: bool) -> None:
    """A segment is synced before the next one is written: an older mark, put back, knows less than the log."""
    rig = Rig(kernels)
    rig.append(1, b"a")
    rig.flush()
    rig.log.maintain(0)
    early_mark = rig.disk.read_file(MARK)
    for number in range(30):
        rig.append(1, b"%d" % number)
    rig.disk.write_file(MARK, early_mark)
    names = [f"{LOG_DIRECTORY}/{name}" for name in rig.disk.list(LOG_DIRECTORY) if name.endswith(".log")]
    assert len(names) > 3
    if is_missing:
        rig.disk.remove(names[2])
    else:
        data = bytearray(rig.disk.read_file(names[1]))
        data[150] ^= 1
        rig.disk.write_file(names[1], bytes(data))
    before = rig.disk.contents()
    with pytest.raises(CorruptionError):
        rig.reopen(rig.disk)
    assert rig.disk.contents() == before
    assert not verify_log(rig.disk, kernels, LOG_DIRECTORY, "log").is_sound


def test_a_missing_segment_is_corruption(kernels: Kernels) -> None:
    rig, _ = small_log(kernels)
    logs = [name for name in rig.disk.list(LOG_DIRECTORY) if name.endswith(".log")]
    for name in logs:
        for base in (rig.disk.copy(), unmarked(rig.disk)):
            base.remove(f"{LOG_DIRECTORY}/{name}")
            before = base.contents()
            if not base.exists(MARK) and name == logs[-1]:
                continue  # without a mark nobody can know that there was more
            with pytest.raises((CorruptionError, DirectoryError)):
                rig.reopen(base)
            assert base.contents() == before


def test_a_log_that_starts_late_needs_a_checkpoint_that_covers_it(kernels: Kernels) -> None:
    rig, _ = small_log(kernels)
    disk = unmarked(rig.disk)
    disk.remove(FIRST)
    start = int(next(name for name in disk.list(LOG_DIRECTORY) if name.endswith(".log"))[:20])
    with pytest.raises(DirectoryError, match="no checkpoint covers"):
        rig.reopen(disk)
    early, covering = OffsetAndEpoch(start - 1, 1), OffsetAndEpoch(start, 3)
    disk.write_file(checkpoint_path(early), checkpoint(kernels, early))
    with pytest.raises(DirectoryError, match="no checkpoint covers"):
        rig.reopen(disk)
    disk.write_file(checkpoint_path(covering), checkpoint(kernels, covering)[:-1])
    before = disk.contents()
    with pytest.raises(CorruptionError) as caught:
        rig.reopen(disk)
    assert caught.value.path == f"/fake/{checkpoint_path(covering)}"
    assert disk.contents() == before
    disk.write_file(checkpoint_path(covering), checkpoint(kernels, covering))
    again = rig.reopen(disk)
    assert again.log.start_offset == start
    assert not disk.exists(checkpoint_path(early))
    assert again.values() == rig.reopen(rig.disk.copy()).values()[start:]


def test_a_vanished_log_is_not_begun_anew(kernels: Kernels) -> None:
    rig, _ = small_log(kernels)
    gone = FakeDisk()
    with pytest.raises(DirectoryError, match="missing"):
        rig.reopen(gone)
    gone.make_directory(LOG_DIRECTORY)
    gone.write_file(f"{LOG_DIRECTORY}/partition.metadata", b"")
    with pytest.raises(DirectoryError, match="segments are gone"):
        rig.reopen(gone)


@pytest.mark.parametrize("text", [b"0\n0\n", b"0\n1\n1 0\n", b"0\n4\n1 0\n2 3\n3 6\n9 18\n", b"garbage", None])
def test_the_log_wins_over_the_epoch_checkpoint(kernels: Kernels, text: bytes | None) -> None:
    rig, _ = small_log(kernels)
    name = f"{LOG_DIRECTORY}/{EPOCH_CHECKPOINT}"
    truth = rig.disk.read_file(name)
    if text is None:
        rig.disk.remove(name)
    else:
        rig.disk.write_file(name, text)
    assert rig.reopen().log.epochs.entries() == [(1, 0), (2, 6), (3, 12)]
    assert rig.disk.read_file(name) == truth


def test_leftovers_are_swept_and_strangers_left_alone(kernels: Kernels) -> None:
    rig, _ = small_log(kernels)
    swept = ["00000000000000000000.log.deleted", "x.checkpoint.deleted", "y.checkpoint.part", "durable-mark.tmp"]
    swept += [f"{99:020d}.index", f"{99:020d}.timeindex"]
    kept = ["README", "00000000000000000005.snapshot"]
    for name in [*swept, *kept]:
        rig.disk.write_file(f"{LOG_DIRECTORY}/{name}", b"x")
    expected = rig.reopen(rig.disk.copy()).values()
    assert rig.reopen().values() == expected
    listing = rig.disk.list(LOG_DIRECTORY)
    assert not set(swept) & set(listing)
    assert set(kept) <= set(listing)


def test_a_newer_mark_is_refused(kernels: Kernels) -> None:
    rig, _ = small_log(kernels)
    mark = read_mark(rig.disk, kernels, LOG_DIRECTORY)
    assert mark is not None
    newer = bytearray(encode_mark(kernels, mark)[:-4])
    newer[11] = VERSION + 1
    rig.disk.write_file(MARK, bytes(newer) + kernels.crc32c(newer).to_bytes(4, "big"))
    with pytest.raises(DirectoryError, match=f"format version {VERSION + 1}"):
        rig.reopen()


def test_what_is_kept_above_the_mark_is_written_again_before_it_counts(kernels: Kernels) -> None:
    """After a failed sync the page cache shows bytes that the disk lacks: only a new write makes them durable."""
    rig = Rig(kernels)
    rig.append(1, b"a")
    inode = rig.disk.entries[FIRST]
    inode.dirty.clear()  # the kernel has marked the pages clean; nothing reached the disk
    again = rig.reopen()
    assert again.log.flushed_end == 1
    for seed in range(10):
        survivor = rig.disk.crash(random.Random(seed))
        assert again.reopen(survivor).values() == [(0, 1, b"a")]


def test_a_crash_at_any_step_of_recovery_recovers_to_the_same_log(kernels: Kernels) -> None:
    rig = Rig(kernels)
    rig.append(1, b"a")
    rig.flush()
    rig.log.maintain(0)
    early_mark = rig.disk.read_file(MARK)
    for number in range(30):
        rig.append(1 + number // 9, b"%d" % number)
    names = [name for name in rig.disk.list(LOG_DIRECTORY) if name.endswith(".log")]
    assert len(names) > 3
    # The mark stands in the first segment; the second is torn, the others, not written yet, follow it.
    base = rig.disk.copy()
    for name in names[2:]:
        base.write_file(f"{LOG_DIRECTORY}/{name}", bytes(256))
    base.write_file(MARK, early_mark)
    content = bytearray(base.read_file(f"{LOG_DIRECTORY}/{names[1]}"))
    content[150] ^= 1
    base.write_file(f"{LOG_DIRECTORY}/{names[1]}", bytes(content))

    expected = rig.reopen(base.copy()).values()
    assert 1 < len(expected) < 21
    for crash_at in range(1, 200):
        disk = base.copy()
        disk.crash_at = crash_at
        try:
            recover(disk, kernels, LOG_DIRECTORY, prepare_bytes=256)
        except Crashed:
            for seed in range(8):
                again = rig.reopen(disk.crash(random.Random(seed)))
                assert again.values() == expected, (crash_at, seed)
                assert again.log.flushed_end == len(expected)
        else:
            return
    pytest.fail("recovery never ended")
