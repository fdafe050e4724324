"""stdin, stdout and stderr of the command's process, whatever it was started with."""

import contextlib
import io
import os
import select
import sys
from typing import Any, BinaryIO, Final, TextIO, cast

_STDOUT: Final = 1
_STDERR: Final = 2


class WaitingFile(io.FileIO):
    """A file whose writer waits for room, also where whoever started us made it non-blocking, as node.js and ssh do:
    Python's own streams lose what does not fit. The mode is left as it is: others share it."""

    def write(self, data: Any, /) -> int:
        """As FileIO's, but all of it."""
        view = memoryview(data).cast("B")
        whole = len(view)
        while view:
            written = super().write(view)
            if written is None:
                select.select([], [self], [])
            else:
                view = view[written:]
        return whole


def open_streams() -> None:
    """Open what is missing (`>&-`): Python has None in its place. Have the others wait for room, and show what the
    terminal cannot."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: SIM115 - for the life of the process
    sys.stdout = _opened(sys.stdout, sys.__stdout__, _STDOUT)
    sys.stderr = _opened(sys.stderr, sys.__stderr__, _STDERR)


def _opened(stream: TextIO | None, first: TextIO | None, fd: int) -> TextIO:
    """`first`: what Python began with; what somebody else has put in its place stays there."""
    if stream is None:
        return open(os.devnull, "w")
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
    """What is not written yet, and whatever comes."""
    if not isinstance(stream, io.TextIOWrapper):
        return  # no file of the system's
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)


def complain(text: str) -> None:
    """On stderr. Where that cannot be written either, the exit code has to say it."""
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr, flush=True)
