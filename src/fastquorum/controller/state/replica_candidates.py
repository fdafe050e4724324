"""The brokers of one image that can have replicas and lead them, and the directories of new replicas.

Computed once for every request until a registration changes.
"""

from typing import Final

from fastquorum.controller.image.partition import DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED, Partition
from fastquorum.controller.image.registrations import Broker, Brokers
from fastquorum.controller.state.placement import Candidates, Usable
from fastquorum.types import NodeId, Uuid

NEW_MAX: Final = 10_000
"""Most new partitions that are kept: more than three replicas on twenty brokers can make."""


class ReplicaCandidates:
    """Facts of these registrations that placements need: brokers that may lead, candidates for replicas,
    directories."""

    def __init__(self, brokers: Brokers) -> None:
        self.brokers: Final = brokers
        self.by_rack: Final = Candidates(
            [
                Usable(broker_id, broker.rack, broker.fenced)
                for broker_id, broker in brokers.items()
                if (broker.fenced or not broker.in_controlled_shutdown) and broker.has_uncordoned_directories
            ]
        )
        """Brokers that are neither leaving nor have every directory cordoned. One that has left is fenced, and will be
        back."""
        self._new: dict[tuple[NodeId, ...], Partition] = {}
        """The latest new partitions, by their replicas."""
        self._active: dict[NodeId, bool] = {}
        self._online: dict[NodeId, tuple[Uuid, ...]] = {}

    def new_partition(self, replicas: tuple[NodeId, ...]) -> Partition:
        """Return a new partition: its active replicas are in sync; the first of them leads."""
        found = self._new.get(replicas)
        if found is None:
            isr = tuple(filter(self.is_active, replicas))
            directories = tuple([default_directory(self.brokers.get(each)) for each in replicas])
            found = Partition(replicas, directories, replicas if isr == replicas else isr, isr[0], 0, 0)
            if len(self._new) == NEW_MAX:
                self._new.clear()
            self._new[replicas] = found
        return found

    def is_active(self, broker_id: NodeId) -> bool:
        """Return whether the broker is registered, unfenced and not shutting down."""
        found = self._active.get(broker_id)
        if found is None:
            broker = self.brokers.get(broker_id)
            found = self._active[broker_id] = broker is not None and broker.is_active
        return found

    def online_directories(self, broker_id: NodeId) -> tuple[Uuid, ...]:
        """Return a broker's online directories; empty if it has reported none, or if there is no such broker."""
        found = self._online.get(broker_id)
        if found is None:
            broker = self.brokers.get(broker_id)
            found = self._online[broker_id] = broker.directories if broker is not None else ()
        return found


def default_directory(broker: Broker | None) -> Uuid:
    """Return where a broker puts a replica by itself: its only directory; if it has several, it will report its
    choice."""
    if broker is None:
        return DIRECTORY_UNASSIGNED
    if not broker.directories:
        return DIRECTORY_MIGRATING
    return broker.directories[0] if len(broker.directories) == 1 else DIRECTORY_UNASSIGNED
