"""The table `checkpoints`: finished snapshots, every byte of them checked."""

import gzip
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fastquorum.errors import CorruptionError
from fastquorum.spark.scan import read_table
from fastquorum.storage.log.checkpoint import CheckpointTimes, encode_checkpoint
from fastquorum.storage.names import LOG_DIRECTORY, PART_SUFFIX, checkpoint_name
from fastquorum.types import OffsetAndEpoch

from .directories import GOLDEN, KERNELS, batch, flip, rows, write_log

SNAPSHOT = OffsetAndEpoch(3829, 3)


def test_kafkas_snapshots_are_those_of_its_files() -> None:
    found = rows(GOLDEN / "c1", "checkpoints")
    files = sorted((GOLDEN / "c1" / LOG_DIRECTORY).glob("*.checkpoint"))
    assert [checkpoint_name(OffsetAndEpoch(row["offset"], row["epoch"])) for row in found] == [f.name for f in files]
    assert [row["size_bytes"] for row in found] == [each.stat().st_size for each in files]
    assert {(row["kraft_version"], tuple(row["voters"]), row["is_good"], row["error"]) for row in found} == {
        (1, (1, 2, 3), True, None)
    }


def test_records_and_times_are_those_that_kafka_dumped() -> None:
    with gzip.open(GOLDEN / "dump-c1-checkpoint-3829.txt.gz", "rt") as lines:
        dumped = list(lines)
    (row,) = (row for row in rows(GOLDEN / "c1", "checkpoints") if row["offset"] == SNAPSHOT.offset)
    assert row["records"] == sum(line.startswith("| offset: ") for line in dumped)
    timestamp_ms = round(row["last_contained_timestamp"].timestamp() * 1000)
    assert f'SnapshotHeader {{"version":0,"lastContainedLogTimestamp":{timestamp_ms}}}' in "".join(dumped)


def test_an_object_store_has_the_same(in_memory: Callable[[Path], str]) -> None:
    here = read_table(str(GOLDEN / "c1"), "checkpoints").drop_columns(["directory"])
    assert read_table(in_memory(GOLDEN / "c1"), "checkpoints").drop_columns(["directory"]) == here


@pytest.mark.parametrize("is_emptied", [False, True])
def test_of_a_damaged_one_the_mode_decides(tmp_path: Path, is_emptied: bool) -> None:
    path = shutil.copytree(GOLDEN / "c1", tmp_path / "c1") / LOG_DIRECTORY / checkpoint_name(SNAPSHOT)
    flip(path, 5000)
    if is_emptied:
        path.write_bytes(b"")
    with pytest.raises(CorruptionError, match=str(path)):
        rows(tmp_path, "checkpoints")
    found = rows(tmp_path, "checkpoints", mode="quarantine")
    assert [row["offset"] for row in found if not row["is_good"]] == [SNAPSHOT.offset]
    assert str(path) in found[-1]["error"]
    assert (found[-1]["records"], found[-1]["voters"]) == (None, None)
    with pytest.warns(RuntimeWarning, match=str(path)):
        assert rows(tmp_path, "checkpoints", mode="drop") == found[:-1]


def test_one_that_is_cut_off_at_any_byte_is_not_good(tmp_path: Path) -> None:
    path = write_log(tmp_path, {0: [batch(0)]}) / checkpoint_name(OffsetAndEpoch(1, 1))
    whole = encode_checkpoint(KERNELS, CheckpointTimes.at(1), epoch=1, values=[b"one", b"two"])
    for end in range(len(whole) + 1):
        path.write_bytes(whole[:end])
        (row,) = rows(tmp_path, "checkpoints", mode="quarantine")
        assert row["is_good"] == (end == len(whole))
    assert (row["records"], row["kraft_version"], row["voters"]) == (4, 0, None)


def test_the_epoch_must_be_that_of_its_name(tmp_path: Path) -> None:
    path = write_log(tmp_path, {0: [batch(0)]}) / checkpoint_name(OffsetAndEpoch(1, 2))
    path.write_bytes(encode_checkpoint(KERNELS, CheckpointTimes.at(1), epoch=1))
    (row,) = rows(tmp_path, "checkpoints", mode="quarantine")
    assert "epoch" in row["error"]


def test_one_that_is_not_finished_is_none(tmp_path: Path) -> None:
    log = write_log(tmp_path, {0: [batch(0)]})
    (log / f"{1:020d}-{1:010d}-0{PART_SUFFIX}").write_bytes(b"")
    assert rows(tmp_path, "checkpoints") == []


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"asOfOffset": 677}, [0, 145, 677]),
        ({"fromOffset": 677, "toOffset": 1816}, [677, 977, 1816]),
        ({"fromEpoch": 2}, [3829]),
    ],
    ids=str,
)
def test_bounds(options: dict[str, object], expected: list[int]) -> None:
    assert [row["offset"] for row in rows(GOLDEN / "c1", "checkpoints", **options)] == expected
