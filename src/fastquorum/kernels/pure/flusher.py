"""One thread that syncs files in the order submitted, and reports through an eventfd.

Fail-stop: after the first failed sync nothing is synced any more, and every later submission reports that first error.
"""

import contextlib
import errno
import os
import threading
from collections import deque
from collections.abc import Sequence
from typing import Final

from fastquorum.errors import FsyncFailed, UsageError
from fastquorum.kernels import SegmentFile

_CLOSED: Final = -1


class Flusher:
    """The thread, its queue and its completions; every field below is guarded by the condition's lock."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._submitted: deque[tuple[int, tuple[SegmentFile, ...]]] = deque()
        self._completed: list[tuple[int, int]] = []
        self._failed_errno = 0
        self._closing = False
        self._eventfd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._thread = threading.Thread(target=self._run, name="fastquorum-flusher", daemon=True)
        self._thread.start()

    def fileno(self) -> int:
        """The eventfd; readable when completions wait. -1 once closed."""
        return self._eventfd

    @property
    def failed(self) -> bool:
        """True once a sync has failed, before its completion is reported."""
        return self._failed_errno != 0

    def submit(self, token: int, files: Sequence[SegmentFile]) -> None:
        """Sync these files, in order, then report `token`."""
        with self._changed:
            if self._closing:
                raise UsageError("the flusher is closed")
            self._submitted.append((token, tuple(files)))
            self._changed.notify()

    def completions(self) -> list[tuple[int, int]]:
        """(token, errno) of all syncs done since the last call, in order. Drains the eventfd."""
        with self._changed:
            if self._eventfd != _CLOSED:
                with contextlib.suppress(BlockingIOError):
                    os.eventfd_read(self._eventfd)
            completed, self._completed = self._completed, []
            return completed

    def close(self) -> None:
        """Finish what was submitted, end the thread. Idempotent; completions can still be read."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()
        with self._changed:
            fd, self._eventfd = self._eventfd, _CLOSED
        if fd != _CLOSED:
            os.close(fd)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._submitted or self._closing)
                if not self._submitted:
                    return
                token, files = self._submitted.popleft()
            code = self._failed_errno or _sync_all(files)
            with self._changed:
                # The latch comes first: whoever sees the completion must find it set.
                self._failed_errno = code
                self._completed.append((token, code))
                os.eventfd_write(self._eventfd, 1)


def _sync_all(files: Sequence[SegmentFile]) -> int:
    """Sync in order up to the first failure; its errno, 0 if all are synced."""
    for file in files:
        try:
            file.sync()
        except FsyncFailed as error:
            return error.errno_code or errno.EIO
    return 0
