"""A log that holds nothing, whose mark is lost: it is not taken for a new one by who runs, verifies or audits it."""

import itertools
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import fastquorum as fq
from fastquorum.cli.main import main
from fastquorum.config import QuorumConfig
from fastquorum.errors import CorruptionError, DirectoryError
from fastquorum.kernels import Kernels
from fastquorum.raft.election import ElectionState
from fastquorum.spark.engines.local_jobs import LocalEngine
from fastquorum.spark.pipelines.audit_replicas import as_report
from fastquorum.spark.pipelines.invariants import findings
from fastquorum.storage.format import ORDER
from fastquorum.storage.identity import read_identity
from fastquorum.storage.io.directory import DataDirectory
from fastquorum.storage.io.disk import RealDisk
from fastquorum.storage.io.handover import hand_to_kafka, take_from_kafka
from fastquorum.storage.io.state import LmdbStateStore, write_unsynced
from fastquorum.storage.kafka_state import encode_kafka_state
from fastquorum.storage.lmdb_file import values_in
from fastquorum.storage.log.epochs import format_epochs
from fastquorum.storage.names import (
    BOOTSTRAP_CHECKPOINT,
    DURABLE_MARK,
    EPOCH_CHECKPOINT,
    KAFKA_STATE,
    LOCK,
    LOG_DIRECTORY,
    META_PROPERTIES,
    OWN_PROPERTIES,
    QUORUM_STATE,
    ZERO_CHECKPOINT,
    checkpoint_name,
    index_name,
    segment_name,
)
from fastquorum.storage.state_value import StateOwner
from fastquorum.types import NodeId, OffsetAndEpoch, ReplicaKey, Uuid, VoterSet
from tests.odd_files import linked_to_itself, linked_to_nothing, turned_into_directory
from tests.process.command import picture

from .fake_disk import FakeFlusher
from .logs import checkpoint

GOLDEN = Path(__file__).parent.parent / "golden" / "kafka-4.3.0" / "cluster"
LOST = "the log holds no record, and the durable mark, which says how many it had, is missing or damaged"
MARK_LOSSES: dict[str, Callable[[Path], object]] = {
    "removed": Path.unlink,
    "emptied": lambda path: path.write_bytes(b""),
    "zeroed": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "cut short": lambda path: path.write_bytes(path.read_bytes()[:40]),
}


