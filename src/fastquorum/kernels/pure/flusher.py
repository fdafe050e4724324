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

from fastquorum.errors import ClosedError, UsageError
from fastquorum.kernels import SegmentFile
from fastquorum.kernels.pure.segment import Descriptor
from fastquorum.kernels.pure.segment import SegmentFile as PureSegmentFile
from fastquorum.threads import start_thread

_CLOSED: Final = -1


class Flusher:
    """The thread, its queue and its completions; every field below is guarded by the condition's lock."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._changed = threading.Condition()
        self._submitted: deque[tuple[int, list[Descriptor | None]]] = deque()
        self._completed: list[tuple[int, int]] = []
        self._failed_errno = 0
        self._closing = False
        self._eventfd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._thread = threading.Thread(target=self._run, name="fastquorum-flusher", daemon=True)
        try:
            start_thread(self._thread)
        except BaseException:
            os.close(self._eventfd)
            raise

    def fileno(self) -> int:
        """The eventfd; readable when completions wait. -1 once closed."""
        return self._eventfd

    @property
    def failed(self) -> bool:
        """True once a sync has failed, before its completion is reported."""
        return self._failed_errno != 0

    def submit(self, token: int, files: Sequence[SegmentFile]) -> None:
        self._refuse_child()
        ours = [file for file in files if isinstance(file, PureSegmentFile)]
        if len(ours) != len(files):
            raise TypeError("the pure flusher syncs pure segment files only")
        with self._changed:
            if self._closing:
                raise UsageError("the flusher is closed")
            # A closed file is reported like any other that cannot be synced: in its turn, by its errno.
            self._submitted.append((token, [file.share() for file in ours]))
            self._changed.notify()

    def completions(self) -> list[tuple[int, int]]:
        self._refuse_child()
        with self._changed:
            if self._eventfd != _CLOSED:
                with contextlib.suppress(BlockingIOError):
                    os.eventfd_read(self._eventfd)
            completed, self._completed = self._completed, []
            return completed

    def close(self) -> None:
        """Finish what was submitted, end the thread. Idempotent; completions can still be read."""
        if os.getpid() != self._process:
            return
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()
        with self._changed:
            fd, self._eventfd = self._eventfd, _CLOSED
        if fd != _CLOSED:
            os.close(fd)

    def _refuse_child(self) -> None:
        # A forked child has no such thread, and the lock may be held there for ever.
        if os.getpid() != self._process:
            raise ClosedError("the flusher belongs to the parent process", "make a new one after fork")

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._submitted or self._closing)
                if not self._submitted:
                    return
                token, descriptors = self._submitted.popleft()
            code = self._failed_errno or _sync_all(descriptors)
            for descriptor in descriptors:
                if descriptor is not None:
                    with contextlib.suppress(OSError):  # the sync is what counts; a file it succeeded for is safe
                        descriptor.release()
            with self._changed:
                # The latch comes first: whoever sees the completion must find it set.
                self._failed_errno = code
                self._completed.append((token, code))
                os.eventfd_write(self._eventfd, 1)


def _sync_all(descriptors: Sequence[Descriptor | None]) -> int:
    """Sync in order up to the first failure; its errno, 0 if all are synced."""
    for descriptor in descriptors:
        code = errno.EBADF if descriptor is None else descriptor.sync()
        if code:
            return code
    return 0
