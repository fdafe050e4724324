"""The frame of every piece of a replica's work: the lock that it shares with its lane, and its end if that fails.

Classes, not generators: they are entered several times for each request.
"""

from collections.abc import Callable
from types import TracebackType

from fastquorum.errors import CorruptionError, FatalError
from fastquorum.node.lane.port import Shell
from fastquorum.types import Micros


class Critical:
    """A critical section: what fails in it is cut off before anybody else gets the lock. One serves a replica, and is
    not entered by whoever is in it."""

    __slots__ = ("_shell",)

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    def __enter__(self) -> None:
        self._shell.lock.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if isinstance(error, FatalError | CorruptionError):
                self._shell.cut_off(error)
        finally:
            self._shell.lock.__exit__(kind, error, traceback)


class FailureStops:
    """A failure inside ends the replica, and goes no further."""

    __slots__ = ("_now_us", "_stop")

    def __init__(self, stop: Callable[[FatalError | CorruptionError, Micros], None], now_us: Micros) -> None:
        self._stop = stop
        self._now_us = now_us

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if not isinstance(error, FatalError | CorruptionError):
            return False
        self._stop(error, self._now_us)
        return True
