"""A snapshot takes the log's place: whatever crashes on the way, the old log is there or the new one."""

import random
from collections.abc import Callable, Iterator

import pytest

from fastquorum.kernels import Kernels, load
from fastquorum.storage.log.mark import read_mark
from fastquorum.storage.log.recovery import recover
from fastquorum.storage.names import LOG_DIRECTORY, ZERO_CHECKPOINT
from fastquorum.storage.offline import OfflineLog
from fastquorum.types import OffsetAndEpoch

from .fake_disk import Crashed, FakeDisk
from .logs import SMALL, Rig, checkpoint, checkpoint_path

FLUSHED = 17
BEYOND = OffsetAndEpoch(50, 2)
SEEDS = 4


def rig_with_log(kernels: Kernels) -> Rig:
    """Epoch 1, offsets 0 to 19 in four segments, a spare made ready, a sync under way, old snapshots at hand."""
    rig = Rig(kernels)
    rig.disk.write_file(ZERO_CHECKPOINT, checkpoint(kernels, OffsetAndEpoch(0, 0)))
    rig.disk.write_file(checkpoint_path(OffsetAndEpoch(0, 0)), checkpoint(kernels, OffsetAndEpoch(0, 0)))
    for number in range(FLUSHED):
        rig.append(1, b"%d" % number)
    early = OffsetAndEpoch(9, 1)
    rig.fetch(early, checkpoint(kernels, early))
    rig.log.snapshots.finish_part(early)
    rig.flush()
    rig.log.maintain(0)
    for number in range(FLUSHED, 20):
        rig.append(1, b"%d" % number)
    rig.log.maintain(SMALL.mark_interval_us)
    rig.log.request_flush()
    return rig


def rig_behind_a_snapshot(kernels: Kernels) -> Rig:
    """Return a rig whose log begins with an installed snapshot and goes on with some records."""
    rig = rig_with_log(kernels)
    rig.install(OffsetAndEpoch(30, 1))
    for number in range(10):
        rig.append(1, b"%d" % number)
    rig.flush()
    rig.log.maintain(2 * SMALL.mark_interval_us)
    return rig


def crashes(make: Callable[[], Rig], act: Callable[[Rig], None]) -> Iterator[tuple[Rig, bool]]:
    """A rig stopped at each operation of `act` in turn, at last one that was not; and whether it was."""
    for step in range(1, 1_000):
        rig = make()
        rig.disk.crash_at = rig.disk.operations + step
        try:
            act(rig)
        except Crashed:
            yield rig, True
        else:
            yield rig, False
            return
    pytest.fail("it never ended")


def recoveries(disk: FakeDisk, kernels: Kernels, seed: int) -> Iterator[FakeDisk]:
    """What another crash, at each operation of the recovery in turn, leaves; at last what needed none."""
    for step in range(1, 1_000):
        again = disk.copy()
        again.crash_at = step
        try:
            recover(again, kernels, LOG_DIRECTORY, prepare_bytes=SMALL.preallocate_bytes)
        except Crashed:
            yield again.crash(random.Random(seed + step))
        else:
            again.crash_at = -1
            yield again
            return


def check_it_goes_on(rig: Rig) -> None:
    """A recovered log is written and recovered again."""
    end, epoch = rig.log.end_offset, rig.log.last_epoch + 1
    before = rig.values()
    rig.append(epoch, b"goes on")
    rig.flush()
    again = rig.reopen(rig.disk.crash(random.Random(end)))
    assert again.values() == [*before, (end, epoch, b"goes on")]
    assert again.log.start_offset == rig.log.start_offset


@pytest.mark.parametrize("make", [rig_with_log, rig_behind_a_snapshot])
@pytest.mark.parametrize("case", ["beyond the end", "at the end", "inside", "at a segment", "near the start"])
def test_a_crash_at_any_operation_leaves_the_old_log_or_the_new_one(make: Callable[[Kernels], Rig], case: str) -> None:
    kernels = load("pure")
    model = make(kernels)
    old, flushed_end, start = model.values(), model.log.flushed_end, model.log.start_offset
    offset = {
        "beyond the end": model.log.end_offset + 30,
        "at the end": model.log.end_offset,
        "inside": start + 3,
        "at a segment": model.log._segments[-1].base_offset,
        "near the start": start + 1,
    }[case]
    snapshot = OffsetAndEpoch(offset, 2)
    outcomes = set()
    for rig, crashed in crashes(lambda: make(kernels), lambda rig: rig.install(snapshot)):
        for seed in range(SEEDS):
            disk = rig.disk.crash(random.Random(seed))
            if not crashed and seed == 0:
                disk = rig.disk.copy()  # nothing need crash, either
            assert OfflineLog(disk, kernels).verify().is_sound
            is_new = set()
            for recovered in recoveries(disk, kernels, seed):
                survivor = Rig(kernels, recovered.copy())
                log, values = survivor.log, survivor.values()
                assert log.flushed_end == log.end_offset == log.durable_mark.at.offset
                if log.last_epoch == 2:
                    assert (log.start_offset, log.end_offset, values) == (offset, offset, [])
                    assert log.snapshots.latest == log.snapshots.earliest == snapshot
                    assert log.snapshot_state is not None
                else:
                    assert log.start_offset == start
                    assert log.end_offset >= flushed_end
                    assert values == old[: len(values)]
                is_new.add(log.last_epoch == 2)
            check_it_goes_on(survivor)
            assert len(is_new) == 1, "one recovery finds the old log, another the new one"
            assert crashed or is_new == {True}
            outcomes |= is_new
    assert outcomes == {True, False}


def test_what_is_appended_behind_a_snapshot_stays(kernels: Kernels) -> None:
    """The mark that declared the old segments void is gone before the first record comes."""
    rig = rig_with_log(kernels)
    rig.install(BEYOND)
    mark = read_mark(rig.disk, kernels, LOG_DIRECTORY)
    assert mark is not None
    assert not mark.is_anew
    for count in range(1, 12):
        rig.append(2, b"%d" % count)
        rig.flush()
        for seed in range(SEEDS):
            again = rig.reopen(rig.disk.crash(random.Random(seed)))
            assert again.log.start_offset == 50
            assert [value for _, _, value in again.values()] == [b"%d" % number for number in range(1, count + 1)]


def test_a_crash_while_fetching_leaves_no_trace(kernels: Kernels) -> None:
    data = checkpoint(kernels, BEYOND)
    for rig, _ in crashes(lambda: rig_with_log(kernels), lambda rig: rig.fetch(BEYOND, data)):
        for seed in range(SEEDS):
            again = rig.reopen(rig.disk.crash(random.Random(seed)))
            assert again.log.start_offset == 0
            assert again.log.end_offset >= FLUSHED
            assert again.log.snapshots.latest == (9, 1)
            assert not any(name.endswith(".part") for name in again.disk.list(LOG_DIRECTORY))


def test_a_finished_snapshot_is_whole_or_not_there(kernels: Kernels) -> None:
    data = checkpoint(kernels, BEYOND)

    def fetched() -> Rig:
        rig = rig_with_log(kernels)
        rig.fetch(BEYOND, data)
        return rig

    found = set()
    for rig, crashed in crashes(fetched, lambda rig: (rig.log.snapshots.finish_part(BEYOND), None)[1]):
        for seed in range(2 * SEEDS):
            disk = rig.disk.crash(random.Random(seed))
            held = disk.contents().get(checkpoint_path(BEYOND))
            assert held in (data, None)
            assert crashed or held == data
            found.add(held)
    assert found == {data, None}
