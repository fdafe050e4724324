"""An open that is refused changes nothing: everything is decided before the first byte is written."""

import asyncio
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fastquorum as fq
from fastquorum import sync
from fastquorum.errors import ConfigError, DirectoryError, UsageError
from tests.api.nodes import CLUSTER_ID, QUICK, WAIT_S

TAKEN = "taken"
"""Stands for an address at which something listens already."""

REFUSED: dict[str, dict[str, Any]] = {
    "no node id": {"node_id": None},
    "a bad node id": {"node_id": -1},
    "not among the voters": {"voters": "2@127.0.0.1:19092", "cluster_id": CLUSTER_ID},
    "no cluster id": {"voters": "1@127.0.0.1:19091,2@127.0.0.1:19092"},
    "a blank cluster id": {"cluster_id": " "},
    "a voter twice": {"voters": "1@127.0.0.1:19091,2@127.0.0.1:19091", "cluster_id": CLUSTER_ID},
    "a controller of a user log": {"controller": True, "log": "user"},
    "retention by size": {"retention_bytes": 100 * 1024 * 1024},  # the default, and not heeded either
    "retention by time": {"retention_us": 3_600_000_000},
    "snapshots": {"snapshot_log_bytes": 1024},
    "snapshots by time": {"snapshot_interval_us": 1_000_000},
    "a topic of a metadata log": {"log": "metadata", "topic": "mine"},
    "a bad topic": {"topic": "a/b"},
    "everywhere is nowhere": {"advertise": "0.0.0.0:9093"},
    "an address that is taken": {"listen": TAKEN},
    "a voter's address that is taken": {"voters": f"1@{TAKEN}", "cluster_id": CLUSTER_ID},
    "metrics at an address that is taken": {"metrics": TAKEN},
    "an unknown setting": {"retention_hours": 1},
    "what only a controller heeds": {"num_partitions": 3},
    "a controller's session": {"session_timeout_us": 9_000_000},
    "more than 64 bits": {"append_queue_bytes_max": 2**63},
    "a batch without room for a record": {"batch_bytes_max": 61},
    "the address of many machines": {"listen": "224.0.0.1:0"},
    "the address of all machines": {"listen": "255.255.255.255:0"},
    "a segment that its index cannot address": {"segment_bytes": 2**31},
    "a Fetch that the wire cannot say": {"fetch_bytes_max": 2**31},
    "a time that the wire cannot say": {"fetch_timeout_us": 2**60, "fetch_wait_us_max": 2**52},
    "a file that is no path": {"config_file": 5},
}


@pytest.fixture
def taken() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


def with_taken(options: dict[str, Any], taken: str) -> dict[str, Any]:
    return {key: value.replace(TAKEN, taken) if isinstance(value, str) else value for key, value in options.items()}


@pytest.mark.parametrize("what", REFUSED)
def test_a_refused_open_leaves_no_directory_behind(tmp_path: Path, what: str, taken: str) -> None:
    options = {**QUICK, "node_id": 1, **with_taken(REFUSED[what], taken)}
    path = tmp_path / "deep" / "n1"
    with pytest.raises(UsageError):
        sync.open(path, **options)
    assert not path.parent.exists()
    path.mkdir(parents=True)
    with pytest.raises(UsageError):
        asyncio.run(open_and_close(path, options))
    assert list(path.iterdir()) == []


