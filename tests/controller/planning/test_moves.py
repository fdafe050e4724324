"""Moves that repair a cluster: none too many, no rack lost, no broker twice; the same every time."""

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastquorum.controller.planning import NOBODY, Limits, Plan, Reason, plan_moves
from fastquorum.errors import UsageError

from .clusters import Cluster, clusters

FOUR = {1: ("a", True), 2: ("a", True), 3: ("b", True), 4: ("b", True)}
NOTHING = Limits(racks=False, load=False, leaders=False)
ALL = Limits()


def plan(cluster: Cluster, limits: Limits = ALL) -> Plan:
    layout = cluster.layout()
    return plan_moves(layout, ~layout.brokers.is_active, limits)


def after(cluster: Cluster, found: Plan) -> list[list[int]]:
    """All partitions, by ids."""
    ids = cluster.layout().brokers.ids
    whole = [list(each) for each in cluster.partitions]
    for number, replicas in zip(found.partitions.tolist(), found.after.tolist(), strict=True):
        whole[number] = [int(ids[each]) for each in replicas if each != NOBODY]
    return whole


def test_a_good_cluster_is_left_alone() -> None:
    found = plan(Cluster(FOUR, [[1, 3], [3, 2], [2, 4], [4, 1]]))
    assert (len(found.partitions), found.moved_replicas) == (0, 0)


def test_what_a_dead_broker_held_goes_to_its_rack_if_the_others_are_taken() -> None:
    cluster = Cluster(FOUR | {2: ("a", False)}, [[2, 3], [3, 2]])
    found = plan(cluster, NOTHING)
    assert after(cluster, found) == [[1, 3], [3, 1]]
    assert found.moved_replicas == 2
    assert found.reasons.tolist() == [Reason.DEAD, Reason.DEAD]


def test_what_is_not_registered_is_dead_too() -> None:
    cluster = Cluster(FOUR, [[9, 3]])
    assert after(cluster, plan(cluster, NOTHING)) == [[1, 3]]


def test_a_partition_that_nobody_leads_is_told_of_and_left_alone() -> None:
    cluster = Cluster({1: (None, False), 2: (None, True)}, [[1], [1, 2]])
    found = plan(cluster)
    assert found.stuck.tolist() == [0, 1]  # nobody leads the one, and no third broker is there for the other
    assert len(found.partitions) == 0


def test_what_is_being_moved_is_left_to_whoever_moves_it() -> None:
    found = plan(Cluster(FOUR | {2: ("a", False)}, [[3, 2]], moving=(0,)))
    assert (len(found.partitions), found.skipped) == (0, 1)


def test_replicas_that_share_a_rack_are_spread_though_the_preferred_leader_stays() -> None:
    cluster = Cluster(FOUR, [[1, 2], [4, 3]])
    found = plan(cluster, Limits(load=False, leaders=False))
    assert after(cluster, found) == [[1, 3], [4, 2]]
    assert found.moved_replicas == 2


def test_brokers_above_the_average_give_to_those_below() -> None:
    brokers = {1: (None, True), 2: (None, True), 3: (None, True)}
    cluster = Cluster(brokers, [[1]] * 6)
    found = plan(cluster)
    assert found.layout.replica_counts().tolist() == [2, 2, 2]
    assert found.moved_replicas == 4


def test_racks_of_unequal_size_are_balanced_within() -> None:
    # Rack b has one broker for every partition, so that only those of a can share.
    brokers = {1: ("a", True), 2: ("a", True), 3: ("a", True), 4: ("b", True)}
    cluster = Cluster(brokers, [[1, 4], [1, 4], [1, 4], [4, 1], [4, 1], [4, 2]])
    found = plan(cluster)
    assert found.layout.replica_counts().tolist() == [2, 2, 2, 6]
    assert found.moved_replicas == 3


def test_preferred_leaders_are_balanced_without_moving_anything() -> None:
    cluster = Cluster(FOUR, [[1, 3], [1, 4], [2, 3], [2, 4]])
    found = plan(cluster)
    assert found.moved_replicas == 0
    assert found.layout.preferred_counts().tolist() == [1, 1, 1, 1]
    assert set(found.reasons.tolist()) == {Reason.LEADERS}


def test_who_is_active_cannot_be_dead() -> None:
    layout = Cluster(FOUR, [[1]]).layout()
    with pytest.raises(UsageError, match="broker 1 is active, not dead"):
        plan_moves(layout, np.ones(4, np.bool_))


# --- against the slow model -------------------------------------------------------------------------------------------


