"""The small parts on their own: ballots, requests in flight, what the log says of the quorum."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastquorum.raft.ballots import Ballots
from fastquorum.raft.in_flight import CORRELATION_ID_MAX, InFlight
from fastquorum.raft.voters import LogHistory


@settings(max_examples=200)
@given(st.integers(1, 7), st.lists(st.tuples(st.integers(1, 9), st.booleans()), max_size=20))
def test_an_election_is_won_lost_or_open_by_plain_counting(count: int, answers: list[tuple[int, bool]]) -> None:
    ballots = Ballots(tuple(range(1, count + 1)), 1)
    last = {1: True}
    for voter, granted in answers:
        if voter != 1:
            ballots.record(voter, granted=granted)
            if voter <= count:
                last[voter] = granted
    granted_count, open_count = sum(last.values()), count - len(last)
    assert ballots.is_won == (2 * granted_count > count)
    assert ballots.is_lost == (2 * (granted_count + open_count) <= count)
    assert not (ballots.is_won and ballots.is_lost)
    assert ballots.unanswered == tuple(each for each in range(1, count + 1) if each not in last)
    assert ballots.granting == tuple(sorted(each for each in last if last[each]))


def test_one_request_at_a_time_goes_to_a_node() -> None:
    requests = InFlight(request_timeout_us=100, retry_backoff_us=7)
    first = requests.sent(2, now_us=1000)
    assert (requests.ready_at(2, 1000), requests.ready_at(3, 1000)) == (1100, 1000)
    with pytest.raises(AssertionError):
        requests.sent(2, now_us=1099)
    second = requests.sent(2, now_us=1100)
    assert first != second
    assert not requests.answered(2, first)
    assert not requests.answered(3, second)
    assert requests.answered(2, second)
    assert not requests.answered(2, second)
    assert requests.ready_at(2, 1100) == 1100


def test_a_backoff_ends_by_itself_and_nothing_answers_it() -> None:
    requests = InFlight(request_timeout_us=100, retry_backoff_us=7)
    requests.back_off(2, now_us=1000)
    assert requests.ready_at(2, 1000) == 1007
    assert requests.busy_until(1000) == 1000
    assert not requests.answered(2, -1)


def test_correlation_ids_leave_the_upper_half_to_the_lane() -> None:
    requests = InFlight(request_timeout_us=100, retry_backoff_us=7)
    requests._next_id = CORRELATION_ID_MAX
    assert requests.sent(2, 0) == CORRELATION_ID_MAX < 0x3FFF_FFFF
    assert requests.sent(3, 0) == 0


def test_a_reset_forgets_every_request() -> None:
    requests = InFlight(request_timeout_us=100, retry_backoff_us=7)
    correlation_id = requests.sent(2, 0)
    requests.reset()
    assert not requests.answered(2, correlation_id)
    assert requests.ready_at(2, 0) == 0


def test_truncation_brings_the_former_value_back_but_never_loses_the_first() -> None:
    history = LogHistory("checkpoint")
    history.append(3, "a")
    history.append(9, "b")
    history.truncate(10)
    assert (history.last, history.last_offset) == ("b", 9)
    history.truncate(9)
    assert (history.last, history.last_offset) == ("a", 3)
    history.truncate(0)
    assert (history.last, history.last_offset) == ("checkpoint", -1)


def test_values_come_in_the_order_of_the_log() -> None:
    history = LogHistory(0, offset=4)
    with pytest.raises(AssertionError):
        history.append(4, 1)
