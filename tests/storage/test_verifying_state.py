"""What `log verify` says of the file of epoch and vote of a data directory."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import fastquorum as fq
from fastquorum.cli.main import main
from fastquorum.kernels import Kernels
from fastquorum.storage.findings import Severity
from fastquorum.storage.io.opening import open_offline
from fastquorum.storage.names import KAFKA_STATE, LOG_DIRECTORY, OWN_PROPERTIES, QUORUM_STATE

GOLDEN = Path(__file__).parent.parent / "golden" / "kafka-4.3.0" / "cluster"


@pytest.fixture(scope="module")
def closed_node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a node that was closed, with records."""
    root = tmp_path_factory.mktemp("closed") / "n1"
    with fq.sync.open(str(root), node_id=1, kernels="native") as quorum:
        quorum.wait_ready()
        quorum.append([b"x"] * 20)
    return root


@pytest.fixture
def ours(closed_node: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(closed_node, tmp_path / "n1"))


@pytest.fixture
def kafkas(tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOLDEN / "c1", tmp_path / "c1"))


def verified(root: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[dict[str, Any]]]:
    """What the command exits with, and its findings."""
    code = main(["log", "verify", "--format", "json", str(root)])
    return code, json.loads(capsys.readouterr().out)["findings"]


def test_a_good_one_is_nothing_to_find(ours: Path, kafkas: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for root in (ours, kafkas):
        assert verified(root, capsys) == (0, [])
        assert fq.log.open(str(root)).verify().is_sound


@pytest.mark.parametrize("data", [b"", b"\xa5" * 16384, None], ids=["empty", "garbage", "cut"])
def test_ours_that_is_damaged(ours: Path, capsys: pytest.CaptureFixture[str], data: bytes | None) -> None:
    path = ours / QUORUM_STATE
    path.write_bytes(path.read_bytes()[:4096] if data is None else data)
    code, (finding,) = verified(ours, capsys)
    assert (code, finding["severity"], finding["path"]) == (4, Severity.CORRUPT, str(path))
    assert finding["text"].startswith("damaged (state_file): it is not known how this replica voted: restore the file")
    assert not fq.log.open(str(ours)).verify().is_sound


def test_ours_of_another_replica(ours: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = ours / "meta.properties"
    path.write_text(path.read_text().replace("node.id=1", "node.id=2"))
    code, (finding,) = verified(ours, capsys)
    assert (code, finding["text"].partition(":")[0]) == (4, "damaged (foreign_state)")


@pytest.mark.parametrize("data", [b"", b"garbage", b'{"data_version":7}'])
@pytest.mark.parametrize("inside", ["", LOG_DIRECTORY])
def test_kafkas_that_is_damaged(kafkas: Path, capsys: pytest.CaptureFixture[str], data: bytes, inside: str) -> None:
    (kafkas / KAFKA_STATE).write_bytes(data)
    code, (finding,) = verified(kafkas / inside, capsys)
    assert (code, finding["path"]) == (4, str(kafkas / KAFKA_STATE))


def test_one_that_is_missing_beside_records(ours: Path, kafkas: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for root, name in ((ours, QUORUM_STATE), (kafkas, KAFKA_STATE)):
        (root / name).unlink()
        code, (finding,) = verified(root, capsys)
        assert (code, finding["path"]) == (4, str(root / name))
        assert "the quorum state is missing, but the log has records up to offset" in finding["text"]
        assert (
            "restore the file, or, where there are other voters, format an empty directory as this one was"
            in finding["text"]
        )


def test_one_that_is_older_than_the_log(kafkas: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = kafkas / KAFKA_STATE
    path.write_text(json.dumps(json.loads(path.read_text()) | {"leaderEpoch": 2}))
    code, (finding,) = verified(kafkas, capsys)
    assert (code, finding["path"]) == (4, str(path))
    assert finding["text"].startswith("older than the log, which has records of epoch 3: one of them was put back")


def test_nothing_is_missing_where_no_node_starts(ours: Path, kafkas: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In a log's directory by itself, one that was never formatted, and one that has no records."""
    for root, name in ((ours, QUORUM_STATE), (kafkas, KAFKA_STATE)):
        (root / name).unlink()
        assert verified(root / LOG_DIRECTORY, capsys) == (0, [])
    empty = ours.with_name("empty")
    words = ("--node-id", "1", "--voters", "1@127.0.0.1:19091")
    assert main(["format", "--data", str(empty), *words]) == 0
    capsys.readouterr()
    assert verified(empty, capsys) == (0, [])
    (kafkas / "meta.properties").unlink()
    assert verified(kafkas, capsys) == (0, [])


def test_a_torn_end_is_told_whatever_the_vote_is(ours: Path, kernels: Kernels) -> None:
    """Only what was damaged in the log itself keeps it from being cut off."""
    assert (ours / OWN_PROPERTIES).exists()
    (ours / QUORUM_STATE).write_bytes(b"")
    (path,) = (ours / LOG_DIRECTORY).glob("*.log")
    (ours / LOG_DIRECTORY / "durable-mark").unlink()
    path.write_bytes(path.read_bytes() + (22).to_bytes(8, "big"))
    assert open_offline(str(ours), kernels).torn_tail() is not None


@pytest.mark.parametrize("name", [OWN_PROPERTIES, "meta.properties"])
def test_what_says_whose_it_is_may_be_lost(ours: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    (ours / name).unlink()
    code, (finding,) = verified(ours, capsys)
    assert (code, finding["severity"], finding["path"]) == (4, Severity.CORRUPT, str(ours))
    assert finding["text"].startswith(f"{name} is missing: ")
    (ours / QUORUM_STATE).unlink()
    assert verified(ours, capsys)[0] == 4, "it has records, and is not one that was not wholly formatted"
    (ours / name).touch()
    assert [each["path"] for each in verified(ours, capsys)[1]] == [str(ours), str(ours / QUORUM_STATE)]


def test_the_help_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["log", "verify", "--help"])
    printed = " ".join(capsys.readouterr().out.split())
    assert "the file of epoch and vote, quorum-state.mdb or Kafka's quorum-state" in printed
