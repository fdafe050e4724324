"""What becomes of an append or a read barrier that tasks await, and the appends of one turn of an event loop."""

from collections.abc import Callable, Generator
from typing import Any, Protocol

from fastquorum.types import Offset


class Loop(Protocol):
    """The part of an asyncio event loop that is needed here."""

    def call_soon(self, callback: Callable[..., object], /, *args: Any, context: Any = None) -> Any: ...

    def create_future(self) -> Any: ...


class Outcome(Protocol):
    """Known later. Any number of tasks may await it; cancelling one of them cancels nothing else.

    In the loop alone. They go on in the order in which they came; nothing is logged of an error that nobody asked for.
    """

    def __init__(self, loop: Loop) -> None: ...

    def __await__(self) -> Generator[Any, None, Offset]: ...

    def done(self) -> bool: ...

    def is_awaited(self) -> bool:
        """Does a task wait, or a callback?"""

    def result(self) -> Offset:
        """What it was told, or the error raised. asyncio.InvalidStateError before."""

    def set_result(self, result: Offset, /) -> None:
        """Set the result, and let the waiters go on in the loop. asyncio.InvalidStateError if it is known already."""

    def set_exception(self, error: Any, /) -> None:
        """Set the error like `set_result` sets the result."""

    def add_done_callback(self, callback: Callable[[Any], object]) -> None:
        """Have it called in the loop, not at once, when it is known: in the context of this call, as asyncio does."""


class Turn(Protocol):
    """Appends of one turn of an event loop, gathered. In the loop alone."""

    def __init__(self, loop: Loop, end_soon: Callable[[], None], submit: Callable[[Any], Outcome]) -> None:
        """`end_soon` is called with the first value that is gathered."""

    def __len__(self) -> int: ...

    def gather(self, value: Any) -> Outcome:
        """One value, bytes, or in a list. What could be changed until the turn ends, or has several values, goes to
        `submit` at once."""

    def take(self) -> tuple[list[bytes], list[Outcome]]:
        """What was gathered: it is gathered no longer."""
