"""Where new replicas can go, as the registrations of one image have it: worked out once, for every request until a
registration changes.
"""

from typing import Final

from fastquorum.controller.image.partition import DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED, Partition
from fastquorum.controller.image.registrations import Broker, Brokers
from fastquorum.controller.placement import Candidates, Usable
from fastquorum.types import NodeId, Uuid


class Homes:
    """Of these registrations."""

    def __init__(self, brokers: Brokers) -> None:
        self.brokers: Final = brokers
        self.candidates: Final = Candidates(
            [
                Usable(broker_id, broker.rack, broker.fenced)
                for broker_id, broker in brokers.items()
                if (broker.fenced or not broker.in_controlled_shutdown) and broker.has_uncordoned_directories
            ]
        )
        """Neither leaving, nor with every directory cordoned. Who has left is fenced, and will be back."""
        self._directories: dict[NodeId, Uuid] = {}
        """Of the brokers that were asked for."""
        self._active: dict[NodeId, bool] = {}
        """The same ones."""

    def new_partition(self, replicas: tuple[NodeId, ...]) -> Partition:
        """In sync are those of its replicas that are active; the first of them leads."""
        directories, active = self._directories, self._active
        for each in replicas:
            if each not in active:
                broker = self.brokers.get(each)
                active[each] = broker is not None and broker.is_active
                directories[each] = default_directory(broker)
        isr = tuple([each for each in replicas if active[each]])
        return Partition(replicas, tuple([directories[each] for each in replicas]), isr, isr[0], 0, 0)


def default_directory(broker: Broker | None) -> Uuid:
    """Where a broker puts a replica on its own: its only directory; else it will say so."""
    if broker is None:
        return DIRECTORY_UNASSIGNED
    if not broker.directories:
        return DIRECTORY_MIGRATING
    return broker.directories[0] if len(broker.directories) == 1 else DIRECTORY_UNASSIGNED
