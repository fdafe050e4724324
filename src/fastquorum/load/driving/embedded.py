"""Drives a quorum's blocking API, in one thread and without callbacks: whoever waits, waits for the oldest append."""

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from fastquorum.errors import AppendTimeout, FastQuorumError
from fastquorum.load.driving.payloads import Append
from fastquorum.load.driving.tally import Tally
from fastquorum.load.driving.window import Window


class Pending(Protocol):
    """An append that was accepted (`fastquorum.sync.Pending`)."""

    def done(self) -> bool: ...
    def result(self, timeout: float | None = None) -> int: ...


class Appending(Protocol):
    """The part of `fastquorum.sync.Quorum` that the driver needs."""

    @property
    def append_nowait(self) -> Callable[[bytes | tuple[bytes, ...]], Pending]: ...
    @property
    def append_each(self) -> Callable[[list[bytes]], Sequence[Pending]]: ...


class BlockingDriver:
    """See `generating.Driver`."""

    def __init__(self, quorum: Appending, tally: Tally, timeout_ns: int) -> None:
        self._window: Window[Pending] = Window(quorum, tally)
        self._timeout_ns = timeout_ns

    @property
    def in_flight(self) -> int:
        return len(self._window.pending)

    def offer(self, appends: list[Append], intended_ns: int) -> None:
        self._window.offer(appends, intended_ns)
        self._window.settle()

    def collect(self, until_ns: int) -> None:
        pending = self._window.pending
        if not pending:
            time.sleep(max(until_ns - time.monotonic_ns(), 0) / 1e9)
            return
        oldest = pending[0]
        if not oldest.done():
            try:
                oldest.result(max(until_ns - time.monotonic_ns(), 0) / 1e9)
            except AppendTimeout:
                if not oldest.done():
                    self._window.expire_oldest(time.monotonic_ns() - self._timeout_ns)
            except FastQuorumError:
                pass  # its fate: counted below
        self._window.settle()

    def abandon(self, kind: str) -> None:
        self._window.abandon(kind)

    def retarget(self, tally: Tally) -> None:
        self._window.tally = tally

    def close(self) -> None:
        pass  # the quorum is somebody else's
