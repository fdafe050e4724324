"""A failed seed shrinks to what the failure needs."""

import pytest

from fastquorum import sim
from fastquorum.errors import UsageError
from fastquorum.sim.swarm import HARDSHIPS
from tests.sim.campaign import MUTANTS
from tests.sim.mutants import Patches


@pytest.fixture
def planted() -> "Patches":
    """Votes are forgotten: seed 1 breaks S3."""
    with Patches() as patches:
        MUTANTS["K1"].apply(patches)
        yield patches  # type: ignore[misc]


def test_a_shrunk_run_breaks_the_same_promise_and_its_command_shows_it(planted: Patches) -> None:
    report = sim.run(1, kernels="pure")
    shrunk = sim.shrink(report, kernels="pure")
    assert (report.invariant, shrunk.invariant) == ("S3", "S3")
    assert shrunk.voters < report.voters
    assert len(shrunk.without) > 5
    assert shrunk.events < report.events
    again = sim.run(1, shrunk.nodes, kernels="pure", without=shrunk.without)
    assert again == shrunk
    words = shrunk.repro.split()
    assert words[:5] == ["fastquorum", "sim", "run", "--seed", "1"]
    assert words[5:] == ["--nodes", str(shrunk.nodes), "--without", ",".join(shrunk.without)]


def test_it_ends_after_so_many_tries(planted: Patches) -> None:
    report = sim.run(1, kernels="pure")
    tries = []

    def counted(*arguments: object, **more: object) -> sim.Report:
        tries.append(arguments)
        return sim.run(*arguments, **more)  # type: ignore[arg-type]

    sim.shrink(report, kernels="pure", tries_max=3, simulate=counted)
    assert len(tries) == 3


def test_a_good_run_is_given_back() -> None:
    report = sim.run(3)
    assert sim.shrink(report) is report


def test_a_seed_that_is_spared_everything_has_no_faults() -> None:
    report = sim.run(3, without=HARDSHIPS)
    assert report.ok
    assert report.faults == {}
    assert sim.run(3).faults != {}


def test_a_fault_that_is_none_is_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError, match="without 'rain'; the faults are kill, power, "):
        sim.run(3, without=("rain",))
