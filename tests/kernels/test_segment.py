"""The segment file: what it writes is there, and every failure is fatal and says where it happened."""

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fastquorum.errors import FsyncFailed, StorageFailed, UsageError
from fastquorum.kernels import Kernels, SegmentFile
from tests.privileges import mounted

OpenFile = Callable[..., SegmentFile]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "00000000000000000000.log")


@pytest.fixture
def open_file(kernels: Kernels) -> Iterator[OpenFile]:
    """Opens segment files that are closed with the test."""
    files: list[SegmentFile] = []

    def open_(path: str, mode: str = "open") -> SegmentFile:
        files.append(kernels.SegmentFile(path, mode))
        return files[-1]

    yield open_
    for file in files:
        file.close()


def break_sync(file: SegmentFile) -> int:
    """Put a pipe in the place of the file, so that fdatasync fails with the errno returned."""
    reader, writer = os.pipe()
    os.dup2(writer, file.fileno(), inheritable=False)
    os.close(reader)
    os.close(writer)
    return errno.EINVAL


def test_writes_are_read_back(open_file: OpenFile, path: str) -> None:
    file = open_file(path, "create")
    assert (file.path, file.size_bytes, file.failed) == (path, 0, False)
    file.write(0, b"hello")
    file.write(3, bytearray(b"p me"))
    file.write(7, memoryview(b"..")[1:])
    file.sync()
    assert Path(path).read_bytes() == b"help me."
    assert file.read(0, 100) == b"help me."
    assert file.read(5, 2) == b"me"
    assert file.read(8, 1) == file.read(1000, 1) == file.read(0, 0) == b""
    assert file.size_bytes == 8
    file.write(8, b"")
    file.write(10, b"x")
    assert Path(path).read_bytes() == b"help me.\x00\x00x"
    file.truncate(4)
    file.truncate(6)
    assert file.read(0, 100) == b"help\x00\x00"


def test_bytes_are_read_into_a_buffer(open_file: OpenFile, path: str) -> None:
    file = open_file(path, "create")
    file.write(0, b"0123456789")
    buffer = bytearray(b"----")
    assert (file.read_into(2, buffer), bytes(buffer)) == (4, b"2345")
    assert (file.read_into(8, buffer), bytes(buffer)) == (2, b"8945"), "the rest stays"
    assert (file.read_into(1, memoryview(buffer)[3:]), bytes(buffer)) == (1, b"8941")
    assert file.read_into(10, buffer) == file.read_into(1000, buffer) == file.read_into(0, bytearray()) == 0
    with pytest.raises((BufferError, TypeError)):
        file.read_into(0, memoryview(b"not to be written"))


def test_large_writes(open_file: OpenFile, path: str) -> None:
    data = bytes(range(256)) * 20_000
    file = open_file(path, "create")
    file.write(1, data)
    assert file.read(1, len(data)) == data
    buffer = bytearray(len(data))
    assert (file.read_into(1, buffer), buffer == data) == (len(data), True)
    file.zero_fill(0, 3_000_000)
    assert file.read(0, len(data) + 1) == bytes(3_000_000) + data[2_999_999:]


def test_zeros_are_written_not_a_hole(open_file: OpenFile, path: str) -> None:
    file = open_file(path, "create")
    file.zero_fill(0, 1 << 20)
    file.sync()
    assert file.size_bytes == 1 << 20
    assert os.stat(path).st_blocks * 512 >= 1 << 20
    file.zero_fill(5, 5)
    file.zero_fill(9, 5)
    assert file.size_bytes == 1 << 20


def test_blocks_are_allocated_that_read_as_zeros(open_file: OpenFile, path: str) -> None:
    file = open_file(path, "create")
    file.write(0, b"before")
    assert file.allocate(6, 1 << 20)
    assert file.size_bytes == 1 << 20
    assert os.stat(path).st_blocks * 512 >= 1 << 20
    assert file.read(0, 1 << 20) == b"before" + bytes((1 << 20) - 6)
    assert file.allocate(5, 5)
    assert file.allocate(9, 5)
    assert file.allocate(3, 100), "what is there stays"
    file.write(6, b" after")
    file.sync()
    file.truncate(12)
    assert file.read(0, 100) == b"before after"
    assert os.stat(path).st_blocks * 512 < 1 << 20


def test_the_map_is_the_whole_file_and_read_only(open_file: OpenFile, path: str) -> None:
    file = open_file(path, "create")
    assert bytes(file.map()) == b""
    file.write(0, b"abc" * 5000)
    view = file.map()
    assert view == b"abc" * 5000
    assert view.readonly
    file.write(1, b"X")
    assert bytes(view[:3]) == b"aXc", "it shows what is written later"
    file.close()
    assert bytes(view[-3:]) == b"abc", "it outlives the file"


