"""Which event loop a handle belongs to, and what works for it in a thread of its own."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

from fastquorum.errors import UsageError

_T = TypeVar("_T")


class HomeLoop:
    """The event loop that a handle was opened in: its futures are that loop's, and only it may wait for them."""

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
            if self.loop.is_closed():
                raise UsageError(
                    f"the event loop that the {self._of} belongs to is closed", "open another one in the loop that runs"
                )
            raise UsageError(
                f"this is not the event loop that the {self._of} belongs to", "use it in the loop it was opened in"
            )
        self._thread = threading.get_ident()  # a loop may be run in another thread later

    def check_close(self) -> None:
        """Check like `check`; but once its loop is closed, any loop may close the handle, as none could otherwise."""
        if not self.loop.is_closed():
            self.check()


def in_own_thread(work: Callable[..., _T], *arguments: Any) -> "asyncio.Future[_T]":
    """Begin what may block in a thread that ends with it; its result comes to the running loop, if that is open then.

    The loop's executor is the program's: it may be busy for as long as it likes, or shut down. Where the system has no
    more threads the work is done at once, here. A process that exits waits for it, as it does for an executor's.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_T] = loop.create_future()

    def settle(set_outcome: Callable[[Any], None], outcome: object) -> None:
        if not future.done():  # else the waiting task was cancelled
            set_outcome(outcome)

    def tell(set_outcome: Callable[[Any], None], outcome: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile: no one waits for the result
            loop.call_soon_threadsafe(settle, set_outcome, outcome)

    def run() -> None:
        try:
            result = work(*arguments)
        except BaseException as error:
            tell(future.set_exception, error)
        else:
            tell(future.set_result, result)

    try:
        threading.Thread(target=run, name="fastquorum-work").start()
    except RuntimeError:  # Python's word for every errno of pthread_create
        run()
    return future
