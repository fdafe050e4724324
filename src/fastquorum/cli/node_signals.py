"""Signals to a node in the foreground: which of them stop it, and how. Source: signal(7); Kafka `Kafka.scala`, which
stops in good order on TERM, INT and HUP.
"""

import os
import signal
import threading
from types import FrameType
from typing import Final

STOPPING: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)
"""Of these, a second one ends the process at once."""
IGNORED: Final = (
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGALRM,
    signal.SIGVTALRM,
    signal.SIGPROF,
    signal.SIGPOLL,
    signal.SIGPWR,
    signal.SIGXFSZ,
    signal.SIGPIPE,
    *range(signal.SIGRTMIN, signal.SIGRTMAX + 1),
)
"""They would end a process that does not know them: a log rotation's, a shell's, another program's mistake."""


class StopSignals:
    """Signal handlers of the main thread: the first signal asks for a graceful stop, a second one ends the process.

    SIGHUP asks as well, but is never the second: a closing terminal sends several, systemd one after SIGTERM.
    """

    def __init__(self, over: threading.Event) -> None:
        self.number = 0
        """The first signal that asked; 0 if none has."""
        self._over = over
        self._is_forced_next = False
        for number in STOPPING:
            signal.signal(number, self._on_signal)
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup
            signal.signal(signal.SIGHUP, self._on_signal)
        for other in IGNORED:
            if signal.getsignal(other) == signal.SIG_DFL:
                signal.signal(other, signal.SIG_IGN)

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        if number != signal.SIGHUP:
            if self._is_forced_next:
                os._exit(128 + number)
            self._is_forced_next = True
        self.number = self.number or number
        self._over.set()
