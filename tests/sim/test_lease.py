"""Members on the simulator, their life as it ships: two processes want to be one broker, and the controller that one of
them hears is replaced behind its back. At most one acts at a time (C17), and the other is let in, in time."""

import pytest

from fastquorum.config import SECOND
from tests.sim import lease_mutants
from tests.sim.campaign import play
from tests.sim.lease_scenes import SESSION_US, Scene, hand_over, lose_the_answer, stop_the_leader


@pytest.fixture(params=["pure", "native"])
def scene(request: pytest.FixtureRequest) -> Scene:
    return Scene(native=request.param == "native")


def test_who_is_cut_off_with_the_leader_by_silence_gives_up_before_another_is_let_in(scene: Scene) -> None:
    hand_over(scene)


def test_nor_do_resets_and_refusals_which_elect_at_once_let_two_act(scene: Scene) -> None:
    hand_over(scene, resets=True)


def test_nor_does_a_leader_whose_python_hangs_while_its_native_threads_go_on(scene: Scene) -> None:
    hand_over(scene, hangs=True)


def test_nor_do_clocks_that_run_a_tenth_fast_and_a_tenth_slow() -> None:
    hand_over(Scene(is_skewed=True), resets=True)


def test_nor_does_one_that_beats_as_kip_343_has_it() -> None:
    hand_over(Scene(metadata_heartbeats=True))


def test_a_leader_that_was_stopped_acknowledges_nothing_by_what_came_before(scene: Scene) -> None:
    stop_the_leader(scene)


@pytest.mark.parametrize("way", ["leaves", "is not ready"])
def test_who_asked_to_be_fenced_and_heard_nothing_of_it_has_its_session_under_the_next_controller(way: str) -> None:
    lose_the_answer(way)


def test_a_controller_that_is_followed_answers_without_a_record_for_each(scene: Scene) -> None:
    before = scene.members.context.metadata.end_offset
    scene.run(SESSION_US)
    assert scene.acting is not None
    seconds = SESSION_US // SECOND
    assert scene.members.context.metadata.end_offset - before <= 2 * seconds + 1, (
        "the no-op of every half second, and no more"
    )


@pytest.mark.parametrize("name", lease_mutants.MUTANTS)
def test_a_scene_catches_what_it_is_for(name: str) -> None:
    caught = play(name)
    assert caught is not None, "two may act"
    assert caught.invariant in ("C17", "C8"), caught
