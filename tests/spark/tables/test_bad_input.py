"""Bad input, kind by kind, and what every table that is read from a log makes of it."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from fastquorum.errors import CorruptionError, FastQuorumError, ImageFailed, OffsetOutOfRange, UsageError
from fastquorum.spark.scan import TableScan
from fastquorum.spark.tables import TABLES
from fastquorum.storage.io.opening import open_offline
from fastquorum.storage.names import LOG_DIRECTORY, OWN_PROPERTIES, segment_name
from fastquorum.types import Uuid
from fastquorum.wire.records.metadata import encode_metadata_record
from fastquorum.wire.records.topics import PartitionChangeRecord, PartitionRecord, TopicRecord
from tests.spark.damage import change, make_log, segments

from .directories import GOLDEN, KERNELS, rows, write_log

C1 = GOLDEN / "c1"
OF_IMAGES = ["image", "brokers", "topics", "partitions", "configs"]
OF_LOGS = ["records", "control", "batches", "epochs", "voters", *OF_IMAGES, "isr_history", "leadership", "replay"]
EVERY_TABLE = sorted(TABLES)
WHO = {"quorum_state", "checkpoints", "files"}
"""Tables that look at no record."""
OF_SNAPSHOTS = {"base", "snapshots"}
"""Tables whose rows are of finished snapshots."""


def without_place(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in row.items() if key != "directory"} for row in found]


def in_segments(directory: Path, count: int = 4) -> Path:
    """The golden log in so many segments."""
    stored = list(open_offline(str(C1), KERNELS).batches())
    size = -(-len(stored) // count)
    parts = [stored[at : at + size] for at in range(0, len(stored), size)]
    write_log(directory, {part[0].info.base_offset: [bytes(each.data) for each in part] for part in parts})
    shutil.copy(C1 / "meta.properties", directory)
    return directory


def good_rows(directory: Path, table: str, match: str) -> list[dict[str, Any]]:
    """Check each mode's answer to bad input, and return the good rows."""
    with pytest.raises(FastQuorumError, match=match):
        rows(directory, table)
    found = rows(directory, table, mode="quarantine")
    assert any(match in row["error"] for row in found if row["error"] is not None)
    good = [row for row in found if row["error"] is None]
    with pytest.warns(RuntimeWarning, match=match):
        assert rows(directory, table, mode="drop") == good
    return good


def test_every_table_is_here() -> None:
    assert {*OF_LOGS} | WHO | OF_SNAPSHOTS == {*EVERY_TABLE}


@pytest.mark.parametrize("table", EVERY_TABLE)
def test_an_empty_directory_holds_no_log(tmp_path: Path, table: str) -> None:
    with pytest.raises(UsageError, match=f"there is no log at {tmp_path}"):
        rows(tmp_path, table)


@pytest.mark.parametrize("table", sorted({*OF_LOGS} - {"voters"}))  # some are told by snapshots
def test_segments_read_as_one_file_does(tmp_path: Path, table: str) -> None:
    def sorted_rows(found: list[dict[str, Any]]) -> list[str]:
        hidden = {"segment", "position", "directory", "source", "checkpoint_start_offset", "checkpoint_agrees"}
        return [repr({key: value for key, value in row.items() if key not in hidden}) for row in found]

    assert sorted_rows(rows(in_segments(tmp_path / "c1"), table)) == sorted_rows(rows(C1, table))


@pytest.mark.parametrize("table", OF_LOGS)
def test_a_missing_segment_is_told_by_every_table(tmp_path: Path, table: str) -> None:
    root = in_segments(tmp_path / "c1")
    second = segments(root)[1]
    second.unlink()
    good_rows(root, table, str(root / LOG_DIRECTORY))


