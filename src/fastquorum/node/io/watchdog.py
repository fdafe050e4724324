"""Watches the thread in which raft/ decides: a turn of it that does not end is noticed by somebody else.

The steady state is native and goes on without that thread, which is what it is for. But a leader whose decisions hang,
as its disk does not answer, must not keep its followers content: nobody would ever replace it. Source:
hashicorp/raft#503, consul#22064.
"""

import threading
from collections.abc import Callable
from typing import Final

from fastquorum.threads import start_thread
from fastquorum.types import Micros

LOOKS: Final = 4
"""A turn counts as hung after so many looks at it, a part of the time each. A process that was stopped, or whose
interpreter was held, has lost the time between two looks, and nothing is concluded from that."""


class Watchdog:
    """A thread of its own. `start` once; `stop` from any thread."""

    def __init__(
        self, *, stall_us_max: Micros, turn: Callable[[], int], on_hung: Callable[[], None], name: str
    ) -> None:
        """`turn` is the number of the watched thread's turn: odd while it works, even while it waits. `on_hung` is
        called in the watchdog's thread, once for each turn."""
        self._every_s = stall_us_max / LOOKS / 1_000_000
        self._turn = turn
        self._on_hung = on_hung
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        start_thread(self._thread)

    def stop(self) -> None:
        """It looks no more."""
        self._over.set()

    def _run(self) -> None:
        seen, looks = -1, 0
        while not self._over.wait(self._every_s):
            turn = self._turn()
            looks = looks + 1 if turn == seen and turn % 2 else 0
            seen = turn
            if looks == LOOKS:
                self._on_hung()
