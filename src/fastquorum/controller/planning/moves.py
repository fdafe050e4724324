"""Plans moves of replicas until none is on a dead broker, racks are spread, and brokers have about the same load.

The steps, each with as few moved replicas as possible: dead replicas are replaced, one for one; partitions that share a
rack though another one is free are spread; brokers above the tolerated load give to those below, first wherever racks
allow it, then within each rack; at last the order of replicas, which moves no data, is changed until preferred leaders
are balanced, too. No step undoes another: a partition never has fewer racks after it, nor two replicas on a broker. The
same layout gives the same plan. Source: KIP-36, KIP-46, KIP-455.
"""

from enum import IntFlag
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from fastquorum.controller.planning.layout import NOBODY, Flags, Ints, Layout, Numbers
from fastquorum.controller.planning.leading import balance_leaders
from fastquorum.controller.planning.leveling import balance_replicas
from fastquorum.controller.planning.working_placement import WorkingPlacement
from fastquorum.errors import UsageError


class Reason(IntFlag):
    """Why a partition is changed."""

    DEAD = 1
    """A replica is on a broker that does not come back."""
    RACK = 2
    LOAD = 4
    LEADERS = 8
    """Only the order of its replicas changes, if this is the only reason."""


class Limits(NamedTuple):
    """The faults to repair."""

    tolerance: float = 0.1
    """How far from the average, as a part of it, a broker may be: nothing is moved for less."""
    racks: bool = True
    load: bool = True
    leaders: bool = True


ALL: Final = Limits()


class Plan(NamedTuple):
    """The planned changes, by ascending partitions."""

    partitions: Ints
    """The changed partitions, by their number in the layout; shape (changed,)."""
    before: Numbers
    after: Numbers
    """Places among the brokers, as in the layout; shape (changed, most replicas)."""
    reasons: npt.NDArray[np.int8]
    """The `Reason` of each change, shape (changed,)."""
    moved_replicas: int
    """Replicas that come to a broker without one of the partition."""
    stuck: Ints
    """Partitions with a dead replica that no plan can repair: without a leader no new replica could ever be in sync; or
    every broker that is left has a replica already."""
    skipped: int
    """Partitions with a fault that are left alone because they are being reassigned."""
    layout: Layout
    """The layout after the plan."""


def plan_moves(layout: Layout, dead: Flags, limits: Limits = ALL) -> Plan:
    """Plan the moves that repair a cluster.

    Args:
        dead: whether each broker does not come back, shape (brokers,): then its replicas move elsewhere. Brokers that
            are neither dead nor active keep their replicas, and get none.
    Raises:
        UsageError: `dead` does not fit, names an active broker, or the tolerance is not 0 or more.
    """
    brokers = layout.brokers
    if dead.shape != (brokers.total,):
        raise UsageError(f"dead is of shape {dead.shape}", f"one for each of {brokers.total} brokers")
    if (dead & brokers.is_active).any():
        alive = brokers.ids[dead & brokers.is_active]
        raise UsageError(f"broker {alive[0]} is active, not dead", "fence it first")
    if not 0 <= limits.tolerance < np.inf:
        raise UsageError(f"a tolerance of {limits.tolerance}", "0 or more, as a part of the average: 0.1")
    placement = WorkingPlacement(layout)
    reasons = np.zeros(len(layout.replicas), np.int8)
    is_fixed = layout.is_moving | (layout.leaders == NOBODY)
    stuck = _replace_dead(placement, dead, is_fixed, layout.is_moving, reasons)
    if limits.racks:
        _spread_racks(placement, is_fixed, reasons)
    if limits.load:
        reasons[balance_replicas(placement, is_fixed, limits.tolerance)] |= Reason.LOAD
    if limits.leaders:
        reasons[balance_leaders(placement, is_fixed, limits.tolerance)] |= Reason.LEADERS
    return _plan(layout, placement, reasons, stuck, _skipped(placement, dead, layout, limits))


def _replace_dead(
    placement: WorkingPlacement, dead: Flags, is_fixed: Flags, is_moving: Flags, reasons: npt.NDArray[np.int8]
) -> Ints:
    """Replace each dead replica in its place of the order; return the partitions where that is impossible."""
    is_dead = np.append(dead, False)[placement.replicas]
    stuck = []
    for row in np.flatnonzero(is_dead.any(axis=1) & ~is_moving).tolist():
        if is_fixed[row]:
            stuck.append(row)
            continue
        for slot in np.flatnonzero(is_dead[row]).tolist():
            found = placement.least_loaded(row, slot, keeps_racks=False)
            if found == NOBODY:
                stuck.append(row)
                break
            placement.move(row, slot, found)
            reasons[row] |= Reason.DEAD
    return np.array(stuck, np.int64)


def _spread_racks(placement: WorkingPlacement, is_fixed: Flags, reasons: npt.NDArray[np.int8]) -> None:
    """Move replicas that share a rack to a rack without one, as long as there are both."""
    for row in np.flatnonzero(placement.lacks_racks() & ~is_fixed).tolist():
        while True:
            slots = placement.sharing(row)
            # The most loaded broker gives; of equal ones not the preferred leader.
            slots.sort(key=lambda slot: (-int(placement.load[placement.replicas[row, slot]]), -slot))
            found = next(((slot, to) for slot in slots if (to := placement.least_in_new_rack(row)) != NOBODY), None)
            if found is None:
                break
            placement.move(row, *found)
            reasons[row] |= Reason.RACK


def _skipped(placement: WorkingPlacement, dead: Flags, layout: Layout, limits: Limits) -> int:
    is_wrong = np.append(dead, False)[layout.replicas].any(axis=1)
    if limits.racks:
        is_wrong |= placement.lacks_racks()
    return int((is_wrong & layout.is_moving).sum())


def _plan(
    layout: Layout, placement: WorkingPlacement, reasons: npt.NDArray[np.int8], stuck: Ints, skipped: int
) -> Plan:
    rows = np.flatnonzero((placement.replicas != layout.replicas).any(axis=1))
    before, after = layout.replicas[rows], placement.replicas[rows]
    is_old = (after[:, :, None] == before[:, None, :]).any(axis=2)
    return Plan(
        rows, before, after, reasons[rows], int((~is_old).sum()), stuck, skipped, _done(layout, placement.replicas)
    )


def _done(layout: Layout, replicas: Numbers) -> Layout:
    """Return the layout after all moves: old members and new replicas are in sync; a leader stays, or the first in sync
    leads."""
    old, width = layout.replicas, replicas.shape[1]
    in_sync = np.zeros_like(layout.in_sync)
    eligible = np.zeros_like(layout.eligible)
    is_new = replicas != NOBODY
    for slot in range(width):
        is_it = (replicas == old[:, slot, None]) & (replicas != NOBODY)
        in_sync |= is_it & layout.in_sync[:, slot, None]
        eligible |= is_it & layout.eligible[:, slot, None]
        is_new &= ~is_it
    in_sync |= is_new
    stays = ((replicas == layout.leaders[:, None]) & (replicas != NOBODY)).any(axis=1) | (layout.leaders == NOBODY)
    good = in_sync & np.append(layout.brokers.is_active, False)[replicas]
    heirs = replicas[np.arange(len(replicas)), good.argmax(axis=1)] if width else layout.leaders
    leaders = np.where(stays, layout.leaders, np.where(good.any(axis=1), heirs, NOBODY)).astype(np.int32)
    return layout._replace(replicas=replicas, in_sync=in_sync, eligible=eligible, leaders=leaders)
