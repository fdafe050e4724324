"""Where replicas go: over racks, then brokers; leaders on brokers that are unfenced. KIP-36."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastquorum.controller.state.placement import Candidates, PlacementError, Placer, Usable

BROKERS = st.lists(
    st.builds(
        Usable,
        st.integers(0, 30),
        st.sampled_from([None, "a", "b", "c", "d"]),
        st.booleans(),
    ),
    min_size=1,
    max_size=12,
    unique_by=lambda each: each.id,
).filter(lambda brokers: not all(each.fenced for each in brokers))


@given(BROKERS, st.integers(1, 40), st.integers(1, 5), st.integers(0, 1000))
def test_every_partition_has_its_replicas_spread_and_an_unfenced_leader(
    brokers: list[Usable], partitions: int, replicas: int, seed: int
) -> None:
    replicas = min(replicas, len(brokers))
    by_id = {each.id: each for each in brokers}
    racks = {each.rack for each in brokers}
    for placed in Candidates(brokers).place(partitions, replicas, random.Random(seed)):
        assert len(placed) == len(set(placed)) == replicas
        assert not by_id[placed[0]].fenced
        if all(not each.fenced for each in brokers):
            used = {by_id[each].rack for each in placed}
            assert len(used) == min(len(racks), replicas), "a rack twice, and another not at all"


@given(st.integers(1, 8), st.integers(1, 3), st.integers(0, 100))
def test_leaders_and_replicas_are_spread_evenly(brokers: int, replicas: int, seed: int) -> None:
    replicas = min(replicas, brokers)
    placed = Candidates([Usable(each, None, False) for each in range(brokers)]).place(
        brokers, replicas, random.Random(seed)
    )
    assert set(Counter(each[0] for each in placed).values()) == {1}
    assert set(Counter(each for one in placed for each in one).values()) == {replicas}


def test_the_same_chance_places_the_same() -> None:
    brokers = [Usable(each, "ab"[each % 2], False) for each in range(6)]
    first, second = (Candidates(brokers).place(20, 3, random.Random(5)) for _ in range(2))
    assert first == second


def test_a_fenced_broker_follows_where_there_is_nobody_else() -> None:
    brokers = [Usable(1, None, False), Usable(2, None, True)]
    assert Candidates(brokers).place(3, 2, random.Random(1)) == [(1, 2)] * 3


@pytest.mark.parametrize(
    ("brokers", "replicas", "why"),
    [
        ([Usable(1, None, False)], 0, "the replication factor must be positive"),
        ([Usable(1, None, True)], 1, "All brokers are currently fenced"),
        ([], 1, "All brokers are currently fenced"),
        ([Usable(1, None, False)], 2, r"only 1 broker\(s\) are registered"),
    ],
)
def test_what_cannot_be_placed(brokers: list[Usable], replicas: int, why: str) -> None:
    with pytest.raises(PlacementError, match=why):
        Candidates(brokers).place(1, replicas, random.Random(1))


def test_topics_of_one_request_take_turns() -> None:
    """They do as the partitions of one topic do: each broker leads as many as any other."""
    placer = Placer(Candidates([Usable(each, None, False) for each in range(6)]), random.Random(1))
    placed = [replicas for _ in range(600) for replicas in placer.place(1, 3)]
    assert set(Counter(each[0] for each in placed).values()) == {100}
    assert set(Counter(each for one in placed for each in one).values()) == {300}
    assert all(len(set(each)) == 3 for each in placed)
