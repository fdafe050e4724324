"""Signals to a node in the foreground: which of them stop it, and how. Source: signal(7); Kafka `Kafka.scala`, which
stops in good order on TERM, INT and HUP.
"""

import os
import signal
import threading
import time
from types import FrameType
from typing import Final

from fastquorum.cli.terminal.interrupts import ignore_meaningless
from fastquorum.ending import SAME_S

STOPPING: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)
"""Signals of which a second one ends the process at once."""


class StopSignals:
    """Signal handlers of the main thread: the first signal asks for a graceful stop, a second one, a moment later, ends
    the process.

    SIGHUP asks as well, but is never the second: a closing terminal sends several, systemd one after SIGTERM.
    """

    def __init__(self, over: threading.Event) -> None:
        self.number = 0
        """The first signal that came; 0 if none has."""
        self._over = over
        self._first_signal_s: float | None = None
        """When the first signal came that a second one may follow (time.monotonic)."""
        for number in STOPPING:
            signal.signal(number, self._on_signal)
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup
            signal.signal(signal.SIGHUP, self._on_signal)
        ignore_meaningless()

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        if number != signal.SIGHUP:
            now_s = time.monotonic()
            if self._first_signal_s is None:
                self._first_signal_s = now_s
            elif now_s - self._first_signal_s > SAME_S:
                os._exit(128 + number)
        self.number = self.number or number
        self._over.set()
