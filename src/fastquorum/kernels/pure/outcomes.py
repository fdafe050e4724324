"""What becomes of an append or a read barrier, awaited in one event loop."""

import asyncio
from collections.abc import Callable, Generator, Iterable
from typing import Any

from fastquorum.types import Offset


class Outcome:
    """Known later. Any number of tasks may await it; cancelling one of them cancels nothing else.

    In the loop alone. Whoever waits goes on in the loop, in the order they came; nothing is logged of an error that
    nobody asked for.
    """

    __slots__ = ("_error", "_is_known", "_loop", "_result", "_waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._is_known = False
        self._result: Offset = -1
        self._error: BaseException | None = None
        self._waiting: list[asyncio.Future[None] | Callable[[Outcome], object]] = []
        """Of each await a future, which its task may cancel; and callbacks."""

    def __await__(self) -> Generator[Any, None, Offset]:
        if not self._is_known:
            told: asyncio.Future[None] = self._loop.create_future()
            self._waiting.append(told)
            try:
                yield from told
            finally:
                if told in self._waiting:
                    self._waiting.remove(told)
        return self.result()

    def done(self) -> bool:
        return self._is_known

    def is_awaited(self) -> bool:
        """Does a task wait, or a callback?"""
        return any(not _is_cancelled(each) for each in self._waiting)

    def result(self) -> Offset:
        """What it was told, or the error raised. asyncio.InvalidStateError before."""
        if not self._is_known:
            raise asyncio.InvalidStateError("its fate is not known yet")
        if self._error is not None:
            raise self._error.with_traceback(None)
        return self._result

    def set_result(self, result: Offset, /) -> None:
        """Raises asyncio.InvalidStateError if it is known already."""
        self._settle(result, None)

    def set_exception(self, error: BaseException, /) -> None:
        """Raises asyncio.InvalidStateError if it is known already."""
        self._settle(-1, error)

    def add_done_callback(self, callback: "Callable[[Outcome], object]") -> None:
        """Have it called in the loop, not at once, when it is known."""
        if self._is_known:
            self._loop.call_soon(callback, self)
        else:
            self._waiting.append(callback)

    def _settle(self, result: Offset, error: BaseException | None) -> None:
        if self._is_known:
            raise asyncio.InvalidStateError("its fate is known already")
        self._result, self._error, self._is_known = result, error, True
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if not isinstance(each, asyncio.Future):
                self._loop.call_soon(each, self)
            elif not each.cancelled():
                each.set_result(None)


def _is_cancelled(waiting: object) -> bool:
    return isinstance(waiting, asyncio.Future) and waiting.cancelled()


def settle_all(outcomes: Iterable[Outcome], result: Offset) -> None:
    """Tell those that are not known yet one result."""
    for outcome in outcomes:
        if not outcome.done():
            outcome.set_result(result)
