"""Appends for as long as a node leads, and when the first commit of each epoch was acknowledged."""

import threading
import time
from collections import deque
from contextlib import suppress
from typing import Any, Final

from fastquorum.errors import FastQuorumError, Overloaded

VALUE: Final = b"x" * 100
IN_FLIGHT_MAX: Final = 64
ANSWER_S: Final = 30.0
_TICK_S: Final = 0.001


class Pump:
    """A thread of its own, for the life of the process."""

    def __init__(self, quorum: Any, appends_per_ms: int) -> None:
        self._quorum = quorum
        self._appends = appends_per_ms
        self._epochs: dict[int, dict[str, int]] = {}
        threading.Thread(target=self._run, name="pump", daemon=True).start()

    def epochs(self) -> dict[str, dict[str, int]]:
        """By epoch led: since when it takes appends, when the first was acknowledged, how many were by now."""
        return {str(epoch): dict(each) for epoch, each in list(self._epochs.items())}

    def _run(self) -> None:
        for now in self._quorum.leadership():
            if now.is_self:
                # An error says that it leads no more, and that is all there is to know: it may come to lead again.
                with suppress(FastQuorumError):
                    self._lead(now.epoch)

    def _lead(self, epoch: int) -> None:
        quorum = self._quorum
        led_ns = time.monotonic_ns()
        quorum.append(VALUE, timeout=ANSWER_S)
        self._epochs[epoch] = counted = {"led_ns": led_ns, "first_ns": time.monotonic_ns(), "commits": 1}
        waiting: deque[Any] = deque()
        while quorum.epoch == epoch:
            with suppress(Overloaded):  # too much waits already: it is waited for below
                waiting.extend(quorum.append_nowait(VALUE) for _ in range(self._appends))
            while waiting and (waiting[0].done() or len(waiting) > IN_FLIGHT_MAX):
                waiting.popleft().result(ANSWER_S)
                counted["commits"] += 1
            time.sleep(_TICK_S)  # the load's pace
