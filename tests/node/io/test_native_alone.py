"""How long native threads lead on while Python takes nothing from them: then they take and send nothing more, so that
others elect."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .native_rig import Rig, native, result, until

NOT_LEADER = -2


@pytest.fixture
def rigs(tmp_path: Path) -> Iterator[Callable[[int], Rig]]:
    made: list[Rig] = []

    def make(alone_us_max: int) -> Rig:
        made.append(Rig(tmp_path, alone_us_max=alone_us_max))
        return made[-1]

    yield make
    for rig in made:
        rig.close()


def test_a_python_that_takes_no_news_gives_up_the_lead_and_hears_of_it_once(rigs: Callable[[int], Rig]) -> None:
    rig = rigs(40_000)
    rig.lead(voters=(1,))
    assert result(rig.append()) == 1, "while it is early"
    until(lambda: rig.shell.is_frozen, "the lane stands")
    assert rig.shell.append_slot(b"refused", native.Slot()) == NOT_LEADER
    assert rig.shell.take_given_up()
    assert not rig.shell.take_given_up()
    rig.shell.close()
    rig.take_back()
    assert not rig.shell.take_given_up()


def test_a_follower_is_nobody_to_give_up(rigs: Callable[[int], Rig]) -> None:
    rig = rigs(4_000)
    rig.follow(rig.connect(1))
    rig.peers[0].question()
    assert not rig.shell.take_given_up()
