"""The log's most recent batches, kept in memory so that followers at the end of the log cost no read of the disk."""

from bisect import bisect_right
from collections import deque
from typing import Final

from fastquorum.kernels import Kernels
from fastquorum.types import Offset

TAIL_BYTES_MAX: Final = 8 * 1024 * 1024


class RecentTail:
    """Contiguous spans of whole batches that end at the log's end; the oldest are dropped beyond `bytes_max`."""

    def __init__(self, kernels: Kernels, bytes_max: int = TAIL_BYTES_MAX) -> None:
        self._kernels = kernels
        self._bytes_max = bytes_max
        self._bytes = 0
        self._bases: deque[Offset] = deque()
        self._spans: deque[bytes] = deque()

    @property
    def start_offset(self) -> Offset | None:
        """First offset held; None while empty."""
        return self._bases[0] if self._bases else None

    def append(self, base_offset: Offset, span: bytes) -> None:
        self._bases.append(base_offset)
        self._spans.append(span)
        self._bytes += len(span)
        while self._bytes > self._bytes_max:
            self._bases.popleft()
            self._bytes -= len(self._spans.popleft())

    def clear(self) -> None:
        self._bases.clear()
        self._spans.clear()
        self._bytes = 0

    def read(self, offset: Offset, bytes_max: int) -> bytes | None:
        """Whole batches from the one that contains `offset`, at most bytes_max but at least one; None if not held."""
        if not self._bases or offset < self._bases[0]:
            return None
        at = bisect_right(self._bases, offset) - 1
        span = self._spans[at]
        start, end = 0, len(span)
        if self._bases[at] != offset or end > bytes_max:
            start, end = self._kernels.slice_batches(span, offset, bytes_max)
        if end < len(span):
            return span[start:end]
        parts = [span[start:] if start else span]
        left = bytes_max - (end - start)
        for later in range(at + 1, len(self._spans)):
            span = self._spans[later]
            if len(span) > left:
                _, end = self._kernels.slice_batches(span, self._bases[later], left)
                if end <= left:
                    parts.append(span[:end])
                break
            parts.append(span)
            left -= len(span)
        return parts[0] if len(parts) == 1 else b"".join(parts)
