"""The numbers of hosts on the simulated network that are not nodes of the quorum."""

from typing import Final

from fastquorum.types import NodeId

STRANGER: Final[NodeId] = 900
BROKERS_FROM: Final[NodeId] = 1000
IMPOSTORS_FROM: Final[NodeId] = 1100
"""The first number of impostors, processes with the id of another broker."""
ADMIN: Final[NodeId] = 2000
UPGRADER: Final[NodeId] = 2001
MEMBERS_FROM: Final[NodeId] = 3000
