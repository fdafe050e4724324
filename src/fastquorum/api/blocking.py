"""What the blocking API waits with for changes of one node. No event loop inside."""

import threading
import time
from collections.abc import Callable

from fastquorum.errors import FastQuorumError
from fastquorum.node.io import handles
from fastquorum.node.io.observing import Leadership, Observer
from fastquorum.types import Offset


class Watch(handles.Guarded, Observer):
    """The Observer of one node: a condition that threads wait on for commits and changes."""

    def __init__(self) -> None:
        super().__init__()
        self.over = False
        self.watch_commit: Callable[[], None] = _ignore
        """Has the node tell of the next commit; set when there is a node."""
        self.on_change: Callable[[], None] = _ignore
        """Called on the replica's thread after each change of leadership or readiness, and when the node is over."""
        self._changed = threading.Condition(threading.Lock())
        self._for_commits = 0
        """So many wait for a commit."""

    # On the replica's thread.

    def on_committed(self, high_watermark: Offset) -> None:
        if self._for_commits:
            self._notify()

    def on_leadership(self, leadership: Leadership) -> None:
        self._announce()

    def on_ready(self) -> None:
        self._announce()

    def on_stopped(self, error: FastQuorumError | None) -> None:
        self.over = True
        self._announce()

    def _announce(self) -> None:
        self._notify()
        self.on_change()

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()

    # In the user's threads.

    def change(self, is_done: Callable[[], bool], timeout: float | None = None) -> bool:
        """Wait until is_done, which a change of leadership or readiness or an answer may bring about, or until the node
        is over; False if the time ran out first."""
        with self._changed:
            return self._changed.wait_for(lambda: self.over or is_done(), timeout)

    def commit(self, is_done: Callable[[], bool], timeout: float | None = None) -> bool:
        """Wait like `change`, and look again after each commit, too."""
        with self._changed:
            self._for_commits += 1  # before looking: whatever is committed after the look notifies

            def is_over() -> bool:
                self.watch_commit()
                return self.over or is_done()

            try:
                return self._changed.wait_for(is_over, timeout)
            finally:
                self._for_commits -= 1


def _ignore() -> None:
    """There is nobody to be asked."""


def left_s(deadline: float | None) -> float | None:
    return None if deadline is None else max(deadline - time.monotonic(), 0)
