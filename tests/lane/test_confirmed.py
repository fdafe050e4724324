"""Since when nobody else can have been elected, as a leader's lane knows: by what a voter's Fetch answers, and not by
when it came."""

import pytest

from fastquorum.kernels.lane import ALWAYS_CONFIRMED_US
from tests.lane.builders import Leading, Make, value_batch


def at(leader: Leading, now_us: int) -> Leading:
    leader.now_us = now_us
    return leader


def test_a_fetch_confirms_when_the_answer_was_sent_that_it_follows(make: Make) -> None:
    leader = Leading(make)
    leader.admit(2)
    assert leader.lane.confirmed_us == -1, "sent before anything was answered"
    at(leader, 2_000).append()
    at(leader, 900_000).fetch(2)
    assert leader.lane.confirmed_us == 2_000, "it may have been under way for long"
    leader.tick(500_000)
    at(leader, 1_500_000).fetch(2)
    assert leader.lane.confirmed_us == 1_400_000, "the empty answer's time"


@pytest.mark.parametrize("way", ["push", "append_encoded", "barrier", "flush"])
def test_every_way_to_answer_counts_when_it_happens(make: Make, way: str) -> None:
    leader = Leading(make)
    leader.admit(2, high_watermark=-1 if way == "flush" else (1 << 63) - 1)
    leader.now_us = 7_000
    match way:
        case "push":
            leader.lane.append([b"v"], 1_000, 6_000, True)
            leader.lane.push(7_000)
        case "append_encoded":
            leader.lane.append_encoded(bytearray(value_batch(0, 5)), 1, 1_000, 7_000)
        case "barrier":
            leader.lane.begin_barrier(7_000)
        case "flush":
            leader.now_us = 1_000
            leader.tick(600_000)  # empty, and it knows no high watermark
            leader.now_us = 7_000_000
            leader.fetch(2)
            assert leader.lane.confirmed_us == 601_000
            return
    leader.now_us = 9_000
    leader.fetch(2)
    assert leader.lane.confirmed_us == 7_000


def test_it_takes_a_majority_of_voters_and_observers_are_none(make: Make) -> None:
    leader = Leading(make, voters=(1, 2, 3, 4, 5))
    for node_id in (2, 3, 9):
        leader.admit(node_id)
    at(leader, 3_000).append()
    for node_id in (2, 9):
        at(leader, 4_000).fetch(node_id)
    assert leader.lane.confirmed_us == -1
    at(leader, 5_000).fetch(3)
    assert leader.lane.confirmed_us == 3_000
    at(leader, 6_000).append()
    at(leader, 7_000).fetch(2)
    assert leader.lane.confirmed_us == 3_000, "the one that was heard least lately of the two that are needed"


def test_another_connection_confirms_nothing_before_it_was_answered(make: Make) -> None:
    leader = Leading(make)
    leader.admit(2)
    at(leader, 2_000).append()
    at(leader, 3_000).fetch(2)
    at(leader, 50_000).admit(2, connection=21)
    assert leader.lane.confirmed_us == 2_000
    at(leader, 60_000).append()
    at(leader, 70_000).fetch(2, connection=21)
    assert leader.lane.confirmed_us == 60_000


def test_a_fetch_in_place_of_one_that_is_parked_was_sent_before_its_answer(make: Make) -> None:
    leader = Leading(make)
    leader.admit(2)
    at(leader, 2_000).append()
    at(leader, 3_000).fetch(2)
    at(leader, 4_000).admit(2)
    assert leader.lane.confirmed_us == 2_000
    at(leader, 5_000).append()
    at(leader, 6_000).fetch(2)
    assert leader.lane.confirmed_us == 5_000


def test_a_sole_voter_is_nobodys_to_replace_and_one_that_is_no_voter_needs_a_majority_of_others(make: Make) -> None:
    assert Leading(make, voters=(1,)).lane.confirmed_us == ALWAYS_CONFIRMED_US
    leaving = Leading(make, voters=(2, 3, 4))
    for node_id in (2, 3):
        leaving.admit(node_id)
    at(leaving, 2_000).append()
    at(leaving, 3_000).fetch(2)
    assert leaving.lane.confirmed_us == -1
    at(leaving, 3_000).fetch(3)
    assert leaving.lane.confirmed_us == 2_000


def test_whoever_does_not_lead_is_not_followed(make: Make) -> None:
    leader = Leading(make)
    leader.admit(2)
    at(leader, 2_000).append()
    at(leader, 3_000).fetch(2)
    leader.lane.close(4_000)
    assert leader.lane.confirmed_us == -1
