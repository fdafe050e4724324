"""Moves replicas from brokers with too many to brokers with too few.

A move takes one from a broker above the bounds to the least loaded one; once none is above, brokers below are filled
up. The number of moves is the larger of the surplus and the deficit, as long as partitions can be found that fit; never
more than both. Where racks do not allow an even load over all brokers, it is made even within each rack.
"""

import math
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from fastquorum.controller.planning.board import WorkingPlacement, by_broker
from fastquorum.controller.planning.layout import NOBODY, Flags, racks_of

_ROUNDS_MAX: Final = 8
"""Most rounds: a move within a rack may make room for one that had no target before."""
_FAILURES_MAX: Final = 64
"""Failed tries with partitions of a broker before the movable ones are looked for again."""
Ints = npt.NDArray[np.int64]


class _Bounds(NamedTuple):
    low: int
    high: int

    @classmethod
    def of(cls, total: int, brokers: int, tolerance: float) -> "_Bounds":
        mean = total / max(brokers, 1)
        # Whole replicas: whoever has the average rounded up or down is within any tolerance.
        low = min(math.floor(mean), math.ceil(mean * (1 - tolerance) - 1e-9))
        return cls(max(low, 0), max(math.ceil(mean), math.floor(mean * (1 + tolerance) + 1e-9)))


def balance_replicas(board: WorkingPlacement, is_fixed: Flags, tolerance: float) -> Ints:
    """Level the placement; return the changed partitions, some perhaps more than once."""
    if len(board.usable) < 2:
        return np.zeros(0, np.int64)
    changed: list[int] = []
    # The load of a whole cluster: brokers that are not active count for nothing on either side.
    bounds = _Bounds.of(int(board.load[board.usable].sum()), len(board.usable), tolerance)
    for _ in range(_ROUNDS_MAX):
        before = len(changed)
        changed += _level(board, is_fixed, board.usable, bounds, _anywhere(board))
        for rack in sorted(board.usable_racks) if len(board.members) > 1 else ():
            places = board.members[rack][board.brokers.is_active[board.members[rack]]]
            inside = _Bounds.of(int(board.load[places].sum()), len(places), tolerance)
            within = _Bounds(min(inside.low, bounds.low), max(inside.high, bounds.high))
            changed += _level(board, is_fixed, places, within, _in_rack(board))
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


def _anywhere(board: WorkingPlacement) -> _Way:
    def hopeful(rows: Ints, place: int, below: int) -> Ints:
        if len(board.members) == 1:
            return rows if board.load[board.usable].min() < below else rows[:0]
        least = np.full(len(board.members), below, np.int64)
        np.minimum.at(least, board.brokers.racks[board.usable], board.load[board.usable])
        has_room = least < below
        replicas = board.replicas[rows]
        racks = np.where(replicas == place, NOBODY, racks_of(board.brokers, replicas))
        is_free = np.tile(has_room, (len(rows), 1))
        at, slots = np.nonzero(racks != NOBODY)
        is_free[at, racks[at, slots]] = False
        own_is_shared = (racks == board.racks[place]).any(axis=1)
        found: Ints = rows[is_free.any(axis=1) | (own_is_shared & has_room.any())]
        return found

    return _Way(board.least_loaded, hopeful)


def _in_rack(board: WorkingPlacement) -> _Way:
    def hopeful(rows: Ints, place: int, below: int) -> Ints:
        mates = board.members[board.racks[place]]
        is_any = (board.load[mates] < below) & board.brokers.is_active[mates]
        return rows if is_any.any() else rows[:0]

    return _Way(board.least_in_rack_of, hopeful)


def _level(board: WorkingPlacement, is_fixed: Flags, places: Ints, bounds: _Bounds, way: _Way) -> Iterator[int]:
    if len(places) == 0 or not ((board.load[places] > bounds.high) | (board.load[places] < bounds.low)).any():
        return
    rows, ends = by_broker(board.replicas, board.brokers.total)

    def held(place: int) -> Ints:
        found = rows[ends[place] : ends[place + 1]]
        there = (board.replicas[found] == place).any(axis=1) & ~is_fixed[found]
        still: Ints = found[there]
        return still

    # What helps on both sides comes first. In the end whoever is above the low bound can spare some for those below it.
    for down_to, upto in ((bounds.high, bounds.low), (bounds.high, bounds.high), (bounds.low, bounds.low)):
        for place in _most_first(board, places):
            if board.load[place] > down_to and (board.load[places] < upto).any():
                yield from _shed(board, place, held, way, down_to=down_to, upto=upto)


def _most_first(board: WorkingPlacement, places: Ints) -> list[int]:
    return sorted(places.tolist(), key=lambda place: (-int(board.load[place]), place))


def _shed(
    board: WorkingPlacement, place: int, held: Callable[[int], Ints], way: _Way, *, down_to: int, upto: int
) -> Iterator[int]:
    """Move replicas from a broker until it has `down_to`, to brokers with less than `upto`."""
    while board.load[place] > down_to:
        failures, moved = 0, 0
        for row in way.hopeful(held(place), place, upto).tolist():
            slot = board.replicas[row].tolist().index(place)
            to = way.to(row, slot)
            if to in (NOBODY, place) or board.load[to] >= upto:
                failures += 1
                if failures % _FAILURES_MAX == 0 and moved:
                    break  # what looked hopeful then may not any more
                continue
            board.move(row, slot, to)
            moved += 1
            yield row
            if board.load[place] <= down_to:
                return
        if not moved:
            return
