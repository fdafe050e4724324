"""The loss of a broker, or of a rack: partitions that would be offline or lack replicas, and the new leaders.

Leaders are elected as by the controller: the first replica, in the order of assignment, that is in sync and active; if
none in sync is left, the first eligible one. Source: KIP-631, KIP-966; Kafka `PartitionChangeBuilder`.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from fastquorum.controller.planning.layout import NOBODY, Flags, Ints, Layout, Numbers, counts, grouped, racks_of


class Loss(NamedTuple):
    """The effects of a loss, beyond the present faults."""

    lost: int
    """The place of the broker, or the number of the rack."""
    partitions: int
    """Partitions with a replica there."""
    leaders: int
    """Partitions that are led from there."""
    offline: int
    """Partitions that would lose their leader without a replica in sync to take over: Kafka's OfflinePartitionsCount
    would grow by this number."""
    without_replica: int
    """Offline partitions of which no active broker has a replica, in sync or not: only the brokers' return helps."""
    under_min_isr: int
    """Partitions that would fall below their least ISR: writes with acks=all fail."""
    heirs: Numbers
    """Places of the brokers that would take over leadership; the one with the most partitions first."""
    inherited: Ints
    """The number of partitions that each of them would get."""
    most_led: int
    """Most partitions that one broker would lead then."""
    most_leader: int
    """The place of that broker; NOBODY if no partition has a leader."""


def loss_of_each(layout: Layout, *, of_racks: bool = False) -> Iterator[Loss]:
    """Yield the loss of each broker, or of each rack with all its brokers, in their order; each as if all else
    stayed."""
    brokers = layout.brokers
    domains = racks_of(brokers, layout.replicas) if of_racks else layout.replicas
    count = len(brokers.rack_names) if of_racks else brokers.total
    rows, ends = grouped(domains, _is_first(domains), count)
    led = layout.leader_counts()
    state = _State(layout)
    domain_of = brokers.racks if of_racks else np.arange(brokers.total, dtype=np.int32)
    for lost in range(count):
        rows_lost = rows[ends[lost] : ends[lost + 1]]
        yield _loss(state, lost, rows_lost, domains[rows_lost] == lost, led, np.asarray(domain_of == lost))


class _State:
    """Facts of the layout that every loss needs."""

    def __init__(self, layout: Layout) -> None:
        is_active = np.append(layout.brokers.is_active, False)
        self.layout = layout
        self.active: Flags = is_active[layout.replicas]
        self.in_sync: Flags = layout.in_sync & self.active
        self.eligible: Flags = layout.eligible & self.active
        self.is_under: Flags = self.in_sync.sum(axis=1) < layout.min_isr


def _is_first(domains: Numbers) -> Flags:
    """Return whether each one is the first of its domain in its partition."""
    is_first: Flags = domains != NOBODY
    for slot in range(1, domains.shape[1]):
        is_first[:, slot] &= (domains[:, :slot] != domains[:, slot, None]).all(axis=1)
    return is_first


def _loss(state: _State, lost: int, rows: Ints, is_lost: Flags, led: Ints, lost_brokers: Flags) -> Loss:
    layout = state.layout
    replicas, leaders = layout.replicas[rows], layout.leaders[rows]
    in_sync, eligible = state.in_sync[rows] & ~is_lost, state.eligible[rows] & ~is_lost
    good = np.where(in_sync.any(axis=1, keepdims=True), in_sync, eligible)
    orphaned = (leaders != NOBODY) & lost_brokers[leaders]
    is_led = good.any(axis=1)
    offline = orphaned & ~is_led
    heirs = replicas[np.arange(len(rows)), good.argmax(axis=1)][orphaned & is_led] if len(rows) else leaders
    gained = counts(heirs, len(led))
    after = np.where(lost_brokers, 0, led) + gained
    order = np.argsort(-gained, kind="stable")[: np.count_nonzero(gained)]
    most = int(after.argmax()) if len(after) and after.max() > 0 else NOBODY
    return Loss(
        lost=lost,
        partitions=len(rows),
        leaders=int(orphaned.sum()),
        offline=int(offline.sum()),
        without_replica=int((offline & ~(state.active[rows] & ~is_lost).any(axis=1)).sum()),
        under_min_isr=int((~state.is_under[rows] & (in_sync.sum(axis=1) < layout.min_isr[rows])).sum()),
        heirs=order.astype(np.int32),
        inherited=gained[order],
        most_led=int(after[most]) if most != NOBODY else 0,
        most_leader=most,
    )
