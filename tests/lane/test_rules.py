"""The seven rules: every scenario holds on the real lane, and for every rule a mutant that breaks it is caught."""

import pytest

from fastquorum.errors import UsageError
from fastquorum.kernels import load
from fastquorum.kernels.codes import AppendVerdict
from fastquorum.kernels.lane import BarrierDone, load_lane
from fastquorum.kernels.native._lane import HAS_MUTANTS, plant_mutation
from tests.lane.builders import Leading, Make, answers
from tests.lane.mutants import MUTANTS, Mutant
from tests.lane.native_mutants import IN_THE_SHELL, NATIVE_MUTANTS, NativeMutant, declared, planted
from tests.lane.scenarios import SCENARIOS, Scenario, World, done


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_rule(make: Make, scenario: Scenario) -> None:
    scenario(World(make))


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"rule {mutant.rule}: {mutant.name}")
def test_mutant_is_caught(make: Make, mutant: Mutant) -> None:
    mutant.scenario(World(make))
    broken = World(Make(mutant.lane, make.kernels), mutant.log, mutant.elect)  # type: ignore[arg-type]
    with pytest.raises(AssertionError):
        mutant.scenario(broken)


if HAS_MUTANTS:  # in the checked build

    @pytest.mark.parametrize("mutant", NATIVE_MUTANTS, ids=lambda mutant: f"rule {mutant.rule}: {mutant.name}")
    def test_native_mutant_is_caught(mutant: NativeMutant) -> None:
        make = Make(load_lane("native"), load("native"))
        mutant.scenario(World(make))
        with planted(mutant.name), pytest.raises(AssertionError):
            mutant.scenario(World(make))


def test_a_native_lane_is_opened_over_its_leader_change_only() -> None:
    """Rule 1, of a shell that opens it too early: no lane can be talked into it."""
    (first,) = (mutant for mutant in MUTANTS if mutant.rule == 1)
    make = Make(load_lane("native"), load("native"))
    first.scenario(World(make))
    with pytest.raises(AssertionError, match="rule 1"):
        first.scenario(World(make, first.log, first.elect))  # type: ignore[arg-type]


def test_every_rule_has_a_native_mutant_and_every_declared_one_is_tried() -> None:
    assert {mutant.rule for mutant in NATIVE_MUTANTS} == set(range(8))
    assert {*(mutant.name for mutant in NATIVE_MUTANTS), *IN_THE_SHELL} == set(declared()[1:])
    if not HAS_MUTANTS:
        with pytest.raises(UsageError, match="no mutants"):
            plant_mutation(1)


def test_every_rule_has_a_mutant_and_every_scenario_one_that_it_catches() -> None:
    assert {mutant.rule for mutant in MUTANTS} == set(range(8))
    assert {mutant.scenario for mutant in MUTANTS} == set(SCENARIOS)


# --- more about barriers ----------------------------------------------------------------------------------------------


def test_an_only_voters_barrier_is_over_at_once_when_its_epoch_is_synced(make: Make) -> None:
    leader = Leading(make, voters=(1,), flushed=False)
    assert leader.lane.begin_barrier(0) == (1, [])
    assert done(leader.sync()) == [(1, 1)]
    assert leader.lane.begin_barrier(0) == (2, [BarrierDone(2, 1)])


def test_a_leader_that_is_no_voter_does_not_confirm_its_own_barrier(make: Make) -> None:
    leader = Leading(make, voters=(2, 3))
    leader.admit(2)
    leader.admit(3)
    leader.lane.begin_barrier(0)
    assert done(leader.fetch(2)) == []
    assert done(leader.fetch(3)) == [(1, 1)]


def test_one_fetch_may_end_several_barriers_and_numbers_go_on_across_leads(make: Make) -> None:
    leader = Leading(make)
    leader.admit(2)
    assert [leader.lane.begin_barrier(0)[0] for _ in range(3)] == [1, 2, 3]
    assert done(leader.fetch(2)) == [(1, 1)]  # it answers what was sent when the first began, and is answered at once
    assert done(leader.fetch(2)) == [(2, 1), (3, 1)]
    assert leader.lane.begin_barrier(0)[0] == 4
    assert leader.lane.close(0)[1] == [BarrierDone(4, -1)]
    leader.lane.open_leader(leader.session, 0)
    assert leader.lane.begin_barrier(0)[0] == 5


def test_a_peer_on_a_new_connection_confirms_only_what_it_was_sent_there(make: Make) -> None:
    leader = Leading(make)
    leader.admit(2)
    _, out = leader.lane.begin_barrier(0)
    assert len(answers(out)) == 1  # on the old connection
    out = leader.admit(2, connection=21)
    assert done(out) == []
    assert [answer.connection for answer in answers(out)] == [21]
    assert done(leader.fetch(2, connection=21)) == [(1, 1)]


def test_a_barrier_is_refused_while_frozen(make: Make) -> None:
    leader = Leading(make)
    leader.lane.freeze(0)
    assert leader.lane.begin_barrier(0) == (AppendVerdict.FROZEN, [])
