"""Matches the requests and responses of one connection, from the frames of its two directions.

A response belongs to the first pending request with its correlation id. Kafka answers in order; a node that does not
is understood all the same. The number of pending requests is bounded: the oldest is given up, and reported so.
Sans-IO: bytes and the time come in, exchanges go out.
"""

import struct
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from fastquorum.cli.wire.frames import CapturedFrame, FrameCutter
from fastquorum.errors import WireError
from fastquorum.types import Micros
from fastquorum.wire import ApiKey, decode_request
from fastquorum.wire.messages.produce import ProduceRequest

REQUEST_COST_BYTES: Final = 512
"""What an open request is counted as, beside its bytes."""
NOT_ANSWERED: Final = "acks=0: it is not answered"


class WireExchange(NamedTuple):
    """A request and its response; either may be missing."""

    request: CapturedFrame | None
    response: CapturedFrame | None
    at_us: Micros
    """When the request's last byte came; the response's, if there is no request."""
    latency_us: Micros
    """Until the response's last byte came; -1 if it did not."""
    unanswered: str = ""
    """Why there is no response."""
    lost: str = ""
    """Why nothing more of this connection is understood."""


@dataclass(slots=True)
class _Open:
    """A request that waits for its response, or for those before it."""

    frame: CapturedFrame
    at_us: Micros
    correlation_id: int | None
    is_answered: bool

    @property
    def cost_bytes(self) -> int:
        return len(self.frame.data) + REQUEST_COST_BYTES


class Exchanges:
    """One connection. Exchanges come out in the order of their requests, as long as they are answered in order."""

    def __init__(self, emit: Callable[[WireExchange], None], frame_bytes_max: int) -> None:
        self._emit = emit
        self._requests = FrameCutter(frame_bytes_max)
        self._responses = FrameCutter(frame_bytes_max)
        self._open: deque[_Open] = deque()
        self._open_bytes = 0
        self._open_bytes_max = 2 * frame_bytes_max

    def on_request_bytes(self, data: bytes, now_us: Micros) -> None:
        if self._is_lost:
            return
        for frame in self._requests.feed(data):
            opened = _Open(frame, now_us, correlation_id(frame, request=True), is_answered(frame.data))
            self._open.append(opened)
            self._open_bytes += opened.cost_bytes
        self._emit_not_answered(len(self._open))
        while self._open_bytes > self._open_bytes_max and len(self._open) > 1:
            self._close(0, unanswered="it was not answered before too many more requests came")
        if self._requests.lost:
            self._emit(WireExchange(None, None, now_us, -1, lost=self._requests.lost))

    def on_response_bytes(self, data: bytes, now_us: Micros) -> None:
        if self._is_lost:
            return
        for frame in self._responses.feed(data):
            self._answer(frame, now_us)
        if self._responses.lost:
            self._emit(WireExchange(None, None, now_us, -1, lost=self._responses.lost))

    def on_end(self, reason: str, now_us: Micros) -> None:
        """Nothing more comes: what is open is not answered."""
        cut = self._responses.rest()
        if cut is not None:
            self._answer(cut, now_us)
        while self._open:
            self._close(0, unanswered=reason)
        cut = self._requests.rest()
        if cut is not None:
            self._emit(WireExchange(cut, None, now_us, -1, unanswered=reason))

    @property
    def _is_lost(self) -> bool:
        return bool(self._requests.lost or self._responses.lost)

    def _answer(self, frame: CapturedFrame, now_us: Micros) -> None:
        wanted = correlation_id(frame, request=False)
        for index, each in enumerate(self._open):
            if each.is_answered and each.correlation_id == wanted is not None:
                index -= self._emit_not_answered(index)
                self._close(index, frame, now_us)
                self._emit_not_answered(len(self._open))
                return
        self._emit(WireExchange(None, frame, now_us, -1))

    def _emit_not_answered(self, before: int) -> int:
        """Let go of the first requests that get no response, up to one that does; how many they were."""
        count = 0
        while count < before and self._open and not self._open[0].is_answered:
            self._close(0)
            count += 1
        return count

    def _close(
        self, index: int, response: CapturedFrame | None = None, now_us: Micros = -1, unanswered: str = ""
    ) -> None:
        closed = self._open[index]
        del self._open[index]
        self._open_bytes -= closed.cost_bytes
        latency_us = now_us - closed.at_us if response is not None and response.is_over else -1
        if response is None and not closed.is_answered:
            unanswered = NOT_ANSWERED
        self._emit(WireExchange(closed.frame, response, closed.at_us, latency_us, unanswered))


def is_answered(request: bytes) -> bool:
    """False for a Produce with acks=0, which no node answers. A frame that cannot be read counts as answered."""
    if request[:2] != ApiKey.PRODUCE.to_bytes(2, "big"):
        return True
    try:
        _, body = decode_request(request)
    except WireError:
        return True
    return not (isinstance(body, ProduceRequest) and body.acks == 0)


def correlation_id(frame: CapturedFrame, *, request: bool) -> int | None:
    """It stands at the same place in every version of the headers. None if it is not there."""
    position = 4 if request else 0
    if frame.length < 0 or len(frame.data) < position + 4:
        return None
    found: int = struct.unpack_from(">i", frame.data, position)[0]
    return found
