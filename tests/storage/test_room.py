"""A file system without room: the log says so before it writes, and goes on when there is some."""

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastquorum.config import MS, SECOND
from fastquorum.errors import FsyncFailed, StorageFailed
from fastquorum.kernels import BATCH_HEADER_BYTES, RECORD_OVERHEAD_MAX, Kernels, load
from fastquorum.storage.names import EPOCH_CHECKPOINT, LOG_DIRECTORY, SPARE_SEGMENT
from fastquorum.storage.offline import trim_log

from .logs import SMALL, Rig


def fill(rig: Rig) -> list[bytes]:
    """Append until the log takes no more; what it took."""
    taken = []
    while rig.log.make_room(200, 1):
        taken.append(b"value %d" % len(taken))
        rig.append(1, taken[-1])
        rig.flush()
    assert rig.log.is_full
    return taken


_seconds = itertools.count(1_000, 10)


def upkeep(rig: Rig, turns: int = 20) -> None:
    for seconds in itertools.islice(_seconds, turns):
        rig.log.maintain(seconds * SECOND)


def values(rig: Rig) -> list[bytes]:
    return [value for _, _, value in rig.values()]


def test_a_full_log_takes_what_goes_into_zeros_that_are_there_and_then_nothing(kernels: Kernels) -> None:
    rig = Rig(kernels)
    rig.append(1, b"first", b"x" * 70)
    rig.disk.room_bytes = 0
    upkeep(rig)
    assert rig.log.is_full
    prepared = rig.log._segments[-1].prepared_bytes
    assert rig.log.make_room(100, 1), "there are zeros left"
    rig.append(1, b"second")
    assert not rig.log.make_room(100, 1)
    rig.flush()
    assert rig.log._segments[-1].prepared_bytes == prepared
    assert values(rig) == values(rig.reopen()) == [b"first", b"x" * 70, b"second"]


def test_what_was_left_of_the_room_is_left_to_what_cannot_wait(kernels: Kernels) -> None:
    rig = Rig(kernels)
    rig.disk.room_bytes = 100
    assert not rig.log.make_room(400, 1)
    assert rig.disk.room_bytes == 100
    assert rig.log._segments[-1].file.size_bytes == rig.log._segments[-1].prepared_bytes


def test_it_goes_on_when_all_that_is_wanted_ahead_is_there_and_not_before(kernels: Kernels) -> None:
    rig = Rig(kernels)
    rig.disk.room_bytes = 0
    taken = fill(rig)
    rig.disk.room_bytes = 50
    upkeep(rig)
    assert rig.log.is_full, "the next append would find it full again"
    rig.disk.room_bytes = 10_000
    upkeep(rig)
    assert not rig.log.is_full
    assert rig.log.make_room(200, 1)
    rig.append(1, b"after")
    rig.flush()
    assert values(rig) == values(rig.reopen()) == [*taken, b"after"]


def test_without_room_for_the_next_segment_the_last_one_stays_as_it_is(kernels: Kernels) -> None:
    rig = Rig(kernels)
    while rig.log._segments.has_room(200, rig.log.end_offset + 1):
        rig.append(1, b"v" * 50)
    rig.flush()
    segments = [name for name in rig.disk.list(LOG_DIRECTORY) if name.endswith(".log")]
    rig.disk.room_bytes = SMALL.preallocate_bytes // 2
    assert not rig.log.make_room(200, 1)
    assert rig.log.is_full
    assert [name for name in rig.disk.list(LOG_DIRECTORY) if name.endswith(".log")] == segments
    rig.disk.room_bytes = 10_000
    upkeep(rig)
    assert not rig.log.is_full
    assert rig.log.make_room(200, 1)
    rig.append(1, b"in the next")
    assert values(rig)[-1] == b"in the next"
    assert len([name for name in rig.disk.list(LOG_DIRECTORY) if name.endswith(".log")]) == len(segments) + 1
    assert not rig.disk.exists(f"{LOG_DIRECTORY}/{SPARE_SEGMENT}")


