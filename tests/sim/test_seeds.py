"""Seeds of the real code: every fault active somewhere, no promise broken, progress once the faults stop."""

from collections import Counter
from typing import Any

import pytest

from fastquorum import sim
from fastquorum.errors import UsageError
from fastquorum.sim.swarm import FAULT_KINDS
from tests.sim.campaign import failures_of, sweep

SEEDS = 18


@pytest.fixture(scope="module")
def reports() -> list[sim.Report]:
    return list(sweep(range(1, SEEDS + 1), controller=False))


@pytest.mark.timeout(900)  # the first is charged with all the seeds
def test_no_promise_is_broken(reports: list[sim.Report]) -> None:
    assert failures_of(reports) == ""


@pytest.mark.long
@pytest.mark.timeout(900)
def test_regressions_stay_fixed(regressions: list[int]) -> None:
    assert failures_of(sweep(regressions, controller=False)) == ""


@pytest.mark.timeout(900)
def test_every_kind_of_fault_strikes(reports: list[sim.Report]) -> None:
    faults: Counter[str] = Counter()
    for report in reports:
        faults.update(report.faults)
    assert set(FAULT_KINDS) <= set(faults)
    assert {"loss", "duplication", "broken connection"} <= set(faults)


@pytest.mark.parametrize("nodes", [1, 2, 3, 4, 5])
def test_a_quorum_of_any_size_commits(nodes: int) -> None:
    report = sim.run(7, nodes=nodes)
    assert report.ok, str(report)
    assert report.voters == nodes
    assert report.committed_records > 0
    assert report.acknowledged > 0


@pytest.mark.parametrize(
    ("seed", "options", "complaint"),
    [
        (-1, {}, "seed -1"),
        (1, {"nodes": 0}, "0 nodes"),
        (1, {"nodes": 9}, "9 nodes"),
        (1, {"kernels": "rusty"}, "kernels 'rusty'"),
    ],
)
def test_what_cannot_be_simulated_is_refused(seed: int, options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        sim.run(seed, **options)
