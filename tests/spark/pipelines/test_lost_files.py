"""Directories of our nodes that lost files, or are older than the others, as every audit tells of them."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import fastquorum as fq
from fastquorum.cli.main import main
from fastquorum.kernels import load
from fastquorum.raft.election import ElectionState
from fastquorum.spark.engines.local_jobs import LocalEngine
from fastquorum.spark.pipelines.audit_replicas import as_report
from fastquorum.spark.pipelines.invariants import findings
from fastquorum.spark.pipelines.replicas import ReplicaVerdict
from fastquorum.spark.stored.file_kinds import NO_STATE
from fastquorum.storage.findings import Severity
from fastquorum.storage.identity import read_identity
from fastquorum.storage.io.disk import RealDisk
from fastquorum.storage.io.opening import open_offline
from fastquorum.storage.io.state import LmdbStateStore
from fastquorum.storage.log.mark import LogPosition, Mark, encode_mark
from fastquorum.storage.names import (
    DURABLE_MARK,
    EPOCH_CHECKPOINT,
    LOG_DIRECTORY,
    META_PROPERTIES,
    OWN_PROPERTIES,
    QUORUM_STATE,
    ZERO_CHECKPOINT,
    index_name,
)
from tests.odd_files import linked_to_itself, linked_to_nothing, turned_into_directory
from tests.spark.replicas import Replicas
from tests.spark.tables.directories import batch

INDEX = f"{LOG_DIRECTORY}/{index_name(0)}"
BLANK = {"removed": None, "emptied": b"", "zeroed": bytes(200)}


@pytest.fixture(scope="module")
def closed_node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("closed") / "n1"
    with fq.sync.open(str(root), node_id=1, kernels="native") as quorum:
        quorum.wait_ready()
        quorum.append([b"51"] * 20)
    return root


@pytest.fixture
def node(closed_node: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(closed_node, tmp_path / "n1"))


def broken(root: Path) -> list[tuple[str, str]]:
    found = findings.as_report(LocalEngine(1).audit_invariants(str(root)))
    return [(row["kind"], row["says"]) for row in found["violations"]]


def test_older_copies_on_a_majority_are_told_by_both_audits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    three = Replicas(tmp_path, 1, 2, 3)
    three.append(batch(0, 4), 1, 2, 3)
    three.append(batch(4, 2), 3)
    (segment,) = three.segments(3)
    mark = Path(three.path(3)) / LOG_DIRECTORY / DURABLE_MARK
    at = LogPosition(6, 0, segment.stat().st_size)
    for committed, expected in ((6, ReplicaVerdict.LACKING), (4, ReplicaVerdict.SAME)):
        mark.write_bytes(encode_mark(load("native"), Mark(at, 0, 0, committed)))
        paths = [three.path(each) for each in (1, 2, 3)]
        rows = as_report(LocalEngine(1).audit_replicas(str(tmp_path)))["replicas"]
        assert [row["verdict"] for row in rows[:2]] == [expected] * 2
        code = int(expected is ReplicaVerdict.LACKING)
        assert (main(["audit", "replicas", *paths]), main(["audit", "invariants", *paths])) == (code, code)
        output = capsys.readouterr().out
        assert output.count("start none of these without a replica that has the records") == 2 * code
        assert ("2 lacking committed records" in output, "1 not-on-majority" in output) == (bool(code), bool(code))
    # Of two of three nobody can tell: the third may have it.
    mark.write_bytes(encode_mark(load("native"), Mark(at, 0, 0, 6)))
    properties = Path(three.path(3)) / OWN_PROPERTIES
    more = "format.version=1\ntopic.name=t\nlistener.name=L\nkraft.version=0\nvoters=1@h:1,2@h:1,3@h:1\n"
    properties.write_text(properties.read_text() + more)
    meta = properties.with_name(META_PROPERTIES)
    meta.write_text(meta.read_text() + "directory.id=AQEBAQEBAQEBAQEBAQEBAQ\n")
    assert main(["audit", "replicas", *paths[1:]]) == 0


def test_a_node_without_the_segments_that_it_had_is_divergent_and_breaks_a_promise(node: Path) -> None:
    for name in ("00000000000000000000.log", DURABLE_MARK, EPOCH_CHECKPOINT):
        (node / LOG_DIRECTORY / name).unlink()
    (finding, *_) = open_offline(str(node), load("native")).verify_directory().findings
    (row,) = as_report(LocalEngine(1).audit_replicas(str(node)))["divergent"]
    assert finding.severity is Severity.CORRUPT
    assert row["why"] == finding.text
    assert row["why"].startswith("the log directory was in use, but its segments are gone: put them back from a copy")
    assert broken(node) == [("lost-records", finding.text)]


@pytest.mark.parametrize("data", BLANK.values(), ids=BLANK)
@pytest.mark.parametrize("has_state", [True, False])
def test_lost_properties_are_told_and_the_records_are_those_of_users_still(
    node: Path, data: bytes | None, *, has_state: bool
) -> None:
    path = node / OWN_PROPERTIES
    if data is None:
        path.unlink()
    else:
        path.write_bytes(data)
    if not has_state:
        (node / QUORUM_STATE).unlink()
    ((kind, says),) = broken(node)
    assert (kind, OWN_PROPERTIES in says) == ("properties", True)
    seen = open_offline(str(node), load("native")).verify_directory()
    assert not seen.is_sound
    assert [row["verdict"] for row in as_report(LocalEngine(1).audit_replicas(str(node)))["replicas"]] == ["same"]


def test_properties_of_another_cluster_are_told_and_the_records_are_those_of_users_still(
    node: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    with fq.sync.open(str(other), node_id=1, kernels="native", log="metadata"):
        shutil.copy(other / OWN_PROPERTIES, node)
    ((kind, says),) = broken(node)
    assert (kind, f"{OWN_PROPERTIES} is of cluster" in says) == ("properties", True)
    assert [row["verdict"] for row in as_report(LocalEngine(1).audit_replicas(str(node)))["replicas"]] == ["same"]


def test_a_log_of_another_kind_than_its_directory_is_told_by_both_audits(tmp_path: Path) -> None:
    with fq.sync.open(str(tmp_path / "n1"), node_id=1, kernels="native", log="metadata") as quorum:
        quorum.wait_ready()
    own = tmp_path / "n1" / OWN_PROPERTIES
    own.write_text(own.read_text().replace("log.kind=metadata", "log.kind=user"))
    (row,) = as_report(LocalEngine(1).audit_replicas(str(tmp_path)))["replicas"]
    assert "says that it is a user log" in row["not_started"]
    assert ("not-started", row["not_started"]) in broken(tmp_path)


def test_records_without_what_says_whose_they_are_are_told_in_the_words_of_run(node: Path) -> None:
    for name in (META_PROPERTIES, QUORUM_STATE):
        (node / name).unlink()
    ((kind, says),) = broken(node)
    assert (kind, "it holds a log (00000000000000000000.log), but no meta.properties" in says) == ("properties", True)


def test_a_directory_and_its_copy_are_a_note_of_both_audits(
    node: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = shutil.copytree(node, tmp_path / "copy")
    text = f"{copy} and {node} are of node 1, which has one vote"
    for command in ("replicas", "invariants"):
        assert main(["audit", command, str(node), str(copy)]) == 0
        assert text in capsys.readouterr().out


def test_a_vote_that_is_older_than_the_log_and_damaged_first_voters_are_told_by_both_audits(
    node: Path, tmp_path: Path
) -> None:
    changes: list[tuple[str, bytes, str]] = [
        (ZERO_CHECKPOINT, b"", "corrupt: checkpoint_header"),
        (QUORUM_STATE, older_vote(node, tmp_path / "other"), "older than the log, which has records of epoch 1"),
    ]
    for name, content, text in changes:
        path, before = node / name, (node / name).read_bytes() if (node / name).exists() else None
        path.write_bytes(content)
        (row,) = as_report(LocalEngine(1).audit_replicas(str(node)))["replicas"]
        assert text in row["not_started"]
        assert ("not-started", row["not_started"]) in broken(node)
        assert not open_offline(str(node), load("native")).verify_directory().is_sound
        path.unlink() if before is None else path.write_bytes(before)


def older_vote(node: Path, scratch: Path) -> bytes:
    """The file of its vote as it was before it led."""
    copy = shutil.copytree(node, scratch)
    (copy / QUORUM_STATE).unlink()
    owner = read_identity(RealDisk.open_directory(str(copy), load("native"))).owner
    store = LmdbStateStore(str(copy), owner, load("native"))
    store.save(ElectionState(0, 1))
    store.close()
    return (copy / QUORUM_STATE).read_bytes()


@pytest.mark.parametrize(
    ("name", "change", "kind"),
    [
        (OWN_PROPERTIES, Path.unlink, "properties"),
        (QUORUM_STATE, Path.unlink, "unchecked"),
        (QUORUM_STATE, lambda path: path.write_bytes(b"x"), "quorum-state"),
        *(
            (name, turn, "not-started")
            for name in (".lock", f"{LOG_DIRECTORY}/{DURABLE_MARK}", f"{LOG_DIRECTORY}/{EPOCH_CHECKPOINT}", INDEX)
            for turn in (turned_into_directory, linked_to_nothing, linked_to_itself)
        ),
    ],
)
def test_a_directory_on_which_no_node_starts_is_told_by_both_audits_whatever_its_log_is(
    node: Path, name: str, change: Callable[[Path], None], kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    change(node / name)
    assert not open_offline(str(node), load("native")).verify_directory().is_sound
    found = as_report(LocalEngine(1).audit_replicas(str(node)))
    (text,) = [each["text"] for each in found["notes"]]
    (reason,) = [row["not_started"] for row in found["replicas"]]
    assert text == f"no node starts on {node} as it is: {reason}"
    assert Path(name).name in reason or reason == NO_STATE
    assert main(["audit", "replicas", str(node)]) == 0
    assert text in capsys.readouterr().out.replace("\n", " ")
    every = findings.as_report(LocalEngine(1).audit_invariants(str(node)))
    ((found_kind, says),) = [(row["kind"], row["says"]) for row in (*every["violations"], *every["notes"])]
    assert (found_kind, says) == (kind, reason)
