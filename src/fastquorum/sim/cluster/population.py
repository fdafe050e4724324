"""What the simulated world asks of those who use the controllers, be they brokers or members."""

from collections.abc import Sequence
from typing import Protocol

from fastquorum.sim.cluster.metadata import Metadata
from fastquorum.sim.network import Host
from fastquorum.types import Micros


class Population(Protocol):
    """Those who register with the controllers, and what befalls them."""

    metadata: Metadata
    session_us: Micros
    counts: dict[str, int]
    """Faults that struck them, by kind."""

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
