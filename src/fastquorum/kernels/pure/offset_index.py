"""A segment's offset index: where, roughly, an offset lies in the file. Source: Kafka's `OffsetIndex`."""

import struct
from array import array
from bisect import bisect_right
from typing import Final

from fastquorum.errors import UsageError
from fastquorum.kernels import BATCH_HEADER_BYTES, INDEX_INTERVAL_BYTES, Buffer
from fastquorum.kernels.pure.batch_header import INT32_MAX, as_view

_ENTRY: Final = struct.Struct(">ii")
_LAST_OFFSET_DELTA: Final = struct.Struct(">i")
_LAST_OFFSET_DELTA_AT: Final = 23


class OffsetIndex:
    """Sparse, ascending in both columns. 8 bytes of memory an entry. Not thread-safe, unlike its twin."""

    __slots__ = ("_base_offset", "_offsets", "_positions")

    def __init__(self, base_offset: int) -> None:
        self._base_offset = base_offset
        self._offsets = array("I")
        """Last offset of the batch, relative to the base."""
        self._positions = array("I")

    @property
    def base_offset(self) -> int:
        """The segment's."""
        return self._base_offset

    def __len__(self) -> int:
        return len(self._offsets)

    def add(self, buffer: Buffer, at: int, base_offset: int, position: int) -> None:
        last = self._positions[-1] if self._positions else 0
        if position - last < INDEX_INTERVAL_BYTES:
            return
        view = as_view(buffer)
        if not 0 <= at <= len(view) - BATCH_HEADER_BYTES:
            raise UsageError(f"no batch header fits at {at} into a buffer of {len(view)} bytes")
        (delta,) = _LAST_OFFSET_DELTA.unpack_from(view, at + _LAST_OFFSET_DELTA_AT)
        relative = base_offset + delta - self._base_offset
        before = self._offsets[-1] if self._offsets else -1
        if before < relative <= INT32_MAX and position <= INT32_MAX:
            self._offsets.append(relative)
            self._positions.append(position)

    def lookup(self, offset: int) -> int:
        at = bisect_right(self._offsets, offset - self._base_offset)
        return self._positions[at - 1] if at else 0

    def truncate_to(self, position: int) -> None:
        keep = len(self._positions)
        while keep and self._positions[keep - 1] >= position:
            keep -= 1
        del self._offsets[keep:]
        del self._positions[keep:]

    def encode(self) -> bytes:
        return b"".join(_ENTRY.pack(*entry) for entry in zip(self._offsets, self._positions, strict=True))
