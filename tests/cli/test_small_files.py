"""Small files that a user names: what is no file is refused at once, and what a shell passes on is read."""

import os
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from fastquorum import sync
from fastquorum.cli.topic.reassignment_plan import Planned, read_plan
from fastquorum.errors import ConfigError, UsageError
from fastquorum.node.io.sources import read_file
from fastquorum.small_files import BYTES_MAX, read_small_file
from tests.cli.conftest import COMMAND, Ran

PLAN = '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1]}]}'
WAIT_S = 60
Run = Callable[..., Ran]


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return path


def test_a_configuration_that_never_ends_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        sync.open(tmp_path / "n1", node_id=1, config_file="/dev/zero")
    assert str(refused.value) == "config file (/dev/zero): is a character device, not a file; name a file"
    assert not (tmp_path / "n1").exists()


def test_a_fifo_that_nobody_writes_to_is_not_waited_for(fifo: Path) -> None:
    with pytest.raises(ConfigError, match="is an empty FIFO without a writer; name a file"):
        read_file(str(fifo))
    with pytest.raises(UsageError, match=f"{fifo} is an empty FIFO without a writer"):
        read_plan(str(fifo))


def test_a_fifo_with_a_writer_is_read_to_its_end_though_that_takes_a_while(fifo: Path) -> None:
    def write() -> None:
        with fifo.open("wb", buffering=0) as file:
            is_open.set()
            reads.wait(0.1)
            file.write(b"node.id=1\n")
            reads.wait(0.1)
            file.write(b"election.timeout.us=5\n")

    is_open, reads = threading.Event(), threading.Event()
    writer = threading.Thread(target=write, daemon=True)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)  # so that the writer is there before the file is read
    try:
        writer.start()
        assert is_open.wait(WAIT_S)
        assert read_small_file(str(fifo)) == b"node.id=1\nelection.timeout.us=5\n"
    finally:
        os.close(reader)
        writer.join(WAIT_S)


def test_what_a_shell_passes_on_is_read(tmp_path: Path) -> None:
    """By process substitution, and as stdin."""
    command = " ".join((*COMMAND, "format --cluster-id k0AQJ0J5RUShA8yW0ZDzXA --data"))
    settings = "echo node.id=1; echo controller.quorum.voters=1@127.0.0.1:9093"
    by_pipe = f"{command} {tmp_path / 'a'} --config <(sleep 0.1; {settings})"
    by_stdin = f"({settings}) | {command} {tmp_path / 'b'} --config /dev/stdin"
    for line in (by_pipe, by_stdin):
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=WAIT_S)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "words",
    [
        ("load", "compare", "/dev/zero", "/dev/zero"),
        ("wire", "replay", "/dev/zero", "--to", "127.0.0.1:9"),
        ("topic", "reassign", "/dev/zero", "--bootstrap", "127.0.0.1:9"),
    ],
)
def test_no_command_reads_what_never_ends(fastquorum: Run, words: tuple[str, ...]) -> None:
    ran = fastquorum(*words)
    assert (ran.code, ran.out) == (2, "")
    assert ": /dev/zero is a character device, not a file; name a " in ran.err


def test_the_empty_device_is_an_empty_file() -> None:
    assert read_small_file(os.devnull) == b""


def test_what_is_too_large_is_refused(tmp_path: Path) -> None:
    (tmp_path / "fits").write_bytes(b"#" * BYTES_MAX)
    (tmp_path / "large").write_bytes(b"#" * (BYTES_MAX + 1))
    assert len(read_small_file(str(tmp_path / "fits"))) == BYTES_MAX
    with pytest.raises(ConfigError, match=f"large.*: is larger than {BYTES_MAX} bytes"):
        read_file(str(tmp_path / "large"))


@pytest.mark.parametrize(
    ("name", "why"),
    [("", "Is a directory"), ("missing", "No such file or directory"), ("plan/x", "Not a directory")],
)
def test_what_cannot_be_read_says_why(tmp_path: Path, name: str, why: str) -> None:
    (tmp_path / "plan").write_text(PLAN)
    path = str(tmp_path / name)
    with pytest.raises(UsageError) as refused:
        read_plan(path)
    assert str(refused.value).startswith(f"{path} cannot be read: {why}; check the path")


def test_a_plan_is_read(tmp_path: Path) -> None:
    (tmp_path / "plan").write_text(PLAN)
    assert read_plan(str(tmp_path / "plan")) == [Planned("t", 0, (1,))]
    (tmp_path / "plan").write_bytes(b"\xff")
    with pytest.raises(UsageError, match="is not a text file"):
        read_plan(str(tmp_path / "plan"))
