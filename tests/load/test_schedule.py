"""Arrivals come when the plan says, whatever happens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastquorum.load.driving.schedule import Schedule
from fastquorum.load.plan import LoadPlan


@given(
    rate=st.floats(0.5, 2_000_000),
    seconds=st.floats(0.01, 3),
    records=st.integers(1, 50),
    tick_us=st.integers(100, 1000),
)
def test_the_rate_is_met_to_the_last_arrival(rate: float, seconds: float, records: int, tick_us: int) -> None:
    plan = LoadPlan(records_per_s=rate, records_per_append=records, tick_us=tick_us)
    schedule = Schedule(plan, seconds, 1)
    assert len(schedule.counts) == schedule.ticks
    assert sum(schedule.counts) == pytest.approx(rate / records * schedule.seconds, abs=1.001)
    # One per tick if they are rare; else as short as asked for.
    assert schedule.tick_ns == tick_us * 1000 or max(schedule.counts) == 1


@given(rate=st.floats(1, 100_000), at=st.integers(0, 10**9))
def test_a_tick_is_found_by_its_time(rate: float, at: int) -> None:
    schedule = Schedule(LoadPlan(records_per_s=rate), 1.0, 1)
    tick = schedule.tick_at(at)
    assert 0 <= tick <= schedule.ticks
    assert tick == schedule.ticks or tick * schedule.tick_ns >= at
    assert tick == 0 or (tick - 1) * schedule.tick_ns < at


def test_arrivals_are_counted_between_ticks() -> None:
    schedule = Schedule(LoadPlan(records_per_s=2500), 1.0, 1)
    assert schedule.counts[:4] == [2, 3, 2, 3]
    assert schedule.arrivals(0, 2) == 5
    assert schedule.arrivals(1, 3) == 5
    assert schedule.arrivals(0, schedule.ticks) == 2500


def test_random_arrivals_are_the_seeds() -> None:
    plan = LoadPlan(records_per_s=5000, arrivals="poisson")
    one, same, other = (Schedule(plan, 2.0, seed) for seed in (1, 1, 2))
    assert one.counts == same.counts != other.counts
    assert sum(one.counts) == pytest.approx(10_000, rel=0.1)


def test_a_plan_goes_to_json_and_back() -> None:
    plan = LoadPlan(driver="kafka", closed=64, records_per_s=None, workload="isr")
    assert LoadPlan.from_json(plan.as_json()) == plan
