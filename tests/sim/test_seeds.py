"""Seeds of the real code: every fault active somewhere, no promise broken, progress once the faults stop."""

import os
from collections import Counter
from collections.abc import Iterable
from multiprocessing import get_context
from typing import Any

import pytest

from fastquorum import sim
from fastquorum.errors import UsageError
from fastquorum.sim.swarm import FAULT_KINDS

SEEDS = 24
CHUNK = 12


@pytest.fixture(scope="module")
def reports(regressions: list[int]) -> dict[int, sim.Report]:
    """Of every seed that is looked at here, by all processors."""
    seeds = sorted({*range(1, SEEDS + 1), *regressions})
    with get_context("spawn").Pool(os.cpu_count()) as pool:
        return {report.seed: report for report in pool.imap_unordered(sim.run_seed, seeds, chunksize=2)}


def failures_of(reports: dict[int, sim.Report], seeds: Iterable[int]) -> str:
    return "\n".join(str(reports[seed]) for seed in seeds if not reports[seed].ok)


@pytest.mark.timeout(900)  # the first is charged with all the seeds
@pytest.mark.parametrize("first", range(1, SEEDS + 1, CHUNK))
def test_no_promise_is_broken(reports: dict[int, sim.Report], first: int) -> None:
    assert failures_of(reports, range(first, first + CHUNK)) == ""


@pytest.mark.timeout(900)
def test_regressions_stay_fixed(reports: dict[int, sim.Report], regressions: list[int]) -> None:
    assert failures_of(reports, regressions) == ""


@pytest.mark.timeout(900)
def test_every_kind_of_fault_strikes(reports: dict[int, sim.Report]) -> None:
    faults: Counter[str] = Counter()
    for seed in range(1, SEEDS + 1):
        faults.update(reports[seed].faults)
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
