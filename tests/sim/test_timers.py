"""Timers of nodes whose clocks go faster or slower than the world's."""

from hypothesis import given
from hypothesis import strategies as st

from fastquorum.sim.clock import LocalClock, Scheduler
from fastquorum.sim.invariants.timers import TimerEvents
from fastquorum.sim.node.threads import AT_ONCE_US
from fastquorum.sim.prng import MILLION

RATES = st.integers(MILLION - 100_000, MILLION + 100_000)
"""Clock rates as `sim.swarm` draws them."""


@given(rate=RATES, zero_us=st.integers(0, 10**9), now_us=st.integers(0, 10**8))
def test_what_is_due_at_once_by_a_nodes_clock_is_not_due_before(rate: int, zero_us: int, now_us: int) -> None:
    scheduler = Scheduler()
    scheduler.now_us = now_us
    clock = LocalClock(scheduler, zero_us, rate)
    assert 0 < clock.world_time(clock.now_us + 1) - now_us <= AT_ONCE_US


def test_a_leader_is_gone_after_two_refused_connections_to_fetch_on_and_others_do_not_count() -> None:
    events = TimerEvents()
    for number, is_for_fetches in enumerate((False, False, True), 1):
        events.attempts[number] = 2
        events.ended(number, 100 + number, is_for_fetches=is_for_fetches)
    assert not events.may_miss(2, 100)
    events.attempts[9] = 2
    events.ended(9, 200, is_for_fetches=True)
    assert events.may_miss(2, 100)
    assert not events.may_miss(2, 150), "one of them was before the leader was heard last"
