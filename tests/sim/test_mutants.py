"""The simulator is itself under test: every bug that is put back must be caught, and by the seed that is known to
catch it."""

import json

import pytest

from tests.sim.campaign import KNOWN_SEEDS, MUTANTS, SEEDS_MAX, is_caught, run_mutant, search

KNOWN = json.loads(KNOWN_SEEDS.read_text())
DEMANDED = {"K1", "K2", "K4", "K8", "K9", "K10", "K14", "K18", "K28", "K30", "K32", "K62"}
DEMANDED |= {f"K{number}" for number in range(50, 60)}


def test_every_mutant_has_a_known_seed() -> None:
    assert set(MUTANTS) == {name for name, known in KNOWN.items() if known}
    assert set(MUTANTS) >= DEMANDED
    assert {name[:2] for name in MUTANTS if name[0] == "R"} == {f"R{rule}" for rule in range(1, 8)}
    assert all(1 <= known["seed"] <= SEEDS_MAX for known in KNOWN.values())


LATE = {"C6", "K15", "K50", "K53", "K54", "K55", "R5", "R7-epoch-start", "V1-cut-off", "V1-snapshot"}
LATE |= {"believes-strangers", "believes-their-leads", "disturbs-at-start", "mark-claims", "producer-no-barrier"}
LATE |= {"votes-for-less"}
"""Mutants that are caught after more than 2 s."""


@pytest.mark.timeout(900)  # a search, where one is needed, is hundreds of seeds
@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=pytest.mark.long) if each in LATE else each for each in MUTANTS]
)
def test_the_known_seed_catches(name: str) -> None:
    report = run_mutant(name, KNOWN[name]["seed"])
    if not is_caught(name, report) or report.invariant != KNOWN[name]["invariant"]:
        # A seed's course changes with the code; then another one must do, within the same bound.
        assert search(name) is not None, (
            f"{name} ({MUTANTS[name].story}) is no longer caught: search again by the campaign"
        )
