"""Tables `isr_history` and `leadership`: what a slow walk over the records tells, however the log begins and ends."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fastquorum.controller.image.fold import Fold
from fastquorum.controller.image.partition import Partition
from fastquorum.errors import CorruptionError, ImageFailed, UsageError
from fastquorum.spark.tables import histories
from fastquorum.storage.io.opening import open_offline
from fastquorum.storage.names import LOG_DIRECTORY, checkpoint_name, segment_name
from fastquorum.types import OffsetAndEpoch, Uuid
from fastquorum.wire.codec.json_form import from_json
from fastquorum.wire.records.metadata import METADATA_RECORDS, decode_metadata_record, encode_metadata_record
from fastquorum.wire.records.metadata import record_type_name as name_of
from fastquorum.wire.records.topics import PartitionChangeRecord, PartitionRecord, RemoveTopicRecord, TopicRecord
from tests.spark.damage import change, make_log, segments
from tests.spark.pipelines.timeline_model import Step, World
from tests.spark.pipelines.timeline_worlds import logs

from .directories import GOLDEN, KERNELS, flip, rows, write_log

CLASSES = {name_of(cls): cls for cls in METADATA_RECORDS.values()}
SNAPSHOT = OffsetAndEpoch(2447, 1)
C1 = GOLDEN / "c1"
Row = dict[str, Any]


def metadata_log(directory: Path, values: list[bytes], *, is_batched: bool = True) -> Path:
    """A metadata log with these records, in one batch or a batch each."""
    root = make_log(directory, 0, kind="metadata")
    batches = [values] if is_batched and values else [[each] for each in values]
    data = [
        KERNELS.encode_values(each, base_offset=at * len(batches[0]), leader_epoch=1, timestamp_ms=5)
        for at, each in enumerate(batches)
    ]
    (root / LOG_DIRECTORY / segment_name(0)).write_bytes(b"".join(data))
    return root


def in_parts(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Logs are read in parts of so many records, however many partitions there are."""
    monkeypatch.setattr(histories, "RECORDS_MIN", size)
    monkeypatch.setattr(histories, "RECORDS_A_PARTITION", 0)


def values_of(found: list[Row], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in found]


# --- against slow walks -----------------------------------------------------------------------------------------------


def folded_changes() -> Iterator[tuple[int, Partition | None, Partition, str, int]]:
    """Yield, for each record of the golden log: offset, the partition before and after, its topic and number."""
    log = open_offline(str(C1), KERNELS)
    fold = Fold()
    held: list[tuple[int, PartitionRecord | PartitionChangeRecord]] = []
    for stored in log.batches():
        if stored.info.is_control:
            fold.skip(stored.info.last_offset + 1, stored.info.leader_epoch, 0)
            continue
        for record in KERNELS.decode_records(stored.data):
            message, _ = decode_metadata_record(record.value or b"")
            before = fold.image
            fold.add(record.offset, message, stored.info.leader_epoch, 0)
            if isinstance(message, PartitionRecord | PartitionChangeRecord):
                held.append((record.offset, message))
            if not fold.is_in_transaction:
                for offset, each in held:
                    key = each.topic_id, each.partition_id
                    after = fold.image.topics.partition(*key)
                    assert after is not None
                    topic = fold.image.topics.by_id[each.topic_id].name
                    yield offset, before.topics.partition(*key), after, topic, each.partition_id
                held.clear()


def test_of_a_real_log_they_are_what_its_images_differ_in() -> None:
    isr, leaders = [], []
    for offset, before, after, topic, number in folded_changes():
        base = (offset, topic, number, after.leader, after.leader_epoch, after.partition_epoch, list(after.isr))
        was = () if before is None else before.isr
        joined, left = [each for each in after.isr if each not in was], [each for each in was if each not in after.isr]
        if before is None or joined or left:
            isr.append((*base, joined, left))
        if before is None or before.leader != after.leader:
            leaders.append((*base, None if before is None else before.leader))
    names = ("offset", "topic", "partition", "leader", "leader_epoch", "partition_epoch", "isr")
    found = [row for row in rows(C1, "isr_history") if row["event"] != "removed"]
    assert values_of(found, *names, "joined", "left") == isr
    found = [row for row in rows(C1, "leadership") if row["event"] != "removed"]
    assert values_of([row for row in found if row["scope"] == "partition"], *names, "former_leader") == leaders
    of_quorum = [row for row in found if row["scope"] == "quorum"]
    assert values_of(of_quorum, "offset", "leader", "leader_epoch", "former_leader") == [
        (0, 3, 1, None),
        (3720, 2, 3, 3),
    ]
    assert [row["offset"] for row in found] == sorted(row["offset"] for row in found)


