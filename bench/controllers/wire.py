"""One asyncio connection to a server whose frames begin with their length: a controller of ours, of Kafka's, ZooKeeper.

A server answers a connection's requests in their order, so that an answer is whoever's has waited longest.
"""

import asyncio
import struct
from collections import deque
from collections.abc import Callable
from typing import Any, Final, NamedTuple, Self, TypeVar

from bench.compare.workload import BadAnswer
from fastquorum.kernels import load
from fastquorum.types import Endpoint
from fastquorum.wire.frames import frames_of, request_header
from fastquorum.wire.message import Message

CLIENT_ID: Final = "bench"
ANSWER_S: Final = 120.0
"""A server that takes longer hangs."""
FRAME_BYTES_MAX: Final = 1 << 28
READ_BYTES: Final = 1 << 18
_LENGTH: Final = struct.Struct(">i")
_KERNELS: Final = load("native")
_FRAMES: Final = frames_of(_KERNELS)

M = TypeVar("M", bound=Message)
T = TypeVar("T")


class Request(NamedTuple):
    """Encoded, to be sent when it is due."""

    data: bytes
    """Its length before it."""
    check: Callable[[bytes], int]
    """What its answer, a frame, came to, which is checked in full. BadAnswer."""


class Connection(asyncio.BufferedProtocol):
    """A connection of one event loop."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.lost: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
        """Why no response comes any more: it was closed, or an impossible response came."""
        self._transport: asyncio.Transport | None = None
        self._waiting: deque[Callable[[bytes], None]] = deque()
        self._buffer = memoryview(bytearray(READ_BYTES))
        self._splitter = _KERNELS.FrameSplitter(FRAME_BYTES_MAX)
        self._correlation_id = 0

    @classmethod
    async def open(cls, endpoint: Endpoint) -> Self:
        """OSError if nobody listens there."""
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(lambda: cls(endpoint), endpoint.host, endpoint.port)
        return connection

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    # --- sending ------------------------------------------------------------------------------------------------------

    def send(self, data: bytes, on_response: Callable[[bytes], None]) -> None:
        """Send a frame with its length; `on_response` gets the response's frame without one."""
        assert self._transport is not None
        self._waiting.append(on_response)
        self._transport.write(data)

    def encoded(self, message: Message, version: int) -> tuple[bytes, Callable[[bytes], Any]]:
        """Encode a message of Kafka's protocol; return it with the decoder of its response."""
        self._correlation_id = number = (self._correlation_id + 1) & 0x7FFFFFFF
        api_key = type(message).__wire__.api_key

        def decode(frame: bytes) -> Any:
            correlation_id, answer = _FRAMES.decode_response(frame, api_key, version)
            if correlation_id != number:
                raise BadAnswer(f"{self.endpoint.port} answered request {correlation_id}, not {number}")
            return answer

        return framed(_FRAMES.encode_request(request_header(message, version, number, CLIENT_ID), message)), decode

    def request(self, message: Message, version: int, on_response: Callable[[Any], None]) -> None:
        """Send a message of Kafka's protocol; `on_response` gets the response."""
        data, decode = self.encoded(message, version)
        self.send(data, lambda frame: on_response(decode(frame)))

    async def ask(self, message: Message, version: int, kind: type[M]) -> M:
        """The answer. BadAnswer, OSError."""
        future: asyncio.Future[M] = asyncio.get_running_loop().create_future()
        self.request(message, version, future.set_result)
        answer = await unless_lost(future, self)
        assert isinstance(answer, kind)
        return answer

    # --- asyncio.BufferedProtocol -------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        self._lose(error or ConnectionError(f"{self.endpoint.host}:{self.endpoint.port} has closed the connection"))

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        try:
            for frame in self._splitter.feed(self._buffer[:nbytes]):
                self._waiting.popleft()(frame)
        except Exception as error:  # whoever waits for this connection is told
            self._lose(error)
            self.close()

    def _lose(self, error: Exception) -> None:
        if not self.lost.done():
            self.lost.set_result(error)


def framed(frame: bytes) -> bytes:
    """With its length before it."""
    return _LENGTH.pack(len(frame)) + frame


async def unless_lost(future: "asyncio.Future[T]", *connections: Connection, timeout_s: float = ANSWER_S) -> T:
    """Its result, unless a connection is lost first: what it was lost by is raised. BadAnswer: too late."""
    lost = [each.lost for each in connections]
    await asyncio.wait({future, *lost}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    for each in lost:
        if each.done():
            raise each.result()
    if not future.done():
        raise BadAnswer(f"{connections[0].endpoint.port} did not answer within {timeout_s:.0f} s")
    return future.result()
