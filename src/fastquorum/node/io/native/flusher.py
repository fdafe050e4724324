"""The flush port of a log whose syncs the native shell does. It is bound to the shell once there is one: recovery,
which comes before, syncs by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from fastquorum.kernels import SegmentFile, codes
from fastquorum.types import Micros

if TYPE_CHECKING:
    from fastquorum.kernels.shell import Shell


class NativeFlusher:
    """A FlushPort. `submit` is called while the log is not lent."""

    def __init__(self) -> None:
        self.has_stalled = False
        """The sync under way has been found to last too long."""
        self.uncounted: list[tuple[int, int]] = []
        """Ends of syncs, token and errno, that the loop had taken when it ended."""
        self._shell: Shell | None = None
        self._unwrapped: Callable[[SegmentFile], SegmentFile] = lambda file: file

    def bind(self, shell: Shell, unwrapped: Callable[[SegmentFile], SegmentFile]) -> None:
        """`unwrapped` makes a file one of the native kernels'."""
        self._shell = shell
        self._unwrapped = unwrapped

    @property
    def failed(self) -> bool:
        return self._shell is not None and self._shell.has_failed

    @property
    def began_us(self) -> Micros:
        """When the sync under way began; -1: none is."""
        return self._shell.flush_began_us if self._shell is not None else -1

    def submit(self, token: int, files: Sequence[SegmentFile]) -> None:
        assert self._shell is not None, "recovery syncs by itself"
        self._shell.submit(token, [self._unwrapped(file) for file in files])

    def is_stalled(self, now_us: Micros, stall_us_max: Micros) -> bool:
        """A sync has been under way for longer than that. True once; again when the same sync has lasted as long once
        more.
        """
        began_us = self.began_us
        if began_us < 0 or now_us - began_us <= stall_us_max:
            return False
        assert self._shell is not None
        self._shell.watch_flush_again(now_us)
        self.has_stalled = True
        return True

    def hold(self, hold: bool) -> None:
        """Have the disk not answer, for tests."""
        assert self._shell is not None
        self._shell.hold_syncs(hold)

    def finish(self) -> list[tuple[int, int]]:
        """The sync under way ends, and the threads; (token, errno) of what nobody has counted."""
        if self._shell is None:
            return []
        self._shell.end_threads()
        _, events, _ = self._shell.take_news()
        return self.uncounted + [(token, error) for kind, _, _, token, error in events if kind == codes.EVENT_SYNCED]

    def close(self) -> None:
        if self._shell is not None:
            self._shell.end_threads()