@pytest.fixture(scope="module")
def closed_node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a node that was closed, with records."""
    root = tmp_path_factory.mktemp("closed") / "n1"
    with fq.sync.open(str(root), node_id=1, kernels="native", log="metadata", topic="__cluster_metadata") as quorum:
        quorum.wait_ready()
    return root


@pytest.fixture
def node(closed_node: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(closed_node, tmp_path / "n1"))


def opened(root: Path, kernels: Kernels) -> None:
    DataDirectory.open(str(root), kernels, QuorumConfig(), FakeFlusher()).close()


def listed(root: Path) -> list[tuple[str, int, int, int]]:
    """Everything below, with mode, size and when it was changed."""
    found = [(each, each.lstat()) for each in sorted(root.rglob("*"))]
    return [(str(each), status.st_mode, status.st_size, status.st_mtime_ns) for each, status in found]


def verified(root: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[tuple[str, str, str]]]:
    """What the command exits with, and its findings: severity, file, text."""
    capsys.readouterr()
    code = main(["log", "verify", "--format", "json", str(root)])
    found = json.loads(capsys.readouterr().out)["findings"]
    return code, [(each["severity"], each["path"], each["text"]) for each in found]


@pytest.mark.parametrize("has_voted", [True, False])
@pytest.mark.parametrize("how", MARK_LOSSES)
@pytest.mark.parametrize("log", [b"", bytes(4096), b"\xa5" * 100], ids=["empty", "zeros", "garbage"])
def test_nobody_takes_it_for_a_new_one(
    node: Path, kernels: Kernels, capsys: pytest.CaptureFixture[str], how: str, log: bytes, *, has_voted: bool
) -> None:
    mark = node / LOG_DIRECTORY / DURABLE_MARK
    MARK_LOSSES[how](mark)
    (node / LOG_DIRECTORY / segment_name(0)).write_bytes(log)
    if not has_voted:
        (node / QUORUM_STATE).unlink()
    before = picture(node)
    with pytest.raises(DirectoryError, match=LOST) as refused:
        opened(node, kernels)
    assert refused.value.path == str(mark)
    assert refused.value.hint.startswith("put both back from a copy, or, where there are other voters")
    code, findings = verified(node, capsys)
    assert code == 4
    assert [text.partition(": ")[0] for severity, path, text in findings if path == str(mark)] == [LOST]
    is_copy = how == "removed" and not has_voted
    for command in ("replicas", "invariants"):
        assert main(["audit", command, str(node)]) == 1
        assert is_copy or (LOST in capsys.readouterr().out) or log.strip(b"\0"), "garbage is told of in its own words"
    assert main(["log", "trim", str(node)]) == 2
    assert picture(node) == before


@pytest.mark.parametrize("how", MARK_LOSSES)
def test_a_log_with_records_does_without_and_verify_says_so(
    node: Path, kernels: Kernels, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    mark = node / LOG_DIRECTORY / DURABLE_MARK
    whole = mark.read_bytes()
    MARK_LOSSES[how](mark)
    text = "missing; it is renewed at the next start" if how == "removed" else "damaged: it is ignored, and renewed"
    code, ((severity, path, found),) = verified(node, capsys)
    assert (code, severity, path, found.startswith(text)) == (0, "note", str(mark), True)
    opened(node, kernels)
    assert len(mark.read_bytes()) == len(whole)


def test_a_log_by_itself_is_as_it_is(node: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (node / LOG_DIRECTORY / DURABLE_MARK).unlink()
    assert verified(node / LOG_DIRECTORY, capsys) == (0, [])


@pytest.mark.parametrize("left", ["nothing", "its log, empty"])
def test_a_directory_that_kafka_formatted_has_none_and_starts(tmp_path: Path, kernels: Kernels, left: str) -> None:
    root = Path(shutil.copytree(GOLDEN / "c1", tmp_path / "c1"))
    for path in (root / LOG_DIRECTORY).iterdir():
        if path.name != Path(ZERO_CHECKPOINT).name:
            path.unlink()
    if left != "nothing":
        (root / LOG_DIRECTORY / segment_name(0)).touch()
    opened(root, kernels)
    assert (root / LOG_DIRECTORY / DURABLE_MARK).exists()


def test_an_empty_log_that_comes_back_from_kafka_has_none_and_starts(
    tmp_path: Path, kernels: Kernels, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "n1"
    words = ("--node-id", "1", "--voters", "1@127.0.0.1:19091", "--log", "metadata")
    assert main(["format", "--data", str(root), *words]) == 0
    hand_to_kafka(str(root), kernels)
    assert not (root / LOG_DIRECTORY / DURABLE_MARK).exists()
    code, ((severity, _, text),) = verified(root, capsys)
    assert (code, severity, text.startswith("Apache Kafka keeps")) == (0, "note", True)
    take_from_kafka(str(root), kernels)
    opened(root, kernels)


@pytest.mark.parametrize(("began_at", "is_refused"), [(0, False), (24, True)])
def test_an_epoch_that_began_behind_an_empty_log_says_that_it_held_something(
    tmp_path: Path, kernels: Kernels, capsys: pytest.CaptureFixture[str], began_at: int, *, is_refused: bool
) -> None:
    """One that began at its end may have been written down before its first record was."""
    root = fresh(tmp_path)
    hand_to_kafka(str(root), kernels)
    epochs = root / LOG_DIRECTORY / EPOCH_CHECKPOINT
    epochs.write_bytes(format_epochs([(1, began_at)]))
    before = picture(root)
    if not is_refused:
        take_from_kafka(str(root), kernels)
        opened(root, kernels)
        return
    text = f"has an epoch that began at offset {began_at}"
    with pytest.raises(DirectoryError, match=text):
        take_from_kafka(str(root), kernels)
    code, findings = verified(root, capsys)
    assert code == 4
    assert any(severity == "corrupt" and text in found for severity, _, found in findings)
    assert picture(root) == before


def test_a_retired_state_says_that_there_was_a_vote(
    tmp_path: Path, kernels: Kernels, capsys: pytest.CaptureFixture[str]
) -> None:
    root = fresh(tmp_path)
    hand_to_kafka(str(root), kernels)
    take_from_kafka(str(root), kernels)
    (root / QUORUM_STATE).unlink()
    before = picture(root)
    text = r"the quorum state is missing, and \S+\.retired says that this replica has voted"
    with pytest.raises(DirectoryError, match=text) as refused:
        opened(root, kernels)
    assert "format an empty directory as this one was" in refused.value.hint
    code, findings = verified(root, capsys)
    assert code == 4
    assert any(re.match(text, found) for _, _, found in findings)
    assert picture(root) == before


@pytest.mark.parametrize("values", ["emptied", "cut short"])
def test_what_a_first_leader_begins_with_is_checked_before_anything_is_changed(
    tmp_path: Path, kernels: Kernels, values: str
) -> None:
    root = fresh(tmp_path)
    bootstrap = root / BOOTSTRAP_CHECKPOINT
    MARK_LOSSES[values](bootstrap)
    before = picture(root)
    with pytest.raises(CorruptionError) as refused:
        opened(root, kernels)
    assert Path(refused.value.path).name == BOOTSTRAP_CHECKPOINT
    assert picture(root) == before


def test_only_what_an_interrupted_format_leaves_is_formatted_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was made later is not there without what was made before."""
    whole = fresh(tmp_path)
    files = [name for name in ORDER if name not in (LOG_DIRECTORY, META_PROPERTIES)]
    for kept in itertools.chain.from_iterable(itertools.combinations(files, count) for count in range(len(files) + 1)):
        root = Path(shutil.copytree(whole, tmp_path / "left"))
        for name in {*files, META_PROPERTIES, LOCK} - set(kept):
            (root / name).unlink()
        before = picture(root)
        is_interrupted = list(kept) == files[: len(kept)]
        assert main(formatting(root)) == (0 if is_interrupted else 2), kept
        printed = capsys.readouterr().err
        assert is_interrupted or (picture(root) == before and f"without {next_of(files, kept)}" in printed)
        shutil.rmtree(root)


