"""What opens a handle in an event loop: awaited, or entered with `async with` at once. Imports next to nothing.

The modules behind a handle take half a second to import, and opening one reads files: all of that happens in a thread
of the loop's executor, so that nothing else in the loop has to wait.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

_T = TypeVar("_T")


class _Handle(Protocol):
    async def __aenter__(self) -> Any: ...
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...


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
        """As a coroutine's: it is not to be awaited any more. An open handle is not closed by this."""
        self._coroutine.close()

    async def __aenter__(self) -> _H:
        self._handle = await self._coroutine
        entered: _H = await self._handle.__aenter__()
        return entered

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._handle is not None
        await self._handle.__aexit__(kind, error, traceback)


async def in_thread(work: Callable[..., _T], *arguments: Any) -> _T:
    """Run what may block in a thread of the running loop's executor."""
    return await asyncio.get_running_loop().run_in_executor(None, work, *arguments)


async def loaded(module: str) -> Any:
    """The module; imported in a thread."""
    return await in_thread(importlib.import_module, module)
