"""The hazards of one simulated process at its port calls: its own death, or another thread's turn."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from fastquorum.sim.environment import Faults
from fastquorum.sim.hazards import ProcessDied
from fastquorum.sim.node.threads import ReplicaThread
from fastquorum.sim.node.view import ProcessView
from fastquorum.sim.prng import Prng
from fastquorum.types import Micros

CALLS_MAX: Final = 40
"""A planned crash comes within this number of port calls."""


class ProcessHazards:
    """Implements `hazards.Hazards`, through all lives of a process."""

    def __init__(
        self, process: ProcessView, thread: ReplicaThread, faults: Faults, prng: Prng, interrupt: Callable[[], None]
    ) -> None:
        """Take `interrupt`, which lets callers call."""
        self.crash_in = 0
        """The process dies at this many port calls from now; 0: it does not."""
        self.loses_power = False
        """Whether that death is a power failure."""
        self._process = process
        self._thread = thread
        self._faults = faults
        self._prng = prng
        self._interrupt = interrupt
        self._depth = 0
        self._is_observing = False

    def crash_soon(self, prng: Prng, calls_max: int = CALLS_MAX) -> None:
        """Let the process die at one of its next port calls."""
        self.crash_in = prng.between(1, calls_max)
        self.loses_power = prng.randrange(3) > 0

    def end(self) -> None:
        """Note that the process is gone."""
        self.crash_in = self._depth = 0

    @contextmanager
    def observing(self) -> Iterator[None]:
        """Exempt the port calls in this block from hazards: they are the simulator's own."""
        self._is_observing = True
        yield
        self._is_observing = False

    def port_call(self, label: str) -> None:
        if self._is_observing or not self.crash_in:
            return
        self.crash_in -= 1
        if self.crash_in == 0:
            raise ProcessDied(label)

    def blocked(self, duration_us: Micros) -> None:
        self._thread.blocked(duration_us)

    def storage_failed(self) -> None:
        if not self._is_observing:
            self._process.has_failed = True

    def other_threads(self) -> None:
        process = self._process
        if not self._thread.in_turn or self._depth or not process.is_assembled or self._is_observing:
            return
        if not self._prng.chance(self._faults.interleaving):
            return
        self._depth += 1
        what = self._prng.randrange(4)
        if what == 0:
            process.flusher.may_finish_now()
        elif what == 1 and process.build.has_lane_thread:
            process.arrive_early()
        else:
            self._interrupt()
        self._depth -= 1