def next_of(files: list[str], kept: tuple[str, ...]) -> str:
    """The first of them that is gone."""
    return next(each for each in files if each not in kept)


def formatting(root: Path) -> list[str]:
    return ["format", "--data", str(root), "--node-id", "1", "--voters", "1@127.0.0.1:19091", "--log", "metadata"]


def fresh(tmp_path: Path) -> Path:
    """One that was formatted, where nothing ran yet."""
    root = tmp_path / "fresh"
    assert main(formatting(root)) == 0
    return root


# --- not a file -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("turn", [turned_into_directory, linked_to_itself, linked_to_nothing])
@pytest.mark.parametrize(
    "name",
    [
        ".lock",
        f"{LOG_DIRECTORY}/00000000000000000000.index",
        f"{LOG_DIRECTORY}/00000000000000000000.timeindex",
        f"{LOG_DIRECTORY}/left.tmp",
        f"{LOG_DIRECTORY}/left.deleted",
        f"{LOG_DIRECTORY}/{segment_name(0)}",
        f"{LOG_DIRECTORY}/{DURABLE_MARK}",
        f"{LOG_DIRECTORY}/{EPOCH_CHECKPOINT}",
        META_PROPERTIES,
        OWN_PROPERTIES,
        QUORUM_STATE,
    ],
)
def test_what_is_not_a_file_is_named_by_run_and_verify_and_nothing_is_changed(
    node: Path, kernels: Kernels, capsys: pytest.CaptureFixture[str], name: str, turn: Callable[[Path], None]
) -> None:
    opened(node, kernels)
    turn(node / name)
    before = listed(node)
    with pytest.raises(DirectoryError) as refused:
        opened(node, kernels)
    assert Path(name).name in str(refused.value)
    capsys.readouterr()
    assert main(["log", "verify", str(node)]) == 4
    assert Path(name).name in capsys.readouterr().out
    assert listed(node) == before


def test_a_lost_or_damaged_vote_is_told_before_the_log_is_changed(node: Path, kernels: Kernels) -> None:
    opened(node, kernels)
    changes: tuple[Callable[[Path], object], ...] = (Path.unlink, lambda path: path.write_bytes(b"x" * 9000))
    for change in changes:
        change(node / QUORUM_STATE)
        before = listed(node)
        with pytest.raises(fq.FastQuorumError):
            opened(node, kernels)
        assert listed(node) == before


# --- before anything is changed ---------------------------------------------------------------------------------------


