"""The interface of the controllers' users, brokers or members, to the phases of a simulated world."""

from collections.abc import Sequence
from typing import Final, Protocol

from fastquorum.sim.cluster.context import ClusterContext
from fastquorum.sim.network import Host

SETTLE_SESSIONS: Final = 12
"""Session timeouts within which all is well again."""


class Population(Protocol):
    """The processes that register with the controllers, and their faults."""

    context: ClusterContext

    @property
    def size(self) -> int:
        """The number of processes."""

    @property
    def hosts(self) -> Sequence[Host]:
        """The hosts on the network."""

    def begin(self) -> None: ...
    def begin_faults(self) -> None: ...
    def end_faults(self) -> None:
        """Bring every process back for good."""

    def missing(self) -> str:
        """Return what is not well yet; empty if all is well."""