def racks(cluster: Cluster, replicas: list[int]) -> int:
    return len({cluster.rack(each) for each in replicas})


def load(partitions: list[list[int]]) -> Counter[int]:
    return Counter(each for replicas in partitions for each in replicas)


@settings(max_examples=200, deadline=None)
@given(clusters())
def test_no_plan_breaks_a_rule_and_what_is_left_could_not_be_helped(cluster: Cluster) -> None:
    found = plan(cluster)
    whole = after(cluster, found)
    active = {each for each in cluster.brokers if cluster.is_active(each)}
    moved = 0
    for number, (old, new) in enumerate(zip(cluster.partitions, whole, strict=True)):
        is_fixed = number in cluster.moving or cluster.leader(number) == NOBODY
        assert len(new) == len(set(new)) == len(old)
        assert set(new) - set(old) <= active
        assert new == old or not is_fixed
        alive = [each for each in old if each in active]
        assert racks(cluster, new) >= racks(cluster, alive)
        moved += len(set(new) - set(old))
        dead, free = [each for each in old if each not in active], active - set(old)
        is_stuck = bool(dead) and number not in cluster.moving and (is_fixed or len(free) < len(dead))
        assert (number in found.stuck) == is_stuck
        if not is_fixed:
            assert len([each for each in new if each not in active]) == max(len(dead) - len(free), 0)
            # Nobody shares a rack while another one is free.
            is_shared = racks(cluster, new) < len(new)
            assert not (is_shared and {cluster.rack(each) for each in active} - {cluster.rack(each) for each in new})
    assert found.moved_replicas == moved
    assert found.layout.replica_counts().tolist() == [load(whole)[each] for each in found.layout.brokers.ids.tolist()]
    again = plan(cluster)
    assert (again.after.tolist(), again.partitions.tolist()) == (found.after.tolist(), found.partitions.tolist())


@settings(max_examples=200, deadline=None)
@given(clusters())
def test_nobody_is_left_above_the_bounds_who_could_give_to_somebody_below(cluster: Cluster) -> None:
    whole = after(cluster, plan(cluster, Limits(tolerance=0.0)))
    active = sorted(each for each in cluster.brokers if cluster.is_active(each))
    carried = load(whole)
    high = -(-sum(carried[each] for each in active) // max(len(active), 1))
    for number, replicas in enumerate(whole):
        if number in cluster.moving or cluster.leader(number) == NOBODY:
            continue
        for giver, taker in itertools.product(replicas, active):
            swapped = [taker if each == giver else each for each in replicas]
            is_fair = carried[giver] > high > carried[taker] and giver in active
            assert not (is_fair and taker not in replicas and racks(cluster, swapped) >= racks(cluster, replicas))


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.permutations([1, 2, 3, 4]).flatmap(lambda all_: st.integers(1, 2).map(lambda n: all_[:n])), max_size=5)
)
def test_no_other_way_moves_fewer(partitions: list[list[int]]) -> None:
    """Every way there is, of four brokers in no racks."""
    cluster = Cluster(dict.fromkeys((1, 2, 3, 4), (None, True)), partitions)
    found = plan(cluster, Limits(tolerance=0.0, leaders=False))
    total = sum(map(len, partitions))
    low, high = total // 4, -(-total // 4)

    def is_level(whole: list[list[int]]) -> bool:
        carried = load(whole)
        return all(low <= carried[each] <= high for each in (1, 2, 3, 4))

    assert is_level(after(cluster, found))
    ways = [[list(each) for each in itertools.combinations((1, 2, 3, 4), len(old))] for old in partitions]
    least = min(
        sum(len(set(new) - set(old)) for old, new in zip(partitions, way, strict=True))
        for way in itertools.product(*ways)
        if is_level(list(way))
    )
    assert found.moved_replicas == least


@pytest.mark.slow
def test_a_hundred_thousand_partitions_are_repaired() -> None:
    chance = np.random.default_rng(7)
    brokers = {each: (f"r{each % 4}", each % 50 != 0) for each in range(200)}
    picks = chance.random((100_000, 200)).argpartition(3, axis=1)[:, :3]
    cluster = Cluster(brokers, picks.tolist())
    found = plan(cluster)
    active = found.layout.brokers.is_active
    carried = found.layout.replica_counts()
    held = np.append(~active, False)[found.layout.replicas].any(axis=1)
    assert np.flatnonzero(held).tolist() == found.stuck.tolist()
    assert carried[active].max() <= 1.1 * carried[active].mean()
    assert carried[active].min() >= 0.9 * carried[active].mean()
