"""`base` and `snapshots`: what a log begins with, and whether its snapshots are what it comes to."""

from pathlib import Path

import pytest

from fastquorum.errors import CorruptionError, DirectoryError, UsageError
from fastquorum.spark.tables import TABLES
from fastquorum.storage.names import LOG_DIRECTORY
from tests.spark.damage import change as overwrite
from tests.spark.damage import make_log
from tests.spark.pipelines.invariant_logs import TOPIC, Log, change, noop

from .directories import GOLDEN, rows

END = 10
"""End of `Log.begun`."""


def test_a_log_from_the_beginning_has_nothing_before_it() -> None:
    for each in rows(GOLDEN, "base"):
        assert (each["type"], each["end_offset"], each["error"]) == (None, 0, None)
    assert [each["node_id"] for each in rows(GOLDEN, "base")] == [1, 2, 3]


def test_a_log_that_begins_with_a_snapshot_has_its_records(tmp_path: Path) -> None:
    log = Log().begun().snapshot().add(noop()).snapshot()
    (start, *records) = rows(log.write(tmp_path / "n1", begin=END), "base")
    assert (start["type"], start["end_offset"], start["epoch"]) == (None, END, 1)
    assert {each["end_offset"] for each in records} == {END}
    names = [each["type"] for each in records]
    assert names == ["FEATURE_LEVEL_RECORD", *["REGISTER_BROKER_RECORD"] * 3, "TOPIC_RECORD", "PARTITION_RECORD"]
    assert str(TOPIC) in records[-1]["data"]
    some = rows(tmp_path, "base", types="TOPIC_RECORD", columns="type,version,timestamp")
    assert [(each["type"], each["version"]) for each in some] == [(None, None), ("TOPIC_RECORD", 0)]


def test_of_two_snapshots_the_good_one_is_what_a_log_begins_with(tmp_path: Path) -> None:
    log = Log().begun().snapshot().add(noop()).snapshot()
    root = log.write(tmp_path / "n1", begin=END)
    first = min((root / LOG_DIRECTORY).glob("*.checkpoint"))
    overwrite(first, first.stat().st_size // 2, b"\xff\x00\xff")
    assert rows(root, "base")[0]["end_offset"] == END + 1
    with pytest.raises(CorruptionError, match=str(first)):
        rows(root, "snapshots")
    assert [(each["offset"], each["verdict"]) for each in rows(root, "snapshots", mode="quarantine")] == [
        (END, "damaged"),
        (END + 1, "same"),
    ]
    with pytest.warns(RuntimeWarning, match=str(first)):
        assert [each["verdict"] for each in rows(root, "snapshots", mode="drop")] == ["same"]


def test_without_a_snapshot_nobody_knows_what_was_before(tmp_path: Path) -> None:
    root = Log().begun().add(noop()).write(tmp_path / "n1", begin=END)
    with pytest.raises(DirectoryError, match="begins at offset 10, and no snapshot says what was before"):
        rows(root, "base")
    with pytest.warns(RuntimeWarning, match="begins at offset 10"):
        assert rows(root, "base", mode="drop") == []
    (only,) = rows(root, "base", mode="quarantine")
    assert (only["end_offset"], only["error"]) == (
        None,
        "the log begins at offset 10, and no snapshot says what was before",
    )


def test_every_real_snapshot_is_what_its_log_comes_to() -> None:
    assert {(each["verdict"], each["error"]) for each in rows(GOLDEN, "snapshots")} == {("same", None)}
    assert len(rows(GOLDEN, "snapshots")) == 23


def test_a_snapshot_that_differs_says_in_what(tmp_path: Path) -> None:
    log = Log().begun()
    log.snapshot(log.fold.image.apply([change(isr=[1])])).add(noop()).snapshot()
    wrong, right = rows(log.write(tmp_path / "n1"), "snapshots")
    assert (wrong["offset"], wrong["verdict"], wrong["kind"], wrong["name"]) == (END, "differs", "partition", "t-0")
    assert (wrong["in_log"], wrong["in_snapshot"]) == (
        '{"isr": [1, 2, 3], "partitionEpoch": 0}',
        '{"isr": [1], "partitionEpoch": 1}',
    )
    assert right["verdict"] == "same"


def test_a_snapshot_ahead_of_its_log_cannot_be_compared(tmp_path: Path) -> None:
    log = Log().begun().snapshot().add(noop()).snapshot()
    root = log.write(tmp_path / "n1")
    segment = root / LOG_DIRECTORY / "00000000000000000000.log"
    segment.write_bytes(segment.read_bytes()[:-70])
    verdicts = [each["verdict"] for each in rows(root, "snapshots")]
    assert verdicts[-1] == "unchecked"


def test_user_logs_have_neither(tmp_path: Path) -> None:
    root = make_log(tmp_path / "user")
    assert rows(root, "base") == rows(root, "snapshots") == []


@pytest.mark.parametrize("table", ["base", "snapshots"])
def test_both_are_always_read_whole(table: str) -> None:
    with pytest.raises(UsageError, match="fromOffset means nothing"):
        rows(GOLDEN, table, fromOffset=5)
    for column in TABLES[table].schema.names:
        assert rows(GOLDEN / "c1", table, columns=column)


def test_of_a_damaged_log_the_mode_decides(tmp_path: Path) -> None:
    root = Log().begun().snapshot().add(noop()).snapshot().write(tmp_path / "n1")
    segment = root / LOG_DIRECTORY / "00000000000000000000.log"
    overwrite(segment, segment.stat().st_size - 3, b"\xff\x00\xff")
    with pytest.raises(CorruptionError, match=str(segment)):
        rows(root, "snapshots")
    same, unchecked = rows(root, "snapshots", mode="quarantine")
    assert (same["verdict"], unchecked["verdict"], str(segment) in unchecked["error"]) == ("same", "unchecked", True)
    with pytest.warns(RuntimeWarning, match=f"{segment}.*the snapshot at offset {END + 1} is left out"):
        assert rows(root, "snapshots", mode="drop") == [same]
