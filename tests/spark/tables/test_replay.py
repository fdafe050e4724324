"""The table `replay`: which record of a log no node can replay."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from fastquorum.errors import CorruptionError
from fastquorum.storage.names import LOG_DIRECTORY, segment_name
from tests.spark.damage import change_record, make_log

from .directories import GOLDEN, rows

C1 = GOLDEN / "c1"


def of_unknown_type(value: bytes) -> bytes:
    return value[:1] + b"\x54" + value[2:]


def copied(tmp_path: Path) -> Path:
    return Path(shutil.copytree(C1, tmp_path / "c1"))


def only(root: Path, **options: Any) -> dict[str, Any]:
    (row,) = rows(root, "replay", **options)
    return row


def test_all_records_of_a_real_log_fit() -> None:
    row = only(C1)
    assert (row["end_offset"], row["offset"], row["error"]) == (3836, None, None)


@pytest.mark.parametrize("mode", ["fail", "quarantine", "drop"])
@pytest.mark.parametrize(("offset", "epoch"), [(3, 1), (1775, 1), (3800, 3), (3833, 3)])
def test_the_first_record_that_does_not_fit_is_named_in_every_mode(
    tmp_path: Path, offset: int, epoch: int, mode: str
) -> None:
    root = copied(tmp_path)
    change_record(root / LOG_DIRECTORY / segment_name(0), offset, of_unknown_type)
    row = only(root, mode=mode)
    assert (row["end_offset"], row["offset"], row["epoch"]) == (None, offset, epoch)
    assert row["error"].startswith(f"record at offset {offset} cannot be applied to the metadata image: ")
    assert row["timestamp"] is not None


def test_a_snapshot_that_the_log_begins_with_and_that_nobody_can_load(tmp_path: Path) -> None:
    root = copied(tmp_path)
    log = root / LOG_DIRECTORY
    (log / segment_name(0)).unlink()
    (log / segment_name(3829)).write_bytes(b"")
    path = log / "00000000000000003829-0000000003.checkpoint"
    change_record(path, 5, of_unknown_type)
    row = only(root)
    assert (row["offset"], row["end_offset"]) == (None, None)
    assert row["error"].startswith(f"{path}: ")
    path.unlink()
    assert only(root)["error"] == "the log begins at offset 3829, and no snapshot says what was before"


def test_damaged_bytes_are_an_error_of_the_log(tmp_path: Path) -> None:
    root = copied(tmp_path)
    path = root / LOG_DIRECTORY / segment_name(0)
    path.write_bytes(path.read_bytes()[:5100] + b"\xff\xff" + path.read_bytes()[5102:])
    with pytest.raises(CorruptionError, match="corrupt: "):
        rows(root, "replay")
    row = only(root, mode="quarantine")
    assert (row["offset"], "corrupt: " in row["error"]) == (None, True)


def test_user_logs_have_none(tmp_path: Path) -> None:
    assert rows(make_log(tmp_path / "user"), "replay") == []
