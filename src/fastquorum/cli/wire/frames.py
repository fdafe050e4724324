"""Cuts Kafka's frames out of a passing stream of bytes, in bounded memory.

Looks on, changes nothing; knows lengths, not what frames mean.
"""

import struct
from typing import Final, NamedTuple

HEAD_BYTES: Final = 64
"""Bytes that are kept of a frame that is too long: API, version and correlation id are among them."""
PLAUSIBLE_BYTES_MAX: Final = 256 * 1024 * 1024
"""Longest plausible frame; a longer one is another protocol. The first bytes of TLS mean 352 MiB."""
_LENGTH_BYTES: Final = 4


class CapturedFrame(NamedTuple):
    """A frame without its length, or the known part of it."""

    data: bytes
    length: int
    """What it said its length is; -1 if not even that arrived whole, and `data` is the beginning of it."""
    is_over: bool = True
    """False if the stream ended inside."""

    @property
    def is_whole(self) -> bool:
        return len(self.data) == self.length


class FrameCutter:
    """One direction of a connection."""

    def __init__(self, frame_bytes_max: int) -> None:
        """Frames up to `frame_bytes_max` are kept whole, of longer ones HEAD_BYTES."""
        self.lost = ""
        """Why no frames are found any more: this is not Kafka's protocol."""
        self._frame_bytes_max = frame_bytes_max
        self._kept = bytearray()
        self._keep = _LENGTH_BYTES
        self._missing = _LENGTH_BYTES
        self._length = -1

    def feed(self, data: bytes) -> list[CapturedFrame]:
        """The frames that are over with these bytes."""
        found = []
        position = 0
        while position < len(data) and not self.lost:
            end = min(position + self._missing, len(data))
            self._kept += data[position : min(end, position + self._keep - len(self._kept))]
            self._missing -= end - position
            position = end
            if self._missing == 0 and self._length < 0:
                self._begin()
            if self._missing == 0 and not self.lost:
                found.append(CapturedFrame(bytes(self._kept), self._length))
                self._expect(-1, _LENGTH_BYTES, _LENGTH_BYTES)
        return found

    def rest(self) -> CapturedFrame | None:
        """Return the bytes of an incomplete frame; None if there is none."""
        if self.lost or (self._length < 0 and not self._kept):
            return None
        return CapturedFrame(bytes(self._kept), self._length, is_over=False)

    def _begin(self) -> None:
        (length,) = struct.unpack(">i", self._kept)
        if 0 <= length <= PLAUSIBLE_BYTES_MAX:
            self._expect(length, length, length if length <= self._frame_bytes_max else HEAD_BYTES)
        else:
            what = "TLS" if self._kept.startswith(b"\x16\x03") else "another protocol"
            self.lost = f"this is {what}: the length in front of a frame would be {length}"

    def _expect(self, length: int, missing: int, keep: int) -> None:
        self._length, self._missing, self._keep = length, missing, keep
        self._kept = bytearray()
