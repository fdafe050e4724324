"""stdin, stdout and stderr of the command's process, whatever it was started with."""

import contextlib
import errno
import io
import os
import select
import sys
from typing import Any, BinaryIO, Final, TextIO, cast

_STDOUT: Final = 1
_STDERR: Final = 2
_NAMES: Final = {_STDOUT: "stdout", _STDERR: "stderr"}


class WaitingFile(io.FileIO):
    """A file whose writer waits for room, also if the parent process made it non-blocking, as node.js and ssh do:
    Python's own streams lose what does not fit. The mode is left as it is: others share it."""

    def write(self, data: Any, /) -> int:
        """Write all of it, unlike FileIO. An OSError names the stream as its file."""
        view = memoryview(data).cast("B")
        whole = len(view)
        while view:
            try:
                written = super().write(view)
            except OSError as error:
                raise OSError(error.errno, error.strerror, _NAMES[self.fileno()]) from error
            if written is None:
                select.select([], [self], [])
            else:
                view = view[written:]
        return whole


class StdoutClosed(OSError):
    """The command has something to print, and was started without a stdout."""


class ClosedStdout(io.TextIOBase):
    """In place of a stdout that was closed (`>&-`): what is printed is not lost without a word.

    Its descriptor leads to /dev/null, so that no file that is opened later gets it, and is written to by a program that
    this one starts.
    """

    encoding = "utf-8"
    errors = "backslashreplace"

    def __init__(self) -> None:
        self._null = open(os.devnull, "wb", buffering=0)  # noqa: SIM115 - for the life of the process

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._null.fileno()

    @property
    def buffer(self) -> BinaryIO:
        """What takes bytes: there is none. Raises StdoutClosed."""
        raise StdoutClosed(errno.EBADF, "stdout is closed")

    def write(self, text: str, /) -> int:
        """Raise StdoutClosed, if there is a text."""
        if text:
            raise StdoutClosed(errno.EBADF, "stdout is closed")
        return 0

    def close(self) -> None:
        self._null.close()
        super().close()


def open_streams() -> None:
    """Open what is missing (`>&-`): Python has None in its place. Nothing but stdout is missed.

    The others wait for room, and show what the terminal cannot."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: SIM115 - for the life of the process
    stdout = cast("TextIO", ClosedStdout()) if sys.stdout is None else sys.stdout
    sys.stdout = _opened(stdout, sys.__stdout__, _STDOUT)
    stderr = open(os.devnull, "w") if sys.stderr is None else sys.stderr  # noqa: SIM115 - as above
    sys.stderr = _opened(stderr, sys.__stderr__, _STDERR)


def _opened(stream: TextIO, first: TextIO | None, fd: int) -> TextIO:
    """`first`: the stream that Python began with; one that other code put in its place stays there."""
    if stream is first and isinstance(stream, io.TextIOWrapper):
        stream.flush()
        waiting = WaitingFile(fd, "wb", closefd=False)
        stream = io.TextIOWrapper(
            cast("BinaryIO", waiting) if stream.write_through else io.BufferedWriter(waiting),
            encoding=stream.encoding,
            line_buffering=stream.line_buffering,
            write_through=stream.write_through,
        )
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")  # a record may hold what the terminal cannot show
    return stream


def settle(stream: TextIO) -> None:
    """Drop what cannot be written: Python would try again at exit, complain, and exit with a code of its own."""
    try:
        stream.flush()
    except OSError:
        drop(stream)


def drop(stream: TextIO) -> None:
    """Discard what is not written yet, and all later writes."""
    if not isinstance(stream, io.TextIOWrapper):
        return  # no file of the system's
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)


def complain(text: str) -> None:
    """Print on stderr. If that fails too, only the exit code is left."""
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr, flush=True)
