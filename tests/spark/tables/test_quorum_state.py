"""The table `quorum_state`: epoch and vote, by Kafka's file and by ours."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fastquorum.errors import FastQuorumError
from fastquorum.raft.election import ElectionState
from fastquorum.spark.scan import read_table
from fastquorum.storage.format import FormatOptions, format_directory
from fastquorum.storage.identity import LogKind, read_identity
from fastquorum.storage.io.disk import RealDisk
from fastquorum.storage.io.state import LmdbStateStore
from fastquorum.storage.names import KAFKA_STATE, QUORUM_STATE
from fastquorum.storage.state_value import StateOwner
from fastquorum.types import Endpoint, ReplicaKey, Uuid, Voter, VoterSet

from .directories import GOLDEN, KERNELS, rows

OWN = Uuid(b"1" * 16)
OTHER = Uuid(b"2" * 16)
COLUMNS = ("epoch", "leader_id", "voted_id", "voted_directory_id", "format")


def formatted(path: Path, *states: ElectionState, node_id: int = 1) -> Path:
    """A directory of ours whose node has saved these."""
    disk = RealDisk.open_directory(str(path), KERNELS, create=True)
    voters = VoterSet([Voter(ReplicaKey(node_id, OWN), (Endpoint("CONTROLLER", "h", 9000),))])
    options = FormatOptions("cluster", node_id, OWN, voters, LogKind.METADATA)
    identity = format_directory(disk, KERNELS, options, now_ms=1)
    store = LmdbStateStore(str(path), identity.owner, KERNELS)
    for each in states:
        store.save(each)
    store.close()
    return path


def owner_of(path: Path) -> StateOwner:
    return read_identity(RealDisk.open_directory(str(path), KERNELS)).owner


def stated(row: dict[str, object]) -> tuple[object, ...]:
    return tuple(row[name] for name in COLUMNS)


def test_kafkas_replicas_say_whom_they_follow() -> None:
    found = rows(GOLDEN, "quorum_state")
    assert [stated(row) for row in found] == [
        (3, 2, 2, "MzGshnxlQ8CWUREFNVsnEw", "kafka"),
        (3, 2, None, None, "kafka"),
        (3, 2, None, None, "kafka"),
    ]
    assert {(row["error"], row["log_kind"]) for row in found} == {(None, "metadata")}


def test_ours_says_it_with_a_vote_and_without(tmp_path: Path) -> None:
    formatted(tmp_path / "a", ElectionState(4, 2), ElectionState(5, -1, ReplicaKey(3, OTHER)))
    formatted(tmp_path / "b", ElectionState(7, 2))
    formatted(tmp_path / "c", ElectionState(8, -1, ReplicaKey(3)))
    found = rows(tmp_path, "quorum_state")
    assert [stated(row) for row in found] == [
        (5, None, 3, str(OTHER), "fastquorum"),
        (7, 2, None, None, "fastquorum"),
        (8, None, 3, None, "fastquorum"),
    ]
    assert {row["error"] for row in found} == {None}


def test_an_object_store_says_the_same(tmp_path: Path, in_memory: Callable[[Path], str]) -> None:
    formatted(tmp_path / "a", ElectionState(5, -1, ReplicaKey(3, OTHER)))
    shutil.copytree(GOLDEN / "c1", tmp_path / "b")
    here = read_table(str(tmp_path), "quorum_state").drop_columns(["directory"])
    assert read_table(in_memory(tmp_path), "quorum_state").drop_columns(["directory"]) == here


def test_nothing_was_saved_yet(tmp_path: Path) -> None:
    (row,) = rows(formatted(tmp_path), "quorum_state")
    assert stated(row) == (None, None, None, None, "fastquorum")
    assert row["error"] is None


def test_there_is_none(tmp_path: Path) -> None:
    path = formatted(tmp_path)
    (path / QUORUM_STATE).unlink()
    (row,) = rows(path, "quorum_state")
    assert row["error"] == "there is no quorum state"
    assert stated(row) == (None,) * 5


def test_both_are_there(tmp_path: Path) -> None:
    path = formatted(tmp_path, ElectionState(5, 1))
    shutil.copy(GOLDEN / "c1" / KAFKA_STATE, path / KAFKA_STATE)
    found = rows(path, "quorum_state")
    assert [(row["format"], row["epoch"]) for row in found] == [("fastquorum", 5), ("kafka", 3)]
    assert {row["error"] for row in found} == {f"there are {QUORUM_STATE} and quorum-state"}


def test_reading_leaves_a_running_nodes_directory_as_it_is(tmp_path: Path) -> None:
    path = formatted(tmp_path, ElectionState(5, 1))
    store = LmdbStateStore(str(path), owner_of(path), KERNELS)
    before = {each: each.stat().st_mtime_ns for each in path.rglob("*")}
    assert rows(path, "quorum_state")[0]["epoch"] == 5
    assert {each: each.stat().st_mtime_ns for each in path.rglob("*")} == before
    store.save(ElectionState(6, 1))
    assert rows(path, "quorum_state")[0]["epoch"] == 6
    store.close()


@pytest.mark.parametrize("name", [KAFKA_STATE, QUORUM_STATE])
def test_of_one_that_is_cut_off_the_mode_decides(tmp_path: Path, name: str) -> None:
    path = formatted(tmp_path, ElectionState(5, 1))
    if name == KAFKA_STATE:
        (path / QUORUM_STATE).unlink()
        shutil.copy(GOLDEN / "c1" / KAFKA_STATE, path / KAFKA_STATE)
    whole = (path / name).read_bytes()
    for end in range(0, len(whole), max(1, len(whole) // 100)):
        (path / name).write_bytes(whole[:end])
        (row,) = rows(path, "quorum_state", mode="quarantine")
        if row["epoch"] is None:
            assert str(path / name) in row["error"]
            with pytest.raises(FastQuorumError, match=str(path / name)):
                rows(path, "quorum_state")
            with pytest.warns(RuntimeWarning, match=str(path / name)):
                assert rows(path, "quorum_state", mode="drop") == []
        else:
            assert (row["epoch"], row["error"]) == (5, None)  # only room for later states is cut off


def test_another_replicas_is_refused(tmp_path: Path) -> None:
    path = formatted(tmp_path / "a", ElectionState(5, 1))
    other = formatted(tmp_path / "b", ElectionState(5, 1), node_id=2)
    shutil.copy(other / QUORUM_STATE, path / QUORUM_STATE)
    (row,) = rows(path, "quorum_state", mode="quarantine")
    assert row["epoch"] is None
    assert "foreign_state" in row["error"]
