"""Which event loop a handle belongs to."""

import asyncio
import threading
from typing import Final

from fastquorum.errors import UsageError


class HomeLoop:
    """The event loop that a handle was opened in: its futures are that loop's, and nobody else may wait for them."""

    __slots__ = ("_of", "_thread", "loop")

    def __init__(self, of: str, loop: asyncio.AbstractEventLoop) -> None:
        """`of` says what the handle is, in words."""
        self.loop: Final = loop
        self._of = of
        self._thread = threading.get_ident()

    def check(self) -> None:
        """Raise UsageError if this is another loop, or none."""
        # First what does not ask the kernel for the process, as asking for the running loop does every time.
        if threading.get_ident() == self._thread and self.loop.is_running():
            return
        if asyncio._get_running_loop() is not self.loop:
            raise UsageError(
                f"this is not the event loop that the {self._of} belongs to", "use it in the loop it was opened in"
            )
        self._thread = threading.get_ident()  # a loop may be run in another thread later
