"""Reorders replicas until brokers lead about as much: the first replica is to lead. No data moves."""

import numpy as np

from fastquorum.controller.planning.layout import NOBODY, Flags, Ints, counts
from fastquorum.controller.planning.leveling import Bounds
from fastquorum.controller.planning.working_placement import WorkingPlacement

_ROUNDS_MAX = 8


def balance_leaders(placement: WorkingPlacement, is_fixed: Flags, tolerance: float) -> Ints:
    """Reorder replicas; return the changed partitions. A broker above the tolerated number of leads gives some to
    another one with a replica and fewer leads; in rounds, since that one may give others away. Nothing is taken from
    inactive brokers: they may come back."""
    if len(placement.usable) < 2 or placement.replicas.shape[1] < 2:
        return np.zeros(0, np.int64)
    replicas, is_usable = placement.replicas, placement.brokers.is_active
    led = counts(replicas[:, :1], placement.brokers.total)
    high = Bounds.of(int(led[placement.usable].sum()), len(placement.usable), tolerance).high
    changed: list[int] = []
    for _ in range(_ROUNDS_MAX):
        over = np.flatnonzero((led > high) & is_usable)
        order = np.argsort(replicas[:, 0], kind="stable")
        ends = np.searchsorted(replicas[order, 0], [over, over + 1])
        before = len(changed)
        for place, start, end in sorted(
            zip(over.tolist(), *ends.tolist(), strict=True), key=lambda each: (-int(led[each[0]]), each[0])
        ):
            changed += _hand_over(placement, led, is_fixed, place, order[start:end], high)
        if len(changed) == before:
            break
    return np.unique(np.array(changed, np.int64))


def _hand_over(placement: WorkingPlacement, led: Ints, is_fixed: Flags, place: int, rows: Ints, high: int) -> list[int]:
    replicas, is_usable = placement.replicas, placement.brokers.is_active
    wanted = int(led[place]) - high
    rows = rows[~is_fixed[rows]]
    # Those first whose others lead least.
    others = np.where(
        np.append(is_usable, False)[replicas[rows]], np.append(led, 0)[replicas[rows]], np.iinfo(np.int64).max
    )
    others[:, 0] = np.iinfo(np.int64).max
    rows = rows[np.argsort(others.min(axis=1), kind="stable")]
    changed: list[int] = []
    for row in rows.tolist():
        if wanted <= 0:
            break
        nodes = replicas[row].tolist()
        slots = [slot for slot in range(1, len(nodes)) if nodes[slot] != NOBODY and is_usable[nodes[slot]]]
        if not slots:
            continue
        slot = min(slots, key=lambda each: (int(led[nodes[each]]), each))
        if led[nodes[slot]] + 1 >= led[place]:
            continue
        replicas[row, 0], replicas[row, slot] = nodes[slot], place
        led[nodes[slot]] += 1
        led[place] -= 1
        wanted -= 1
        changed.append(row)
    return changed
