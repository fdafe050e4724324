"""Kafka's stream framing: an int32 length in front of every message."""

from typing import Final

from fastquorum.errors import FrameError, UsageError
from fastquorum.kernels import Buffer
from fastquorum.kernels.pure.batch_header import INT32_MAX, as_view

_LENGTH_BYTES: Final = 4


class FrameSplitter:
    """Cuts a byte stream into frames. Not thread-safe."""

    def __init__(self, frame_bytes_max: int) -> None:
        if not 0 <= frame_bytes_max <= INT32_MAX:
            raise UsageError(f"frame_bytes_max {frame_bytes_max} lies outside 0..{INT32_MAX}")
        self._frame_bytes_max = frame_bytes_max
        self._pending = bytearray()
        self._bad_length: int | None = None

    def feed(self, data: Buffer) -> list[bytes]:
        if self._bad_length is None:
            self._pending += as_view(data)
        frames: list[bytes] = []
        position = 0
        while len(self._pending) - position >= _LENGTH_BYTES and self._bad_length is None:
            start = position + _LENGTH_BYTES
            length = int.from_bytes(self._pending[position:start], "big", signed=True)
            if not 0 <= length <= self._frame_bytes_max:
                self._bad_length = length
            elif length > len(self._pending) - start:
                break
            else:
                position = start + length
                frames.append(bytes(memoryview(self._pending)[start:position]))
        if self._bad_length is not None:
            self._pending.clear()
            raise FrameError(length=self._bad_length, limit=self._frame_bytes_max)
        del self._pending[:position]
        return frames

    @property
    def pending_bytes(self) -> int:
        return len(self._pending)
