"""Events at each port call of one simulated process: the death of the process, or another thread's turn."""

from typing import Protocol

from fastquorum.types import Micros


class ProcessDied(BaseException):
    """The process is gone in the middle of a port call: its incarnation is abandoned where it stands.

    Not an Exception, so that no handler of production code can survive its own death.
    """


class Hazards(Protocol):
    """The hazards of a simulated process, called by its ports."""

    def port_call(self, label: str) -> None:
        """Note a call to the outside. Raises ProcessDied where the seed wants the process to end here."""

    def blocked(self, duration_us: Micros) -> None:
        """Note that the calling thread had to wait this long."""

    def storage_failed(self) -> None:
        """Note that a write failed: the process may make no claim any more."""

    def other_threads(self) -> None:
        """Let callers and the lane's own thread run: the lane lock is free at this point."""
