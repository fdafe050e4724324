"""The demo's processes: each says lines on stdout, is asked to go or killed, and may be started again.

Each has a stdin that ends with the demo, which it watches: none is left when the demo is killed."""

import os
import select
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from fastquorum.client.connection import Deadline
from fastquorum.errors import RetriableError

_READ_BYTES: Final = 1 << 16


@dataclass(eq=False)
class ProgramEnded(RetriableError):
    """A process ended while it was to go on: perhaps another process took its port."""

    reason: str
    template: ClassVar[str] = "{reason}"


class Program:
    """One program: its command and, while it runs, its process."""

    def __init__(self, name: str, command: Sequence[str], errors_path: str) -> None:
        """`name` is for people, as in "node 1"; what it says on stderr is added to the file."""
        self.name = name
        self.errors_path = errors_path
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._unread = b""

    def start(self) -> None:
        """Start it, not waiting for anything."""
        self._unread = b""
        with open(self.errors_path, "ab") as errors:
            # In a session of its own: Ctrl-C in the terminal is for the demo, which then stops its processes.
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )

    def next_line(self, deadline: Deadline) -> bytes | None:
        """What it says next, without the newline; None if it says nothing in time. ProgramEnded if it never will."""
        assert self._process is not None
        assert self._process.stdout is not None
        while b"\n" not in self._unread:
            readable, _, _ = select.select([self._process.stdout], [], [], deadline.left_s)
            if not readable:
                return None
            data = os.read(self._process.stdout.fileno(), _READ_BYTES)
            if not data:
                raise self._ended(self._process.wait())
            self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def kill(self) -> None:
        """SIGKILL. Idempotent."""
        if self._process is not None:
            self._process.kill()
            self._reap(None)

    def terminate(self) -> None:
        """Ask for a graceful stop."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)

    def wait_stopped(self, deadline: Deadline) -> bool:
        """Did it stop in time, and as one that is well?"""
        return self._process is None or self._reap(deadline.left_s) == 0

    def _ended(self, code: int) -> ProgramEnded:
        with open(self.errors_path, encoding="utf-8", errors="replace") as errors:
            return ProgramEnded(f"{self.name} ended with exit code {code}: {errors.read().strip()}")

    def _reap(self, timeout_s: float | None) -> int | None:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
        process.stdin.close()
        process.stdout.close()
        self._process = None
        return code
