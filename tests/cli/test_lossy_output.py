"""A stream that nothing can block or break: full disks, readers that hang or have gone, closed descriptors."""

import fcntl
import gc
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastquorum.cli.terminal.lossy_output import QUEUED_BYTES_MAX, LossyStream
from tests.cli.conftest import wait_until

LINE = "x" * 999 + "\n"


def note(lost: int, reason: str) -> str:
    return f"{lost} lost: {reason}"


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read_fd, write_fd = os.pipe()
    fcntl.fcntl(write_fd, fcntl.F_SETPIPE_SZ, 4096)
    yield read_fd, write_fd
    os.close(write_fd)


def read_all(fd: int) -> str:
    data = b""
    while b"last" not in data:
        data += os.read(fd, 65536)
    return data.decode()


@pytest.mark.parametrize("is_blocking", [True, False])
def test_a_reader_that_hangs_holds_nobody_up_and_learns_how_much_it_missed(
    pipe: tuple[int, int], is_blocking: bool
) -> None:
    read_fd, write_fd = pipe
    os.set_blocking(write_fd, is_blocking)
    stream = LossyStream(write_fd, note)
    lines = 3 * QUEUED_BYTES_MAX // len(LINE)
    for _ in range(lines):
        print(LINE, end="", file=stream, flush=True)
    read = b""
    while b"lost" not in read:  # whatever waited comes first; then a line that finds room says what is missing
        print(LINE, end="", file=stream)
        lines += 1
        read += os.read(read_fd, 65536)
    print("last", file=stream)
    printed = (read.decode() + read_all(read_fd)).splitlines()
    lost = [int(each.split()[0]) for each in printed if " lost: nothing took them off in time" in each]
    assert printed[-1] == "last"
    assert printed.count(LINE.strip()) + sum(lost) == lines
    assert len(printed) == printed.count(LINE.strip()) + len(lost) + 1  # none was cut, or glued to another
    os.close(read_fd)
    stream.drain()


def test_a_full_disk_loses_lines_and_nothing_else(tmp_path: Path) -> None:
    fd = os.open("/dev/full", os.O_WRONLY)
    stream = LossyStream(fd, note)
    for _ in range(3):
        print("words", file=stream, flush=True)
    wait_until(lambda: stream._lost == 3)
    with (tmp_path / "log").open("wb") as room:
        os.dup2(room.fileno(), fd)
    print("last", file=stream)
    stream.drain(10)
    assert (tmp_path / "log").read_text() == "3 lost: No space left on device\nlast\n"
    os.close(fd)


def test_a_line_that_was_cut_off_by_a_full_disk_is_ended_before_the_next(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as file:
        stream = LossyStream(file.fileno(), note)
        stream._put(b"cut o")  # as `os.write` leaves it where there is room for five bytes
        print("last", file=stream)
        stream.drain(10)
    assert (tmp_path / "log").read_text() == "cut o\nlast\n"


def test_a_reader_that_has_gone_and_a_closed_descriptor_end_nobody(pipe: tuple[int, int]) -> None:
    read_fd, write_fd = pipe
    os.close(read_fd)
    for fd in (write_fd, 1 << 20):
        stream = LossyStream(fd, note)
        print("words", file=stream)
        wait_until(lambda stream=stream: stream._lost == 1)
        stream.drain()


def test_the_end_does_not_wait_for_ever(pipe: tuple[int, int]) -> None:
    read_fd, write_fd = pipe
    stream = LossyStream(write_fd, note)
    print(LINE * 10, end="", file=stream)
    stream.drain(0.01)
    assert stream._thread.is_alive()  # it writes still, to a pipe that is full
    os.close(read_fd)
    stream._thread.join(10)


def test_what_is_written_without_a_newline_is_out_in_the_end_and_lines_of_threads_stay_whole(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as file:
        stream = LossyStream(file.fileno(), note)
        threads = [
            threading.Thread(target=lambda: [stream.write(f"{'y' * 50}\n") for _ in range(200)]) for _ in range(4)
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        stream.write("\udc80 half")
        stream.drain(10)
    lines = (tmp_path / "log").read_text().splitlines()
    assert (set(lines[:-1]), len(lines), lines[-1]) == ({"y" * 50}, 801, r"\udc80 half")


def test_a_finalizer_may_write_while_its_thread_writes(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as file:
        stream = LossyStream(file.fileno(), note)

        class Garbage:
            def __init__(self) -> None:
                self.me = self

            def __del__(self) -> None:
                print("finalized", file=stream)

        with stream._lock:
            Garbage()
            gc.collect()
        stream.drain(10)
    assert (tmp_path / "log").read_text() == "finalized\n"