def test_a_mark_that_has_no_room_waits(kernels: Kernels) -> None:
    rig = Rig(kernels)
    rig.append(1, b"value")
    rig.flush()
    mark = rig.log.durable_mark
    rig.disk.room_bytes = 0
    upkeep(rig)
    assert rig.log.durable_mark == mark
    rig.disk.room_bytes = 10_000
    upkeep(rig, 1)
    assert rig.log.durable_mark.at.offset == 1
    assert not rig.log.failed


def test_a_log_opens_on_a_full_disk_and_knows_it(kernels: Kernels) -> None:
    rig = Rig(kernels)
    rig.append(1, b"value")
    rig.flush()
    rig.log.close()
    rig.disk.room_bytes = 0
    again = Rig(kernels, rig.disk)
    assert again.log.is_full
    assert not again.log.make_room(200, 1)
    assert values(again) == [b"value"]


def test_a_log_that_crashed_opens_on_a_full_disk_with_the_mark_and_the_epochs_that_it_had(kernels: Kernels) -> None:
    rig = Rig(kernels)
    rig.append(1, b"first")
    rig.flush()
    upkeep(rig)
    rig.append(2, b"second")
    rig.flush()
    survivor = rig.disk.crash(random.Random(1))
    survivor.room_bytes = 0
    again = Rig(kernels, survivor)
    assert values(again) == [b"first", b"second"]
    assert again.log.durable_mark.at.offset == 1
    assert again.log.epochs.entries() == [(1, 0), (2, 1)]
    assert survivor.read_file(f"{LOG_DIRECTORY}/{EPOCH_CHECKPOINT}").split()[2:] == [b"1", b"0"]
    survivor.room_bytes = 10_000
    upkeep(again)
    assert again.log.durable_mark.at.offset == 2
    assert survivor.read_file(f"{LOG_DIRECTORY}/{EPOCH_CHECKPOINT}").split()[2:] == [b"1", b"0", b"2", b"1"]


def test_a_truncation_below_the_mark_has_the_room_that_it_needs_if_anything_is_prepared(kernels: Kernels) -> None:
    rig = Rig(kernels)
    for number in range(3):
        rig.append(1, b"value %d" % number)
    rig.flush()
    upkeep(rig)
    rig.append(2, b"in another epoch")
    rig.flush()
    assert rig.log.durable_mark.at.offset == 3
    rig.disk.room_bytes = 0
    rig.log.truncate_to(1)
    assert rig.log.durable_mark.at.offset == 1
    assert rig.log.is_full
    assert values(rig) == [b"value 0"]
    survivor = rig.disk.crash(random.Random(1))
    survivor.room_bytes = 0
    assert values(Rig(kernels, survivor)) == [b"value 0"]


def test_a_log_closes_on_a_full_disk_and_trimming_it_later_writes_what_waited(kernels: Kernels) -> None:
    rig = Rig(kernels)
    rig.append(1, b"value")
    rig.flush()
    while rig.log.make_room(80, 1):
        rig.append(1, b"value")
        rig.disk.room_bytes = 0
    rig.log.close()
    assert not rig.log.failed
    rig.disk.room_bytes = 0
    with pytest.raises(StorageFailed):
        trim_log(rig.disk, kernels)
    rig.disk.room_bytes = 10_000
    trimmed = trim_log(rig.disk, kernels)
    assert trimmed.is_sound
    assert trimmed.is_closed
    assert values(Rig(kernels, rig.disk))[0] == b"value"


