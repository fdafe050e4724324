"""Observers that a leader's lane is asked to await: until each of them has named an offset as its high watermark."""

from collections.abc import Sequence

import pytest

from fastquorum.kernels.lane import ObserversInformed, Output
from tests.lane.builders import Leading, Make

NOBODY_NAMES_IT = 17
"""Fetch of this version has no high watermark."""


def informed_count(out: Sequence[Output]) -> int:
    return sum(isinstance(output, ObserversInformed) for output in out)


def committed(make: Make, *observers: int) -> Leading:
    """A record is committed at offset 2, and observers have the record."""
    leader = Leading(make)
    leader.admit(2)
    for node_id in observers:
        leader.admit(node_id, high_watermark=1)
    leader.append()
    leader.sync()
    leader.fetch(2, high_watermark=1)
    assert leader.lane.high_watermark == 2
    return leader


def test_the_last_observer_that_names_the_offset_ends_the_wait(make: Make) -> None:
    leader = committed(make, 8, 9)
    assert leader.lane.await_observers([8, 9], 2)
    assert not informed_count(leader.fetch(8, high_watermark=1)), (
        "it has the record, and does not know that it is committed"
    )
    assert not informed_count(leader.fetch(8, high_watermark=2))
    leader.fetch(9, high_watermark=1)
    assert informed_count(leader.fetch(9, high_watermark=2)) == 1
    assert not leader.lane.await_observers([8, 9], 2), "both know"


def test_only_observers_that_were_named_and_are_served_are_awaited(make: Make) -> None:
    leader = committed(make, 9)
    leader.admit(3, high_watermark=1)
    assert not leader.lane.await_observers([3, 7, 8], 2), "a voter, and two that are not there"
    assert not leader.lane.await_observers([], 2)


def test_who_cannot_name_it_is_not_awaited(make: Make) -> None:
    leader = Leading(make)
    leader.admit(9, version=NOBODY_NAMES_IT)
    assert not leader.lane.await_observers([9], 2)


def test_one_that_goes_away_is_awaited_no_longer(make: Make) -> None:
    leader = committed(make, 9)
    assert leader.lane.await_observers([9], 2)
    assert informed_count(leader.lane.detach(90, leader.now_us)) == 1
    assert not leader.lane.await_observers([9], 2)


def test_one_that_comes_back_on_another_connection_is_awaited_no_longer(make: Make) -> None:
    leader = committed(make, 9)
    assert leader.lane.await_observers([9], 2)
    assert informed_count(leader.admit(9, high_watermark=1, connection=91)) == 1


@pytest.mark.parametrize("catches_up", [False, True])
def test_one_that_let_a_wait_be_in_vain_is_awaited_again_once_it_has_caught_up(make: Make, catches_up: bool) -> None:
    leader = committed(make, 8, 9)
    assert leader.lane.await_observers([8, 9], 2)
    leader.fetch(8, high_watermark=1)
    leader.fetch(8, high_watermark=2)
    leader.append()
    leader.sync()
    leader.fetch(2, high_watermark=2)
    if catches_up:
        leader.fetch(9, 2, high_watermark=1)
        leader.fetch(9, high_watermark=2)
    assert leader.lane.await_observers([8, 9], 3), "the other one"
    out = leader.fetch(8, high_watermark=3)
    assert informed_count(out) == (0 if catches_up else 1)


def test_what_was_awaited_before_no_longer_counts(make: Make) -> None:
    leader = committed(make, 9)
    assert leader.lane.await_observers([9], 2)
    assert not leader.lane.await_observers([9], 2), "too slow"
    leader.fetch(9, high_watermark=1)
    assert not informed_count(leader.fetch(9, high_watermark=2))


def test_a_lane_that_does_not_lead_awaits_nobody(make: Make) -> None:
    leader = committed(make, 9)
    leader.lane.close(leader.now_us)
    assert not leader.lane.await_observers([9], 2)
