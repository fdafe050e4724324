"""The table `epochs`: who led when, and whether `leader-epoch-checkpoint` says the same."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fastquorum.errors import CorruptionError
from fastquorum.spark.scan import read_table
from fastquorum.storage.log.epochs import format_epochs, parse_epochs
from fastquorum.storage.names import EPOCH_CHECKPOINT, LOG_DIRECTORY, segment_name
from fastquorum.wire.records.control_values import KRaftVersionRecord, LeaderChangeMessage

from .directories import GOLDEN, KERNELS, batch, control, flip, rows, unsorted, write_log


def led(base_offset: int, leader_id: int, epoch: int, timestamp_ms: int = 1000) -> bytes:
    return control(base_offset, LeaderChangeMessage(leader_id=leader_id), epoch=epoch, timestamp_ms=timestamp_ms)


LOG = [
    led(0, 1, 1, 1000),
    batch(1, 3, epoch=1, timestamp_ms=1500),
    led(4, 2, 3, 2000),
    led(5, 1, 4, 3000),
    batch(6, epoch=4, timestamp_ms=3600),
    batch(7, epoch=4, timestamp_ms=3500),
]
ENTRIES = [(1, 0), (3, 4), (4, 5)]


@pytest.mark.parametrize(("node", "end"), [("c1", 3836), ("c2", 4447), ("c3", 3836)])
def test_kafkas_epochs_are_those_of_its_own_file(node: str, end: int) -> None:
    found = rows(GOLDEN / node, "epochs")
    expected = parse_epochs((GOLDEN / node / LOG_DIRECTORY / EPOCH_CHECKPOINT).read_bytes())
    assert [(row["epoch"], row["start_offset"]) for row in found] == expected
    assert [(row["checkpoint_start_offset"], row["checkpoint_agrees"]) for row in found] == [(0, True), (3720, True)]
    assert [(row["end_offset"], row["records"], row["leader_id"]) for row in found] == [
        (3720, 3720, 3),
        (end, end - 3720, 2),
    ]


@pytest.mark.parametrize("split_bytes", [1 << 20, 2000])
def test_times_and_counts_are_those_of_the_batches(split_bytes: int) -> None:
    batches = rows(GOLDEN / "c2", "batches")
    for row in rows(GOLDEN / "c2", "epochs", splitBytes=split_bytes):
        own = [each for each in batches if each["epoch"] == row["epoch"]]
        assert row["records"] == sum(each["records"] for each in own)
        assert row["first_timestamp"] == own[0]["base_timestamp"]
        assert row["last_timestamp"] == max(each["max_timestamp"] for each in own)


def test_an_object_store_has_the_same(in_memory: Callable[[Path], str]) -> None:
    here = read_table(str(GOLDEN / "c1"), "epochs").drop_columns(["directory"])
    assert read_table(in_memory(GOLDEN / "c1"), "epochs").drop_columns(["directory"]) == here


def test_many_epochs_within_a_few_batches(tmp_path: Path) -> None:
    write_log(tmp_path, {0: LOG})
    found = [
        (row["epoch"], row["start_offset"], row["end_offset"], row["records"], row["leader_id"])
        for row in rows(tmp_path, "epochs")
    ]
    assert found == [(1, 0, 4, 4, 1), (3, 4, 5, 1, 2), (4, 5, 8, 3, 1)]


def test_an_epoch_goes_on_in_the_next_segment(tmp_path: Path) -> None:
    write_log(tmp_path, {0: LOG[:2], 4: LOG[2:4], 6: LOG[4:]})
    assert [row["records"] for row in rows(tmp_path, "epochs")] == [4, 1, 3]


def test_an_epoch_that_begins_otherwise_names_no_leader(tmp_path: Path) -> None:
    write_log(tmp_path, {0: [batch(0), control(1, KRaftVersionRecord(kraft_version=1), epoch=2)]})
    assert [row["leader_id"] for row in rows(tmp_path, "epochs")] == [None, None]


def test_epochs_that_fall_are_rows_of_their_own(tmp_path: Path) -> None:
    write_log(tmp_path, {0: [batch(0, epoch=5), batch(1, epoch=3), batch(2, epoch=5)]})
    assert [(row["epoch"], row["start_offset"]) for row in rows(tmp_path, "epochs")] == [(5, 0), (3, 1), (5, 2)]


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        (ENTRIES, [(0, True), (4, True), (5, True)]),
        ([(1, 0), (3, 3), (4, 5)], [(0, True), (3, False), (5, True)]),
        ([(1, 0), (4, 5)], [(0, True), (None, False), (5, True)]),
    ],
    ids=["agrees", "another start", "one is missing"],
)
def test_the_file_agrees_epoch_by_epoch(
    tmp_path: Path, entries: list[tuple[int, int]], expected: list[tuple[int | None, bool]]
) -> None:
    (write_log(tmp_path, {0: LOG}) / EPOCH_CHECKPOINT).write_bytes(format_epochs(entries))
    found = [(row["checkpoint_start_offset"], row["checkpoint_agrees"]) for row in rows(tmp_path, "epochs")]
    assert found == expected


def test_what_only_the_file_knows_is_a_row_without_records(tmp_path: Path) -> None:
    (write_log(tmp_path, {0: LOG}) / EPOCH_CHECKPOINT).write_bytes(format_epochs([*ENTRIES, (9, 8)]))
    *_, last = rows(tmp_path, "epochs")
    assert (last["epoch"], last["start_offset"], last["checkpoint_start_offset"]) == (9, None, 8)
    assert last["checkpoint_agrees"] is False


def test_without_the_file_nobody_disagrees(tmp_path: Path) -> None:
    write_log(tmp_path, {0: LOG})
    assert {row["checkpoint_agrees"] for row in rows(tmp_path, "epochs")} == {None}


def test_of_a_damaged_file_the_mode_decides(tmp_path: Path) -> None:
    path = write_log(tmp_path, {0: LOG}) / EPOCH_CHECKPOINT
    expected = rows(tmp_path, "epochs")
    path.write_bytes(b"0\n2\n1 0\n")
    with pytest.raises(CorruptionError, match=str(path)):
        rows(tmp_path, "epochs")
    bad, *found = rows(tmp_path, "epochs", mode="quarantine")
    assert (str(path) in bad["error"], bad["epoch"], found) == (True, None, expected)
    with pytest.warns(RuntimeWarning, match=str(path)):
        assert rows(tmp_path, "epochs", mode="drop") == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"toOffset": 5}, [1, 3]),
        ({"fromOffset": 4}, [3, 4]),
        ({"fromEpoch": 2, "toEpoch": 4}, [3]),
        ({"asOfTimestamp": 2000}, [1, 3]),
        ({"fromTimestamp": 3550}, [4]),
    ],
    ids=str,
)
def test_bounds_keep_whole_epochs_that_hold_a_record_within_them(
    tmp_path: Path, options: dict[str, object], expected: list[int]
) -> None:
    (write_log(tmp_path, {0: LOG}) / EPOCH_CHECKPOINT).write_bytes(format_epochs(ENTRIES))
    found = rows(tmp_path, "epochs", **options)
    assert [row["epoch"] for row in found] == expected
    assert {row["checkpoint_agrees"] for row in found} == {True}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"toTimestamp": 1000}, []),
        ({"toTimestamp": 1001}, [2]),
        ({"toTimestamp": 1501}, [2, 3]),
        ({"fromTimestamp": 1501, "toTimestamp": 2000}, []),
    ],
    ids=str,
)
def test_an_epoch_is_kept_for_a_record_that_is_earlier_than_its_first(
    tmp_path: Path, options: dict[str, object], expected: list[int]
) -> None:
    later = [
        unsorted(5, [7000, 8000], epoch=3),
        unsorted(7, [9000, 1500], epoch=3),
        batch(9, epoch=4, timestamp_ms=9000),
    ]
    write_log(tmp_path, {0: [unsorted(0, [5000, 1000, 4000, 6000, 6000], epoch=2), *later]})
    assert [row["epoch"] for row in rows(tmp_path, "epochs", **options)] == expected
    assert sorted({row["epoch"] for row in rows(tmp_path, "records", mode="quarantine", **options)}) == expected


def test_damage_is_told_and_what_is_behind_it_counts(tmp_path: Path) -> None:
    path = write_log(tmp_path, {0: LOG}) / segment_name(0)
    position = len(LOG[0]) + len(LOG[1])
    flip(path, position - 1)
    with pytest.raises(CorruptionError) as raised:
        rows(tmp_path, "epochs")
    assert (raised.value.path, raised.value.position) == (str(path), len(LOG[0]))
    found = rows(tmp_path, "epochs", mode="quarantine")
    assert [row["start_offset"] for row in found if row["error"] is not None] == [1]
    assert [(row["epoch"], row["records"]) for row in found if row["error"] is None] == [(1, 1), (3, 1), (4, 3)]
    with pytest.warns(RuntimeWarning, match="are left out"):
        assert len(rows(tmp_path, "epochs", mode="drop")) == 3


def test_a_first_record_that_cannot_be_read_is_damage(tmp_path: Path) -> None:
    """Its checksum is good, its content is not."""
    bad = KERNELS.encode_values([b"no control record"], base_offset=4, leader_epoch=3, timestamp_ms=0, attributes=0x20)
    write_log(tmp_path, {0: [*LOG[:2], bad, *LOG[3:]]})
    with pytest.raises(CorruptionError) as raised:
        rows(tmp_path, "epochs")
    assert (raised.value.position, raised.value.offset) == (len(LOG[0]) + len(LOG[1]), 4)
    found = rows(tmp_path, "epochs", mode="quarantine")
    assert [row["epoch"] for row in found] == [None, 1, 4]


def test_a_log_without_a_batch_has_no_epoch(tmp_path: Path) -> None:
    write_log(tmp_path, {0: []})
    assert rows(tmp_path, "epochs") == []
