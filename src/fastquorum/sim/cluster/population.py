"""What the phases of a simulated world ask of those who use its controllers, be they brokers or members."""

from collections.abc import Sequence
from typing import Final, Protocol

from fastquorum.sim.cluster.context import ClusterContext
from fastquorum.sim.network import Host

SETTLE_SESSIONS: Final = 12
"""Within so many session timeouts all is well again."""


class Population(Protocol):
    """Those who register with the controllers, and what befalls them."""

    context: ClusterContext

    @property
    def size(self) -> int:
        """How many there are."""

    @property
    def hosts(self) -> Sequence[Host]:
        """On the network."""

    def begin(self) -> None: ...
    def begin_faults(self) -> None: ...
    def end_faults(self) -> None:
        """Everybody comes back, and stays."""

    def missing(self) -> str:
        """What is not well yet; empty: nothing."""
