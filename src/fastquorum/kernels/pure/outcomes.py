"""What becomes of an append or a read barrier, awaited in one event loop."""

import asyncio
from collections.abc import Callable, Generator, Iterable
from contextvars import Context, copy_context
from typing import Any

from fastquorum.kernels.outcomes import Loop
from fastquorum.kernels.outcomes import Outcome as AnyOutcome
from fastquorum.types import Offset

_Callback = tuple[Callable[["Outcome"], object], Context]


class Outcome:
    """See `kernels.outcomes.Outcome`. Whoever waits goes on in the loop."""

    __slots__ = ("_error", "_is_known", "_loop", "_result", "_waiting")

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._is_known = False
        self._result: Offset = -1
        self._error: BaseException | None = None
        self._waiting: list[asyncio.Future[None] | _Callback] = []
        """A future for each await, which its task may cancel; and callbacks."""

    def __await__(self) -> Generator[Any, None, Offset]:
        if not self._is_known:
            waiting: asyncio.Future[None] = self._loop.create_future()
            self._waiting.append(waiting)
            try:
                yield from waiting
            finally:
                if waiting in self._waiting:
                    self._waiting.remove(waiting)
        return self.result()

    def done(self) -> bool:
        return self._is_known

    def is_awaited(self) -> bool:
        return any(not _is_cancelled(each) for each in self._waiting)

    def result(self) -> Offset:
        if not self._is_known:
            raise asyncio.InvalidStateError("its fate is not known yet")
        if self._error is not None:
            try:
                raise self._error.with_traceback(None)
            finally:
                del self  # else the error, its traceback and this frame keep each other
        return self._result

    def set_result(self, result: Offset, /) -> None:
        self._settle(result, None)

    def set_exception(self, error: BaseException, /) -> None:
        self._settle(-1, error)

    def add_done_callback(self, callback: "Callable[[Outcome], object]") -> None:
        if self._is_known:
            self._loop.call_soon(callback, self)
        else:
            self._waiting.append((callback, copy_context()))

    def _settle(self, result: Offset, error: BaseException | None) -> None:
        if self._is_known:
            raise asyncio.InvalidStateError("its fate is known already")
        self._result, self._error, self._is_known = result, error, True
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if isinstance(each, asyncio.Future):
                if not each.cancelled():
                    each.set_result(None)
            else:
                callback, context = each
                self._loop.call_soon(callback, self, context=context)


def _is_cancelled(waiting: object) -> bool:
    return isinstance(waiting, asyncio.Future) and waiting.cancelled()


def settle_all(outcomes: Iterable[Any], result: Offset, at_once: bool = True) -> bool:
    """Tell those that are not known yet one result. In a callback of their loop, as the native twin's; here all go on
    through the loop's queue."""
    for outcome in outcomes:
        if not outcome.done():
            outcome.set_result(result)
            at_once = False
    return at_once


class Turn:
    """See `kernels.outcomes.Turn`."""

    def __init__(self, loop: Loop, end_soon: Callable[[], None], submit: Callable[[Any], AnyOutcome]) -> None:
        self._loop = loop
        self._end_soon = end_soon
        self._submit = submit
        self._values: list[bytes] = []
        self._outcomes: list[AnyOutcome] = []

    def __len__(self) -> int:
        return len(self._values)

    def gather(self, value: Any) -> AnyOutcome:
        if value.__class__ is list and len(value) == 1 and value[0].__class__ is bytes:
            value = value[0]
        if value.__class__ is not bytes:
            return self._submit(value)
        if not self._values:
            self._end_soon()
        outcome = Outcome(self._loop)
        self._values.append(value)
        self._outcomes.append(outcome)
        return outcome

    def take(self) -> tuple[list[bytes], list[AnyOutcome]]:
        values, self._values = self._values, []
        outcomes, self._outcomes = self._outcomes, []
        return values, outcomes
