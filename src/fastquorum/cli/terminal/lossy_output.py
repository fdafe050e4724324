"""Output streams of a node's process: the reader of its log, or the log's disk, cannot end or block it.

Everything that Python writes to stdout and stderr meanwhile goes this way: log lines, warnings, tracebacks of threads.
"""

import contextlib
import io
import os
import select
import sys
import threading
import time
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Final

from fastquorum.errnos import reason
from fastquorum.threads import start_thread

QUEUED_BYTES_MAX: Final = 1024 * 1024
"""Most that waits for one stream's reader."""
DRAIN_S: Final = 1.0
"""How long the end of the process waits for lines that are not written yet."""
_UNREAD: Final = "nothing took them off in time"

Note = Callable[[int, str], str]
"""The line, without its end, that says how many lines were lost and why."""


class LossyStream(io.TextIOBase):
    """A text stream that takes every line at once and writes it in a thread of its own.

    A line is lost, and counted, if `QUEUED_BYTES_MAX` are waiting already or if it cannot be written; the next line
    that is written is preceded by one that says so. May be used from any thread, and from a finalizer within itself.
    """

    def __init__(self, fd: int, note: Note) -> None:
        self._fd = fd
        self._note = note
        self._lock = threading.RLock()  # reentrant: a finalizer may write while its thread is in here
        self._partial = ""
        self._queue: SimpleQueue[bytes | None] = SimpleQueue()
        self._queued_bytes = 0
        self._lost = 0
        self._reason = ""
        self._is_mid_line = False
        self._thread = threading.Thread(target=self._write_all, name=f"output-{fd}", daemon=True)
        start_thread(self._thread)

    encoding = "utf-8"
    errors = "backslashreplace"

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._fd

    def isatty(self) -> bool:
        return os.isatty(self._fd)

    def write(self, text: str, /) -> int:
        """Never blocks, never raises for want of room."""
        with self._lock:
            whole, end, self._partial = (self._partial + text).rpartition("\n")
            if end or len(self._partial) > QUEUED_BYTES_MAX:
                self._offer(whole + end or self._take_partial())
        return len(text)

    def flush(self) -> None:
        """Nothing: what is there is on its way, and is not waited for."""

    def drain(self, timeout_s: float = DRAIN_S) -> None:
        """Wait, within reason, until all that was written so far is out. The last call: nothing is written after it."""
        with self._lock:
            if self._partial:
                self._offer(self._take_partial())
        self._queue.put(None)
        self._thread.join(timeout_s)

    def _take_partial(self) -> str:
        partial, self._partial = self._partial, ""
        return partial

    def _offer(self, text: str) -> None:
        data = text.encode("utf-8", "backslashreplace")
        if self._queued_bytes and self._queued_bytes + len(data) > QUEUED_BYTES_MAX:
            self._lose(data, _UNREAD)
            return
        self._queued_bytes += len(data)
        self._queue.put(data)

    def _lose(self, data: bytes, reason: str) -> None:
        with self._lock:
            self._lost += data.count(b"\n") or 1
            self._reason = reason

    def _write_all(self) -> None:
        while (data := self._queue.get()) is not None:
            try:
                self._tell_lost()
                self._put(data)
            except OSError as error:
                self._lose(data, reason(error))
            finally:
                with self._lock:
                    self._queued_bytes -= len(data)
        with contextlib.suppress(OSError):  # the end: there is no reader any more
            self._tell_lost()

    def _tell_lost(self) -> None:
        with self._lock:
            lost, reason = self._lost, self._reason
        if lost:
            self._put(f"{self._note(lost, reason)}\n".encode("utf-8", "backslashreplace"))
            with self._lock:
                self._lost -= lost

    def _put(self, data: bytes) -> None:
        """Raises OSError. What was begun before is ended first, so that no two lines become one."""
        view = memoryview(b"\n" + data if self._is_mid_line else data)
        while view:
            try:
                written = os.write(self._fd, view)
            except BlockingIOError:  # the parent process made it so
                select.select([], [self._fd], [])
                continue
            if written:
                self._is_mid_line = view[written - 1] != ord("\n")
            view = view[written:]


@contextlib.contextmanager
def lossy_output(note: Note) -> Iterator[None]:
    """Replace sys.stdout and sys.stderr by lossy streams meanwhile."""
    before = sys.stdout, sys.stderr
    streams = LossyStream(1, note), LossyStream(2, note)
    sys.stdout, sys.stderr = streams
    try:
        yield
    finally:
        until = time.monotonic() + DRAIN_S
        for each in streams:
            each.drain(max(0.0, until - time.monotonic()))
        sys.stdout, sys.stderr = before
