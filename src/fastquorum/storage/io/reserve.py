"""Descriptors in reserve: what a node must open for a moment - the directory of a file that was renamed, the mark, the
segment that it has just made ready - does not fail because others have taken all that the process may have.
"""

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

from fastquorum.errors import StorageFailed

RESERVE_COUNT: Final = 3
"""Descriptors held back: as many as one operation of a disk opens at once, and one more."""
T = TypeVar("T")


class DescriptorReserve:
    """Some open descriptors of nothing. For any thread: a snapshot is written in one of its own."""

    def __init__(self, count: int = RESERVE_COUNT) -> None:
        self._count = count
        self._fds: list[int] = []
        self._guard = threading.Lock()
        self._fill()

    def run(self, operation: Callable[[], T]) -> T:
        """Do it, in the room of the reserve if there is no other. Raises what the operation raises."""
        try:
            result = operation()
        except StorageFailed as failed:
            if not failed.lacks_descriptor or not self._fds:
                raise
            self._release()
            result = operation()
        finally:
            self._fill()
        return result

    def close(self) -> None:
        """Let go of them, for good. Idempotent."""
        self._count = 0
        self._release()

    def _release(self) -> None:
        with self._guard:
            while self._fds:
                os.close(self._fds.pop())

    def _fill(self) -> None:
        with self._guard, suppress(OSError):  # the rest when there are some again
            while len(self._fds) < self._count:
                self._fds.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
