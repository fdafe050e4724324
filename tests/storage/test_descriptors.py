"""A process that may open no more files: what is on the disk stays as it was, until it may again."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fastquorum.errors import FsyncFailed, StorageFailed
from fastquorum.kernels import Kernels
from fastquorum.storage.io.disk import RealDisk


@contextmanager
def descriptors_left(count: int) -> Iterator[None]:
    """This process may open so many files more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    probe = os.dup(0)
    resource.setrlimit(resource.RLIMIT_NOFILE, (probe + 20, hard))
    held = [probe]
    try:
        while True:
            try:
                held.append(os.dup(0))
            except OSError:
                break
        for _ in range(count):
            os.close(held.pop())
        yield
    finally:
        for fd in held:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("left", [0, 1])
def test_a_file_is_replaced_wholly_or_not_at_all_where_descriptors_are_short(
    tmp_path: Path, kernels: Kernels, left: int
) -> None:
    disk = RealDisk(str(tmp_path), kernels)
    disk.replace_file("mark", b"old")
    with descriptors_left(left), pytest.raises(StorageFailed) as failed:
        disk.replace_file("mark", b"new")
    assert failed.value.lacks_descriptor
    assert not isinstance(failed.value, FsyncFailed)
    assert disk.read_file("mark") == b"old"
    with descriptors_left(2):
        disk.replace_file("mark", b"new")
    assert disk.read_file("mark") == b"new"


def test_what_is_opened_for_a_moment_has_descriptors_in_reserve(tmp_path: Path, kernels: Kernels) -> None:
    disk = RealDisk(str(tmp_path), kernels)
    disk.open("segment", "create").close()
    reserve = disk.keep_descriptors()
    with descriptors_left(0):
        for _ in range(3):
            disk.open("segment", "open").close()
            disk.replace_file("mark", b"new")
            disk.sync_directory()
        with pytest.raises(StorageFailed) as failed:
            disk.open("another segment", "create")
        assert failed.value.can_wait
    reserve.close()
    assert disk.read_file("mark") == b"new"