def test_a_snapshot_of_a_later_epoch_than_the_state_is_refused_before_the_log_gives_way_to_it(
    node: Path, kernels: Kernels, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is another cluster's: a replica knows an epoch before it fetches a snapshot of it."""
    snapshot = OffsetAndEpoch(327, 500)
    (node / LOG_DIRECTORY / checkpoint_name(snapshot)).write_bytes(checkpoint(kernels, snapshot))
    before = picture(node)
    for _ in range(2):
        with pytest.raises(CorruptionError, match="stale_state"):
            opened(node, kernels)
        assert picture(node) == before
    code, findings = verified(node, capsys)
    assert code == 4
    assert any(severity == "corrupt" and "records of epoch 500" in text for severity, _, text in findings)


def cut_short(data: bytes) -> bytes:
    """The most of a state's file that has the vote, and not every page that LMDB looks at: those that are free."""
    for size in range(len(data), 0, -512):
        try:
            values_in(data[:size])
        except CorruptionError:
            return data[:size]
    raise AssertionError("all of it can do without")


@pytest.mark.parametrize("reason", ["foreign_state", "state_file"])
def test_a_state_of_another_replica_or_that_is_cut_short_is_refused_before_anything_is_changed(
    node: Path, tmp_path: Path, kernels: Kernels, capsys: pytest.CaptureFixture[str], reason: str
) -> None:
    state = node / QUORUM_STATE
    if reason == "foreign_state":
        other = fresh(tmp_path)
        opened(other, kernels)
        write_unsynced(str(other), StateOwner("other", NodeId(7), Uuid(b"x" * 16)), kernels, ElectionState(9, -1, None))
        shutil.copy(other / QUORUM_STATE, state)
    else:
        state.write_bytes(cut_short(state.read_bytes()))
    tail = node / LOG_DIRECTORY / segment_name(0)
    with tail.open("ab") as file:
        file.write(b"torn" * 10)
    before = picture(node)
    with pytest.raises(CorruptionError, match=rf"{reason}.*restore the file, or, where there are other voters"):
        opened(node, kernels)
    assert picture(node) == before
    assert verified(node, capsys)[0] == 4


def test_an_epoch_that_began_behind_a_log_that_lost_its_mark_says_that_it_went_on(
    node: Path, kernels: Kernels, capsys: pytest.CaptureFixture[str]
) -> None:
    opened(node, kernels)
    (node / LOG_DIRECTORY / EPOCH_CHECKPOINT).write_bytes(format_epochs([(1, 0), (2, 500)]))
    mark = node / LOG_DIRECTORY / DURABLE_MARK
    kept = mark.read_bytes()
    mark.unlink()
    before = picture(node)
    with pytest.raises(DirectoryError, match="has an epoch that began at offset 500"):
        opened(node, kernels)
    assert picture(node) == before
    assert verified(node, capsys)[0] == 4
    (row,) = as_report(LocalEngine(1).audit_replicas(str(node)))["divergent"]
    assert "has an epoch that began at offset 500" in row["why"]
    found = findings.as_report(LocalEngine(1).audit_invariants(str(node)))
    assert [each["kind"] for each in found["violations"]] == ["lost-records"]
    mark.write_bytes(kept)  # which says that the log ends there, whatever else was written down
    opened(node, kernels)


def test_a_log_that_is_gone_is_told_by_verify_in_the_words_of_run(
    node: Path, kernels: Kernels, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(node / LOG_DIRECTORY)
    with pytest.raises(DirectoryError, match="the log directory is missing"):
        opened(node, kernels)
    assert main(["log", "verify", str(node)]) == 2
    assert "the log directory is missing: put it back from a copy" in capsys.readouterr().err.replace("; ", ": ", 1)


def test_a_handover_that_ended_before_it_kept_the_vote_is_finished(tmp_path: Path, kernels: Kernels) -> None:
    root = Path(shutil.copytree(GOLDEN / "c1", tmp_path / "c1"))
    identity = read_identity(RealDisk.open_directory(str(root), kernels))
    LmdbStateStore(str(root), identity.owner, kernels).close()
    state = take_from_kafka(str(root), kernels)
    store = LmdbStateStore(str(root), identity.owner, kernels)
    assert store.load() == state
    store.close()


def test_a_handover_that_ended_before_it_kept_the_vote_can_be_taken_back(tmp_path: Path, kernels: Kernels) -> None:
    root = fresh(tmp_path)
    opened(root, kernels)
    state = hand_to_kafka(str(root), kernels)
    disk = RealDisk.open_directory(str(root), kernels)
    LmdbStateStore(disk.root, read_identity(disk).owner, kernels).close()  # made, and nothing kept in it
    assert hand_to_kafka(str(root), kernels) == state
    with pytest.raises(DirectoryError, match="Kafka keeps this replica's votes"):
        opened(root, kernels)


def contradicted(root: Path) -> None:
    """Kafka's file says something else than ours."""
    state = ElectionState(900, -1, ReplicaKey(NodeId(2)))
    (root / KAFKA_STATE).write_bytes(encode_kafka_state(state, kraft_version=1, voters=VoterSet()))


def begun_otherwise(root: Path) -> None:
    """What the log begins with is damaged."""
    (root / ZERO_CHECKPOINT).write_bytes(b"damaged")


def damaged_beside_kafkas_state(root: Path) -> None:
    """Only Kafka's file is there, with a mark of an earlier time, and a batch in the middle is damaged."""
    contradicted(root)
    (root / QUORUM_STATE).unlink()
    log = root / LOG_DIRECTORY / segment_name(0)
    data = bytearray(log.read_bytes())
    data[40] ^= 0xFF
    log.write_bytes(data)


@pytest.mark.parametrize(
    ("way", "spoil"),
    [
        (hand_to_kafka, contradicted),
        (take_from_kafka, contradicted),
        (hand_to_kafka, begun_otherwise),
        (take_from_kafka, damaged_beside_kafkas_state),
    ],
)
def test_a_handover_that_is_refused_leaves_a_crashed_log_as_it_is(
    node: Path, kernels: Kernels, way: Callable[[str, Kernels], ElectionState], spoil: Callable[[Path], None]
) -> None:
    spoil(node)
    with (node / LOG_DIRECTORY / segment_name(0)).open("ab") as file:
        file.write(b"torn" * 10)
    before = picture(node)
    for _ in range(2):
        with pytest.raises((DirectoryError, CorruptionError)):
            way(str(node), kernels)
        assert picture(node) == before


def test_an_index_tells_of_the_last_segment_where_that_and_the_mark_are_lost(
    node: Path, kernels: Kernels, capsys: pytest.CaptureFixture[str]
) -> None:
    (node / LOG_DIRECTORY / index_name(500)).write_bytes(b"")
    (node / LOG_DIRECTORY / DURABLE_MARK).unlink()
    before = picture(node)
    with pytest.raises(DirectoryError, match=r"00500\.index is of a segment that is missing"):
        opened(node, kernels)
    assert picture(node) == before
    code, findings = verified(node, capsys)
    assert code == 4
    assert any("is of a segment that is missing: put its segments back" in text for _, _, text in findings)


@pytest.mark.parametrize("lost", [(META_PROPERTIES,), (META_PROPERTIES, OWN_PROPERTIES)])
def test_a_directory_that_was_never_run_and_lost_what_formats_it_is_not_sound(
    tmp_path: Path, kernels: Kernels, capsys: pytest.CaptureFixture[str], lost: tuple[str, ...]
) -> None:
    root = fresh(tmp_path)
    for name in lost:
        (root / name).unlink()
    with pytest.raises(DirectoryError):
        opened(root, kernels)
    code, findings = verified(root, capsys)
    assert code == 4
    assert any("meta.properties" in text for _, _, text in findings)


def test_without_a_mark_a_torn_end_before_a_segment_without_a_batch_is_cut_off_and_no_damage(
    node: Path, kernels: Kernels, capsys: pytest.CaptureFixture[str]
) -> None:
    (node / LOG_DIRECTORY / DURABLE_MARK).unlink()
    with (node / LOG_DIRECTORY / segment_name(0)).open("ab") as file:
        file.write(b"torn" * 10)
    (node / LOG_DIRECTORY / segment_name(500)).write_bytes(b"torn, too")
    code, findings = verified(node, capsys)
    assert (code, "torn" in {severity for severity, _, _ in findings}) == (0, True)
    opened(node, kernels)
    assert verified(node, capsys)[0] == 0


def test_verify_says_whose_the_votes_are_where_they_were_handed_over(
    node: Path, kernels: Kernels, capsys: pytest.CaptureFixture[str]
) -> None:
    hand_to_kafka(str(node), kernels)
    code, findings = verified(node, capsys)
    assert code == 0
    assert [text for severity, _, text in findings if severity == "note" and "Apache Kafka keeps" in text]


# --- one log, two nodes -----------------------------------------------------------------------------------------------


def test_a_log_is_of_one_node_whatever_leads_to_it(node: Path, tmp_path: Path, kernels: Kernels) -> None:
    opened(node, kernels)
    other = tmp_path / "other"
    other.mkdir()
    for each in node.iterdir():
        if each.name != LOCK:
            (other / each.name).symlink_to(each)
    first = DataDirectory.open(str(node), kernels, QuorumConfig(), FakeFlusher())
    try:
        with pytest.raises(DirectoryError, match="is in use by another process"):
            opened(other, kernels)
        (node / LOCK).unlink()  # the first one holds it still, and nobody sees that
        ran = subprocess.run(
            [sys.executable, "-m", "fastquorum", "log", "trim", str(node)], capture_output=True, text=True, check=False
        )
        assert (ran.returncode, "is in use by another process" in ran.stderr) == (2, True)
    finally:
        first.close()
    opened(other, kernels)
    opened(node, kernels)
