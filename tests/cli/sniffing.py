"""A `wire sniff` in the background, and servers for it to stand in front of."""

import json
import signal
import socket
import struct
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.cli.conftest import COMMAND, Ran

LOCAL = "127.0.0.1"


class Sniffer:
    """Runs until `end`; `ports` are where it listens."""

    def __init__(self, *words: object, targets: int = 1, **options: Any) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, "wire", "sniff", *map(str, words)],
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options},
        )
        assert self.process.stderr is not None
        self.ports = []
        for _ in range(targets):
            line = self.process.stderr.readline()
            assert " is passed on to " in line, line + self.process.stderr.read()
            self.ports.append(int(line.split(" is passed on")[0].rpartition(":")[2]))

    def connect(self, timeout_s: float = 20) -> socket.socket:
        return socket.create_connection((LOCAL, self.ports[0]), timeout_s)

    def end(self, number: signal.Signals = signal.SIGINT) -> Ran:
        self.process.send_signal(number)
        return self.ended()

    def ended(self) -> Ran:
        out, err = self.process.communicate(timeout=20)
        return Ran(self.process.returncode, out, err)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()


class FakeServer:
    """Serves every connection in a thread of its own, by a function."""

    def __init__(self, serve: Callable[[socket.socket], None]) -> None:
        self._serve = serve
        self._threads: list[threading.Thread] = []
        self._listening = socket.create_server((LOCAL, 0), backlog=512)
        self.port = self._listening.getsockname()[1]
        self.address = f"{LOCAL}:{self.port}"
        self._accepting = threading.Thread(target=self._accept)
        self._accepting.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return  # closed
            connection.settimeout(20)
            self._threads.append(threading.Thread(target=self._one, args=(connection,)))
            self._threads[-1].start()

    def _one(self, connection: socket.socket) -> None:
        with connection:
            self._serve(connection)

    def close(self) -> None:
        """Once nobody is connected any more."""
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._accepting.join()
        for thread in self._threads:
            thread.join()


def framed(frame: bytes) -> bytes:
    return struct.pack(">i", len(frame)) + frame


def receive_all(connection: socket.socket) -> bytes:
    parts = []
    while part := connection.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)


def receive_frame(connection: socket.socket) -> bytes:
    """One frame; b"" at the end of the stream."""
    data = b""
    while len(data) < 4 or len(data) < 4 + struct.unpack(">i", data[:4])[0]:
        part = connection.recv(4 - len(data) if len(data) < 4 else 4 + struct.unpack(">i", data[:4])[0] - len(data))
        if not part:
            return b""
        data += part
    return data[4:]


def echo_ids(connection: socket.socket) -> None:
    """Answers every frame with its correlation id and a body that is no message."""
    while frame := receive_frame(connection):
        connection.sendall(framed(frame[4:8] + b"answer"))


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]
