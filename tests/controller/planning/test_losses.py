"""What the loss of a broker or a rack would do, by the rules of the controller's elections."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from fastquorum.controller.planning import NOBODY, Loss, loss_of_each

from .clusters import Cluster, clusters

THREE = {1: ("a", True), 2: ("b", True), 3: ("c", True)}


def loss_of(cluster: Cluster, broker_id: int) -> Loss:
    layout = cluster.layout()
    return list(loss_of_each(layout))[layout.brokers.ids.tolist().index(broker_id)]


def test_the_first_in_sync_leads_in_place_of_who_is_lost() -> None:
    cluster = Cluster(THREE, [[1, 2, 3], [1, 3, 2], [2, 1, 3]], isrs={0: [1, 3]}, min_isr=2)
    lost = loss_of(cluster, 1)
    assert (lost.partitions, lost.leaders, lost.offline, lost.under_min_isr) == (3, 2, 0, 1)
    assert (lost.heirs.tolist(), lost.inherited.tolist()) == ([2], [2])  # by place: broker 3
    assert (lost.most_leader, lost.most_led) == (2, 2)


def test_what_nobody_else_has_in_sync_is_offline() -> None:
    cluster = Cluster(THREE, [[1, 2], [1], [1, 2, 3]], isrs={0: [1], 2: [1]}, elrs={2: [3]})
    lost = loss_of(cluster, 1)
    assert (lost.offline, lost.without_replica) == (2, 1)
    assert lost.heirs.tolist() == [2]


def test_what_is_offline_already_is_not_lost_again() -> None:
    cluster = Cluster(THREE, [[1, 2], [1]], leaders={0: NOBODY, 1: NOBODY})
    assert loss_of(cluster, 1)[2:4] == (0, 0)


def test_a_rack_is_lost_with_all_its_brokers() -> None:
    cluster = Cluster(THREE | {4: ("a", True)}, [[1, 4], [4, 2], [2, 3]])
    rack_a = next(loss_of_each(cluster.layout(), of_racks=True))
    assert (rack_a.partitions, rack_a.leaders, rack_a.offline, rack_a.without_replica) == (2, 2, 1, 1)


# --- against the slow model -------------------------------------------------------------------------------------------


def slow(cluster: Cluster, lost: set[int]) -> tuple[int, int, int, int, int, Counter[int], Counter[int]]:
    touched = leaders = offline = without = under = 0
    heirs: Counter[int] = Counter()
    led: Counter[int] = Counter()
    for number, replicas in enumerate(cluster.partitions):
        leader = cluster.leader(number)
        alive = [each for each in replicas if cluster.is_active(each)]
        isr = [each for each in alive if each in cluster.isr(number)]
        left = [each for each in isr if each not in lost]
        good = left or [each for each in alive if each in cluster.elrs.get(number, []) and each not in lost]
        touched += bool(lost & set(replicas))
        under += len(isr) >= cluster.min_isr > len(left)
        if leader in lost:
            leaders += 1
            offline += not good
            without += not good and not set(alive) - lost
            leader = good[0] if good else NOBODY
            heirs[leader] += leader != NOBODY
        led[leader] += leader != NOBODY
    return touched, leaders, offline, without, under, +heirs, +led


@settings(max_examples=400, deadline=None)
@given(clusters(), st.booleans())
def test_every_loss_is_that_of_the_slow_model(cluster: Cluster, of_racks: bool) -> None:
    layout = cluster.layout()
    ids, names = layout.brokers.ids.tolist(), layout.brokers.rack_names
    found = list(loss_of_each(layout, of_racks=of_racks))
    assert [each.lost for each in found] == list(range(len(names) if of_racks else len(ids)))
    for each in found:
        gone = {one for one in ids if cluster.rack(one) == names[each.lost]} if of_racks else {ids[each.lost]}
        heirs = Counter({ids[place]: int(n) for place, n in zip(each.heirs, each.inherited, strict=True)})
        expected = slow(cluster, gone)
        assert (each.partitions, each.leaders, each.offline, each.without_replica, each.under_min_isr) == expected[:5]
        assert heirs == expected[5]
        assert each.most_led == max(expected[6].values(), default=0)
        assert each.most_leader == NOBODY or expected[6][ids[each.most_leader]] == each.most_led
