"""Drives a quorum's blocking API: a tick's appends in one call, and a look at the oldest pending one. One thread, no
callbacks.

Appends commit in the order of the log, so the oldest is looked at and nothing else. Appends of several records go one
by one, and the oldest is looked at after each of them.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from fastquorum.errors import AppendTimeout, FastQuorumError
from fastquorum.load.payloads import Append
from fastquorum.load.tally import Tally

_LOOK_AGAIN_S: Final = 0.001


class Pending(Protocol):
    """An append that was accepted (`fastquorum.sync.Pending`)."""

    def done(self) -> bool: ...
    def result(self, timeout: float | None = None) -> int: ...


class Known(Protocol):
    """An append of either API whose fate is known."""

    def result(self) -> int: ...


class Appending(Protocol):
    """What is needed of a `fastquorum.sync.Quorum`."""

    @property
    def append_nowait(self) -> Callable[[bytes | tuple[bytes, ...]], Pending]: ...
    @property
    def append_each(self) -> Callable[[list[bytes]], Sequence[Pending]]: ...


class BlockingDriver:
    """See `generating.Driver`."""

    def __init__(self, quorum: Appending, tally: Tally, timeout_ns: int) -> None:
        self._append = quorum.append_nowait
        self._append_each = quorum.append_each
        self._tally = tally
        self._timeout_ns = timeout_ns
        self._window: deque[tuple[int, Pending]] = deque()

    @property
    def in_flight(self) -> int:
        return len(self._window)

    def offer(self, appends: list[Append], intended_ns: int) -> None:
        values = singles(appends)
        if values is None:
            self._offer_one_by_one(appends, intended_ns)
            return
        try:
            pending = self._append_each(values)
        except FastQuorumError as error:
            for _ in appends:
                self._tally.failed(error)
            return
        for each in pending:
            if each.done() and (refused := error_of(each)) is not None:
                self._tally.failed(refused)
            else:
                self._tally.sent += 1
                self._window.append((intended_ns, each))
        if self._window and self._window[0][1].done():
            self._settle()

    def _offer_one_by_one(self, appends: list[Append], intended_ns: int) -> None:
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


def singles(appends: list[Append]) -> list[bytes] | None:
    """Their values, if each has one."""
    return [each.values[0] for each in appends] if all(len(each.values) == 1 for each in appends) else None


def error_of(pending: "Known") -> FastQuorumError | None:
    """Of one whose fate is known."""
    try:
        pending.result()
    except FastQuorumError as error:
        return error
    return None
