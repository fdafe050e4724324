import asyncio
from collections.abc import Callable
from typing import Any, final

from fastquorum.kernels.outcomes import Outcome

@final
class Turn:
    def __new__(
        cls,
        loop: asyncio.AbstractEventLoop,
        end_soon: Callable[[], None],
        submit: Callable[[Any], Outcome],
    ) -> Turn:
        """`end_soon` is called with the first value that is gathered."""

    def __len__(self) -> int: ...
    def gather(self, value: Any) -> Outcome:
        """What could be changed until the turn ends, or has several values, goes to `submit` at once. One value may be
        in a list."""

    def take(self) -> tuple[list[bytes], list[Outcome]]:
        """What was gathered: it is gathered no longer."""
