"""Something that goes wrong again and again, said at once and then once a minute: no log is filled by a stranger, or by
a limit that was reached. By the standard library's logging, under "fastquorum".
"""

import logging
import time
from collections.abc import Callable
from typing import Final

from fastquorum.node.io.log_writer import write

AGAIN_S: Final = 60.0


class Repeating:
    """One kind of fault, at one place. One thread's."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due_s = float("-inf")
        self._unsaid = 0

    def say(self, sentence: str, error: BaseException | None = None) -> None:
        """It has happened again. `error`: its traceback is said, too."""
        again = self.again()
        if again is not None:
            write(logging.WARNING, "repeated_fault", f"{sentence}{again}", error)

    def again(self) -> str | None:
        """It has happened again: how often beside what was said, for the end of a sentence; None: say nothing now."""
        now_s = self._clock()
        if now_s < self._due_s:
            self._unsaid += 1
            return None
        again = f" ({self._unsaid} times more since it was said last)" if self._unsaid else ""
        self._due_s, self._unsaid = now_s + AGAIN_S, 0
        return again
