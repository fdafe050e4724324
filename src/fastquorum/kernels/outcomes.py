"""What becomes of an append or a read barrier, awaited in one event loop: what both twins offer, and where they are."""

import asyncio
import importlib
from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from fastquorum.kernels.pure import outcomes as pure
from fastquorum.types import Offset

if TYPE_CHECKING:
    from fastquorum.kernels.native._turn import Turn as Turn


class Outcome(Protocol):
    """Known later. Any number of tasks may await it; cancelling one of them cancels nothing else.

    In the loop alone. Nothing is logged of an error that nobody asked for.
    """

    def __await__(self) -> Generator[Any, None, Offset]: ...

    def done(self) -> bool: ...

    def is_awaited(self) -> bool:
        """Does a task wait, or a callback?"""

    def result(self) -> Offset:
        """What it was told, or the error raised. asyncio.InvalidStateError before."""

    def set_result(self, result: Offset, /) -> None:
        """Who waits goes on in the loop. Raises asyncio.InvalidStateError if it is known already."""

    def set_exception(self, error: Any, /) -> None:
        """As `set_result`."""

    def add_done_callback(self, callback: "Callable[[Any], object]") -> None:
        """Have it called in the loop, not at once, when it is known."""


class Outcomes(NamedTuple):
    """One twin's class, and its way of telling many at once."""

    new: Callable[[asyncio.AbstractEventLoop], Outcome]
    settle_all: Callable[[Iterable[Any], Offset], None]
    """Tell those that are not known yet one result. In a callback of the loop, not in a task."""


PURE = Outcomes(pure.Outcome, pure.settle_all)


def load_turn() -> "type[Turn]":
    """There is no pure twin: with the pure kernels a turn's appends are not gathered. Raises ImportError."""
    found: type[Turn] = importlib.import_module("fastquorum.kernels.native._turn").Turn
    return found


def load_native() -> Outcomes:
    """Raises ImportError where the native modules are missing."""
    module = importlib.import_module("fastquorum.kernels.native._outcomes")
    return Outcomes(module.Outcome, module.settle_all)
