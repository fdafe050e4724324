"""FIFOs, sockets, and links that lead nowhere, in place of files and directories: named, never opened."""

import json
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fastquorum.cli.main import main
from fastquorum.spark.pipelines.latency.files import files_at
from fastquorum.storage.names import (
    EPOCH_CHECKPOINT,
    KAFKA_STATE,
    LOG_DIRECTORY,
    META_PROPERTIES,
    OWN_PROPERTIES,
    QUORUM_STATE,
    segment_name,
)
from tests.spark.damage import make_log

from .directories import rows

pytestmark = pytest.mark.timeout(100)  # whoever opens a FIFO waits for ever


def fifo(path: Path) -> None:
    os.mkfifo(path)


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        here = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            made.bind(f"/proc/self/fd/{here}/{path.name}")  # paths of sockets are short
        finally:
            os.close(here)


def loop(path: Path) -> None:
    path.symlink_to(path)


def behind_a_file(path: Path) -> None:
    (path.parent / "file").write_bytes(b"")
    path.symlink_to(path.parent / "file" / "gone")


LOG = f"{LOG_DIRECTORY}/{segment_name(0)}"
EPOCHS = f"{LOG_DIRECTORY}/{EPOCH_CHECKPOINT}"
TEXTS = {
    fifo: "is a FIFO, not a file",
    listening: "is a socket, not a file",
    loop: "symbolic links form a loop",
    behind_a_file: "is a link to what is not there",
}
ODD = pytest.mark.parametrize("make", TEXTS)


def logs(tmp_path: Path) -> tuple[list[dict[str, Any]], Path]:
    """Two logs below a directory: what is read of the first, and where the second is."""
    make_log(tmp_path / "n1", 1)
    expected = rows(tmp_path, "records")
    make_log(tmp_path / "n2", 2)
    return expected, tmp_path / "n2"


@ODD
@pytest.mark.parametrize("name", [META_PROPERTIES, LOG])
def test_what_is_odd_in_a_log_is_a_fault_of_that_log_alone(
    tmp_path: Path, make: Callable[[Path], None], name: str
) -> None:
    expected, root = logs(tmp_path)
    path = root / name
    path.unlink()
    make(path)
    found = rows(tmp_path, "records", mode="quarantine")
    (bad,) = [row for row in found if row["directory"] == str(root)]
    assert f"{path}: " in bad["error"]
    assert TEXTS[make] in bad["error"]
    assert [row for row in found if row is not bad] == expected
    (file_row,) = [
        row for row in rows(tmp_path, "files") if row["directory"] == bad["directory"] and row["name"] == name
    ]
    assert file_row["status"] == "unreadable"


@pytest.mark.parametrize("make", [fifo, listening])
def test_what_can_be_no_log_is_passed_over_as_a_file_is(tmp_path: Path, make: Callable[[Path], None]) -> None:
    expected, root = logs(tmp_path)
    shutil.rmtree(root)
    make(root)
    for path in (tmp_path, f"{tmp_path}/*"):
        assert rows(path, "records", mode="quarantine") == expected


@pytest.mark.parametrize("make", [loop, behind_a_file])
def test_what_may_be_a_log_and_cannot_be_looked_at_is_named_and_the_others_are_read(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    expected, root = logs(tmp_path)
    shutil.rmtree(root)
    make(root)
    for path in (tmp_path, f"{tmp_path}/*"):
        found = rows(path, "records", mode="quarantine")
        (bad,) = [row for row in found if row["directory"] == str(root)]
        assert TEXTS[make] in bad["error"]
        assert [row for row in found if row is not bad] == expected


@pytest.mark.parametrize(("name", "make"), [(QUORUM_STATE, fifo), (QUORUM_STATE, loop), (EPOCHS, fifo)])
def test_every_table_ends_whatever_the_quorum_state_and_the_epochs_are(
    tmp_path: Path, make: Callable[[Path], None], name: str
) -> None:
    make_log(tmp_path / "n1", 1)
    path = tmp_path / "n1" / name
    path.unlink(missing_ok=True)
    make(path)
    for table in ("records", "batches", "epochs", "quorum_state"):
        rows(tmp_path, table, mode="quarantine")
    (found,) = [row for row in rows(tmp_path, "files") if row["name"] == name]
    assert (found["status"], TEXTS[make] in found["text"]) == ("unreadable", True)


@pytest.mark.parametrize("node_id", ["4294967297", "2147483648", "-7", "9" * 5000, "abc"])
def test_a_node_id_that_no_node_has_is_a_fault_of_that_log_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], node_id: str
) -> None:
    expected, root = logs(tmp_path)
    path = root / META_PROPERTIES
    path.write_text(f"version=1\ncluster.id=a-cluster\nnode.id={node_id}\n")
    for table in ("records", "batches", "checkpoints", "quorum_state"):
        (bad,) = (row for row in rows(tmp_path, table, mode="quarantine") if row["directory"] == str(root))
        assert bad["error"].startswith(f"{path}: cannot be read: ")
        assert bad["node_id"] is None
    assert [row for row in rows(tmp_path, "records", mode="quarantine") if row["error"] is None] == expected
    assert main(["audit", "replicas", str(tmp_path)]) == 1
    output = capsys.readouterr().out
    assert f"{path}: cannot be read" in output
    assert len(node_id) > 20 or node_id == "abc" or f"node.id {node_id} is outside 0..2147483647" in output


