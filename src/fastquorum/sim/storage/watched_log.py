"""The real log, which reports truncations: a crash in the middle of one may leave either log."""

from collections.abc import Callable

from fastquorum.storage.log.log import Log
from fastquorum.types import Offset

Watcher = Callable[[bool, Offset], None]
"""Called with True before a truncation to that offset, with False after."""


class WatchedLog(Log):
    """A log that reports its truncations."""

    _watcher: Watcher | None = None

    def watch(self, watcher: Watcher) -> None:
        self._watcher = watcher

    def truncate_to(self, end_offset: Offset) -> Offset:
        assert self._watcher is not None
        self._watcher(True, end_offset)
        end = super().truncate_to(end_offset)
        self._watcher(False, end)
        return end
