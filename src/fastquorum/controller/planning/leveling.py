"""Moves replicas from brokers with too many to brokers with too few.

A move takes one from a broker above the bounds to the least loaded one; once none is above, brokers below are filled
up. The number of moves is the larger of the surplus and the deficit, as long as partitions can be found that fit; never
more than both. Where racks do not allow an even load over all brokers, it is made even within each rack.
"""

import math
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import numpy as np

from fastquorum.controller.planning.layout import NOBODY, Flags, Ints, grouped, racks_of
from fastquorum.controller.planning.working_placement import WorkingPlacement

_ROUNDS_MAX: Final = 8
"""Most rounds: a move within a rack may make room for one that had no target before."""
_FAILURES_MAX: Final = 64
"""Failed tries with partitions of a broker before the movable ones are looked for again."""


class Bounds(NamedTuple):
    """The least and the most that a broker may have."""

    low: int
    high: int

    @classmethod
    def of(cls, total: int, brokers: int, tolerance: float) -> "Bounds":
        mean = total / max(brokers, 1)
        # Whole replicas: whoever has the average rounded up or down is within any tolerance.
        low = min(math.floor(mean), math.ceil(mean * (1 - tolerance) - 1e-9))
        return cls(max(low, 0), max(math.ceil(mean), math.floor(mean * (1 + tolerance) + 1e-9)))


def balance_replicas(placement: WorkingPlacement, is_fixed: Flags, tolerance: float) -> Ints:
    """Level the placement; return the changed partitions, some perhaps more than once."""
    if len(placement.usable) < 2:
        return np.zeros(0, np.int64)
    changed: list[int] = []
    # The load of a whole cluster: brokers that are not active count for nothing on either side.
    bounds = Bounds.of(int(placement.load[placement.usable].sum()), len(placement.usable), tolerance)
    for _ in range(_ROUNDS_MAX):
        before = len(changed)
        changed += _level(placement, is_fixed, placement.usable, bounds, _anywhere(placement))
        for rack in sorted(placement.usable_racks) if len(placement.members) > 1 else ():
            places = placement.members[rack][placement.brokers.is_active[placement.members[rack]]]
            inside = Bounds.of(int(placement.load[places].sum()), len(places), tolerance)
            within = Bounds(min(inside.low, bounds.low), max(inside.high, bounds.high))
            changed += _level(placement, is_fixed, places, within, _in_rack(placement))
        if len(changed) == before:
            break
    return np.unique(np.array(changed, np.int64))


class _Way(NamedTuple):
    """A way in which replicas may move."""

    to: Callable[[int, int], int]
    """Returns the broker that is to have a partition's replica (row, slot)."""
    hopeful: Callable[[Ints, int, int], Ints]
    """Returns which of these partitions, each with a replica at this place, could move to a broker with fewer replicas
    than `below`: a guess, never too few."""


def _anywhere(placement: WorkingPlacement) -> _Way:
    def hopeful(rows: Ints, place: int, below: int) -> Ints:
        if len(placement.members) == 1:
            return rows if placement.load[placement.usable].min() < below else rows[:0]
        least = np.full(len(placement.members), below, np.int64)
        np.minimum.at(least, placement.brokers.racks[placement.usable], placement.load[placement.usable])
        has_room = least < below
        replicas = placement.replicas[rows]
        racks = np.where(replicas == place, NOBODY, racks_of(placement.brokers, replicas))
        is_free = np.tile(has_room, (len(rows), 1))
        at, slots = np.nonzero(racks != NOBODY)
        is_free[at, racks[at, slots]] = False
        own_is_shared = (racks == placement.racks[place]).any(axis=1)
        found: Ints = rows[is_free.any(axis=1) | (own_is_shared & has_room.any())]
        return found

    return _Way(placement.least_loaded, hopeful)


def _in_rack(placement: WorkingPlacement) -> _Way:
    def hopeful(rows: Ints, place: int, below: int) -> Ints:
        mates = placement.members[placement.racks[place]]
        is_any = (placement.load[mates] < below) & placement.brokers.is_active[mates]
        return rows if is_any.any() else rows[:0]

    return _Way(placement.least_in_rack_of, hopeful)


def _level(placement: WorkingPlacement, is_fixed: Flags, places: Ints, bounds: Bounds, way: _Way) -> Iterator[int]:
    if len(places) == 0 or not ((placement.load[places] > bounds.high) | (placement.load[places] < bounds.low)).any():
        return
    rows, ends = grouped(placement.replicas, placement.replicas != NOBODY, placement.brokers.total)

    def held(place: int) -> Ints:
        found = rows[ends[place] : ends[place + 1]]
        there = (placement.replicas[found] == place).any(axis=1) & ~is_fixed[found]
        still: Ints = found[there]
        return still

    # What helps on both sides comes first. In the end whoever is above the low bound can spare some for those below it.
    for down_to, upto in ((bounds.high, bounds.low), (bounds.high, bounds.high), (bounds.low, bounds.low)):
        for place in _most_first(placement, places):
            if placement.load[place] > down_to and (placement.load[places] < upto).any():
                yield from _shed(placement, place, held, way, down_to=down_to, upto=upto)


def _most_first(placement: WorkingPlacement, places: Ints) -> list[int]:
    return sorted(places.tolist(), key=lambda place: (-int(placement.load[place]), place))


def _shed(
    placement: WorkingPlacement, place: int, held: Callable[[int], Ints], way: _Way, *, down_to: int, upto: int
) -> Iterator[int]:
    """Move replicas from a broker until it has `down_to`, to brokers with less than `upto`."""
    while placement.load[place] > down_to:
        failures, moved = 0, 0
        for row in way.hopeful(held(place), place, upto).tolist():
            slot = placement.replicas[row].tolist().index(place)
            to = way.to(row, slot)
            if to in (NOBODY, place) or placement.load[to] >= upto:
                failures += 1
                if failures % _FAILURES_MAX == 0 and moved:
                    break  # what looked hopeful then may not any more
                continue
            placement.move(row, slot, to)
            moved += 1
            yield row
            if placement.load[place] <= down_to:
                return
        if not moved:
            return
