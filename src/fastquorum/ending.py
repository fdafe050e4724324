"""Signals that end a command: an exception in the main thread, so that what has begun is undone.

Never in the middle of an import: some of what Python and libraries do there swallows whatever is raised (a callback of
importlib's own, an extension that tries something else), and the command would go on as if there had been no signal.
"""

import signal
import time
from types import FrameType
from typing import Any, Final

EXIT_BY_SIGNAL: Final = 128
AGAIN_S: Final = 0.01
"""How soon it is looked again whether an import is over."""
SAME_S: Final = 1.0
"""What comes so soon after the first one is the same request: timeout(1) signals the process and then its group, a
closing terminal and whatever passes signals on send several. What has begun is undone, or a node stopped in order, all
the same."""
_IMPORT: Final = "<frozen importlib"


class Terminated(SystemExit):
    """SIGTERM or SIGHUP came. Its exit code is 128 and the signal's number, as a shell tells it."""

    def __init__(self, number: int) -> None:
        super().__init__(EXIT_BY_SIGNAL + number)


class Ending:
    """The handler of the signals that end this process."""

    def __init__(self) -> None:
        self._first_s: float | None = None
        """When the first signal other than SIGINT came (time.monotonic); None before."""
        self._waiting: int | None = None
        """The last signal that came during an import and has not been raised yet."""
        self._alarm: Any = signal.SIG_DFL
        """The handler of SIGALRM while none is waiting."""

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt for SIGINT, else Terminated, as soon as no import is under way."""
        if _is_import(frame):
            self._put_off(number)
            return
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        now_s = time.monotonic()
        if self._first_s is not None and now_s - self._first_s < SAME_S:
            return
        self._first_s = now_s
        raise Terminated(number)

    def catch_up(self) -> None:
        """Send a postponed signal again, to its present handler. A timer that still ran would kill the process: Python
        restores default actions when it exits."""
        if self._waiting is None:
            return
        number, self._waiting = self._waiting, None
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._alarm)
        signal.raise_signal(number)

    def _put_off(self, number: int) -> None:
        if self._waiting is None:
            self._alarm = signal.getsignal(signal.SIGALRM)
        self._waiting = number
        signal.signal(signal.SIGALRM, lambda *_: self.catch_up())
        signal.setitimer(signal.ITIMER_REAL, AGAIN_S)


end: Final = Ending()


def _is_import(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith(_IMPORT):
            return True
        frame = frame.f_back
    return False
