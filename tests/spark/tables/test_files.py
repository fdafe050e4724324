"""The table `files`: what is on disk, and whether it is as it should be. Its oracle is `storage.verifying`."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fastquorum.errors import UsageError
from fastquorum.spark.scan import TableScan, read_table
from fastquorum.storage.io.disk import RealDisk
from fastquorum.storage.io.opening import open_offline
from fastquorum.storage.log.epochs import format_epochs
from fastquorum.storage.log.mark import ANEW, LogPosition, write_mark
from fastquorum.storage.names import EPOCH_CHECKPOINT, LOG_DIRECTORY, segment_name

from .directories import GOLDEN, KERNELS, batch, flip, rows, write_log

LOG = {0: [batch(0, 5), batch(5)], 6: [batch(6), batch(7, 2)], 9: [batch(9), batch(10), batch(11)]}
EPOCHS_FILE = format_epochs([(1, 0)])


def log_of(path: Path) -> Path:
    """A sound log of three segments; its directory."""
    log = write_log(path, LOG)
    (log / EPOCH_CHECKPOINT).write_bytes(EPOCHS_FILE)
    return log


def by_name(path: Path | str, **options: object) -> dict[str, dict[str, Any]]:
    """Rows by the file's name, without its directory."""
    return {row["name"].rpartition("/")[2]: row for row in rows(path, "files", **options)}


def statuses(path: Path) -> dict[str, str]:
    """Return the statuses that are not good."""
    return {name: row["status"] for name, row in by_name(path).items() if row["status"] != "good"}


def test_kafkas_directories_are_good() -> None:
    found = rows(GOLDEN, "files")
    names = {
        str(each.relative_to(GOLDEN / node))
        for node in ("c1", "c2", "c3")
        for each in (GOLDEN / node).rglob("*")
        if each.is_file()
    }
    assert {row["name"] for row in found} == names
    assert {row["kind"]: row["status"] for row in found if row["status"] != "good"} == {
        "producer snapshot": "unchecked",
        "partition metadata": "unchecked",
    }
    assert {row["text"] for row in found} == {None}


@pytest.mark.parametrize("node", ["c1", "c2", "c3"])
def test_a_segment_says_what_is_in_it(node: str) -> None:
    row = by_name(GOLDEN / node)[segment_name(0)]
    seen = open_offline(str(GOLDEN / node), KERNELS).verify()
    assert (row["first_offset"], row["last_offset"]) == (seen.start_offset, seen.end_offset - 1)
    assert (row["batches"], row["records"]) == (seen.batch_count, seen.record_count)
    assert (row["zero_tail_bytes"], row["torn_bytes"]) == (0, 0)
    assert row["size_bytes"] == (GOLDEN / node / LOG_DIRECTORY / segment_name(0)).stat().st_size


def test_an_object_store_has_the_same(in_memory: Callable[[Path], str]) -> None:
    here = read_table(str(GOLDEN / "c1"), "files").drop_columns(["directory"])
    assert read_table(in_memory(GOLDEN / "c1"), "files").drop_columns(["directory"]) == here