def _encoded(step: Step) -> bytes:
    cls = CLASSES[step.type]
    data = dict(step.data)
    if "topicId" in data:
        data["topicId"] = str(Uuid(data["topicId"].encode().ljust(16, b".")))
    if step.type == "PARTITION_RECORD":
        data |= {"leaderEpoch": 3, "partitionEpoch": 5}
    if step.type == "REGISTER_BROKER_RECORD":
        data |= {"endPoints": [], "features": [], "isMigratingZkBroker": False, "logDirs": []}
        data["incarnationId"] = str(Uuid(data["incarnationId"].encode().ljust(16, b".")))
    if step.type == "BEGIN_TRANSACTION_RECORD":
        data = {}
    version = 0
    known = {each.json_name for each in cls.__wire__.fields if each.versions.has(version)}
    return encode_metadata_record(from_json(cls, version, {key: each for key, each in data.items() if key in known}), 0)


def walked(steps: list[Step]) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Changes of ISRs and of leaders, by looking at every partition after every record that counts."""
    world, isr, leaders = World(), [], []
    counted: list[tuple[int, Step]] = []
    pending: list[tuple[int, Step]] | None = None
    for offset, step in enumerate(steps):
        if step.type == "BEGIN_TRANSACTION_RECORD":
            pending = []
        elif step.type in ("END_TRANSACTION_RECORD", "ABORT_TRANSACTION_RECORD"):
            counted += (pending or []) if step.type.startswith("END") else []
            pending = None
        else:
            (counted if pending is None else pending).append((offset, step))
    for offset, step in counted:
        before = {key: dict(each) for key, each in world.partitions.items()}
        world.apply(step.type, step.data)
        key = step.data.get("topicId"), step.data.get("partitionId")
        for gone in sorted(before.keys() - world.partitions.keys()):
            isr.append((offset, "removed", gone[1], None, [], sorted(before[gone]["isr"]), None))
            leaders.append((offset, "removed", gone[1], None, before[gone]["leader"]))
        if step.type == "PARTITION_RECORD":
            now = world.partitions[key]
            least = world.least(key)
            isr.append((offset, "created", key[1], now["isr"], sorted(now["isr"]), [], len(now["isr"]) < least))
            leaders.append((offset, "created", key[1], now["leader"], None))
        elif step.type == "PARTITION_CHANGE_RECORD":
            was, now = before[key], world.partitions[key]
            joined, left = sorted(set(now["isr"]) - set(was["isr"])), sorted(set(was["isr"]) - set(now["isr"]))
            if joined or left:
                isr.append((offset, "changed", key[1], now["isr"], joined, left, len(now["isr"]) < world.least(key)))
            if was["leader"] != now["leader"]:
                leaders.append((offset, "changed", key[1], now["leader"], was["leader"]))
    return isr, leaders


def _sorted(lists: list[int] | None) -> list[int] | None:
    return None if lists is None else sorted(lists)


@pytest.mark.long
@given(steps=logs(), size=st.sampled_from([1, 3, 1000]), is_batched=st.booleans())
@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_log_is_told_as_a_slow_walk_tells_it_however_many_parts_it_is_read_in(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    steps: list[Step],
    size: int,
    is_batched: bool,
) -> None:
    in_parts(monkeypatch, size)
    root = metadata_log(tmp_path_factory.mktemp("log"), [_encoded(step) for step in steps], is_batched=is_batched)
    isr, leaders = walked(steps)
    found = [
        (*start, _sorted(joined), _sorted(left), under)
        for *start, joined, left, under in values_of(
            rows(root, "isr_history"), "offset", "event", "partition", "isr", "joined", "left", "is_under_min_isr"
        )
    ]
    assert found == isr
    assert values_of(rows(root, "leadership"), "offset", "event", "partition", "leader", "former_leader") == leaders


# --- narrowed ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", ["isr_history", "leadership"])
@pytest.mark.parametrize(
    ("options", "taken"),
    [
        ({"fromOffset": 3000}, lambda row: row["offset"] >= 3000),
        ({"toOffset": 3000}, lambda row: row["offset"] < 3000),
        ({"asOfOffset": 3000, "diffFrom": 2000}, lambda row: 2000 <= row["offset"] < 3000),
        ({"fromEpoch": 3}, lambda row: row["epoch"] >= 3),
        ({"toEpoch": 3}, lambda row: row["epoch"] < 3),
        ({"topic": "orders-6"}, lambda row: row["topic"] == "orders-6"),
        ({"fromTimestamp": 1795242877372}, lambda row: row["timestamp"].timestamp() * 1000 >= 1795242877372),
        ({"toTimestamp": 1795242877372}, lambda row: row["timestamp"].timestamp() * 1000 < 1795242877372),
    ],
    ids=lambda given: str(given) if isinstance(given, dict) else "",
)
def test_what_is_not_shown_counts_all_the_same(table: str, options: dict[str, Any], taken: Any) -> None:
    assert rows(C1, table, **options) == [row for row in rows(C1, table) if taken(row)]


def test_types_mean_nothing_here_and_user_records_have_no_isr(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="option types means nothing to table 'isr_history'"):
        rows(C1, "isr_history", types="PARTITION_RECORD")
    with pytest.raises(UsageError, match="table 'leadership' is made of metadata logs"):
        rows(make_log(tmp_path / "n1"), "leadership")


# --- logs that do not begin at 0 --------------------------------------------------------------------------------------


def cut(tmp_path: Path, start: int, *snapshots: OffsetAndEpoch) -> Path:
    """The golden log from the batch on that `start` is in, with these of its snapshots."""
    directory = tmp_path / "c1"
    log = write_log(directory, {})
    shutil.copy(C1 / "meta.properties", directory)
    kept = [each for each in open_offline(str(C1), KERNELS).batches() if each.info.last_offset >= start]
    (log / segment_name(kept[0].info.base_offset)).write_bytes(b"".join(bytes(each.data) for each in kept))
    for snapshot in snapshots:
        shutil.copy(C1 / LOG_DIRECTORY / checkpoint_name(snapshot), log)
    return directory


def without_place(found: list[Row], start: int = 0) -> list[Row]:
    return [row | {"directory": None} for row in found if row["offset"] >= start]


@pytest.mark.parametrize("size", [50, 1 << 19])
@pytest.mark.parametrize("table", ["isr_history", "leadership"])
def test_a_log_that_begins_with_a_snapshot_knows_what_was_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str, size: int
) -> None:
    in_parts(monkeypatch, size)
    directory = cut(tmp_path, SNAPSHOT.offset, SNAPSHOT)
    expected = without_place(rows(C1, table), SNAPSHOT.offset)
    found = without_place(rows(directory, table))
    if table == "leadership":  # who led the quorum before, no snapshot says
        quorum = [row for row in found if row["scope"] == "quorum"]
        assert values_of(quorum, "leader", "former_leader") == [(2, None)]
        found, expected = ([row for row in each if row["scope"] == "partition"] for each in (found, expected))
    assert found == expected


@pytest.mark.parametrize("table", ["isr_history", "leadership"])
def test_in_however_many_parts_a_real_log_is_the_same(monkeypatch: pytest.MonkeyPatch, table: str) -> None:
    whole = rows(C1, table)
    in_parts(monkeypatch, 100)
    assert rows(C1, table) == whole


@pytest.mark.parametrize("size", [50, 1 << 19])
@pytest.mark.parametrize("table", ["isr_history", "leadership"])
def test_without_a_snapshot_what_is_not_known_is_null_and_never_invented(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str, size: int
) -> None:
    in_parts(monkeypatch, size)
    found = without_place(rows(cut(tmp_path, SNAPSHOT.offset), table))
    expected = {(row["offset"], row["partition"]): row for row in without_place(rows(C1, table), SNAPSHOT.offset)}
    assert expected.keys() <= {(row["offset"], row["partition"]) for row in found}
    for row in found:
        known = expected.get((row["offset"], row["partition"]), row)
        assert all(value is None or value == known[name] for name, value in row.items())
    partitions = [row for row in found if row["partition"] is not None]
    assert {row["partition_epoch"] for row in partitions} == {None}
    assert any(row["isr"] is not None for row in partitions)


def test_records_before_the_first_snapshot_are_told_as_far_as_they_tell_themselves(tmp_path: Path) -> None:
    found = without_place(rows(cut(tmp_path, 1827, SNAPSHOT), "isr_history"))
    whole = without_place(rows(C1, "isr_history"), 1827)
    assert {row["offset"] for row in whole} <= {row["offset"] for row in found}
    assert without_place(found, SNAPSHOT.offset) == without_place(whole, SNAPSHOT.offset)
    assert {row["replicas"] is None for row in found if row["offset"] < SNAPSHOT.offset} == {True}


def test_a_damaged_snapshot_is_told_by_mode(tmp_path: Path) -> None:
    directory = cut(tmp_path, SNAPSHOT.offset, SNAPSHOT)
    path = directory / LOG_DIRECTORY / checkpoint_name(SNAPSHOT)
    flip(path, 5000)
    with pytest.raises(CorruptionError, match=path.name):
        rows(directory, "isr_history")
    first, *others = rows(directory, "isr_history", mode="quarantine")
    assert path.name in first["error"]
    assert without_place(others) == without_place(rows(cut(tmp_path / "other", SNAPSHOT.offset), "isr_history"))
    with pytest.warns(RuntimeWarning, match=path.name):
        assert rows(directory, "isr_history", mode="drop") == others


# --- logs that end early ----------------------------------------------------------------------------------------------


def test_the_history_ends_where_the_log_is_damaged(tmp_path: Path) -> None:
    directory = tmp_path / "c1"
    shutil.copytree(C1, directory)
    (path,) = segments(directory)
    at = 100_000
    change(path, at, b"\xff\xff\xff")
    with pytest.raises(CorruptionError, match="crc"):
        rows(directory, "isr_history")
    *good, bad = rows(directory, "isr_history", mode="quarantine")
    assert "crc" in bad["error"]
    assert without_place(good) == without_place(rows(C1, "isr_history"))[: len(good)]
    assert good


TOPIC = Uuid(b"t" * 16)
HEAD = [
    encode_metadata_record(TopicRecord(name="t", topic_id=TOPIC), 0),
    encode_metadata_record(PartitionRecord(partition_id=0, topic_id=TOPIC, replicas=[1, 2], isr=[1, 2], leader=1), 0),
]


def shrunk(partition: int) -> bytes:
    return encode_metadata_record(PartitionChangeRecord(partition_id=partition, topic_id=TOPIC, isr=[1]), 0)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"\x01\x05\x63", "PARTITION_CHANGE_RECORD at offset 2 .*its version 99 is unknown"),
        (shrunk(7), "at offset 2 .*there is no such partition"),
        (b"\x01\x18\x00\x00", "no transaction is open"),
    ],
    ids=["later version", "no such partition", "no transaction"],
)
def test_a_record_that_cannot_be_taken_in_ends_it(tmp_path: Path, value: bytes, why: str) -> None:
    root = metadata_log(tmp_path / "n1", [*HEAD, value, shrunk(0)])
    with pytest.raises(ImageFailed, match=why):
        rows(root, "isr_history")
    created, ended = rows(root, "isr_history", mode="quarantine")
    assert (created["offset"], created["joined"], created["error"]) == (1, [1, 2], None)
    assert (ended["offset"], ended["isr"]) == (None, None)
    with pytest.warns(RuntimeWarning, match="the rest of its rows is left out"):
        assert rows(root, "isr_history", mode="drop") == [created]


def test_a_type_that_nobody_knows_says_nothing_of_partitions(tmp_path: Path) -> None:
    root = metadata_log(tmp_path / "n1", [*HEAD, b"\x01\x7f\x00", shrunk(0)])
    assert values_of(rows(root, "isr_history"), "offset", "joined", "left") == [(1, [1, 2], []), (3, [], [2])]


def test_a_removed_topics_partitions_go_with_it(tmp_path: Path) -> None:
    root = metadata_log(tmp_path / "n1", [*HEAD, encode_metadata_record(RemoveTopicRecord(topic_id=TOPIC), 0)])
    (_, gone) = rows(root, "isr_history")
    assert (gone["event"], gone["topic"], gone["isr"], gone["left"]) == ("removed", "t", None, [1, 2])
    (_, gone) = rows(root, "leadership")
    assert (gone["event"], gone["leader"], gone["former_leader"]) == ("removed", None, 1)


def test_an_empty_log_has_no_changes(tmp_path: Path) -> None:
    root = metadata_log(tmp_path / "n1", [])
    assert rows(root, "isr_history") == rows(root, "leadership") == []
