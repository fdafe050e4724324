"""What opens a handle in an event loop: awaited, or entered with `async with` at once. Imports next to nothing.

The modules behind a handle take half a second to import, and opening one reads files: all of that happens in a thread
of the loop's executor, so that nothing else in the loop has to wait.
"""

from __future__ import annotations

import asyncio
import importlib
import threading
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Final, Generic, Protocol, TypeVar

END_S: Final = 5.0
"""How long a cancelled task waits for the end of what it began: a log may take longer to recover."""

_T = TypeVar("_T")


class _Handle(Protocol):
    async def __aenter__(self) -> Any: ...
    async def __aexit__(self, *raised: Any) -> None: ...


_H = TypeVar("_H", bound=_Handle)


class Opening(Coroutine[Any, Any, _H], Generic[_H]):
    """A handle that is being opened: a coroutine for whatever takes one, and a block that closes it at its end.

    `handle = await opening`, `async with opening as handle` and `async with await opening as handle` do the same.
    """

    __slots__ = ("_coroutine", "_handle")

    def __init__(self, coroutine: Coroutine[Any, Any, _H]) -> None:
        self._coroutine = coroutine
        self._handle: _H | None = None

    def __await__(self) -> Any:
        return self._coroutine.__await__()

    def send(self, value: Any) -> Any:
        return self._coroutine.send(value)

    def throw(self, kind: Any, value: Any = None, traceback: TracebackType | None = None) -> Any:
        if value is None and traceback is None:
            return self._coroutine.throw(kind)
        return self._coroutine.throw(kind, value, traceback)

    def close(self) -> None:
        """Close like a coroutine: it is not awaited any more. This does not close an open handle."""
        self._coroutine.close()

    async def __aenter__(self) -> _H:
        self._handle = await self._coroutine
        entered: _H = await self._handle.__aenter__()
        return entered

    async def __aexit__(self, *raised: Any) -> None:
        assert self._handle is not None
        await self._handle.__aexit__(*raised)


async def in_thread(work: Callable[..., _T], *arguments: Any) -> _T:
    """Run what may block in a thread of the running loop's executor."""
    return await asyncio.get_running_loop().run_in_executor(None, work, *arguments)


async def begun(begin: Callable[[], _T], end: Callable[[_T], object]) -> _T:
    """Return what `begin` makes, in a thread of the running loop's executor.

    If the task is cancelled meanwhile, `end` ends that, in such a thread, too; what no thread has begun yet is not
    begun. CancelledError is raised once that is done, so that the same can be begun again; or after END_S,
    and then it is done behind it. An error of `end` goes to the loop's exception handler.
    """
    loop = asyncio.get_running_loop()
    beginning = _Beginning(begin, end)
    made: asyncio.Future[_T | None] = loop.run_in_executor(None, beginning.run)
    try:
        found = await asyncio.shield(made)
    except asyncio.CancelledError:
        beginning.given_up.set()  # at once: threads may be rare
        ends: list[asyncio.Future[Any]] = [made, loop.run_in_executor(None, beginning.end_once)]
        for each in ends:
            each.add_done_callback(_take_note)
        await asyncio.wait(ends, timeout=END_S)
        raise
    assert found is not None, "only what is given up is none"
    return found


def _take_note(done: asyncio.Future[Any]) -> None:
    """Report the error of a result that no one awaits, only if something was left behind."""
    if not done.cancelled() and isinstance(error := done.exception(), _NotEnded):
        done.get_loop().call_exception_handler(
            {"message": "what was started for a cancelled task could not be ended", "exception": error.__cause__}
        )


class _NotEnded(Exception):
    """`end` failed; its error is the cause."""


class _Beginning(Generic[_T]):
    """What one thread makes, and another may not want any more: whichever of them is the last to know ends it."""

    def __init__(self, begin: Callable[[], _T], end: Callable[[_T], object]) -> None:
        self._begin = begin
        self._end = end
        self._lock = threading.Lock()
        self._made: _T | None = None
        self.given_up = threading.Event()

    def run(self) -> _T | None:
        """Make it. None: it was given up, and has been ended, or not begun. Raises what `begin` does; _NotEnded."""
        if self.given_up.is_set():
            return None
        made = self._begin()
        with self._lock:
            self._made = made
        if not self.given_up.is_set():
            return made
        self.end_once()
        return None

    def end_once(self) -> None:
        """End it if it is made, and has not been ended. Raises _NotEnded."""
        with self._lock:
            made, self._made = self._made, None
        if made is None:
            return
        try:
            self._end(made)
        except Exception as error:
            raise _NotEnded from error


def check_interpreter() -> None:
    """Raise UsageError in a subinterpreter, before anything is begun that could not go on there: it may have no threads
    that outlive their callers, and native threads call the main interpreter."""
    for name in ("_interpreters", "_xxsubinterpreters"):  # since Python 3.13, and before
        try:
            interpreters = importlib.import_module(name)
        except ImportError:
            continue
        if interpreters.get_current() != interpreters.get_main():
            raise importlib.import_module("fastquorum.errors").UsageError(
                "neither a node nor a member can run in a subinterpreter",
                "use it in the main interpreter, or in a process of its own",
            )
        return


async def loaded(module: str) -> Any:
    """The module; imported in a thread. UsageError in a subinterpreter, which may have none."""
    check_interpreter()
    return await in_thread(importlib.import_module, module)
