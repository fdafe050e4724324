"""A log that holds nothing, whose mark is lost: it is not taken for a new one by who runs, verifies or audits it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import fastquorum as fq
from fastquorum.cli.main import main
from fastquorum.config import QuorumConfig
from fastquorum.errors import DirectoryError
from fastquorum.kernels import Kernels
from fastquorum.storage.io_directory import DataDirectory
from fastquorum.storage.io_handover import hand_to_kafka, take_from_kafka
from fastquorum.storage.names import (
    DURABLE_MARK,
    EPOCH_CHECKPOINT,
    LOG_DIRECTORY,
    META_PROPERTIES,
    OWN_PROPERTIES,
    QUORUM_STATE,
    ZERO_CHECKPOINT,
    segment_name,
)
from tests.process.command import picture

from .fake_disk import FakeFlusher

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
    assert verified(root, capsys) == (0, [])
    take_from_kafka(str(root), kernels)
    opened(root, kernels)


# --- not a file -------------------------------------------------------------------------------------------------------


def turned_into_directory(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.mkdir()


def linked_to_itself(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(path.name)


@pytest.mark.parametrize("turn", [turned_into_directory, linked_to_itself])
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
    assert main(["log", "verify", str(node)]) in (2, 4)
    said = capsys.readouterr()
    assert Path(name).name in said.out + said.err
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
