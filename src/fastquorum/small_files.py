"""Small files that a user names, settings for one: read whole, and only what can be read to an end.

A path may lead to anything. A device may never end, and opening a FIFO waits until a process writes to it: neither is
waited for. What shells pass on is read as a file is: /dev/stdin, and the pipe that `<(command)` stands for. Source:
open(2), fifo(7).
"""

import contextlib
import os
import stat
from typing import Final

from fastquorum.errnos import reason, remedy
from fastquorum.errors import UsageError
from fastquorum.storage.io.odd import odd_file

BYTES_MAX: Final = 1 << 20
_STDIN: Final = 0


def read_small_file(path: str, bytes_max: int = BYTES_MAX) -> bytes:
    """Return all that is in the file. A pipe is waited for as long as a process has it open for writing.

    Raises:
        UsageError: it cannot be read, is not a file, or is too large. Its detail goes on behind the path.
    """
    try:
        is_pipe = _is_pipe(path)
        data = _read(path, bytes_max + 1)
    except OSError as error:
        raise UsageError(f"cannot be read: {reason(error)}", remedy(error.errno or 0) or "check the path") from error
    if len(data) > bytes_max:
        raise UsageError(f"is larger than {bytes_max} bytes", "check the path: is another file meant?")
    if is_pipe and not data:
        raise UsageError("is an empty FIFO without a writer", "name a file, or start its writer")
    return data


def check_named_may_end(path: str) -> None:
    """Raise UsageError, naming the path, for a device, which may never end, and for a socket. For files that are read
    otherwise: a missing file is left to the reader."""
    try:
        _is_pipe(path)
    except UsageError as error:
        raise UsageError(f"{path} {error.detail}", error.hint) from error
    except OSError:
        pass


def _is_pipe(path: str) -> bool:
    """Is it a pipe, with a name or without? UsageError for what is neither that nor a file, and is not passed on."""
    status = os.stat(path)
    if stat.S_ISFIFO(status.st_mode):
        return True
    odd = odd_file(path, status.st_mode)
    if odd is not None and not _is_passed_on(status):
        raise UsageError(odd.detail, "name a file")
    return False


def _is_passed_on(status: os.stat_result) -> bool:
    """Is it what this process has as stdin, a terminal for one, or the device that is empty?"""
    if status.st_rdev == os.stat(os.devnull).st_rdev:
        return True
    with contextlib.suppress(OSError):  # there is no stdin
        return os.path.samestat(status, os.fstat(_STDIN))
    return False


def _read(path: str, bytes_max: int) -> bytes:
    """Return at most so many bytes. Opened without waiting, where a FIFO without a writer is at its end at once."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        data = bytearray()
        while len(data) < bytes_max:
            try:
                found = os.read(fd, bytes_max - len(data))
            except BlockingIOError:  # there is a writer, or a terminal: what it says is worth waiting for
                os.set_blocking(fd, True)
                continue
            if not found:
                break
            data += found
        return bytes(data)
    finally:
        os.close(fd)
