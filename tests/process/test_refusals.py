"""`fastquorum run` on what it cannot use: one clear line, exit code 2 (4 for damage), and nothing changed."""

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fastquorum import sync
from fastquorum.storage.names import QUORUM_STATE
from tests.privileges import mounted
from tests.process.cluster import CLUSTER_ID, Cluster, cluster, fixed_ports
from tests.process.command import fastquorum, picture, refusal
from tests.process.processes import WAIT_S

OTHER_CLUSTER = "BBBBBBBBBBBBBBBBBBBBBQ"


@pytest.fixture(scope="module")
def formatted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that one of three voters was formatted in, and never ran in."""
    directory = tmp_path_factory.mktemp("refusals") / "node1"
    made = fastquorum("format", "--data", str(directory), *_identity(1))
    assert made.returncode == 0, made.stderr
    return directory


def _identity(node_id: int, ports: tuple[int, ...] = (19091, 19092, 19093)) -> tuple[str, ...]:
    voters = ",".join(f"{number}@127.0.0.1:{port}" for number, port in enumerate(ports, 1))
    return ("--node-id", str(node_id), "--cluster-id", CLUSTER_ID, "--voters", voters)


@contextmanager
def unchanged(directory: Path) -> Iterator[None]:
    before = picture(directory)
    yield
    assert picture(directory) == before


@pytest.mark.parametrize("source", ["by variables", "by a file"])
def test_a_voter_whose_volume_is_not_there_is_not_made_anew(tmp_path: Path, source: str) -> None:
    """It would vote without what it has promised."""
    config, data = tmp_path / "node.properties", tmp_path / "data"
    settings = {"node.id": "1", "cluster.id": CLUSTER_ID, "controller.quorum.voters": "1@127.0.0.1:9,2@127.0.0.1:19"}
    config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    variables = {f"FASTQUORUM_{key.replace('.', '_').upper()}": value for key, value in settings.items()}
    words = ("--config", str(config)) if source == "by a file" else ()
    for _ in range(2):
        printed = refusal(fastquorum("run", "--data", str(data), *words, environment={} if words else variables))
        assert f"{data}: the directory is not formatted; if it was formatted before, find" in printed
        assert not data.exists() or not list(data.iterdir())
        data.mkdir(exist_ok=True)  # where it is mounted


def test_a_second_process_on_one_directory(steady: Cluster) -> None:
    node_id = steady.leader()
    port = fixed_ports(1)[0]
    printed = refusal(fastquorum("run", "--data", str(steady.path(node_id)), "--listen", f"127.0.0.1:{port}"))
    assert "in use by another process" in printed
    assert str(steady.path(node_id)) in printed


def test_a_port_that_is_taken(formatted: Path) -> None:
    before = picture(formatted)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        printed = refusal(fastquorum("run", "--data", str(formatted), "--listen", address))
    assert address in printed
    # Files that are made when the log is opened may be there by then; what was there is as it was.
    assert {name: data for name, data in picture(formatted).items() if name in before} == before


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("FASTQUORUM_CLUSTER_ID", OTHER_CLUSTER, (CLUSTER_ID, OTHER_CLUSTER)),
        ("FASTQUORUM_NODE_ID", "2", ("node", "1", "2")),
        ("FASTQUORUM_VOTERS", "2@127.0.0.1:19092,3@127.0.0.1:19093", ("node 1 is not among the voters",)),
        ("FASTQUORUM_VOTERS", "1@127.0.0.1:19091,4@127.0.0.1:19094", ("its voters are",)),
        ("FASTQUORUM_LOG", "metadata", ("its log is user",)),
        ("FASTQUORUM_TOPIC", "elsewhere", ("its topic is quorum",)),
        ("FASTQUORUM_QUORUM_VOTERS", "1@nowhere", ("FASTQUORUM_QUORUM_VOTERS",)),
        ("FASTQUORUM_QUORUM_FETCH_TIMEOUT_MS", "soon", ("FASTQUORUM_QUORUM_FETCH_TIMEOUT_MS", "soon")),
        ("FASTQUORUM_QUORUM_FETCH_TIMEOUT", "1000", ("FASTQUORUM_QUORUM_FETCH_TIMEOUT", "did you mean")),
    ],
)
def test_settings_that_contradict_the_directory_or_make_no_sense(
    formatted: Path, variable: str, value: str, words: tuple[str, ...]
) -> None:
    with unchanged(formatted):
        printed = refusal(fastquorum("run", "--data", str(formatted), environment={variable: value}))
    assert all(word in printed for word in words), printed


def test_a_directory_that_holds_something_else(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    environment = {"FASTQUORUM_NODE_ID": "1"}
    for words in (("run", "--data", str(tmp_path)), ("format", "--data", str(tmp_path), *_identity(1))):
        with unchanged(tmp_path):
            printed = refusal(fastquorum(*words, environment=environment if words[0] == "run" else None))
        assert "thesis.txt" in printed
        assert str(tmp_path) in printed


def test_a_directory_that_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("not a directory")
    with unchanged(tmp_path):
        assert str(path) in refusal(fastquorum("run", "--data", str(path), environment={"FASTQUORUM_NODE_ID": "1"}))


def test_formatting_without_the_node_itself_or_for_another_cluster(formatted: Path, tmp_path: Path) -> None:
    missing = fastquorum("format", "--data", str(tmp_path / "new"), *_identity(7))
    assert "7" in refusal(missing)
    assert not (tmp_path / "new").exists()
    with unchanged(formatted):
        other = ("--node-id", "1", "--cluster-id", OTHER_CLUSTER, *_identity(1)[4:])
        printed = refusal(fastquorum("format", "--data", str(formatted), *other))
    assert CLUSTER_ID in printed


def test_a_read_only_directory(formatted: Path, tmp_path: Path) -> None:
    with mounted(tmp_path / "ro", "tmpfs", "size=16m") as place:
        subprocess.run(["cp", "-a", str(formatted), str(place / "node1")], check=True)
        subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
        with unchanged(place):
            printed = refusal(fastquorum("run", "--data", str(place / "node1")))
            empty = refusal(fastquorum("format", "--data", str(place / "empty"), *_identity(1)))
    assert str(place / "node1") in printed
    assert "ead-only" in printed or "writable" in printed
    assert str(place / "empty") in empty


def test_a_newer_on_disk_format(formatted: Path, tmp_path: Path) -> None:
    subprocess.run(["cp", "-a", str(formatted), str(tmp_path / "newer")], check=True)
    path = tmp_path / "newer" / "fastquorum.properties"
    text = path.read_text()
    assert "format.version=1" in text
    path.write_text(text.replace("format.version=1", "format.version=2"))
    with unchanged(tmp_path):
        printed = refusal(fastquorum("run", "--data", str(tmp_path / "newer")))
    assert "version" in printed
    assert "2" in printed


@pytest.mark.parametrize("lost", ["fastquorum.properties", "meta.properties"])
@pytest.mark.parametrize("how", ["removed", "emptied", "zeroed"])
def test_a_voter_that_has_lost_its_properties_is_not_run_as_something_else(tmp_path: Path, lost: str, how: str) -> None:
    data = tmp_path / "n1"
    voter = f"1@127.0.0.1:{fixed_ports(1)[0]}"
    assert fastquorum("format", "--data", str(data), *_identity(1)[:4], "--voters", voter).returncode == 0
    with sync.open(data) as quorum:
        quorum.wait_ready(WAIT_S)
    path = data / lost
    if how == "removed":
        path.unlink()
    else:
        path.write_bytes(b"" if how == "emptied" else bytes(path.stat().st_size))
    with unchanged(data):
        for words in (("run",), ("format", *_identity(1)[:4], "--voters", voter)):
            printed = refusal(fastquorum(words[0], "--data", str(data), *words[1:]))
            assert str(data) in printed
            assert lost in printed


def test_a_damaged_vote_keeps_the_node_down_and_the_quorum_up(tmp_path: Path) -> None:
    """A flipped bit in what a node voted must never be taken for a vote."""
    with cluster(tmp_path) as quorum:
        victim = next(node_id for node_id in quorum.ids if node_id != quorum.leader())
        assert quorum.stop(victim) == {victim: 0}
        path = quorum.path(victim) / QUORUM_STATE
        whole = path.read_bytes()
        at = [position for position in range(len(whole)) if whole.startswith(b"FQSTATE\n", position)]
        assert at
        damaged = bytearray(whole)
        for position in at:  # freed pages keep older copies: whichever counts is damaged
            damaged[position + 60] ^= 0x04
        path.write_bytes(damaged)
        config = str(quorum.config(victim))
        with unchanged(quorum.path(victim)):
            printed = refusal(fastquorum("run", "--data", str(quorum.path(victim)), "--config", config), exit_code=4)
        assert QUORUM_STATE in printed
        os.remove(path)
        with unchanged(quorum.path(victim)):
            printed = refusal(fastquorum("run", "--data", str(quorum.path(victim)), "--config", config), exit_code=2)
        assert QUORUM_STATE in printed
        leader = quorum.nodes[quorum.leader()]
        leader.append("goes-on", 20)
        assert "offset" in leader.appended("goes-on")
        path.write_bytes(whole)
        quorum.start(victim)
        quorum.ready(victim)
