"""Drives a quorum's blocking API: `append_nowait`, and a look at the oldest pending append. One thread, no callbacks.

Appends commit in the order of the log, so the oldest is looked at and nothing else. While a tick's appends are being
sent, the oldest is looked at after each of them: a fate is noticed late by one append's cost at most.
"""

import time
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from fastquorum.errors import AppendTimeout, FastQuorumError
from fastquorum.load.payloads import Append
from fastquorum.load.tally import Tally

_LOOK_AGAIN_S: Final = 0.001


class Pending(Protocol):
    """An append that was accepted (`fastquorum.sync.Pending`)."""

    def done(self) -> bool: ...
    def result(self, timeout: float | None = None) -> int: ...


class Appending(Protocol):
    """What is needed of a `fastquorum.sync.Quorum`."""

    @property
    def append_nowait(self) -> Callable[[bytes | tuple[bytes, ...]], Pending]: ...


class BlockingDriver:
    """See `generating.Driver`."""

    def __init__(self, quorum: Appending, tally: Tally, timeout_ns: int) -> None:
        self._append = quorum.append_nowait
        self._tally = tally
        self._timeout_ns = timeout_ns
        self._window: deque[tuple[int, Pending]] = deque()

    @property
    def in_flight(self) -> int:
        return len(self._window)

    def offer(self, appends: list[Append], intended_ns: int) -> None:
        append, window, tally = self._append, self._window, self._tally
        for each in appends:
            try:
                window.append((intended_ns, append(each.as_appended)))
                tally.sent += 1
            except FastQuorumError as error:
                tally.failed(error)
            if window and window[0][1].done():
                self._settle()

    def collect(self, until_ns: int) -> None:
        window = self._window
        if not window:
            time.sleep(max(until_ns - time.monotonic_ns(), 0) / 1e9)
            return
        intended_ns, oldest = window[0]
        if not oldest.done():
            try:
                oldest.result(max(until_ns - time.monotonic_ns(), 0) / 1e9)
            except AppendTimeout:
                if not oldest.done() and time.monotonic_ns() - intended_ns > self._timeout_ns:
                    window.popleft()
                    self._tally.errors["timeout"] += 1
            except FastQuorumError:
                pass  # its fate: counted below
        self._settle()

    def abandon(self, kind: str) -> None:
        self._tally.errors[kind] += len(self._window)
        self._window.clear()

    def retarget(self, tally: Tally) -> None:
        self._tally = tally

    def close(self) -> None:
        pass  # the quorum is somebody else's

    def _settle(self) -> None:
        window, tally = self._window, self._tally
        now = time.monotonic_ns()
        while window and window[0][1].done():
            intended_ns, pending = window.popleft()
            try:
                pending.result()
                tally.latencies.append(now - intended_ns)
            except FastQuorumError as error:
                tally.failed(error)
