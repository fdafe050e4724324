"""The search for the knee, over a quorum whose capacity is known."""

from typing import Any, cast

import pytest

from fastquorum.load.plan import LoadPlan
from fastquorum.load.result import Result
from fastquorum.load.running import Kill, Wish
from fastquorum.load.runs import BISECTIONS, DOUBLINGS_MAX, Runs, Watching
from fastquorum.load.stage import Stage
from tests.load.results import MACHINE, result


class Known(Runs):
    """Measures nothing: the quorum takes `capacity` records a second and refuses the rest."""

    def __init__(self, capacity: float, wish: Wish, watching: Watching) -> None:
        plan = LoadPlan(records_per_s=1000.0, warmup_s=0)
        super().__init__(cast(Stage, None), plan, MACHINE, wish, watching)
        self.capacity = capacity

    def _measure(self, plan: LoadPlan, kill: Kill | None) -> Result:
        rate = plan.records_per_s
        assert rate is not None
        achieved = min(rate, self.capacity)
        errors = {"overloaded": int(rate - achieved)} if rate > achieved else {}
        plan_reported = plan.as_json()
        return result(rate, achieved_per_s=achieved, errors=errors, plan=plan_reported, interrupted=self.wish.is_over)


def sweep(capacity: float, wish: Wish | None = None, watching: Watching | None = None) -> dict[str, Any]:
    return Known(capacity, wish or Wish(), watching or Watching()).sweep()


@pytest.mark.parametrize("capacity", [1500.0, 10_000.0, 70_000.0])
def test_the_knee_is_found_from_below(capacity: float) -> None:
    result = sweep(capacity)
    knee = result["knee"]["offered_per_s"]
    # Three bisections of a doubling.
    assert capacity / 2 ** (1 / 2**BISECTIONS) * 0.99 <= knee <= capacity
    assert result["overload"]["offered_per_s"] == 2 * knee
    assert result["overload"]["achieved_over_knee"] == pytest.approx(capacity / knee)
    rates = [step["offered_per_s"] for step in result["steps"]]
    assert rates == sorted(rates)


def test_no_knee_where_the_first_rate_is_too_much() -> None:
    result = sweep(500.0)
    assert (result["knee"], result["overload"], len(result["steps"])) == (None, None, 1)


def test_a_knee_beyond_all_doublings_is_the_last_of_them() -> None:
    result = sweep(1e12)
    assert result["knee"]["offered_per_s"] == 1000.0 * 2 ** (DOUBLINGS_MAX - 1)


def test_an_interrupted_sweep_reports_what_it_has() -> None:
    wish, results = Wish(), list[Result]()

    def on_result(step: Result) -> None:
        results.append(step)
        wish.is_over = len(results) == 3

    result = sweep(1e12, wish, Watching(on_result=on_result))
    assert result["steps"] == results
    assert len(results) == 3
    assert result["overload"] is None
    assert result["knee"] is None, "more might have been kept up with"
