"""The placement of a cluster's replicas as arrays: brokers by their place in a list, not by their id."""

from collections.abc import Sequence
from typing import Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from fastquorum.errors import UsageError
from fastquorum.types import NodeId

Numbers = npt.NDArray[np.int32]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
NOBODY: Final = -1
"""Stands in place of a broker: no leader, or no further replica."""


class Brokers(NamedTuple):
    """The brokers that are registered or hold a replica, by ascending id."""

    ids: Numbers
    """The ids of the brokers, ascending; shape (brokers,)."""
    racks: Numbers
    """The number of each broker's rack, from 0 on. Brokers without a rack share one, as in Kafka's own placement."""
    rack_names: tuple[str | None, ...]
    is_registered: Flags
    is_active: Flags
    """Whether each broker is unfenced and not shutting down: it may lead, and get replicas."""

    @classmethod
    def of(
        cls,
        registered: Sequence[tuple[NodeId, str | None, bool]],
        held: Sequence[NodeId] | Numbers = (),
    ) -> Self:
        """Make brokers of `registered` (id, rack, whether active) and `held`, ids that hold replicas, registered or
        not.

        Raises:
            UsageError: an id is below 0, or registered twice.
        """
        known = {broker_id: (rack, is_active) for broker_id, rack, is_active in registered}
        if len(known) < len(registered):
            raise UsageError("a broker is registered twice", "give each id once")
        ids = np.unique(np.concatenate([np.fromiter(known, np.int32, len(known)), np.asarray(held, np.int32)]))
        if len(ids) and ids[0] < 0:
            raise UsageError(f"broker {ids[0]}", "ids are numbers from 0 on")
        known_brokers = [known.get(int(each), (None, False)) for each in ids]
        names = sorted({rack for rack, _ in known_brokers}, key=lambda name: (name is not None, name or ""))
        numbers = {name: number for number, name in enumerate(names)}
        return cls(
            ids,
            np.array([numbers[rack] for rack, _ in known_brokers], np.int32),
            tuple(names),
            np.array([int(each) in known for each in ids], np.bool_),
            np.array([is_active for _, is_active in known_brokers], np.bool_),
        )

    def places(self, ids: Numbers) -> Numbers:
        """Return the places of brokers, all of which must be among these; NOBODY stays."""
        found = np.searchsorted(self.ids, ids).astype(np.int32)
        found[ids == NOBODY] = NOBODY
        return found

    @property
    def total(self) -> int:
        return len(self.ids)


class Layout(NamedTuple):
    """All partitions of a cluster. Arrays of shape (partitions,) or (partitions, most replicas that one has)."""

    brokers: Brokers
    replicas: Numbers
    """Places among the brokers, the preferred leader first; NOBODY behind the last."""
    leaders: Numbers
    """The place of each partition's leader, or NOBODY."""
    in_sync: Flags
    """Whether each replica is in the ISR."""
    eligible: Flags
    """Whether each replica is out of the ISR, but known to hold all that is committed (KIP-966)."""
    min_isr: Numbers
    is_moving: Flags
    """Whether a reassignment is under way: then the partition is left alone."""

    @classmethod
    def of(
        cls,
        brokers: Brokers,
        replicas: Numbers,
        *,
        leaders: Numbers | None = None,
        in_sync: Flags | None = None,
        eligible: Flags | None = None,
        min_isr: Numbers | None = None,
        is_moving: Flags | None = None,
    ) -> Self:
        """Make a layout. By default the first replica leads, all are in sync, none is moving, and the least ISR is 1.

        Raises:
            UsageError: shapes do not fit, a place is out of range, or a partition has a replica twice or a hole in its
                list.
        """
        count, width = replicas.shape
        there = replicas != NOBODY
        layout = cls(
            brokers,
            replicas,
            (replicas[:, 0].copy() if width else np.full(count, NOBODY, np.int32)) if leaders is None else leaders,
            there.copy() if in_sync is None else in_sync,
            np.zeros_like(there) if eligible is None else eligible,
            np.ones(count, np.int32) if min_isr is None else min_isr,
            np.zeros(count, np.bool_) if is_moving is None else is_moving,
        )
        layout._check()
        return layout

    def _check(self) -> None:
        count, broker_count = len(self.replicas), self.brokers.total
        for name in ("leaders", "min_isr", "is_moving"):
            if getattr(self, name).shape != (count,):
                raise UsageError(f"{name} are of shape {getattr(self, name).shape}", f"expected {(count,)}")
        for name in ("in_sync", "eligible"):
            if getattr(self, name).shape != self.replicas.shape:
                raise UsageError(f"{name} is of shape {getattr(self, name).shape}", f"expected {self.replicas.shape}")
        for name in ("replicas", "leaders"):
            places = getattr(self, name)
            if places.size and not (places.min() >= NOBODY and places.max() < broker_count):
                raise UsageError(f"{name} name places from {places.min()} to {places.max()}", f"of {broker_count}")
        there = self.replicas != NOBODY
        if (there[:, 1:] & ~there[:, :-1]).any():
            raise UsageError("a partition has a hole in its list of replicas", "none may follow NOBODY")
        ordered = np.sort(self.replicas, axis=1)
        twice = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != NOBODY)).any(axis=1)
        if twice.any():
            raise UsageError(f"partition {int(np.flatnonzero(twice)[0])} has a replica twice")

    def replica_counts(self) -> Ints:
        return counts(self.replicas, self.brokers.total)

    def leader_counts(self) -> Ints:
        """Return the number of partitions that each broker leads now."""
        return counts(self.leaders, self.brokers.total)

    def preferred_counts(self) -> Ints:
        """Return the number of partitions that each broker is to lead."""
        return counts(self.replicas[:, :1], self.brokers.total)


def counts(places: Numbers, broker_count: int) -> Ints:
    """Return how often each broker is named; NOBODY is not counted."""
    return np.bincount(places.ravel() + 1, minlength=broker_count + 1)[1:]


def grouped(places: Numbers, is_member: Flags, count: int) -> tuple[Ints, Ints]:
    """Return the partitions of each place below `count`, place by place, and where each place's begin. `is_member`:
    which of the named places count."""
    flat = np.flatnonzero(is_member)
    of_each = places.ravel()[flat]
    ends = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(of_each, minlength=count), out=ends[1:])
    return (flat // max(places.shape[1], 1))[np.argsort(of_each, kind="stable")], ends


def racks_of(brokers: Brokers, replicas: Numbers) -> Numbers:
    """Return the rack of each replica; NOBODY where there is none."""
    return np.append(brokers.racks, np.int32(NOBODY))[replicas]


def spread(brokers: Brokers, replicas: Numbers) -> Ints:
    """Return in how many racks each partition's replicas are; shape (partitions,)."""
    return distinct(racks_of(brokers, replicas))


def distinct(values: Numbers) -> Ints:
    """Return how many different values each row has; NOBODY does not count."""
    if values.shape[1] == 0:
        return np.zeros(len(values), np.int64)
    ordered = np.sort(values, axis=1)
    is_new = ordered != NOBODY
    is_new[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    found: Ints = is_new.sum(axis=1)
    return found
