"""Every command reports a file without permission, with exit code 2, and does not send the user to check a device."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fastquorum import log
from fastquorum.errors import DirectoryError
from tests.cli.conftest import Ran, free_port
from tests.privileges import unprivileged
from tests.wire.golden import CLUSTER

SEGMENT = "__cluster_metadata-0/00000000000000000000.log"


@pytest.fixture
def data(fastquorum: Callable[..., Ran], tmp_path: Path) -> Path:
    """A formatted directory of a metadata log, the segment of which may not be read."""
    path = tmp_path / "above" / "n1"
    path.parent.mkdir()
    words = ("--node-id", 1, "--voters", f"1@127.0.0.1:{free_port()}", "--log", "metadata")
    assert fastquorum("format", "--data", path, *words).code == 0
    (path / SEGMENT).chmod(0)
    return path


@pytest.mark.parametrize("kernels", ["native", "pure"])
@pytest.mark.parametrize(
    "words",
    [
        ("log", "verify"),
        ("log", "dump"),
        ("log", "trim"),
        ("image",),
        ("image", "diff", "--from", "0", "--to", "1"),
        ("shell", "@", "ls", "/image"),
        ("handover", "--to-kafka"),
        ("run", "--data"),
    ],
    ids=" ".join,
)
def test_a_segment_that_may_not_be_read_is_told_as_that(
    fastquorum: Callable[..., Ran], data: Path, words: tuple[str, ...], kernels: str
) -> None:
    typed = [str(data) if word == "@" else word for word in words]
    with unprivileged():
        ran = fastquorum(*typed, *(() if "@" in words else (data,)), "--kernels", kernels)
    assert ran.code == 2
    assert "Permission denied; check its owner and mode" in ran.err
    assert "device" not in ran.err
    assert "the replica stops" not in ran.err


def test_a_program_that_reads_a_log_hears_it_too(data: Path) -> None:
    with unprivileged(), pytest.raises(DirectoryError, match="Permission denied; check its owner and mode"):
        log.open(data).verify()


@pytest.mark.parametrize(
    "words", [("log", "verify"), ("log", "dump"), ("image",), ("run", "--data"), ("shell", "@", "ls")], ids=" ".join
)
def test_a_directory_behind_one_that_may_not_be_entered_is_not_taken_for_missing(
    fastquorum: Callable[..., Ran], data: Path, words: tuple[str, ...]
) -> None:
    data.parent.chmod(0)
    typed = [str(data) if word == "@" else word for word in words]
    try:
        with unprivileged():
            ran = fastquorum(*typed, *(() if "@" in words else (data,)))
    finally:
        data.parent.chmod(0o755)
    assert ran.code == 2
    assert "cannot be looked at: Permission denied" in ran.err


def test_an_image_in_a_directory_that_may_not_be_written_needs_no_writing(
    fastquorum: Callable[..., Ran], data: Path
) -> None:
    shutil.copytree(CLUSTER / "c1", data.parent / "kafka")
    for directory, _, files in os.walk(data.parent / "kafka"):
        os.chmod(directory, 0o555)
        for name in files:
            os.chmod(os.path.join(directory, name), 0o444)
    with unprivileged():
        assert fastquorum("log", "verify", data.parent / "kafka").code == 0
        assert fastquorum("image", data.parent / "kafka").code == 0
