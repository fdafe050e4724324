"""Breaches of the seven rules inside the native lane, beside the scenario that catches each.

`ext/core/lane/mutation.h` names them; they exist in the checked build only. What breaks a rule from outside of a lane
(a shell that opens it too early, logs that lie about syncs) is in `mutants`, and is tried on both twins.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from fastquorum.kernels.native import _lane, _shell
from fastquorum.kernels.native._lane import HAS_MUTANTS
from tests.lane import scenarios
from tests.lane.builders import Leading
from tests.lane.scenarios import Scenario, World

_HEADER = Path(__file__).parents[2] / "ext" / "core" / "lane" / "mutation.h"


def declared() -> list[str]:
    """The mutations' names, by their numbers; the first is none."""
    found = re.search(r"enum class Mutation : int \{(.*?)\};", _HEADER.read_text(), re.DOTALL)
    assert found is not None
    return [name.strip() for name in re.sub(r"//.*", "", found[1]).split(",") if name.strip()]


class NativeMutant(NamedTuple):
    """A rule broken in the native lane. Rule 0: what all the rules are for."""

    rule: int
    name: str
    scenario: Scenario


def a_lane_refuses_a_lead_that_has_no_leader_change(world: World) -> None:
    leader = Leading(world.make, log=world.log().values(2))
    state, _ = leader.lane.close(0)
    session = leader.session._replace(epoch=7, epoch_start=state.log_end)
    try:
        leader.lane.open_leader(session, 0)
    except AssertionError:
        return
    raise AssertionError("it leads")


IN_THE_SHELL = ("samples_the_end_after_the_sync",)
"""Not in a lane: tried where the shell is, in tests/node/io."""

NATIVE_MUTANTS = (
    NativeMutant(1, "leads_without_a_leader_change", a_lane_refuses_a_lead_that_has_no_leader_change),
    NativeMutant(2, "hands_up_without_freezing", scenarios.a_hand_up_stops_appends_until_raft_has_decided),
    NativeMutant(
        2,
        "freezes_without_writing_what_gathered",
        scenarios.the_log_end_that_raft_decides_from_includes_every_accepted_append,
    ),
    NativeMutant(2, "sends_while_frozen", scenarios.nothing_is_sent_while_raft_decides),
    NativeMutant(3, "goes_on_after_close", scenarios.after_close_nothing_of_the_epoch_leaves),
    NativeMutant(3, "answers_a_parked_fetch_twice", scenarios.a_parked_fetch_is_claimed_by_one_answer),
    NativeMutant(4, "ignores_the_generation", scenarios.a_sync_from_before_a_truncation_does_not_count),
    NativeMutant(5, "forgets_a_failed_sync", scenarios.after_a_failed_sync_nothing_leaves_and_nothing_is_accepted),
    NativeMutant(5, "forgets_a_failed_sync", scenarios.after_a_failed_sync_a_follower_claims_nothing),
    NativeMutant(6, "tells_the_contacts_of_the_opening", scenarios.raft_learns_the_contacts_that_the_lane_saw),
    NativeMutant(
        7, "counts_fetches_under_way", scenarios.a_fetch_that_was_under_way_when_a_barrier_began_does_not_count
    ),
    NativeMutant(
        7, "leaves_parked_fetches_alone", scenarios.a_parked_fetch_is_answered_empty_to_provoke_one_that_counts
    ),
    NativeMutant(7, "counts_observers", scenarios.a_barrier_needs_a_majority_of_voters),
    NativeMutant(
        7,
        "confirms_before_the_epochs_start",
        scenarios.a_barrier_waits_for_the_high_watermark_to_pass_the_epochs_start,
    ),
    NativeMutant(0, "counts_its_unflushed_end", scenarios.a_leader_counts_only_what_it_has_synced_itself),
    NativeMutant(0, "fetches_past_what_is_synced", scenarios.a_fetch_claims_only_what_is_synced),
)


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Every native lane and shell of this process breaks this rule meanwhile."""
    assert HAS_MUTANTS
    for module in (_lane, _shell):
        module.plant_mutation(declared().index(name))
    try:
        yield
    finally:
        for module in (_lane, _shell):
            module.plant_mutation(0)
