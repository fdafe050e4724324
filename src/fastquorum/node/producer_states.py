"""What producers have in the log, read up to its end when somebody asks. All of it is called with the lane lock held.

Must not know who asks, nor what for.
"""

from typing import Final

from fastquorum.errors import Overloaded
from fastquorum.kernels import Kernels, Producers
from fastquorum.storage.log import Log
from fastquorum.storage.producers import catch_up

CATCH_UP_BYTES: Final = 64 * 1024 * 1024
"""Read at most, with the lock held, when a producer appends, to learn what the log has of it; if there is more, it is
told to try again."""
UPKEEP_BYTES: Final = 8 * 1024 * 1024
"""Read at most, with the lock held, between commits, so that a new leader has little left to read."""
CATCH_UP_RETRY_S: Final = 0.05


class ProducerStates:
    """The log's own, brought up to its end."""

    def __init__(self, log: Log, kernels: Kernels) -> None:
        self._log = log
        self._kernels = kernels

    def current(self) -> Producers:
        """As of the log's end. Raises Overloaded while that is still being read; CorruptionError."""
        if not catch_up(self._log, self._kernels, CATCH_UP_BYTES):
            raise Overloaded("what producers have in the log is still being read", CATCH_UP_RETRY_S)
        return self._log.producers

    def maintain(self) -> None:
        """Between commits. Raises CorruptionError."""
        catch_up(self._log, self._kernels, UPKEEP_BYTES)
