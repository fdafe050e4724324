"""A segment's offset index: where, roughly, an offset lies in the file. In memory while open, `.index` when closed.

Kafka's entry is (last offset of a batch relative to the segment's base, position of that batch), about one for every
4 KiB of log. The batches are the truth: recovery rebuilds the index from them and reads no index file.
"""

import struct
from array import array
from bisect import bisect_right
from itertools import pairwise
from typing import Final

from fastquorum.errors import CorruptionError
from fastquorum.kernels import INDEX_INTERVAL_BYTES, Buffer
from fastquorum.types import Offset

ENTRY: Final = struct.Struct(">ii")
_LAST_OFFSET_DELTA: Final = struct.Struct(">i")
_LAST_OFFSET_DELTA_AT: Final = 23
RELATIVE_OFFSET_MAX: Final = 2**31 - 1


class OffsetIndex:
    """Sparse, ascending in both columns. 8 bytes of memory an entry."""

    __slots__ = ("_offsets", "_positions", "base_offset")

    def __init__(self, base_offset: Offset) -> None:
        self.base_offset = base_offset
        self._offsets = array("I")
        """Last offset of the batch, relative to the base."""
        self._positions = array("I")

    def __len__(self) -> int:
        return len(self._offsets)

    def add(self, buffer: Buffer, at: int, base_offset: Offset, position: int) -> None:
        """List the batch at buffer[at:], which lies at `position` of the file, unless the last listed one is near."""
        last = self._positions[-1] if self._positions else 0
        if position - last < INDEX_INTERVAL_BYTES:
            return
        (delta,) = _LAST_OFFSET_DELTA.unpack_from(buffer, at + _LAST_OFFSET_DELTA_AT)
        self._offsets.append(base_offset + delta - self.base_offset)
        self._positions.append(position)

    def lookup(self, offset: Offset) -> int:
        """Position of a batch that holds `offset` or begins before it; the nearest one listed, else 0."""
        at = bisect_right(self._offsets, offset - self.base_offset)
        return self._positions[at - 1] if at else 0

    def truncate_to(self, position: int) -> None:
        """Drop entries for batches at or beyond `position`."""
        keep = len(self._positions)
        while keep and self._positions[keep - 1] >= position:
            keep -= 1
        del self._offsets[keep:]
        del self._positions[keep:]

    def encode(self) -> bytes:
        """Kafka's file."""
        return b"".join(ENTRY.pack(*entry) for entry in zip(self._offsets, self._positions, strict=True))


def decode_index(data: bytes, path: str = "") -> list[tuple[int, int]]:
    """The (relative offset, position) entries of an index file, without the zeros that Kafka preallocates.

    Raises CorruptionError(reason="index") unless they ascend.
    """
    if len(data) % ENTRY.size:
        raise CorruptionError("index", position=len(data), path=path)
    entries: list[tuple[int, int]] = list(ENTRY.iter_unpack(data))
    while entries and entries[-1] == (0, 0):
        entries.pop()
    for at, (a, b) in enumerate(pairwise(entries)):
        if not (a[0] < b[0] and a[1] < b[1]):
            raise CorruptionError("index", position=(at + 1) * ENTRY.size, path=path)
    return entries
