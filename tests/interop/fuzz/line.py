"""A connection that never blocks for ever: bytes out, frames in, and whoever waits judges the node."""

import contextlib
import select
import socket
import struct
from collections.abc import Callable
from typing import Final

from fastquorum.wire import encode_request, request_header
from fastquorum.wire.messages.handshake import ApiVersionsRequest

LOOK_MS: Final = 20
"""Whoever waits looks at the node this often."""
_PROBES: Final = 0x2EED_0000
_RECEIVE_BYTES: Final = 1 << 18


class Line:
    """To one node. `is_over` once the node has hung up."""

    def __init__(self, port: int, *, keep: bool = False) -> None:
        """`keep`: whole frames are kept in `answers`; else only their correlation ids are looked at."""
        self._socket = socket.create_connection(("127.0.0.1", port), 30.0)
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._poll = select.poll()
        self._unsent = bytearray()
        self._buffer = bytearray()
        self._skip = 0
        self._keep = keep
        self._probes = 0
        self.answers: list[bytes] = []
        self.answered = 0
        self.answered_probe = 0
        """The number of the latest probe that was answered."""
        self.is_over = False

    def close(self) -> None:
        """At once, whatever is still under way: no TIME_WAIT is left."""
        with contextlib.suppress(OSError):
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()
        self.is_over = True

    def send(self, data: bytes) -> None:
        self._unsent += data
        self._write()

    def probe(self) -> int:
        """Send a valid request, ApiVersions; its number."""
        self._probes += 1
        message = ApiVersionsRequest()
        raw = encode_request(request_header(message, 2, _PROBES | self._probes & 0xFFFF, None), message)
        self.send(struct.pack(">i", len(raw)) + raw)
        return self._probes

    @property
    def has_unsent(self) -> bool:
        return bool(self._unsent) and not self.is_over

    def wait(self, is_done: Callable[[], bool], on_idle: Callable[[], None], on_received: Callable[[], None]) -> None:
        """Until it is done, or the node hung up. `on_idle` is called while nothing comes, and may raise."""
        self._write()
        while not is_done() and not self.is_over:
            self._poll.register(self._socket, select.POLLIN | (select.POLLOUT if self._unsent else 0))
            events = self._poll.poll(LOOK_MS)
            if not events:
                on_idle()
                continue
            on_received()
            for _, mask in events:
                if mask & select.POLLOUT:
                    self._write()
                if mask & ~select.POLLOUT:
                    self._read()

    def _write(self) -> None:
        if not self._unsent or self.is_over:
            return
        try:
            sent = self._socket.send(self._unsent)
        except BlockingIOError:
            return
        except OSError:  # it hung up; what it said before may still be read
            self._unsent.clear()
            return
        del self._unsent[:sent]

    def _read(self) -> None:
        try:
            data = self._socket.recv(_RECEIVE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.is_over = True
            return
        if self._keep:
            self._buffer += data
            self._take_whole()
        else:
            self._take_ids(data)

    def _take_whole(self) -> None:
        while len(self._buffer) >= 4:
            end = 4 + int.from_bytes(self._buffer[:4], "big")
            if len(self._buffer) < end:
                return
            self.answers.append(bytes(self._buffer[4:end]))
            del self._buffer[:end]

    def _take_ids(self, data: bytes) -> None:
        """What follows a correlation id is dropped as it comes."""
        position = 0
        while position < len(data):
            if self._skip:
                step = min(self._skip, len(data) - position)
                self._skip -= step
                position += step
                continue
            take = min(8 - len(self._buffer), len(data) - position)
            self._buffer += data[position : position + take]
            position += take
            if len(self._buffer) == 8:
                length, correlation_id = struct.unpack(">ii", self._buffer)
                self._buffer.clear()
                self._skip = length - 4
                self.answered += 1
                if correlation_id == _PROBES | self._probes & 0xFFFF:
                    self.answered_probe = self._probes
