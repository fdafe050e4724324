"""What the blocking API waits with: one append's fate, and changes of one node. No event loop inside."""

import threading
import time
from collections.abc import Callable

from fastquorum.errors import FastQuorumError
from fastquorum.node.io.running import Leadership
from fastquorum.types import Offset


class Result:
    """A ticket that one thread waits for. A lock that is held until the fate is known is the cheapest such thing
    there is.
    """

    __slots__ = ("_known", "_value")

    def __init__(self) -> None:
        self._known = threading.Lock()
        self._known.acquire()
        self._value: Offset | FastQuorumError | None = None

    def committed(self, base_offset: Offset) -> None:
        self._value = base_offset
        self._known.release()

    passed = committed

    def failed(self, error: FastQuorumError) -> None:
        self._value = error
        self._known.release()

    def is_known(self) -> bool:
        return self._value is not None

    def wait(self, timeout: float | None, failure: Callable[[float], FastQuorumError]) -> Offset:
        if self._value is None:
            if self._known.acquire(timeout=-1 if timeout is None else max(timeout, 0)):
                self._known.release()  # for the next who waits
            elif self._value is None:
                assert timeout is not None
                raise failure(timeout)
        value = self._value
        assert value is not None
        if isinstance(value, FastQuorumError):
            raise value
        return value


class Watch:
    """The Observer of one node: a condition that threads wait on for commits and changes."""

    def __init__(self) -> None:
        self.over = False
        self._changed = threading.Condition(threading.Lock())
        self._waiting = 0

    # On the replica's thread.

    def on_committed(self, high_watermark: Offset) -> None:
        if self._waiting:
            self._notify()

    def on_leadership(self, leadership: Leadership) -> None:
        self._notify()

    def on_ready(self) -> None:
        self._notify()

    def on_stopped(self, error: FastQuorumError | None) -> None:
        self.over = True
        self._notify()

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()

    # In the user's threads.

    def until(self, is_done: Callable[[], bool], timeout: float | None = None) -> bool:
        """Wait until is_done or the node is over; False if the time ran out first."""
        with self._changed:
            self._waiting += 1  # before looking: whatever is committed after the look notifies
            try:
                return self._changed.wait_for(lambda: self.over or is_done(), timeout)
            finally:
                self._waiting -= 1


def left_s(deadline: float | None) -> float | None:
    return None if deadline is None else max(deadline - time.monotonic(), 0)
