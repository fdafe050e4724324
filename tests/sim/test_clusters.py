"""Seeds of simulated clusters: brokers and an administrator on the real controllers, faults of both, and no promise
broken; C1 to C10, C15, C16, S24, L8, L9."""

from collections import Counter

import pytest

from fastquorum import sim
from tests.sim.campaign import failures_of, sweep

SEEDS = 8
KINDS = ["crash", "bounce", "mute", "flap", "slow", "cut_off", "half", "shut_down", "impostor", "hear_again"]
SHORT = 18
"""A seed that is soon over: Python's kernels take their time."""


@pytest.fixture(scope="module")
def reports() -> list[sim.Report]:
    return list(sweep(range(1, SEEDS + 1), controller=True))


@pytest.mark.timeout(900)  # the first is charged with all the seeds
def test_no_promise_is_broken(reports: list[sim.Report]) -> None:
    assert failures_of(reports) == ""


@pytest.mark.long
@pytest.mark.timeout(900)
def test_regressions_stay_fixed(cluster_regressions: list[int]) -> None:
    assert failures_of(sweep(cluster_regressions, controller=True)) == ""


@pytest.mark.timeout(900)
def test_every_kind_of_fault_strikes_brokers_and_controllers(reports: list[sim.Report]) -> None:
    faults: Counter[str] = Counter()
    for report in reports:
        faults.update(report.faults)
    assert {f"broker {kind}" for kind in KINDS} <= set(faults)
    assert {"kill", "power", "freeze", "stall", "isolate", "split"} <= set(faults)
    assert {report.brokers for report in reports} == {2, 3, 4, 5}


def test_neither_kernels_nor_a_repetition_show() -> None:
    pure = sim.run(SHORT, kernels="pure", controller=True)
    assert pure.ok, str(pure)
    assert sim.run(SHORT, kernels="native", controller=True) == pure
    assert sim.run(SHORT, kernels="mixed", controller=True).trace_hash == pure.trace_hash


def test_a_report_says_how_it_is_had_again() -> None:
    report = sim.run(2, controller=True)
    assert report.repro == "fastquorum sim run --seed 2 --controller"
    assert f"{report.brokers} brokers" in str(report)
