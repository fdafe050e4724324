"""Callers that wait for the fate of an append or a read barrier: in an event loop, or in threads."""

import asyncio
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from fastquorum.types import Offset


class Waiter(Protocol):
    """Whoever waits for a result, as a future does: it may be done already, its time being over."""

    def done(self) -> bool: ...

    def set_result(self, result: Any, /) -> None: ...

    def set_exception(self, error: Any, /) -> None: ...


class LoopBridge(Protocol):
    """The way from other threads into one event loop."""

    loop: asyncio.AbstractEventLoop

    def resolve(self, waiter: Waiter, result: object) -> None:
        """Bring a waiter its result in the loop; an exception is raised there. From any thread."""

    def at_end(self, close: Callable[[], None]) -> None:
        """Have `close` called in the loop when the node is over, before those who wait for its end hear of it."""


@runtime_checkable
class Pending(Protocol):
    """An append that was accepted, and what becomes of it. For any thread, and for several at once."""

    def done(self) -> bool:
        """Is its fate known? ClosedError in a forked child, which will never know."""

    def result(self, timeout: float | None = None) -> Offset:
        """Wait for the offset of its first record. AppendTimeout: not within `timeout` seconds; it may still commit."""


class PendingBarrier(Pending, Protocol):
    """The same of a barrier: the high watermark."""

    def wait(self, timeout: float | None = None) -> bool:
        """Is it known within `timeout` seconds?"""