def test_modes(open_file: OpenFile, path: str) -> None:
    with pytest.raises(StorageFailed) as caught:
        open_file(path)
    assert (caught.value.operation, caught.value.path, caught.value.errno_code) == ("open", path, errno.ENOENT)
    open_file(path, "create").write(0, b"1")
    with pytest.raises(StorageFailed) as caught:
        open_file(path, "create")
    assert (caught.value.operation, caught.value.errno_code) == ("open", errno.EEXIST)
    open_file(path).write(1, b"2")
    reader = open_file(path, "read")
    assert reader.read(0, 9) == bytes(reader.map()) == b"12"
    with pytest.raises(StorageFailed) as caught:
        reader.write(0, b"3")
    assert (caught.value.operation, caught.value.path, caught.value.errno_code) == ("write", path, errno.EBADF)
    with pytest.raises(UsageError):
        open_file(path, "append")


def test_the_descriptor_is_not_inherited(open_file: OpenFile, path: str) -> None:
    assert not os.get_inheritable(open_file(path, "create").fileno())


def test_negative_positions_are_the_callers_mistake(open_file: OpenFile, path: str) -> None:
    file = open_file(path, "create")
    for call in (
        lambda: file.write(-1, b"x"),
        lambda: file.read(-1, 1),
        lambda: file.read(0, -1),
        lambda: file.read_into(-1, bytearray(1)),
        lambda: file.zero_fill(-1, 1),
        lambda: file.allocate(-1, 1),
        lambda: file.truncate(-1),
    ):
        with pytest.raises(UsageError):
            call()
    assert file.size_bytes == 0


OPERATIONS: dict[str, Callable[[SegmentFile], object]] = {
    "write": lambda file: file.write(0, b"x"),
    "read": lambda file: file.read(0, 1),
    "zero_fill": lambda file: file.zero_fill(0, 1),
    "allocate": lambda file: file.allocate(0, 1),
    "truncate": lambda file: file.truncate(1),
    "sync": lambda file: file.sync(),
    "map": lambda file: file.map(),
    "stat": lambda file: file.size_bytes,
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_closed_file_fails(open_file: OpenFile, path: str, operation: str) -> None:
    file = open_file(path, "create")
    file.close()
    file.close()
    assert file.fileno() == -1
    with pytest.raises(StorageFailed) as caught:
        OPERATIONS[operation](file)
    assert (caught.value.operation, caught.value.path, caught.value.errno_code) == (operation, path, errno.EBADF)
    assert isinstance(caught.value, FsyncFailed) == (operation == "sync")
    assert isinstance(caught.value, OSError)


def test_a_failed_sync_is_latched(open_file: OpenFile, path: str) -> None:
    file = open_file(path, "create")
    file.write(0, b"before")
    healthy = os.dup(file.fileno())
    code = break_sync(file)
    with pytest.raises(FsyncFailed) as caught:
        file.sync()
    assert (caught.value.operation, caught.value.path, caught.value.errno_code) == ("sync", path, code)
    assert file.failed
    os.dup2(healthy, file.fileno(), inheritable=False)
    os.close(healthy)
    for operation in ("sync", "write", "zero_fill", "allocate", "truncate"):
        with pytest.raises(StorageFailed) as later:
            OPERATIONS[operation](file)
        assert (later.value.operation, later.value.errno_code) == (operation, code)
        assert isinstance(later.value, FsyncFailed) == (operation == "sync")
    assert file.read(0, 100) == b"before"


def test_a_full_device(open_file: OpenFile) -> None:
    file = open_file("/dev/full")
    with pytest.raises(StorageFailed) as caught:
        file.write(0, b"x")
    assert (caught.value.operation, caught.value.errno_code) == ("write", errno.ENOSPC)
    assert not file.failed, "only a failed sync is latched"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A tmpfs of 1 MiB."""
    with mounted(tmp_path / "small", "tmpfs", "size=1m") as place:
        yield place


def test_disk_full_in_the_middle_of_a_write(open_file: OpenFile, small_disk: Path) -> None:
    path = str(small_disk / "segment.log")
    file = open_file(path, "create")
    file.write(0, bytes(500_000))
    with pytest.raises(StorageFailed) as caught:
        file.write(500_000, bytes(2_000_000))
    assert (caught.value.operation, caught.value.path, caught.value.errno_code) == ("write", path, errno.ENOSPC)
    with pytest.raises(StorageFailed) as caught:
        file.zero_fill(500_000, 3_000_000)
    assert (caught.value.operation, caught.value.errno_code) == ("zero_fill", errno.ENOSPC)


def test_what_is_allocated_can_be_written_on_a_full_disk(open_file: OpenFile, small_disk: Path) -> None:
    file = open_file(str(small_disk / "segment.log"), "create")
    assert file.allocate(0, 700_000)
    assert not file.allocate(700_000, 3_000_000)
    other = open_file(str(small_disk / "other"), "create")
    with pytest.raises(StorageFailed):
        other.zero_fill(0, 3_000_000)
    file.write(0, b"x" * 700_000)
    assert file.read(0, 700_000) == b"x" * 700_000


def test_what_cannot_be_allocated_is_no_failure(open_file: OpenFile) -> None:
    file = open_file("/dev/full")
    assert not file.allocate(0, 1)
    assert not file.failed
