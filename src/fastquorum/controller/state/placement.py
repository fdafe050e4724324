"""Places the replicas of new partitions: spread over racks and brokers, leaders on unfenced brokers.

Racks take turns, and within a rack its brokers do; each partition begins one further on, so that leaders and followers
are spread alike. Fenced brokers are taken last, and never first. Source: KIP-36, KIP-631; Kafka `StripedReplicaPlacer`.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol, TypeVar

from fastquorum.types import NodeId

T = TypeVar("T")


class PlacementRandom(Protocol):
    """An injected random source: `random.Random` in a node, the seed's generator in the simulator."""

    def randrange(self, stop: int, /) -> int: ...


class Usable(NamedTuple):
    """A broker that may get a replica."""

    id: NodeId
    rack: str | None
    fenced: bool


class PlacementError(Exception):
    """The replicas cannot be placed; the text states why."""


class _Turns:
    """Brokers that take turns; the first moves on from partition to partition."""

    def __init__(self, brokers: Sequence[NodeId], chance: PlacementRandom) -> None:
        self.brokers = brokers
        self._offset = chance.randrange(len(brokers)) if brokers else 0
        self._taken = 0
        self._partition = 0

    def next(self, partition: int) -> NodeId | None:
        """Return the broker whose turn it is; None if all had theirs in this partition."""
        count = len(self.brokers)
        if not count:
            return None
        if self._partition != partition:
            self._partition, self._taken = partition, 0
            self._offset = (self._offset + 1) % count
        taken = self._taken
        if taken >= count:
            return None
        self._taken = taken + 1
        return self.brokers[(self._offset + taken) % count]

    def shuffle(self, chance: PlacementRandom) -> None:
        self.brokers = _shuffled(self.brokers, chance)


class _Rack:
    def __init__(self, unfenced: Sequence[NodeId], fenced: Sequence[NodeId], chance: PlacementRandom) -> None:
        self.unfenced = _Turns(unfenced, chance)
        self.fenced = _Turns(fenced, chance)

    def shuffle(self, chance: PlacementRandom) -> None:
        self.unfenced.shuffle(chance)
        self.fenced.shuffle(chance)


class _Racks:
    def __init__(self, candidates: "Candidates", chance: PlacementRandom) -> None:
        self._chance = chance
        self._racks: Sequence[_Rack] = [_Rack(*each, chance) for each in candidates.racks]
        self._unfenced_count = candidates.unfenced_count
        self._offset = chance.randrange(len(self._racks))
        self._partition = 0

    def place(self, replica_count: int) -> tuple[NodeId, ...]:
        if self._partition == self._unfenced_count > 1:
            # As many as there are brokers: from here on the same ones would come again.
            self._racks = _shuffled(self._racks, self._chance)
            for rack in self._racks:
                rack.shuffle(self._chance)
            self._partition = 0
        racks, partition = self._racks, self._partition
        count = len(racks)
        at = self._offset % count
        self._offset = at + 1
        first, skipped = self._leader(at)
        placed = [first]
        while len(placed) < replica_count:
            if at == skipped:
                skipped = -1  # it has had its turn for this partition
            else:
                rack = racks[at]
                found = rack.unfenced.next(partition)
                if found is None:
                    found = rack.fenced.next(partition)
                if found is not None:
                    placed.append(found)
            at = (at + 1) % count
        self._partition += 1
        return tuple(placed)

    def _leader(self, at: int) -> tuple[NodeId, int]:
        """Return an unfenced broker, and its rack."""
        while True:
            found = self._racks[at].unfenced.next(self._partition)
            if found is not None:
                return found, at
            at = (at + 1) % len(self._racks)


class Candidates:
    """The brokers that may get replicas, by rack: ordered once for all placements."""

    def __init__(self, brokers: Sequence[Usable]) -> None:
        by_rack: dict[str | None, list[Usable]] = {}
        for each in sorted(brokers, key=lambda broker: broker.id):
            by_rack.setdefault(each.rack, []).append(each)
        names = sorted(by_rack, key=lambda name: (name is not None, name or ""))
        self.racks: Final = [
            ([each.id for each in by_rack[name] if not each.fenced], [each.id for each in by_rack[name] if each.fenced])
            for name in names
        ]
        """The ids of each rack's unfenced brokers, and of its fenced ones."""
        self.count: Final = len(brokers)
        self.unfenced_count: Final = sum(not each.fenced for each in brokers)

    def place(self, partition_count: int, replica_count: int, chance: PlacementRandom) -> list[tuple[NodeId, ...]]:
        """Return the replicas of each partition, the first its preferred leader. PlacementError."""
        return Placer(self, chance).place(partition_count, replica_count)


class Placer:
    """Places the topics of one request; brokers take turns over all of them as over the partitions of one."""

    def __init__(self, candidates: Candidates, chance: PlacementRandom) -> None:
        self._candidates = candidates
        self._chance = chance
        self._racks: _Racks | None = None

    def place(self, partition_count: int, replica_count: int) -> list[tuple[NodeId, ...]]:
        """Place the next topic (see `Candidates.place`)."""
        candidates = self._candidates
        if replica_count <= 0:
            text = f"Invalid replication factor {replica_count}: the replication factor must be positive."
            raise PlacementError(text)
        if not candidates.unfenced_count:
            raise PlacementError("All brokers are currently fenced, or have all their log directories cordoned.")
        if replica_count > candidates.count:
            raise PlacementError(
                f"The target replication factor of {replica_count} cannot be reached because only {candidates.count} "
                "broker(s) are registered or some brokers have all their log directories cordoned."
            )
        racks = self._racks = self._racks or _Racks(candidates, self._chance)
        return [racks.place(replica_count) for _ in range(partition_count)]


def _shuffled(items: Sequence[T], chance: PlacementRandom) -> list[T]:
    shuffled = list(items)
    for last in range(len(shuffled) - 1, 0, -1):
        other = chance.randrange(last + 1)
        shuffled[last], shuffled[other] = shuffled[other], shuffled[last]
    return shuffled
