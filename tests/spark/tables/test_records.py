"""Table `records`: the same as Kafka's own dump, however it is cut up; and what is damaged is never unnoticed."""

import gzip
import itertools
import json
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fastquorum.errors import CorruptionError, DirectoryError, UsageError
from fastquorum.kernels import Compression, Header, Record, load
from fastquorum.spark.scan import TableScan, read_table
from fastquorum.spark.stored.options import _READERS
from fastquorum.spark.stored.stores import LocalStore
from fastquorum.storage.names import LOG_DIRECTORY, segment_name
from fastquorum.types import Uuid
from fastquorum.wire import Message
from fastquorum.wire.records.cluster import ConfigRecord
from fastquorum.wire.records.metadata import encode_metadata_record
from fastquorum.wire.records.topics import PartitionChangeRecord, TopicRecord
from tests.spark.damage import RECORDS_A_BATCH, change, make_log, segments
from tests.spark.pipelines import invariant_logs
from tests.wire.golden import CLUSTER

RECORD = re.compile(r"\| offset: (\d+) CreateTime: (\d+) keySize: (-?\d+) valueSize: (-?\d+) .*?headerKeys: \[\] (.*)")
CONTROL = re.compile(r"(\w+):? (\{.*\})")
KAFKAS_NAMES = {"LeaderChange": "LEADER_CHANGE", "KRaftVersion": "KRAFT_VERSION", "KRaftVoters": "KRAFT_VOTERS"}


