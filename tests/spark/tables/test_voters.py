"""The table `voters`: who made up the quorum, from the log, from checkpoints, from our own properties."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from fastquorum.errors import CorruptionError, DirectoryError
from fastquorum.raft.messages import kraft_version_record, voters_record
from fastquorum.spark.scan import read_table
from fastquorum.storage.format import FormatOptions, format_directory
from fastquorum.storage.io.disk import RealDisk
from fastquorum.storage.log.checkpoint import CheckpointTimes, encode_checkpoint
from fastquorum.storage.names import OWN_PROPERTIES, checkpoint_name, segment_name
from fastquorum.types import ZERO_UUID, Endpoint, OffsetAndEpoch, ReplicaKey, Uuid, Voter, VoterSet

from .directories import GOLDEN, KERNELS, batch, control, flip, rows, write_log


def voters(*ids: int, endpoints: Sequence[str] = ("CONTROLLER",)) -> VoterSet:
    def voter(node_id: int) -> Voter:
        ends = tuple(Endpoint(name, f"h{node_id}", 9000) for name in endpoints)
        return Voter(ReplicaKey(node_id, Uuid(bytes([node_id]) * 16)), ends)

    return VoterSet([voter(each) for each in ids])


def snapshot(log: Path, offset: int, epoch: int, members: VoterSet, last_ms: int = 500) -> Path:
    path = log / checkpoint_name(OffsetAndEpoch(offset, epoch))
    times = CheckpointTimes(last_ms, last_ms, last_ms, last_contained_ms=last_ms)
    path.write_bytes(encode_checkpoint(KERNELS, times, epoch=epoch, kraft_version=1, voters=members))
    return path


def changed(base_offset: int, members: VoterSet, epoch: int = 1, timestamp_ms: int = 1000) -> bytes:
    return control(base_offset, voters_record(members), epoch=epoch, timestamp_ms=timestamp_ms)


def sets(found: Sequence[dict[str, Any]]) -> list[tuple[int, list[int]]]:
    """(offset, voters) of each set."""
    by_offset: dict[int, list[int]] = {}
    for row in found:
        assert row["error"] is None
        by_offset.setdefault(row["offset"], []).append(row["voter_id"])
    return list(by_offset.items())


@pytest.mark.parametrize("node", ["c1", "c2", "c3"])
def test_kafkas_voters_came_and_went(node: str) -> None:
    found = rows(GOLDEN / node, "voters")
    assert sets(found) == [(0, [1, 2, 3]), (2, [1, 2, 3]), (3763, [1, 2, 3, 4]), (3774, [1, 2, 3])]
    first = checkpoint_name(OffsetAndEpoch(0, 0))
    assert [row["source"] for row in found[:4]] == [first, first, first, segment_name(0)]
    assert {row["kraft_version"] for row in found} == {1}
    (fourth,) = (row for row in found if row["voter_id"] == 4)
    fields = {name: fourth[name] for name in ("epoch", "directory_id", "listener", "host", "port")}
    assert fields == {
        "epoch": 3,
        "directory_id": "XsdI4ZcHmJz0QYu-nnlEVA",
        "listener": "CONTROLLER",
        "host": "127.0.0.1",
        "port": 19094,
    }
    assert (fourth["kraft_version_min"], fourth["kraft_version_max"]) == (0, 1)


def test_an_object_store_has_the_same(in_memory: Callable[[Path], str]) -> None:
    here = read_table(str(GOLDEN / "c1"), "voters").drop_columns(["directory"])
    assert read_table(in_memory(GOLDEN / "c1"), "voters").drop_columns(["directory"]) == here


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"asOfOffset": 3763}, [0, 2]),
        ({"asOfOffset": 3764}, [0, 2, 3763]),
        ({"fromOffset": 3000}, [2, 3763, 3774]),
        ({"fromOffset": 3774}, [3774]),
        ({"fromEpoch": 3}, [2, 3763, 3774]),
        ({"fromEpoch": 4}, [3774]),
        ({"toEpoch": 3}, [0, 2]),
        ({"fromTimestamp": "2026-11-21T06:35:21Z", "toTimestamp": "2026-11-21T06:35:22Z"}, [3763]),
    ],
    ids=str,
)
def test_bounds_keep_sets_that_were_in_force_at_a_record_within_them(
    options: dict[str, object], expected: list[int]
) -> None:
    assert [offset for offset, _ in sets(rows(GOLDEN / "c1", "voters", **options))] == expected


def test_each_endpoint_is_a_row(tmp_path: Path) -> None:
    write_log(tmp_path, {0: [changed(0, voters(1, endpoints=("A", "B")))]})
    assert [(row["voter_id"], row["listener"]) for row in rows(tmp_path, "voters")] == [(1, "A"), (1, "B")]


def test_the_version_is_that_of_the_last_record_before(tmp_path: Path) -> None:
    write_log(tmp_path, {0: [changed(0, voters(1)), control(1, kraft_version_record(1)), changed(2, voters(2))]})
    assert [row["kraft_version"] for row in rows(tmp_path, "voters")] == [None, 1]


def test_a_log_that_begins_with_a_snapshot_begins_with_its_voters(tmp_path: Path) -> None:
    log = write_log(tmp_path, {100: [batch(100, 10), changed(110, voters(2, 3))]})
    snapshot(log, 100, 1, voters(1, 2))
    snapshot(log, 111, 1, voters(2, 3))
    assert sets(rows(tmp_path, "voters")) == [(100, [1, 2]), (110, [2, 3])]


def test_a_snapshot_that_knows_more_than_the_log_is_asked_too(tmp_path: Path) -> None:
    log = write_log(tmp_path, {0: [changed(0, voters(1)), batch(1, 9)]})
    snapshot(log, 500, 4, voters(1, 7))
    assert sets(rows(tmp_path, "voters")) == [(0, [1]), (500, [1, 7])]


def test_static_voters_are_those_of_our_properties(tmp_path: Path) -> None:
    disk = RealDisk.open_directory(str(tmp_path), KERNELS, create=True)
    ends = {each: (Endpoint("CONTROLLER", "h", 9000 + each),) for each in (1, 2)}
    members = VoterSet([Voter(ReplicaKey(each, ZERO_UUID), end) for each, end in ends.items()])
    format_directory(disk, KERNELS, FormatOptions("cluster", 1, Uuid(b"1" * 16), members), now_ms=1)
    found = rows(tmp_path, "voters")
    assert sets(found) == [(0, [1, 2])]
    assert [row["port"] for row in found] == [9001, 9002]
    for row in found:
        assert (row["source"], row["kraft_version"]) == (OWN_PROPERTIES, 0)
        unsaid = ("epoch", "timestamp", "directory_id", "kraft_version_min", "kraft_version_max")
        assert [row[name] for name in unsaid] == [None] * 5
    assert rows(tmp_path, "voters", fromEpoch=0, toEpoch=1) == found  # they are in force in every epoch


def test_a_damaged_snapshot_is_told_where_its_voters_are_needed(tmp_path: Path) -> None:
    log = write_log(tmp_path, {100: [batch(100)]})
    path = snapshot(log, 100, 1, voters(1))
    flip(path, 70)
    with pytest.raises(CorruptionError) as raised:
        rows(tmp_path, "voters")
    assert raised.value.path == str(path)
    (row,) = rows(tmp_path, "voters", mode="quarantine")
    assert (row["offset"], row["source"]) == (100, path.name)
    assert "crc" in row["error"]
    with pytest.warns(RuntimeWarning, match="crc"):
        assert rows(tmp_path, "voters", mode="drop") == []


def test_damage_in_the_log_does_not_hide_what_is_behind_it(tmp_path: Path) -> None:
    first = changed(0, voters(1))
    path = write_log(tmp_path, {0: [first, changed(1, voters(2)), changed(2, voters(3))]}) / segment_name(0)
    flip(path, len(first) + 70)
    with pytest.raises(CorruptionError):
        rows(tmp_path, "voters")
    damaged, *others = rows(tmp_path, "voters", mode="quarantine")
    assert (damaged["offset"], damaged["voter_id"]) == (1, None)
    assert sets(others) == [(0, [1]), (2, [3])]


def test_a_record_that_cannot_be_read_is_damage(tmp_path: Path) -> None:
    """Its checksum is good, its content is not."""
    bad = KERNELS.encode_values([b"no control record"], base_offset=0, leader_epoch=1, timestamp_ms=0, attributes=0x20)
    write_log(tmp_path, {0: [bad, changed(1, voters(1))]})
    with pytest.raises(CorruptionError) as raised:
        rows(tmp_path, "voters")
    assert raised.value.offset == 0
    damaged, *others = rows(tmp_path, "voters", mode="quarantine")
    assert damaged["offset"] == 0
    assert sets(others) == [(1, [1])]


def test_a_missing_segment_is_not_overlooked(tmp_path: Path) -> None:
    write_log(tmp_path, {0: [changed(0, voters(1))], 5: [changed(5, voters(2))]})
    with pytest.raises(DirectoryError, match="one is missing"):
        rows(tmp_path, "voters")


def test_damaged_properties_are_told(tmp_path: Path) -> None:
    write_log(tmp_path, {0: [batch(0)]})
    (tmp_path / "meta.properties").write_bytes(b"version=7\nnode.id=1\n")
    (tmp_path / OWN_PROPERTIES).write_bytes(b"format.version=1\n")
    with pytest.raises(DirectoryError):
        rows(tmp_path, "voters")
    (row,) = rows(tmp_path, "voters", mode="quarantine")
    assert row["source"] == OWN_PROPERTIES
    assert "cut short" in row["error"]
