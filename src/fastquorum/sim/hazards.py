"""What a port of one simulated process may run into at each call: the death of the process, or another thread's
turn."""

from typing import Protocol

from fastquorum.types import Micros


class ProcessDied(BaseException):
    """The process is gone in the middle of a port call: its incarnation is abandoned where it stands.

    Not an Exception, so that no handler of production code can survive its own death.
    """


class Hazards(Protocol):
    """Implemented by the simulated process, called by its ports."""

    def port_call(self, label: str) -> None:
        """A call reaches the outside. Raises ProcessDied where the seed wants the process to end here."""

    def blocked(self, duration_us: Micros) -> None:
        """The calling thread had to wait this long."""

    def storage_failed(self) -> None:
        """The outside refused to store something: nothing may be claimed any more."""

    def other_threads(self) -> None:
        """The lane lock is free at this point: callers and the lane's own thread may run."""