def dumped(name: str) -> Iterator[dict[str, Any]]:
    """The records of a golden dump: offset, epoch, time, type, version, data."""
    epoch = -1
    with gzip.open(CLUSTER / name, "rt", encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("baseOffset"):
                found = re.search(r"partitionLeaderEpoch: (\d+)", line)
                assert found is not None
                epoch = int(found[1])
            match = RECORD.match(line)
            if match is None:
                continue
            fields = {"offset": int(match[1]), "epoch": epoch, "time": int(match[2]), "bytes": int(match[4])}
            if match[5].startswith("payload: "):
                yield fields | {"is_control": False} | json.loads(match[5].removeprefix("payload: "))
            else:
                control = CONTROL.match(match[5])
                assert control is not None
                fields |= {"is_control": True, "type": KAFKAS_NAMES[control[1]], "version": 0}
                yield fields | {"data": json.loads(control[2])}


def as_dumped(table: pa.Table) -> list[dict[str, Any]]:
    return [
        {
            "offset": row["offset"],
            "epoch": row["epoch"],
            "time": round(row["timestamp"].timestamp() * 1000),
            "bytes": len(row["value"]),
            "is_control": row["is_control"],
            "type": row["type"],
            "version": row["version"],
            "data": json.loads(row["data"]),
        }
        for row in table.to_pylist()
    ]


@pytest.mark.parametrize("split_bytes", [64 << 20, 40_000])
@pytest.mark.parametrize(("replica", "dump"), [("c1", "c1"), ("c2", "c2"), ("c3", "c1")])  # c3 holds what c1 does
def test_records_are_what_kafka_dumps_however_they_are_cut_up(replica: str, dump: str, split_bytes: int) -> None:
    found = read_table(str(CLUSTER / replica), splitBytes=split_bytes)
    assert as_dumped(found) == list(dumped(f"dump-{dump}.txt.gz"))
    assert set(found["error"].to_pylist()) == {None}
    assert set(found["cluster_id"].to_pylist()) == {"usACA5tBSrKS64DhDt4jig"}
    assert set(found["node_id"].to_pylist()) == {int(replica[1:])}


def test_a_large_segment_is_read_by_many_tasks_and_small_logs_by_one() -> None:
    assert len(TableScan.of({"path": str(CLUSTER / "c1"), "splitBytes": "40000"}).tasks()) == 5
    assert len(TableScan.of({"path": str(CLUSTER)}).tasks()) == 1


def test_control_records_alone() -> None:
    found = read_table(str(CLUSTER / "c1"), "control")
    assert as_dumped(found) == [each for each in dumped("dump-c1.txt.gz") if each["is_control"]]


@pytest.mark.parametrize(
    ("options", "taken"),
    [
        ({"fromOffset": 100, "toOffset": 250}, lambda each: 100 <= each["offset"] < 250),
        ({"asOfOffset": 50}, lambda each: each["offset"] < 50),
        ({"diffFrom": 3800}, lambda each: each["offset"] >= 3800),
        ({"fromEpoch": 3}, lambda each: each["epoch"] >= 3),
        ({"toEpoch": 3}, lambda each: each["epoch"] < 3),
        ({"types": "TOPIC_RECORD, leader_change"}, lambda each: each["type"] in ("TOPIC_RECORD", "LEADER_CHANGE")),
        ({"fromTimestamp": 1795242817372}, lambda each: each["time"] >= 1795242817372),
        ({"toTimestamp": "2026-11-21T06:33:37.372Z"}, lambda each: each["time"] < 1795242817372),
        ({"asOfTimestamp": 1795242817372}, lambda each: each["time"] <= 1795242817372),
    ],
    ids=lambda given: str(given) if isinstance(given, dict) else "",
)
def test_what_is_asked_for_is_filtered(options: dict[str, Any], taken: Any) -> None:
    found = as_dumped(read_table(str(CLUSTER / "c1"), **options))
    assert found == [each for each in dumped("dump-c1.txt.gz") if taken(each)]
    assert found


def test_a_topic_is_followed_where_only_a_snapshot_names_it(tmp_path: Path) -> None:
    """The log begins behind the record that gave it its id."""
    log = invariant_logs.Log().begun().snapshot().add(invariant_logs.change(leader=2))
    whole = log.write(tmp_path / "n1")
    later = log.write(tmp_path / "n2", begin=10)
    assert read_table(str(whole), topic="t")["offset"].to_pylist() == [8, 9, 10]
    assert read_table(str(later), topic="t")["offset"].to_pylist() == [10]
    for each in (later / LOG_DIRECTORY).glob("*.checkpoint"):
        each.unlink()
    with pytest.warns(
        RuntimeWarning, match="n2: the log begins at offset 10, and no snapshot.*ids of topic 't' may be"
    ):
        assert read_table(str(later), topic="t", fromOffset="earliest").num_rows == 0


def test_a_topic_is_followed_by_its_name_and_its_id() -> None:
    found = read_table(str(CLUSTER / "c1"), topic="clicks-15", columns="offset,type,data")
    topic_id = "kScGPC1bSSObr4PfxHDsiw"
    expected = [
        each["offset"]
        for each in dumped("dump-c1.txt.gz")
        if each["data"].get("topicId") == topic_id
        or (each["type"] in ("TOPIC_RECORD", "CONFIG_RECORD") and "clicks-15" in each["data"].values())
    ]
    # A change of directories, or of whatever else names topics in a list, counts too.
    assert set(expected) <= set(found["offset"].to_pylist())
    assert all(topic_id in text or '"clicks-15"' in text for text in found["data"].to_pylist())
    assert "TOPIC_RECORD" in found["type"].to_pylist()


def test_a_topic_is_not_mistaken_for_what_else_has_its_name(tmp_path: Path) -> None:
    root = make_log(tmp_path / "n1", 0, kind="metadata")
    topics, brokers, groups = 2, 4, 32
    settings = [(topics, "7", "a"), (brokers, "7", "a"), (brokers, "", "7"), (topics, "70", "7"), (groups, "7", "a")]
    records: list[Message] = [TopicRecord(name="7", topic_id=Uuid(b"t" * 16))]
    records += [ConfigRecord(resource_type=kind, resource_name=of, name=name, value="7") for kind, of, name in settings]
    values = [encode_metadata_record(each, 0) for each in records]
    data = load("native").encode_values(values, base_offset=0, leader_epoch=1, timestamp_ms=5)
    (root / LOG_DIRECTORY / segment_name(0)).write_bytes(data)
    assert read_table(str(root), topic="7")["offset"].to_pylist() == [0, 1]


def test_only_the_columns_that_are_asked_for() -> None:
    found = read_table(str(CLUSTER / "c1"), columns="type,offset")
    assert found.schema.names == ["type", "offset"]


def test_user_records_have_keys_values_and_headers(tmp_path: Path) -> None:
    root = make_log(tmp_path / "n1", 0)
    placed = {"base_offset": 0, "leader_epoch": 1, "timestamp_ms": 5}
    records = [Record(b"v", b"k", (Header("a", b"1"), Header("b", None))), Record(None, None)]
    (root / LOG_DIRECTORY / segment_name(0)).write_bytes(load("native").encode_records(records, **placed))
    rows = read_table(str(root)).to_pylist()
    assert [(row["key"], row["value"], row["type"], row["data"]) for row in rows] == [
        (b"k", b"v", None, None),
        (None, None, None, None),
    ]
    assert rows[0]["headers"] == [{"key": "a", "value": b"1"}, {"key": "b", "value": None}]


@pytest.mark.parametrize("kind", Compression)
def test_compressed_batches_too(tmp_path: Path, kind: Compression) -> None:
    root = make_log(tmp_path / "n1", 2)
    placed = {"base_offset": 8, "leader_epoch": 1, "timestamp_ms": 5, "attributes": int(kind)}
    with segments(root)[0].open("ab") as file:
        file.write(load("native").encode_values([b"x" * 100] * 3, **placed))
    found = read_table(str(root), columns="offset,value")
    assert found["offset"].to_pylist() == list(range(11))
    assert found["value"].to_pylist()[-1] == b"x" * 100


def test_records_of_later_versions_are_kept_and_named(tmp_path: Path) -> None:
    root = make_log(tmp_path / "n1", 0, kind="metadata")
    known = encode_metadata_record(PartitionChangeRecord(topic_id=Uuid(bytes(16))), 0)
    values = [known[:2] + b"\x63" + known[3:], known[:1] + b"\x7f" + known[2:]]
    data = load("native").encode_values(values, base_offset=0, leader_epoch=1, timestamp_ms=5)
    (root / LOG_DIRECTORY / segment_name(0)).write_bytes(data)
    rows = read_table(str(root)).to_pylist()
    assert [row["error"] for row in rows] == [
        "version 99 of PARTITION_CHANGE_RECORD is unknown",
        "type 127 is unknown",
    ]
    assert [row["value"] for row in rows] == values
    assert [row["data"] for row in rows] == [None, None]


def test_a_record_that_is_malformed_fails_or_is_set_aside(tmp_path: Path) -> None:
    root = make_log(tmp_path / "n1", 0, kind="metadata")
    good = encode_metadata_record(TopicRecord(name="a", topic_id=Uuid(bytes(16))), 0)
    data = load("native").encode_values([good, good[:-3], good], base_offset=0, leader_epoch=1, timestamp_ms=5)
    (root / LOG_DIRECTORY / segment_name(0)).write_bytes(data)
    with pytest.raises(CorruptionError, match=r"\.log: corrupt: record \(offset 1\)"):
        read_table(str(root))
    rows = read_table(str(root), mode="quarantine").to_pylist()
    assert [(row["error"], row["data"] is None) for row in rows] == [(None, False), ("malformed", True), (None, False)]
    with pytest.warns(RuntimeWarning, match="1 records are left out"):
        assert read_table(str(root), mode="drop")["offset"].to_pylist() == [0, 2]
    with pytest.warns(RuntimeWarning, match="1 records are left out"):  # whichever columns are asked for
        assert read_table(str(root), mode="drop", columns="offset")["offset"].to_pylist() == [0, 2]


# --- damaged files ----------------------------------------------------------------------------------------------------


def test_a_bad_checksum_in_the_middle_names_file_position_and_offset(tmp_path: Path) -> None:
    root = make_log(tmp_path / "n1")
    (path,) = segments(root)
    size = len(path.read_bytes()) // 10
    change(path, 4 * size + 61, b"\xff")
    with pytest.raises(CorruptionError) as caught:
        read_table(str(root))
    assert (caught.value.reason, caught.value.position, caught.value.offset) == ("crc", 4 * size, 16)
    assert caught.value.path == str(path)
    rows = read_table(str(root), mode="quarantine").to_pylist()
    (bad,) = [row for row in rows if row["error"] is not None]
    assert (bad["offset"], len(bad["value"])) == (16, size)
    assert "crc" in bad["error"]
    assert [row["offset"] for row in rows if row["error"] is None] == [
        each for each in range(40) if not 16 <= each < 20
    ]
    with pytest.warns(RuntimeWarning, match=f"{size} bytes are left out"):
        assert read_table(str(root), mode="drop").num_rows == 36


def test_cut_off_at_any_byte_it_is_told_or_it_ends_with_a_batch(tmp_path: Path) -> None:
    base = 1 << 56  # a batch's first byte is not zero: what is all zeros may be laid ahead of use
    root = make_log(tmp_path / "n1", 3, base=base)
    (path,) = segments(root)
    whole = path.read_bytes()
    size = len(whole) // 3
    for length in range(1, len(whole)):
        path.write_bytes(whole[:length])
        rows = read_table(str(root), fromOffset=base, mode="quarantine").to_pylist()
        good = [row["offset"] for row in rows if row["error"] is None]
        assert good == list(range(base, base + length // size * RECORDS_A_BATCH))
        assert len(rows) - len(good) == (length % size > 0)
        if length % size:
            with pytest.raises(CorruptionError):
                read_table(str(root), fromOffset=base)


def test_zeros_laid_ahead_of_use_are_the_end(tmp_path: Path) -> None:
    root = make_log(tmp_path / "n1")
    with segments(root)[0].open("ab") as file:
        file.write(bytes(10_000))
    assert read_table(str(root)).num_rows == 40


def test_zeros_in_the_middle_are_damage_unless_the_next_segment_goes_on(tmp_path: Path) -> None:
    root = make_log(tmp_path / "n1", 15, roll=5)
    first, second, _ = segments(root)
    with first.open("ab") as file:
        file.write(bytes(100))
    assert read_table(str(root)).num_rows == 60
    second.unlink()
    with pytest.raises(CorruptionError, match="zeroed"):
        read_table(str(root))


def test_a_missing_segment_is_told(tmp_path: Path) -> None:
    root = make_log(tmp_path / "n1", 12, roll=3)
    segments(root)[1].unlink()
    with pytest.raises(DirectoryError, match="ends at offset 12, and the next segment begins at 24: one is missing"):
        read_table(str(root))
    rows = read_table(str(root), mode="quarantine").to_pylist()
    assert [row["offset"] for row in rows if row["error"] is None] == [*range(12), *range(24, 48)]
    assert [row["offset"] for row in rows if row["error"] is not None] == [12]


@pytest.mark.parametrize("split_bytes", [100, 150, 1000])
def test_pieces_cover_a_log_whatever_their_size(tmp_path: Path, split_bytes: int) -> None:
    root = make_log(tmp_path / "n1", 50, roll=20)
    assert read_table(str(root), splitBytes=split_bytes)["offset"].to_pylist() == list(range(200))


@pytest.mark.parametrize("split_bytes", [300, 600, 1 << 20])
def test_a_batch_that_is_missing_is_told_wherever_the_log_is_cut(tmp_path: Path, split_bytes: int) -> None:
    root = make_log(tmp_path / "n1", 50)
    (path,) = segments(root)
    whole = path.read_bytes()
    size = len(whole) // 50
    for missing in range(1, 49):
        path.write_bytes(whole[: missing * size] + whole[(missing + 1) * size :])
        with pytest.raises((CorruptionError, DirectoryError), match=path.name):
            read_table(str(root), splitBytes=split_bytes)
        found = read_table(str(root), splitBytes=split_bytes, mode="quarantine").to_pylist()
        assert sum(row["error"] is not None for row in found) == 1


def test_an_index_that_is_wrong_is_no_reason_to_lose_a_record(tmp_path: Path) -> None:
    """It says where batches begin: where one does indeed, but not of this log."""
    root = make_log(tmp_path / "n1", 50)
    (path,) = segments(root)
    entries = b"".join(number.to_bytes(4, "big") for number in (10, 333, 20, 1777))
    path.with_suffix(".index").write_bytes(entries)
    assert read_table(str(root), splitBytes=300)["offset"].to_pylist() == list(range(200))


def test_a_segment_that_goes_before_it_is_read_is_named(tmp_path: Path) -> None:
    root = make_log(tmp_path / "n1", 12, roll=3)
    scan = TableScan.of({"path": str(root)})
    tasks = scan.tasks()
    segments(root)[0].unlink()
    with pytest.raises(DirectoryError, match=r"00000000000000000000\.log: is not there"):
        list(itertools.chain.from_iterable(scan.read(task) for task in tasks))


def test_what_a_running_node_writes_meanwhile_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Laid zeros were seen, and a batch, in two parts, by the time that somebody looks again."""
    root = make_log(tmp_path / "n1", 4)
    (path,) = segments(root)
    whole = path.read_bytes()
    at = 3 * len(whole) // 4
    read, parts = LocalStore.read, [whole[:at], whole[: at + 30], whole]

    def reads(self: LocalStore, path_: str, start: int = 0, size_bytes: int = -1) -> bytes:
        if path_ == str(path) and parts:
            part = parts.pop(0)
            path.write_bytes(part + bytes(5000 - len(part)))
        return read(self, path_, start, size_bytes)

    path.write_bytes(whole[:at] + bytes(5000 - at))
    monkeypatch.setattr(LocalStore, "read", reads)
    assert read_table(str(root)).num_rows == 16


def test_what_is_appended_meanwhile_is_not_read(tmp_path: Path) -> None:
    root = make_log(tmp_path / "n1", 3)
    scan = TableScan.of({"path": str(root)})
    (task,) = scan.tasks()
    with segments(root)[0].open("ab") as file:
        file.write(b"the beginning of a batch")
    assert sum(batch.num_rows for batch in scan.read(task)) == 12


# --- where logs lie ---------------------------------------------------------------------------------------------------


def test_a_data_directory_a_log_directory_a_glob_a_tree_and_several_paths(tmp_path: Path) -> None:
    for name in ("a/c1", "a/c2", "b/x/y/c3"):
        make_log(tmp_path / name, 1)
    (tmp_path / "a" / "notes.txt").write_text("foreign")

    def directories(path: str) -> list[str]:
        found = read_table(path, columns="directory")["directory"].to_pylist()
        return sorted({str(Path(each).relative_to(tmp_path)) for each in found})

    assert directories(f"{tmp_path}/a/c1") == ["a/c1"]
    assert directories(f"{tmp_path}/a/c1/{LOG_DIRECTORY}") == ["a/c1"]
    assert directories(f"{tmp_path}/a/*") == ["a/c1", "a/c2"]
    assert directories(f"{tmp_path}") == ["a/c1", "a/c2", "b/x/y/c3"]
    assert directories(f"{tmp_path}/a/c2, {tmp_path}/b") == ["a/c2", "b/x/y/c3"]


def test_a_list_of_paths_comes_from_spark_as_json(tmp_path: Path) -> None:
    for name in ("n1", "n2", "n3"):
        make_log(tmp_path / name, 1)
    wanted = [str(tmp_path / name) for name in ("n1", "n3")]
    assert set(read_table(paths=json.dumps(wanted))["directory"].to_pylist()) == set(wanted)
    with pytest.raises(UsageError, match="has a comma in it"):
        read_table(paths=json.dumps(["a,b", "c"]))


def test_an_object_store_is_read_as_directories_are() -> None:
    import fsspec

    files = fsspec.filesystem("memory")
    for replica in ("c1", "c2"):
        files.put(str(CLUSTER / replica), f"/backup/{replica}", recursive=True)
    try:
        found = read_table("memory://backup/*", splitBytes=40_000)
        here = read_table(f"{CLUSTER}/c1,{CLUSTER}/c2")
        assert found.num_rows == here.num_rows
        assert found["data"].to_pylist() == here["data"].to_pylist()
        assert set(found["directory"].to_pylist()) == {"memory:///backup/c1", "memory:///backup/c2"}
    finally:
        files.rm("/backup", recursive=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"table": "recods"},
            r"there is no table 'recods'; the tables are .*control.*records.*; did you mean records\?",
        ),
        ({"fromOfset": "1"}, r"there is no option 'fromOfset'; the options are .*; did you mean fromOffset\?"),
        ({"asOfTimestamp": "-1"}, "option asOfTimestamp is '-1'; it is 1970 or later"),
        (
            {"asOfTimestamp": "1969-12-31T23:59:59"},
            "option asOfTimestamp is '1969-12-31T23:59:59'; it is 1970 or later",
        ),
        ({"fromOffset": "-1"}, "option fromOffset is '-1'; it is a whole number from 0 on"),
        ({"committedEnds": "7"}, "option committedEnds is '7'; it is JSON, as {"),
        ({"committedEnds": '{"/n1": -1}'}, "it is JSON, as {"),
        ({"committedEnds": '{"/n1": 7'}, "it is JSON, as {"),
        ({"types": "TOPIC"}, r"there is no type 'TOPIC'; the types are .*TOPIC_RECORD"),
        ({"columns": "offset,what"}, r"table 'records' has no column 'what'; the columns are .*offset"),
        ({"columns": "offset,type,offset"}, "column 'offset' is named twice"),
        ({"mode": "ignore"}, "mode is 'ignore'; it is one of fail, quarantine, drop"),
        ({"fromTimestamp": "yesterday"}, "option fromTimestamp is 'yesterday'; milliseconds since 1970"),
        ({"pushdown": "true"}, "option pushdown is gone: Spark gives one query the rows of another one's filters"),
        ({"toTimestamp": "1795242817"}, "option toTimestamp is '1795242817'; milliseconds since 1970, which have 13"),
        (
            {"toTimestamp": "20261322"},
            "option toTimestamp is '20261322'; milliseconds since 1970, which have 13 digits",
        ),
        ({"toTimestamp": "20261122153000"}, "option toTimestamp is '20261122153000'; milliseconds since 1970, which"),
        ({"toTimestamp": "1795242817372000000"}, "option toTimestamp is '1795242817372000000'; milliseconds since"),
        ({"splitBytes": "0"}, "option splitBytes is 0"),
        ({"fromOffset": "9" * 30}, "option fromOffset is '9{30}'; it is 9223372036854775807 at most"),
        ({"toEpoch": str(2**63)}, "option toEpoch is '9223372036854775808'; it is 9223372036854775807 at most"),
        ({"fromTimestamp": "-" + "9" * 19}, "option fromTimestamp is '-9{19}'; it is 9223372036854775807 at most"),
        ({"path": ""}, "no path is given"),
    ],
    ids=str,
)
def test_what_nobody_knows_is_refused_with_what_there_is(options: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        TableScan.of({"path": str(CLUSTER), **options})


@pytest.mark.parametrize("name", sorted(set(_READERS) - {"path", "table", "bootstrap"}))
@pytest.mark.parametrize("value", ["", "  "])
def test_an_option_that_is_empty_is_refused_as_it_would_mean_all_there_is(name: str, value: str) -> None:
    with pytest.raises(UsageError, match=name):
        TableScan.of({"path": str(CLUSTER), name: value})


def test_where_a_log_is_committed_is_for_images(tmp_path: Path) -> None:
    root = make_log(tmp_path / "n1", 10)
    with pytest.raises(UsageError, match="option committedEnds means nothing to table 'records'"):
        read_table(str(root), committedEnds='{"/n1": 7}')


def test_where_there_is_no_log_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"there is no log at {tmp_path}; name a data directory"):
        read_table(str(tmp_path))
    with pytest.raises(DirectoryError, match="is not there"):
        read_table(str(tmp_path / "nothing"))
    with pytest.raises(UsageError, match="nothing here reads nosuch://"):
        read_table("nosuch://bucket/x")


def test_an_empty_log_has_no_records(tmp_path: Path) -> None:
    root = make_log(tmp_path / "n1", 0)
    (root / LOG_DIRECTORY / segment_name(0)).touch()
    assert read_table(str(root)).num_rows == 0


@pytest.mark.parametrize("left", [10, 7, 0], ids=["zeros are cut off", "a tail is cut off", "all is cut off"])
def test_a_log_that_its_node_cut_off_after_it_was_found_ends_there(tmp_path: Path, left: int) -> None:
    root = make_log(tmp_path / "n1", 10)
    (segment,) = segments(root)
    size = segment.stat().st_size
    segment.write_bytes(segment.read_bytes() + bytes(4096))
    scan = TableScan.of({"path": str(root)})
    (task,) = scan.tasks()
    with segment.open("r+b") as file:
        file.truncate(size * left // 10)
    assert sum(rows.num_rows for rows in scan.read(task)) == left * RECORDS_A_BATCH


def test_options_are_read_whatever_their_case() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_table(str(CLUSTER / "c1"), FROMOFFSET=3830).num_rows == 6


@pytest.mark.parametrize("text", ["2026-11-22", "20261122", "20261122T000000", "1795305600000", "2027"])
def test_a_day_can_be_written_with_and_without_dashes(text: str) -> None:
    assert read_table(str(CLUSTER / "c1"), toTimestamp=text).num_rows == 3836
    assert read_table(str(CLUSTER / "c1"), fromTimestamp=text).num_rows == 0