@pytest.mark.parametrize("path", [None, 5, b"n1", "", " ", "n\0"])
def test_what_is_no_path_is_refused(path: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="path"):
        sync.open(path, node_id=1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("below", ["", "n1"])
def test_a_disk_that_is_not_mounted_is_named_by_the_link_to_it(tmp_path: Path, below: str) -> None:
    link = tmp_path / "data"
    link.symlink_to(tmp_path / "disk")
    with pytest.raises(DirectoryError, match="is a link to what is not there; mount or restore its target") as refused:
        sync.open(link / below, node_id=1)
    assert refused.value.path == str(link)
    with pytest.raises(DirectoryError, match="is a link to what is not there"):
        fq.log.open(link / below)
    assert list(tmp_path.iterdir()) == [link]


async def open_and_close(path: Path, options: dict[str, Any]) -> None:
    await (await fq.open(path, **options)).close()


def contents(path: Path) -> dict[str, bytes]:
    return {str(each.relative_to(path)): each.read_bytes() for each in sorted(path.rglob("*")) if each.is_file()}


@pytest.mark.parametrize(
    "options",
    [{"controller": True}, {"retention_bytes": 1}, {"log": "metadata"}, {"listen": TAKEN}, {"node_id": 2}],
    ids=lambda options: next(iter(options)),
)
def test_a_refused_open_leaves_a_formatted_directory_as_it_was(
    tmp_path: Path, options: dict[str, Any], taken: str
) -> None:
    with sync.open(tmp_path, **QUICK, node_id=1) as quorum:
        quorum.wait_ready(WAIT_S)
        quorum.append(b"x")
    before = contents(tmp_path)
    with pytest.raises(UsageError):
        sync.open(tmp_path, **{**QUICK, **with_taken(options, taken)})  # type: ignore[arg-type]
    assert contents(tmp_path) == before


@pytest.mark.parametrize("text", ["by an argument", "by a variable"])
def test_a_voter_whose_volume_is_not_there_is_not_made_anew_where_it_is_said_so(
    tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would vote without what it has promised."""
    data = tmp_path / "mount" / "data"
    if text == "by a variable":
        monkeypatch.setenv("FASTQUORUM_DIRECTORY_CREATE", "false")
    options = QUICK if text == "by a variable" else {**QUICK, "create": False}
    for _ in range(2):
        with pytest.raises(DirectoryError, match="not formatted; if it was formatted before, find out"):
            sync.open(data, **options, node_id=1)
        assert not data.exists() or not list(data.iterdir())
        data.mkdir(exist_ok=True, parents=True)
    sync.open(data, **{**options, "create": True}, node_id=1).close()
    with sync.open(data, **options) as quorum:  # what is formatted is opened
        quorum.wait_ready(WAIT_S)


def test_a_controller_keeps_a_metadata_log_unless_told_otherwise(tmp_path: Path) -> None:
    with sync.open(tmp_path, **QUICK, node_id=1, controller=True, retention_bytes=1 << 20) as quorum:
        quorum.wait_ready(WAIT_S)
        with pytest.raises(UsageError, match="controller"):
            quorum.append(b"x")
    with sync.open(tmp_path, **QUICK, controller=True, log="metadata") as quorum:
        quorum.wait_ready(WAIT_S)


@pytest.mark.parametrize("options", [{"retention_bytes": 0}, {"retention_us": 0}, {"snapshot_interval_us": 0}])
def test_a_user_log_may_be_told_to_keep_everything(tmp_path: Path, options: dict[str, Any]) -> None:
    sync.open(tmp_path, **QUICK, node_id=1, **options).close()


def test_what_a_user_log_does_not_heed_is_named_wherever_it_was_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "n.properties"
    file.write_text("metadata.max.retention.ms=1000\n")
    with pytest.raises(ConfigError, match=r"retention_us: a user log keeps all records"):
        sync.open(tmp_path / "n", node_id=1, config_file=file)
    monkeypatch.setenv("FASTQUORUM_METADATA_MAX_RETENTION_BYTES", "1000")
    with pytest.raises(ConfigError, match="retention_bytes"):
        sync.open(tmp_path / "n", node_id=1)
    assert not (tmp_path / "n").exists()


@pytest.mark.parametrize(
    ("lost", "words"),
    [
        ("__cluster_metadata-0", "a quorum of one has its records nowhere else"),
        ("__cluster_metadata-0/*", "a quorum of one has its records nowhere else"),
        ("quorum-state.mdb", "those of a quorum of one are here alone, and `fastquorum log dump` reads them still"),
    ],
)
def test_a_quorum_of_one_is_sent_to_no_others_for_what_it_has_lost(tmp_path: Path, lost: str, words: str) -> None:
    with sync.open(tmp_path, **QUICK, node_id=1) as quorum:
        quorum.wait_ready(WAIT_S)
        quorum.append(b"x")
    for path in tmp_path.glob(lost):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    before = contents(tmp_path)
    with pytest.raises(
        DirectoryError, match="where there are other voters, format an empty directory as this one was"
    ) as refused:
        sync.open(tmp_path, **QUICK)
    assert refused.value.hint.endswith(words)
    assert contents(tmp_path) == before
