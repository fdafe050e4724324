"""The numbers of hosts on the simulated network that are no nodes of the quorum."""

from typing import Final

from fastquorum.types import NodeId

STRANGER: Final[NodeId] = 900
BROKERS_FROM: Final[NodeId] = 1000
IMPOSTORS_FROM: Final[NodeId] = 1100
"""Of processes with the id of a broker that is somebody else."""
ADMIN: Final[NodeId] = 2000
UPGRADER: Final[NodeId] = 2001
MEMBERS_FROM: Final[NodeId] = 3000
