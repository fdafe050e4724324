"""The flusher thread: order, errno, the latch that comes before the report, and a close that drains."""

import errno
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastquorum.errors import UsageError
from fastquorum.kernels import Flusher, Kernels, SegmentFile

from .test_segment import break_sync


@pytest.fixture
def flusher(kernels: Kernels) -> Iterator[Flusher]:
    flusher = kernels.Flusher()
    yield flusher
    flusher.close()


@pytest.fixture
def files(kernels: Kernels, tmp_path: Path) -> Iterator[list[SegmentFile]]:
    files = [kernels.SegmentFile(str(tmp_path / f"{i}.log"), "create") for i in range(3)]
    yield files
    for file in files:
        file.close()


def wait_for(flusher: Flusher, count: int) -> list[tuple[int, int]]:
    """Read completions, each time the eventfd says so, until there are `count`."""
    completions: list[tuple[int, int]] = []
    while len(completions) < count:
        readable, _, _ = select.select([flusher.fileno()], [], [], 20)
        assert readable, f"only {completions} within 20 s"
        completions += flusher.completions()
    return completions


def readable(flusher: Flusher) -> bool:
    return bool(select.select([flusher.fileno()], [], [], 0)[0])


def test_syncs_are_reported_in_order(flusher: Flusher, files: list[SegmentFile]) -> None:
    for token in range(50):
        files[token % 3].write(token, b"x")
        flusher.submit(token, files[: token % 4])
    assert wait_for(flusher, 50) == [(token, 0) for token in range(50)]
    assert not readable(flusher)
    assert flusher.completions() == []
    assert not flusher.failed


def test_tokens_are_any_int64(flusher: Flusher, files: list[SegmentFile]) -> None:
    for token in (-(2**63), 2**63 - 1):
        flusher.submit(token, files)
        assert wait_for(flusher, 1) == [(token, 0)]


def test_the_first_failure_is_latched_and_nothing_is_synced_after_it(
    flusher: Flusher, files: list[SegmentFile]
) -> None:
    good, bad, other = files
    code = break_sync(bad)
    flusher.submit(1, [good])
    flusher.submit(2, [good, bad, other])
    flusher.submit(3, [good])
    assert wait_for(flusher, 3) == [(1, 0), (2, code), (3, code)]
    assert flusher.failed
    assert [file.failed for file in files] == [False, True, False]
    break_sync(other)
    flusher.submit(4, [other])
    assert wait_for(flusher, 1) == [(4, code)]
    assert not other.failed, "it was not touched any more"


def test_a_closed_file_is_a_failure(flusher: Flusher, files: list[SegmentFile]) -> None:
    files[0].close()
    flusher.submit(7, files)
    assert wait_for(flusher, 1) == [(7, errno.EBADF)]
    assert flusher.failed


def test_a_file_closed_after_it_was_submitted_is_still_synced(flusher: Flusher, files: list[SegmentFile]) -> None:
    for token in range(30):
        flusher.submit(token, files)
    for file in files:
        file.close()
    assert wait_for(flusher, 30) == [(token, 0) for token in range(30)]
    assert not any(file.failed for file in files)


def test_only_segment_files_are_taken(flusher: Flusher, files: list[SegmentFile]) -> None:
    with pytest.raises(TypeError):
        flusher.submit(1, [files[0], open])  # type: ignore[list-item]
    flusher.submit(2, files)
    assert wait_for(flusher, 1) == [(2, 0)]


FORK = """
import os, sys
from fastquorum.errors import ClosedError
from fastquorum.kernels import load

kernels = load(sys.argv[1])
file = kernels.SegmentFile(sys.argv[2], "create")
flusher = kernels.Flusher()
child = os.fork()
if child == 0:
    for call in (lambda: flusher.submit(1, [file]), flusher.completions):
        try:
            call()
        except ClosedError:
            continue
        os._exit(1)
    flusher.close()
    os._exit(0)
_, status = os.waitpid(child, 0)
flusher.submit(1, [file])
flusher.close()
sys.exit(status or flusher.completions() != [(1, 0)])
"""


def test_a_forked_child_cannot_use_it(kernels: Kernels, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", FORK, kernels.NAME, str(tmp_path / "log")], check=True, timeout=60)


def test_close_finishes_what_was_submitted(kernels: Kernels, files: list[SegmentFile]) -> None:
    flusher = kernels.Flusher()
    fd = flusher.fileno()
    assert os.get_inheritable(fd) is False
    for token in range(20):
        flusher.submit(token, files)
    flusher.close()
    flusher.close()
    assert flusher.completions() == [(token, 0) for token in range(20)]
    assert flusher.fileno() == -1
    with pytest.raises(UsageError):
        flusher.submit(20, files)


def test_close_without_work(kernels: Kernels) -> None:
    flusher = kernels.Flusher()
    flusher.close()
    assert flusher.completions() == []
