"""Drives a quorum's blocking API, in one thread and without callbacks: it waits for the oldest append."""

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from fastquorum.errors import AppendTimeout, FastQuorumError
from fastquorum.load.driving.payloads import Payload
from fastquorum.load.driving.tally import LoadTally
from fastquorum.load.driving.window import AppendWindow


class BlockingAppend(Protocol):
    """An append that was accepted (`fastquorum.sync.Pending`)."""

    def done(self) -> bool: ...
    def result(self, timeout: float | None = None) -> int: ...


class BlockingQuorum(Protocol):
    """The part of `fastquorum.sync.Quorum` that the driver needs."""

    @property
    def append_nowait(self) -> Callable[[bytes | tuple[bytes, ...]], BlockingAppend]: ...
    @property
    def append_each(self) -> Callable[[list[bytes]], Sequence[BlockingAppend]]: ...


class BlockingDriver:
    """See `generating.Driver`."""

    def __init__(self, quorum: BlockingQuorum, tally: LoadTally, timeout_ns: int) -> None:
        self._window: AppendWindow[BlockingAppend] = AppendWindow(quorum, tally)
        self._timeout_ns = timeout_ns

    @property
    def in_flight(self) -> int:
        return len(self._window.pending)

    def offer(self, appends: list[Payload], intended_ns: int) -> None:
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

    def retarget(self, tally: LoadTally) -> None:
        self._window.tally = tally

    def close(self) -> None:
        pass  # the quorum belongs to the caller