@pytest.mark.parametrize("can_allocate", [True, False])
def test_what_is_larger_than_the_zeros_is_written_once_unless_nothing_can_be_allocated(
    kernels: Kernels, monkeypatch: pytest.MonkeyPatch, can_allocate: bool
) -> None:
    rig = Rig(kernels)
    rig.disk.room_bytes = 5_000
    active = rig.log._segments[-1]
    zero_fill, filled = active.file.zero_fill, []

    def watched(start: int, end: int) -> None:
        filled.append((start, end))
        zero_fill(start, end)

    def allocate(start: int, end: int) -> bool:
        if can_allocate:
            zero_fill(start, end)
        return can_allocate

    monkeypatch.setattr(active.file, "zero_fill", watched)
    monkeypatch.setattr(active.file, "allocate", allocate)
    prepared = active.prepared_bytes
    assert rig.log.make_room(prepared + 300, 1)
    assert bool(filled) is not can_allocate
    assert active.file.size_bytes == active.prepared_bytes >= prepared + 300
    rig.disk.room_bytes = 0
    rig.append(1, b"v" * (prepared + 200))
    rig.flush()
    assert values(rig.reopen()) == [b"v" * (prepared + 200)]


def test_a_disk_that_fails_otherwise_is_not_taken_for_a_full_one(
    kernels: Kernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig(kernels)

    def fail(*_: int) -> None:
        raise StorageFailed(detail="injected", operation="zero_fill", path="/fake", errno_code=5)

    active = rig.log._segments[-1].file
    monkeypatch.setattr(active, "zero_fill", fail)
    monkeypatch.setattr(active, "allocate", lambda *_: False)
    with pytest.raises(StorageFailed):
        rig.log.make_room(1_000, 1)
    assert rig.log.failed


def test_a_failed_sync_is_final_even_for_want_of_room() -> None:
    full = {"detail": "no space left", "operation": "sync", "path": "/fake", "errno_code": 28}
    assert StorageFailed(**full).lacks_room  # type: ignore[arg-type]
    assert not FsyncFailed(**full).lacks_room  # type: ignore[arg-type]
    assert "make room" in str(FsyncFailed(**full))  # type: ignore[arg-type]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 3), st.integers(0, 400)),
        st.tuples(st.just("append"), st.integers(1, 3), st.integers(0, 400)),
        st.tuples(st.just("promise"), st.integers(1, 3), st.integers(0, 900)),
        st.tuples(st.just("room"), st.sampled_from([0, 50, 300, 700, 5_000]), st.just(0)),
        st.tuples(st.just("upkeep"), st.integers(1, 5), st.just(0)),
        st.tuples(st.just("flush"), st.just(0), st.just(0)),
        st.tuples(st.just("crash"), st.integers(0, 1000), st.just(0)),
    ),
    max_size=60,
)


@settings(deadline=None)
@given(STEPS)
def test_what_room_was_made_for_is_written_whatever_room_there_is(steps: list[tuple[str, int, int]]) -> None:
    """And nothing that was synced is missing after a crash on a full disk."""
    rig = Rig(load("native"))
    rig.disk.room_bytes = 5_000
    written: list[bytes] = []
    promised: list[bytes] = []
    synced = 0

    def keep_promise() -> None:
        if promised:
            rig.append(1, *promised)
            written.extend(promised)
            promised.clear()

    for turn, (step, first, second) in enumerate(steps):
        match step:
            case "append" | "promise":
                keep_promise()
                wanted = BATCH_HEADER_BYTES + first * (second + RECORD_OVERHEAD_MAX)
                if rig.log.make_room(wanted, wanted):
                    promised += [b"%d" % turn + bytes(max(second - 3, 0)) for _ in range(first)]
                if step == "append":
                    keep_promise()
            case "room":
                rig.disk.room_bytes = first
            case "upkeep":
                for number in range(first):
                    rig.log.maintain(turn * SECOND + number * MS)
            case "flush":
                rig.flush()
                synced = len(written)
            case "crash":
                room = rig.disk.room_bytes
                survivor = rig.disk.crash(random.Random(first))
                survivor.room_bytes = room
                rig = Rig(rig.kernels, survivor)
                promised.clear()
                found = [value for _, _, value in rig.values()]
                assert len(found) >= synced
                assert found == written[: len(found)]
                written, synced = found, len(found)
    keep_promise()
    assert values(rig) == written
    rig.disk.room_bytes = 100_000
    for turn in range(30):
        rig.log.maintain(turn * 10 * SECOND)
    assert not rig.log.is_full