@pytest.mark.parametrize("number", [2**31, 2**63, 2**70, 10**30])
def test_numbers_that_no_column_has_room_for_are_damage_of_their_file(tmp_path: Path, number: int) -> None:
    expected, root = logs(tmp_path)
    (root / EPOCHS).write_text(f"0\n1\n{number} {number}\n")
    (bad,) = (row for row in rows(tmp_path, "epochs", mode="quarantine") if row["error"] is not None)
    assert bad["error"] == f"{root / EPOCHS}: corrupt: epoch_checkpoint"
    for field in ("leaderEpoch", "leaderId", "votedId"):
        state = {"leaderId": 1, "leaderEpoch": 1, "votedId": -1, "data_version": 0}
        path = root / LOG_DIRECTORY / KAFKA_STATE.rpartition("/")[2]
        path.write_text(json.dumps({**state, field: number}))
        (state_row,) = (row for row in rows(tmp_path, "quorum_state", mode="quarantine") if row["format"] == "kafka")
        assert state_row["error"].startswith(f"{path}: corrupt: state_file: it is not known how this replica voted")
        assert [row["status"] for row in rows(root, "files") if row["name"] == KAFKA_STATE] == ["corrupt"]
    assert rows(tmp_path / "n1", "records") == expected


def test_an_audit_names_what_is_odd_and_judges_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, root = logs(tmp_path)
    (root / META_PROPERTIES).unlink()
    fifo(root / META_PROPERTIES)
    loop(tmp_path / "n3")
    main(["audit", "replicas", str(tmp_path)])
    output = capsys.readouterr().out
    assert f"{META_PROPERTIES}: is a FIFO, not a file" in output
    assert "n3: cannot be read" in output


@pytest.mark.parametrize("name", [QUORUM_STATE, META_PROPERTIES, OWN_PROPERTIES, LOG, EPOCHS])
def test_commands_end_whatever_lies_in_a_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    root = tmp_path / "n1"
    make_log(root, 1)
    state = {"leaderId": 1, "leaderEpoch": 1, "votedId": -1, "data_version": 0}
    (root / LOG_DIRECTORY / "quorum-state").write_text(json.dumps(state))
    (root / name).unlink(missing_ok=True)
    fifo(root / name)
    for words in (["verify"], ["dump"], ["export", "--out", str(tmp_path / "out")]):
        status = main(["log", *words, str(root)])
        output = "".join(capsys.readouterr())
        assert status == 0 or (name in output and "is a FIFO, not a file" in output), words
        assert status != 0 or name != LOG, words
    main(["image", str(root)])  # of a log of another kind there is none


def test_a_result_may_be_a_pipe_that_is_named_and_none_that_is_found(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text("{}")
    fifo(tmp_path / "two.json")
    assert files_at(str(tmp_path)).found == [str(tmp_path / "one.json")]
    ((path, error),) = files_at(str(tmp_path)).unread
    assert (path, "is a FIFO" in str(error)) == (str(tmp_path / "two.json"), True)
    assert files_at(str(tmp_path / "two.json")).found == [str(tmp_path / "two.json")]
