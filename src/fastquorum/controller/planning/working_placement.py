"""The placement of replicas while a plan edits it, and the load of each broker."""

from typing import Final

import numpy as np

from fastquorum.controller.planning.layout import (
    NOBODY,
    Flags,
    Ints,
    Layout,
    Numbers,
    counts,
    distinct,
    racks_of,
    spread,
)

_NEVER: Final = 1 << 60
"""The load of a broker that must not be chosen."""


class WorkingPlacement:
    """The placement of one layout; `move` changes it in place."""

    def __init__(self, layout: Layout) -> None:
        brokers = layout.brokers
        self.brokers: Final = brokers
        self.replicas: Numbers = layout.replicas.copy()
        self.load: Ints = counts(self.replicas, brokers.total)
        """The number of replicas of each broker."""
        self.usable: Final = np.flatnonzero(brokers.is_active)
        """The places of brokers that may get replicas."""
        self.racks: Final = [int(each) for each in brokers.racks]
        members = [np.flatnonzero(brokers.racks == rack) for rack in range(len(brokers.rack_names))]
        self.members: Final = members
        """The places of each rack's brokers."""
        self.usable_racks: Final = frozenset(self.racks[each] for each in self.usable.tolist())
        self._score: Ints = np.where(brokers.is_active, self.load, _NEVER)

    def move(self, row: int, slot: int, place: int) -> None:
        old = self.replicas[row, slot]
        self.replicas[row, slot] = place
        self.load[old] -= 1
        self.load[place] += 1
        if self._score[old] < _NEVER:
            self._score[old] -= 1
        self._score[place] += 1

    def others(self, row: int, slot: int) -> list[int]:
        """Return the brokers of the partition's other replicas."""
        return [each for at, each in enumerate(self.replicas[row].tolist()) if at != slot and each != NOBODY]

    def least_loaded(self, row: int, slot: int, *, keeps_racks: bool = True) -> int:
        """Return the least loaded broker that could have this replica instead (of equals, the lowest id), or NOBODY.

        It is in a rack without the partition's other replicas, if there is one; else, with `keeps_racks`, only if the
        replica shares its rack already.
        """
        row_replicas = self.replicas[row].tolist()
        others = self.others(row, slot)
        taken = {self.racks[each] for each in others}
        if len(self.members) > 1:
            found = self._least(row_replicas, taken)
            if found != NOBODY:
                return found
            if keeps_racks and self.racks[row_replicas[slot]] not in taken:
                return NOBODY
        return self._least(row_replicas, set())

    def least_in_new_rack(self, row: int) -> int:
        """Return the least loaded broker of the racks where the partition has no replica, or NOBODY."""
        row_replicas = self.replicas[row].tolist()
        return self._least(row_replicas, {self.racks[each] for each in row_replicas if each != NOBODY})

    def least_in_rack_of(self, row: int, slot: int) -> int:
        """Return the least loaded broker of the same rack without a replica of the partition, or NOBODY."""
        members = self.members[self.racks[self.replicas[row, slot]]]
        row_replicas = self.replicas[row]
        score = self._score[members]
        score[np.isin(members, row_replicas)] = _NEVER
        best = int(score.argmin())
        return int(members[best]) if score[best] < _NEVER else NOBODY

    def sharing(self, row: int) -> list[int]:
        """Return the slots of replicas whose rack has another replica of the partition."""
        racks = [self.racks[each] if each != NOBODY else NOBODY for each in self.replicas[row].tolist()]
        return [slot for slot, rack in enumerate(racks) if rack != NOBODY and racks.count(rack) > 1]

    def lacks_racks(self) -> Flags:
        """Return for each partition whether it would fit into more racks than it is in."""
        racks = racks_of(self.brokers, self.replicas)
        is_usable = np.zeros(len(self.members) + 1, np.bool_)
        is_usable[sorted(self.usable_racks)] = True
        free = len(self.usable_racks) - distinct(np.where(is_usable[racks], racks, NOBODY))
        shares = spread(self.brokers, self.replicas) < (self.replicas != NOBODY).sum(axis=1)
        found: Flags = shares & (free > 0)
        return found

    def _least(self, row_replicas: list[int], racks: set[int]) -> int:
        """Return the least loaded broker that is not among these, nor in these racks, or NOBODY."""
        score = self._score.copy()
        for rack in racks:
            score[self.members[rack]] = _NEVER
        for each in row_replicas:
            if each != NOBODY:
                score[each] = _NEVER
        best = int(score.argmin()) if len(score) else NOBODY
        return best if best != NOBODY and score[best] < _NEVER else NOBODY