@pytest.mark.parametrize("table", OF_LOGS)
def test_a_bad_checksum_in_the_middle_is_told_by_every_table(tmp_path: Path, table: str) -> None:
    root = in_segments(tmp_path / "c1")
    path = segments(root)[2]
    change(path, 17, b"\xff\xff\xff\xff")
    good = good_rows(root, table, path.name)
    with pytest.raises(CorruptionError) as caught:
        rows(root, table)
    assert (caught.value.reason, caught.value.path, caught.value.position) == ("crc", str(path), 0)
    if table in ("records", "batches", "epochs", "isr_history", "leadership"):
        assert good
        assert len(good) < len(rows(C1, table)) or table == "epochs"


@pytest.mark.parametrize("table", sorted({*EVERY_TABLE} - {"files"}))
def test_foreign_files_change_nothing(tmp_path: Path, table: str) -> None:
    root = shutil.copytree(C1, tmp_path / "c1")
    expected = rows(root, table)
    for place in (root, root / LOG_DIRECTORY):
        (place / "notes.txt").write_text("foreign")
        (place / "1234.log.bak").write_bytes(b"foreign")
        (place / "lost+found").mkdir()
    (tmp_path / "README").write_text("foreign")
    assert rows(tmp_path, table) == expected


# --- cut off at any byte ----------------------------------------------------------------------------------------------

TOPIC = Uuid(b"t" * 16)


def small_log(directory: Path) -> tuple[Path, list[int]]:
    """A topic, and its partition whose ISR shrinks, in a batch each; its file, and where each batch ends."""
    records = [
        TopicRecord(name="t", topic_id=TOPIC),
        PartitionRecord(partition_id=0, topic_id=TOPIC, replicas=[1, 2], isr=[1, 2], leader=1),
        PartitionChangeRecord(partition_id=0, topic_id=TOPIC, isr=[1]),
    ]
    root = make_log(directory, 0)
    (root / OWN_PROPERTIES).unlink()
    batches = [
        KERNELS.encode_values([encode_metadata_record(each, 0)], base_offset=at, leader_epoch=1, timestamp_ms=5)
        for at, each in enumerate(records)
    ]
    write_log(root, {0: batches})
    return segments(root)[0], [len(b"".join(batches[: at + 1])) for at in range(len(batches))]


@pytest.mark.long
@pytest.mark.parametrize(
    ("table", "counts"),
    [("records", [1, 2, 3]), ("batches", [1, 2, 3]), ("isr_history", [0, 1, 2])],
)
def test_cut_off_at_any_byte_every_table_ends_with_a_whole_batch_and_says_so(
    tmp_path: Path, table: str, counts: list[int]
) -> None:
    path, ends = small_log(tmp_path / "n1")
    whole = path.read_bytes()
    for length in range(1, len(whole) + 1):
        path.write_bytes(whole[:length])
        batches = sum(end <= length for end in ends)
        found = rows(path.parent, table, mode="quarantine")
        # Bytes that are all zero may have been laid ahead of use: as the first ones of offset 0 are.
        rest = whole[ends[batches - 1] if batches else 0 : length]
        assert sum(row["error"] is None for row in found) == (counts[batches - 1] if batches else 0)
        assert sum(row["error"] is not None for row in found) == bool(rest.strip(b"\0"))
        if rest.strip(b"\0"):
            with pytest.raises(CorruptionError, match=path.name):
                rows(path.parent, table)


# --- what this program is too old for ---------------------------------------------------------------------------------


@pytest.mark.parametrize("table", [*OF_IMAGES, "isr_history", "leadership"])
def test_tables_that_fold_end_where_a_later_version_begins(tmp_path: Path, table: str) -> None:
    path, _ = small_log(tmp_path / "n1")
    later = b"\x01\x05\x63"
    with path.open("ab") as file:
        file.write(KERNELS.encode_values([later], base_offset=3, leader_epoch=1, timestamp_ms=5))
    root = path.parents[1]
    with pytest.raises(ImageFailed, match="99"):
        rows(root, table)
    *_, last = rows(root, table, mode="quarantine")
    assert "99" in last["error"]
    (kept,) = rows(root, "records", fromOffset=3)
    assert (kept["value"], kept["error"]) == (later, "version 99 of PARTITION_CHANGE_RECORD is unknown")