def test_a_log_directory_by_itself(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    assert statuses(log) == {}
    assert len(rows(log, "files")) == 4


def test_zeros_that_were_laid_ahead_are_counted(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    with (log / segment_name(9)).open("ab") as file:
        file.write(bytes(1000))
    row = by_name(tmp_path)[segment_name(9)]
    assert (row["status"], row["zero_tail_bytes"], row["torn_bytes"]) == ("good", 1000, 0)
    assert row["text"] == "1000 prepared zeros behind the last batch"


def test_a_log_that_is_cut_off_at_any_byte_is_torn_there(tmp_path: Path) -> None:
    path = log_of(tmp_path) / segment_name(9)
    whole = path.read_bytes()
    ends = {0: 0, len(LOG[9][0]): 1, len(LOG[9][0]) + len(LOG[9][1]): 2}
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        row = by_name(tmp_path)[path.name]
        start = max(each for each in ends if each <= end)
        torn = len(whole[start:end].rstrip(b"\0"))
        assert (row["batches"], row["torn_bytes"]) == (ends[start], torn)
        assert row["zero_tail_bytes"] == end - start - torn
        assert row["status"] == ("torn" if torn else "good")
        assert row["last_offset"] == (8 + ends[start] if ends[start] else None)


def test_a_flipped_bit_in_the_middle_is_corrupt_and_what_follows_is_judged_by_itself(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    flip(log / segment_name(0), len(LOG[0][0]) + 70)
    assert statuses(tmp_path) == {segment_name(0): "corrupt"}
    found = by_name(tmp_path)
    row = found[segment_name(0)]
    assert (row["records"], row["torn_bytes"] + row["zero_tail_bytes"]) == (5, len(LOG[0][1]))
    assert "crc" in found[segment_name(0)]["text"]
    for base, records in ((6, 3), (9, 3)):
        row = found[segment_name(base)]
        assert (row["first_offset"], row["records"]) == (base, records)
        assert row["text"] == "by itself; the log ends before it, in damage"


def test_an_index_behind_damage_is_not_judged(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    (log / "00000000000000000006.index").write_bytes(b"")
    assert statuses(tmp_path) == {}
    flip(log / segment_name(0), len(LOG[0][0]) + 70)
    assert statuses(tmp_path) == {segment_name(0): "corrupt", "00000000000000000006.index": "unchecked"}


def test_what_goes_while_it_is_read_cannot_be_read(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    scan = TableScan.of({"path": str(tmp_path), "table": "files"})
    (task,) = scan.tasks()
    (log / segment_name(9)).unlink()
    found = [row for batch in scan.read(task) for row in batch.to_pylist()]
    gone = [row for row in found if row["status"] != "good"]
    assert [(row["name"], row["status"]) for row in gone] == [(f"{LOG_DIRECTORY}/{segment_name(9)}", "unreadable")]
    assert "is not there" in gone[0]["text"]


def test_every_damaged_segment_is_found(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    for base in LOG:
        flip(log / segment_name(base), len(LOG[base][0]) + 70)
    assert statuses(tmp_path) == {segment_name(base): "corrupt" for base in LOG}


@pytest.mark.parametrize("is_empty", [False, True])
def test_a_missing_segment_shows_at_the_next(tmp_path: Path, is_empty: bool) -> None:
    path = log_of(tmp_path) / segment_name(6)
    path.unlink()
    if is_empty:
        path.write_bytes(b"")
    assert statuses(tmp_path) == {segment_name(9): "corrupt"}
    assert by_name(tmp_path)[segment_name(9)]["text"] == "begins at 9, the log before it ends at 6"


def test_a_log_that_begins_with_nothing_before_it_is_corrupt(tmp_path: Path) -> None:
    (log_of(tmp_path) / segment_name(0)).unlink()
    found = by_name(tmp_path)[segment_name(6)]
    assert found["status"] == "corrupt"
    assert "no good checkpoint covers what precedes it" in found["text"]


@pytest.mark.parametrize(
    ("name", "kind", "status"),
    [
        ("notes.txt", "foreign", "foreign"),
        ("00000000000000000042.log.deleted", "temporary", "left over"),
        ("00000000000000000042-0000000001-0.checkpoint.part", "temporary", "left over"),
        ("next-segment.tmp", "temporary", "left over"),
        ("00000000000000000042.index", "index", "left over"),
        ("00000000000000000042-0000000001.checkpoint", "checkpoint", "corrupt"),
        ("quorum-state", "quorum state", "corrupt"),
        ("quorum-state.retired", "temporary", "left over"),
        ("00000000000000000000.index", "index", "outdated"),
        ("00000000000000000000.timeindex", "time index", "unchecked"),
        ("durable-mark", "mark", "outdated"),
        ("leader-epoch-checkpoint", "epochs", "outdated"),
    ],
)
def test_what_else_lies_there_is_told_by_its_name(tmp_path: Path, name: str, kind: str, status: str) -> None:
    (log_of(tmp_path) / name).write_bytes(b"some bytes!!")
    row = by_name(tmp_path)[name]
    assert (row["kind"], row["status"], row["size_bytes"]) == (kind, status, 12)
    assert statuses(tmp_path) == {name: status}


@pytest.mark.parametrize("name", ["bootstrap.checkpoint", "quorum-state.mdb", "meta.properties"])
def test_what_is_damaged_beside_the_log(tmp_path: Path, name: str) -> None:
    shutil.copytree(GOLDEN / "c1", tmp_path, dirs_exist_ok=True)
    (tmp_path / name).write_bytes(b"some bytes!!")
    assert by_name(tmp_path)[name]["status"] == "corrupt"


def test_what_is_missing_and_made_anew_is_a_row(tmp_path: Path) -> None:
    (log_of(tmp_path) / EPOCH_CHECKPOINT).unlink()
    row = by_name(tmp_path)[EPOCH_CHECKPOINT]
    assert (row["kind"], row["status"], row["size_bytes"]) == ("epochs", "missing", None)


def test_segments_that_the_log_has_moved_on_from_are_left_over(tmp_path: Path) -> None:
    log_of(tmp_path)
    disk = RealDisk.open_directory(str(tmp_path), KERNELS)
    write_mark(disk, KERNELS, LOG_DIRECTORY, LogPosition(9, 9, 0), [], 9)
    found = by_name(tmp_path)
    assert [found[segment_name(base)]["status"] for base in (0, 6)] == ["left over", "left over"]
    write_mark(disk, KERNELS, LOG_DIRECTORY, LogPosition(50, 50, ANEW), [], 50)
    found = by_name(tmp_path)
    assert [found[segment_name(base)]["status"] for base in LOG] == ["left over"] * 3
    assert found["durable-mark"]["status"] == "good"


def test_a_mark_that_lies_behind_the_logs_end_is_corruption(tmp_path: Path) -> None:
    """Bytes that were synced are gone: no other file could tell."""
    log = log_of(tmp_path)
    disk = RealDisk.open_directory(str(tmp_path), KERNELS)
    write_mark(disk, KERNELS, LOG_DIRECTORY, LogPosition(12, 9, (log / segment_name(9)).stat().st_size), [(1, 0)])
    assert statuses(tmp_path) == {}
    (log / segment_name(9)).write_bytes(b"".join(LOG[9][:2]))
    assert statuses(tmp_path) == {segment_name(9): "corrupt"}
    (log / segment_name(9)).unlink()
    assert statuses(tmp_path) == {segment_name(9): "corrupt"}
    assert by_name(tmp_path)[segment_name(9)]["size_bytes"] is None


def test_a_directory_without_segments(tmp_path: Path) -> None:
    (tmp_path / LOG_DIRECTORY).mkdir()
    (tmp_path / "notes.txt").write_bytes(b"")
    assert statuses(tmp_path) == {EPOCH_CHECKPOINT: "missing", "notes.txt": "foreign"}


def test_it_is_always_read_whole(tmp_path: Path) -> None:
    log_of(tmp_path)
    with pytest.raises(UsageError, match="fromOffset means nothing to table 'files'; it is always read whole"):
        rows(tmp_path, "files", fromOffset=3)


def test_many_small_logs_are_one_task_and_each_has_its_rows(tmp_path: Path) -> None:
    for node in range(20):
        log_of(tmp_path / f"n{node}")
    assert len({row["directory"] for row in rows(tmp_path, "files")}) == 20
