"""The flusher with a watch in its hand: a sync that does not come back is noticed."""

from collections.abc import Sequence

from fastquorum.kernels import Flusher, SegmentFile
from fastquorum.node.io.clock import now_us
from fastquorum.node.io.sockets.channel import NEVER
from fastquorum.types import Micros


class WatchedFlusher:
    """A FlushPort over a kernels.Flusher. `submit` is called under the lane lock, the rest on the replica's thread."""

    def __init__(self, inner: Flusher) -> None:
        self.inner = inner
        self._began_us: Micros = NEVER
        self.has_stalled = False
        """The sync under way has been found to last too long."""

    def fileno(self) -> int:
        return self.inner.fileno()

    @property
    def failed(self) -> bool:
        return self.inner.failed

    @property
    def began_us(self) -> Micros:
        """When the sync under way began; -1: none is."""
        return self._began_us

    def submit(self, token: int, files: Sequence[SegmentFile]) -> None:
        self._began_us = now_us()
        self.inner.submit(token, files)

    def completions(self) -> list[tuple[int, int]]:
        self._began_us = NEVER
        return self.inner.completions()

    def is_stalled(self, now_us: Micros, stall_us_max: Micros) -> bool:
        """A sync has been under way for longer than that. True once; again when the same sync has lasted as long once
        more.
        """
        if self._began_us == NEVER or now_us - self._began_us <= stall_us_max:
            return False
        self._began_us = now_us
        self.has_stalled = True
        return True

    def close(self) -> None:
        self.inner.close()