# --- many at once, and one that does not stand still ------------------------------------------------------------------


@pytest.mark.parametrize("table", EVERY_TABLE)
def test_clusters_under_one_glob_are_kept_apart(tmp_path: Path, table: str) -> None:
    shutil.copytree(C1, tmp_path / "a")
    shutil.copytree(GOLDEN / "c2", tmp_path / "b")
    (tmp_path / "b" / "meta.properties").write_text("version=1\ncluster.id=other\nnode.id=9\n")
    make_log(tmp_path / "c")
    found = rows(f"{tmp_path}/*", table, **({} if table == "files" else {"mode": "quarantine"}))
    owners = {(Path(row["directory"]).name, row["cluster_id"], row["node_id"]) for row in found}
    expected = {("a", "usACA5tBSrKS64DhDt4jig", 1), ("b", "other", 9), ("c", "a-cluster", 7)}
    user = {each for each in expected if each[0] == "c"}
    assert owners in (expected, expected - user)
    assert (user <= owners) == (table in {"records", "batches", "epochs", "voters", "quorum_state", "files"})
    for name in ("a", "b"):
        alone = without_place(rows(tmp_path / name, table))
        assert without_place([row for row in found if Path(row["directory"]).name == name]) == alone


@pytest.mark.parametrize("table", OF_LOGS)
def test_a_log_that_grows_and_rolls_while_it_is_read_is_no_damage(tmp_path: Path, table: str) -> None:
    path, _ = small_log(tmp_path / "n1")
    before = rows(path.parents[1], table)
    scan = TableScan.of({"path": str(path.parents[1]), "table": table})
    tasks = scan.tasks()

    def shrunk(offset: int) -> bytes:
        value = encode_metadata_record(PartitionChangeRecord(partition_id=0, topic_id=TOPIC, isr=[1, 2]), 0)
        return KERNELS.encode_values([value], base_offset=offset, leader_epoch=1, timestamp_ms=5)

    with path.open("ab") as file:
        file.write(shrunk(3) + bytes(1000))
    (path.parent / segment_name(4)).write_bytes(shrunk(4) + bytes(1000))
    found = [row for task in tasks for batch in scan.read(task) for row in batch.to_pylist()]
    if table in (*OF_IMAGES, "replay"):  # they fold what is there when they are read
        assert {row["end_offset"] for row in found} <= {5}
    else:
        assert found == before


@pytest.mark.parametrize("table", sorted({*OF_LOGS} - {"replay"}))  # it is always read whole
def test_offsets_that_a_log_does_not_have(tmp_path: Path, table: str) -> None:
    if table in OF_IMAGES:
        for options in ({"asOfOffset": 3837}, {"diffFrom": 4000}):
            with pytest.raises(OffsetOutOfRange, match="3836"):
                rows(C1, table, **options)
            (bad,) = rows(C1, table, mode="quarantine", **options)
            assert "3836" in bad["error"]
    else:
        assert rows(C1, table, fromOffset=3836) == ([] if table != "voters" else rows(C1, table, fromOffset=3835))
        assert rows(C1, table, toOffset=2**40) == rows(C1, table)


@pytest.mark.parametrize("table", EVERY_TABLE)
def test_options_that_nobody_knows_are_refused_by_every_table(table: str) -> None:
    with pytest.raises(UsageError, match=r"there is no option 'fromOfset'; the options are .*fromOffset"):
        rows(C1, table, fromOfset=1)


@pytest.mark.parametrize("option", ["toOffset", "asOfOffset", "diffFrom", "toEpoch", "toTimestamp"])
def test_a_bound_of_0_is_a_bound(option: str) -> None:
    with pytest.raises(UsageError, match=f"option {option} means nothing to table 'files'"):
        rows(C1, "files", **{option: 0})


def test_tables_that_nobody_knows_are_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError, match=r"there is no table 'isr'; the tables are .*isr_history.*leadership.*records"):
        rows(C1, "isr")
