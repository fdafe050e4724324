"""One worker process, from its parent's side: told by JSON lines, heard in a thread of its own."""

import contextlib
import fcntl
import json
import queue
import signal
import subprocess
import sys
import threading
from typing import IO, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from fastquorum.load.worker import WorkerOptions
from fastquorum.observe.process import cpu_s_of

CLOSE_S: Final = 8.0
_PIPE_BYTES: Final = 1 << 20
_F_SETPIPE_SZ: Final = 1031
_NONE: Final = np.zeros(0, np.int64)


class Message(NamedTuple):
    """What a worker said; "gone" is said for it when it has ended."""

    worker: "WorkerProcess"
    word: str
    fields: dict[str, Any]
    latencies: npt.NDArray[np.int64] = _NONE
    lateness: npt.NDArray[np.int64] = _NONE


class WorkerProcess:
    """A worker that was started; it need not be well."""

    def __init__(
        self, node_id: int, options: WorkerOptions, errors_path: str, messages: "queue.SimpleQueue[Message]"
    ) -> None:
        self.node_id = node_id
        """-1: it has no node."""
        self.was_killed = False
        self.errors_path = errors_path
        self._messages = messages
        command = [sys.executable, "-m", "fastquorum.load.worker", json.dumps(options)]
        with open(errors_path, "ab") as errors:
            # In a session of its own: Ctrl-C in the terminal is for the parent, which then ends the run.
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in: IO[bytes] = self._process.stdin
        self._out: IO[bytes] = self._process.stdout
        _enlarge(self._out)
        self._reader = threading.Thread(target=self._read, name=f"worker-{node_id}", daemon=True)
        self._reader.start()

    def tell(self, do: str, **fields: Any) -> None:
        """To one that has ended, nothing."""
        try:
            self._in.write(json.dumps({"do": do, **fields}).encode() + b"\n")
            self._in.flush()
        except BrokenPipeError:
            pass  # "gone" follows, and says why

    def kill(self) -> None:
        """SIGKILL, on purpose."""
        self.was_killed = True
        self._process.send_signal(signal.SIGKILL)

    @property
    def pid(self) -> int:
        return self._process.pid

    def cpu_s(self) -> float:
        """Processor time so far; 0 if it has ended."""
        try:
            return cpu_s_of(self._process.pid)
        except OSError:
            return 0.0

    def resident_bytes_max(self) -> int:
        """The most memory it ever had resident; 0 if it has ended."""
        try:
            with open(f"/proc/{self._process.pid}/status", encoding="ascii", errors="replace") as file:
                peak = next((line for line in file if line.startswith("VmHWM:")), "")
        except OSError:
            return 0
        return int(peak.split()[1]) * 1024 if peak else 0

    def last_words(self) -> str:
        """What it wrote to stderr."""
        with open(self.errors_path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()

    def begin_close(self) -> None:
        """Ask for a graceful end."""
        with contextlib.suppress(BrokenPipeError):  # it has ended already
            self._in.close()

    def close(self, timeout_s: float = CLOSE_S) -> None:
        """Wait for the end, which `begin_close` asked for; kill what does not end."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        self._out.close()

    def _read(self) -> None:
        while line := self._out.readline():
            try:
                fields = json.loads(line)
                sizes = fields.get("samples", 0), fields.get("ticks", 0)
                raw = self._out.read(8 * sum(sizes))
            except ValueError:
                break  # cut short, as it was killed
            if len(raw) < 8 * sum(sizes):
                break
            values = np.frombuffer(raw, np.int64)
            self._messages.put(Message(self, fields["say"], fields, values[: sizes[0]], values[sizes[0] :]))
        self._messages.put(Message(self, "gone", {"code": self._process.wait()}))


def _enlarge(pipe: IO[bytes]) -> None:
    """A generator must not wait for its parent. Where the system grants no more, it has to do."""
    with contextlib.suppress(OSError):
        fcntl.fcntl(pipe.fileno(), _F_SETPIPE_SZ, _PIPE_BYTES)
