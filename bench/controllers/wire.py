"""One asyncio connection to a server whose frames begin with their length: a controller of ours, of Kafka's, ZooKeeper.

A server answers a connection's requests in their order, so that an answer is whoever's has waited longest.
"""

import asyncio
import struct
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Self, TypeVar

from bench.compare.workload import BadAnswer
from fastquorum.kernels import load
from fastquorum.types import Endpoint
from fastquorum.wire.frames import frames_of, request_header
from fastquorum.wire.message import Message

CLIENT_ID: Final = "bench"
ANSWER_S: Final = 120.0
"""Who takes longer hangs."""
_LENGTH: Final = struct.Struct(">i")
_FRAMES: Final = frames_of(load("native"))

M = TypeVar("M", bound=Message)
T = TypeVar("T")


class Connection(asyncio.Protocol):
    """Of one event loop."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.lost: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
        """Why no answer comes any more: it was closed, or something answered what cannot be."""
        self._transport: asyncio.Transport | None = None
        self._waiting: deque[Callable[[bytes], None]] = deque()
        self._rest = b""
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

    def send(self, frame: bytes, heard: Callable[[bytes], None]) -> None:
        """A frame without its length; `heard` gets the answer's."""
        assert self._transport is not None
        self._waiting.append(heard)
        self._transport.write(_LENGTH.pack(len(frame)) + frame)

    def request(self, message: Message, version: int, heard: Callable[[Any], None]) -> None:
        """A message of Kafka's protocol; `heard` gets the answer."""
        self._correlation_id = asked = (self._correlation_id + 1) & 0x7FFFFFFF
        api_key = type(message).__wire__.api_key

        def decode(frame: bytes) -> None:
            correlation_id, answer = _FRAMES.decode_response(frame, api_key, version)
            if correlation_id != asked:
                raise BadAnswer(f"{self.endpoint.port} answered request {correlation_id}, not {asked}")
            heard(answer)

        self.send(_FRAMES.encode_request(request_header(message, version, asked, CLIENT_ID), message), decode)

    async def ask(self, message: Message, version: int, kind: type[M]) -> M:
        """The answer. BadAnswer, OSError."""
        future: asyncio.Future[M] = asyncio.get_running_loop().create_future()
        self.request(message, version, future.set_result)
        answer = await unless_lost(future, self)
        assert isinstance(answer, kind)
        return answer

    # --- asyncio.Protocol ---------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        self._lose(error or ConnectionError(f"{self.endpoint.host}:{self.endpoint.port} has closed the connection"))

    def data_received(self, data: bytes) -> None:
        data = self._rest + data
        position = 0
        while len(data) - position >= _LENGTH.size:
            end = position + _LENGTH.size + _LENGTH.unpack_from(data, position)[0]
            if end > len(data):
                break
            try:
                self._waiting.popleft()(data[position + _LENGTH.size : end])
            except Exception as error:  # whoever waits for this connection is told
                self._lose(error)
                self.close()
                return
            position = end
        self._rest = data[position:]

    def _lose(self, error: Exception) -> None:
        if not self.lost.done():
            self.lost.set_result(error)


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
