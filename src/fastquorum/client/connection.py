"""One blocking connection to a node: a request out, its answer in, both before a deadline.

Knows frames and headers, not what the messages mean.
"""

import contextlib
import math
import socket
import struct
import time
from dataclasses import dataclass
from typing import Final

from fastquorum.errnos import reason
from fastquorum.errors import FrameError, PeerProtocolError, RetriableError
from fastquorum.node.io.sockets.dialing import dial
from fastquorum.node.io.sockets.resolving import try_elsewhere
from fastquorum.types import Endpoint
from fastquorum.wire import Message, decode_response, encode_request, request_header

CLIENT_ID: Final = "fastquorum"
ANSWER_BYTES_MAX: Final = 100 * 1024 * 1024
_RECEIVE_BYTES: Final = 1 << 16


@dataclass(eq=False)
class NotSent(RetriableError):
    """The request never left: nothing can have come of it."""

    endpoint: Endpoint
    reason: str

    def __str__(self) -> str:
        return f"{self.endpoint.address} cannot be reached: {self.reason}"


@dataclass(eq=False)
class NoAnswer(RetriableError):
    """The request may have arrived, and its answer did not."""

    endpoint: Endpoint
    reason: str
    is_sealed: bool
    """The node closed the connection, or died: if it has not acted on the request yet, it never will."""

    def __str__(self) -> str:
        return f"{self.endpoint.address} did not answer: {self.reason}"


class Deadline:
    """A moment on the monotonic clock."""

    def __init__(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self._at = time.monotonic() + timeout_s

    @property
    def left_s(self) -> float:
        return max(self._at - time.monotonic(), 0.0)

    @property
    def left_ms(self) -> int:
        """The time left in milliseconds, at most an int32, as Kafka's messages carry it."""
        return min(int(self.left_s * 1000), 2**31 - 1)

    @property
    def is_over(self) -> bool:
        return self.left_s <= 0

    def sooner(self, timeout_s: float) -> "Deadline":
        """This one, or the one in `timeout_s`, whichever comes first."""
        return Deadline(min(timeout_s, self.left_s))


def connect(endpoint: Endpoint, deadline: Deadline) -> socket.socket:
    """Return a connected, blocking socket, its name looked up and its addresses tried before the deadline. NotSent."""
    try:
        sock = dial(endpoint, deadline.left_s)
    except OSError as error:
        raise NotSent(endpoint, reason(error)) from error
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


class Connection:
    """Made for one thread, one request at a time. After an error it is closed and cannot be used again."""

    def __init__(self, endpoint: Endpoint, deadline: Deadline) -> None:
        """NotSent if nobody listens there."""
        self.endpoint = endpoint
        self._correlation_id = 0
        self._has_answered = False
        self._socket = connect(endpoint, deadline)

    def request(self, message: Message, version: int, deadline: Deadline, silence_s: float = math.inf) -> Message:
        """The answer to `message`; `silence_s` bounds each wait in it. NotSent, NoAnswer, PeerProtocolError."""
        self._correlation_id += 1
        frame = encode_request(request_header(message, version, self._correlation_id, CLIENT_ID), message)
        self.send(frame, deadline)
        answer = self.receive(deadline, silence_s)
        try:
            correlation_id, response = decode_response(answer, type(message).__wire__.api_key, version)
            if correlation_id != self._correlation_id:
                raise PeerProtocolError(f"the answer is to request {correlation_id}, not {self._correlation_id}")
            return response
        except BaseException:
            self.close()
            raise

    def send(self, frame: bytes, deadline: Deadline) -> None:
        """A frame as it is, its length in front. NotSent."""
        try:
            self._send(struct.pack(">i", len(frame)) + frame, deadline)
        except BaseException:
            self.close()
            raise

    def receive(self, deadline: Deadline, silence_s: float = math.inf) -> bytes:
        """The next frame, without its length. NoAnswer, FrameError."""
        try:
            (length,) = struct.unpack(">i", self._exactly(4, deadline, silence_s))
            if not 0 <= length <= ANSWER_BYTES_MAX:
                raise FrameError(length=length, limit=ANSWER_BYTES_MAX)
            frame = self._exactly(length, deadline, silence_s)
            self._has_answered = True
            return frame
        except BaseException:
            self.close()
            if not self._has_answered:  # whoever listens at this address may be no node
                try_elsewhere(self.endpoint.host)
            raise

    def close(self) -> None:
        """Idempotent."""
        with contextlib.suppress(OSError):
            self._socket.close()

    def _send(self, data: bytes, deadline: Deadline) -> None:
        view = memoryview(data)
        try:
            while view:
                self._socket.settimeout(max(deadline.left_s, 0.001))
                view = view[self._socket.send(view, socket.MSG_NOSIGNAL) :]
        except TimeoutError as error:
            # An incomplete frame is never acted on, and this connection will not complete it.
            raise NotSent(self.endpoint, f"it takes no requests within {deadline.timeout_s:.1f} s") from error
        except OSError as error:
            raise NotSent(self.endpoint, reason(error)) from error

    def _exactly(self, size: int, deadline: Deadline, silence_s: float) -> bytes:
        parts: list[bytes] = []
        missing = size
        while missing:
            try:
                self._socket.settimeout(max(min(deadline.left_s, silence_s), 0.001))
                part = self._socket.recv(min(missing, _RECEIVE_BYTES))
            except TimeoutError as error:
                silent_s = min(deadline.timeout_s, silence_s)
                raise NoAnswer(self.endpoint, f"nothing within {silent_s:.1f} s", is_sealed=False) from error
            except OSError as error:
                raise NoAnswer(self.endpoint, reason(error), is_sealed=True) from error
            if not part:
                raise NoAnswer(self.endpoint, "it closed the connection", is_sealed=True)
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)
