"""A file's bytes in order, for one who needs whole batches and cannot know where they end before it has looked.

Plain reads rather than a memory map: a sector that cannot be read is then an error with a name, not a SIGBUS. They go
into one buffer, over and over, which stays in the cache; what was not used of one block is moved in front of the next,
so that only a batch longer than a block is read in part twice. Blocks lie in pages of the buffer as they lie in the
file's: the kernel copies to some other places several times more slowly.
"""

import mmap
from typing import Final

from fastquorum.kernels import SegmentFile

BLOCK_BYTES: Final = 1024 * 1024


class Windows:
    """Windows over [start, end) of a file. A window is there until the next is asked for."""

    def __init__(self, file: SegmentFile, start: int, end: int, block_bytes: int = BLOCK_BYTES) -> None:
        self._file = file
        self._end = end
        self._block = _pages(block_bytes)
        self._buffer = memoryview(mmap.mmap(-1, 2 * self._block, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
        self._window = self._buffer[:0]
        self._position = start
        """The window's position in the file."""

    def at(self, position: int, needed: int = 0) -> memoryview:
        """Return the bytes from `position` on, which lies in the last window or at its end: more than before if there
        are more, and at least `needed` bytes if there are so many. StorageFailed."""
        rest = self._window[position - self._position :]
        read_from = position + len(rest)
        room = self._block - read_from % mmap.PAGESIZE
        self._position = position
        if read_from >= self._end:
            self._window = rest
        elif len(rest) > self._block or needed > len(rest) + room:
            size = min(max(needed, len(rest) + self._block), self._end - position)
            self._window = memoryview(self._file.read(position, size))
        else:
            self._window = self._behind(rest, read_from, min(room, self._end - read_from))
        return self._window

    def _behind(self, rest: memoryview, read_from: int, size_bytes: int) -> memoryview:
        """So much more, behind the rest: a block, or what is missing up to the end of a page."""
        at = self._block + read_from % mmap.PAGESIZE
        start = at - len(rest)
        self._buffer[start:at] = rest
        count = self._file.read_into(read_from, self._buffer[at : at + size_bytes])
        return self._buffer[start : at + count]


def _pages(size_bytes: int) -> int:
    return -(-size_bytes // mmap.PAGESIZE) * mmap.PAGESIZE
