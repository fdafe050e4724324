"""Small clusters as lists, at random, and as the layouts of arrays that are planned with."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

from fastquorum.controller.planning import NOBODY, Brokers, Layout


@dataclass
class Cluster:
    """A cluster as a person would write it down; brokers by id."""

    brokers: dict[int, tuple[str | None, bool]]
    """Rack, and whether active. Others are not registered."""
    partitions: list[list[int]]
    leaders: dict[int, int] = field(default_factory=dict)
    """By partition; else the first replica that is active."""
    isrs: dict[int, list[int]] = field(default_factory=dict)
    """By partition; else all replicas."""
    elrs: dict[int, list[int]] = field(default_factory=dict)
    moving: tuple[int, ...] = ()
    min_isr: int = 1

    def is_active(self, broker_id: int) -> bool:
        return self.brokers.get(broker_id, (None, False))[1]

    def rack(self, broker_id: int) -> str | None:
        return self.brokers.get(broker_id, (None, False))[0]

    def isr(self, number: int) -> list[int]:
        return self.isrs.get(number, self.partitions[number])

    def leader(self, number: int) -> int:
        if number in self.leaders:
            return self.leaders[number]
        return next((each for each in self.partitions[number] if self.is_active(each)), NOBODY)

    def layout(self) -> Layout:
        width = max((len(each) for each in self.partitions), default=0)
        held = [each for replicas in self.partitions for each in replicas]
        brokers = Brokers.of([(each, *rack_and_state) for each, rack_and_state in self.brokers.items()], held)
        count = len(self.partitions)

        def padded(lists: list[list[int]]) -> "np.ndarray[Any, np.dtype[np.int32]]":
            table = np.full((count, width), NOBODY, np.int32)
            for number, each in enumerate(lists):
                table[number, : len(each)] = each
            return table

        def among(lists: list[list[int]]) -> "np.ndarray[Any, np.dtype[np.bool_]]":
            marks = np.zeros((count, width), np.bool_)
            for number, (replicas, some) in enumerate(zip(self.partitions, lists, strict=True)):
                marks[number, : len(replicas)] = [each in some for each in replicas]
            return marks

        numbers = range(count)
        return Layout.of(
            brokers,
            brokers.places(padded(self.partitions)),
            leaders=brokers.places(np.array([self.leader(each) for each in numbers], np.int32)),
            in_sync=among([self.isr(each) for each in numbers]),
            eligible=among([self.elrs.get(each, []) for each in numbers]),
            min_isr=np.full(count, self.min_isr, np.int32),
            is_moving=np.isin(np.arange(count), np.array(self.moving, np.int64)),
        )


@st.composite
def clusters(draw: st.DrawFn, *, racks: int = 3, brokers_max: int = 6, partitions_max: int = 12) -> Cluster:
    """Any that a controller may come to: brokers dead, gone, without a rack; partitions of any size."""
    ids = draw(st.lists(st.integers(0, 9), min_size=1, max_size=brokers_max, unique=True))
    names = st.sampled_from([None, "a", "b", "c"][: racks + 1]) if racks else st.none()
    brokers = {each: (draw(names), draw(st.integers(0, 4)) > 0) for each in ids}
    gone = draw(st.sampled_from([[], [], [97]]))
    holders = st.lists(st.sampled_from([*ids, *gone]), min_size=1, max_size=4, unique=True)
    partitions = draw(st.lists(holders, max_size=partitions_max))
    cluster = Cluster(brokers, partitions, min_isr=draw(st.integers(1, 2)))
    for number, replicas in enumerate(partitions):
        what = draw(st.integers(0, 6))
        if what == 0:
            cluster.isrs[number] = draw(st.sampled_from([[], replicas[:1], replicas[1:]]))
            cluster.elrs[number] = [each for each in replicas if each not in cluster.isrs[number]][:1]
        elif what == 1:
            cluster.leaders[number] = NOBODY
        elif what == 2:
            cluster.moving = (*cluster.moving, number)
    return cluster
