"""What a node draws by chance is from where it is asked for, and all of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastquorum.node.io.chance import Chance


@given(st.integers(0, 2**64), st.integers(1, 2**70))
def test_a_number_is_below_what_is_asked_for(seed: int, stop: int) -> None:
    chance = Chance(seed)
    assert all(0 <= chance.randrange(stop) < stop for _ in range(20))


@pytest.mark.parametrize("stop", [1, 2, 3, 5, 8, 13])
def test_every_number_comes_about_as_often(stop: int) -> None:
    chance = Chance(7)
    drawn = [chance.randrange(stop) for _ in range(2_000 * stop)]
    assert all(1_700 < drawn.count(number) < 2_300 for number in range(stop)) or stop == 1
    assert set(drawn) == set(range(stop))


def test_there_is_nothing_below_zero_to_draw() -> None:
    with pytest.raises(AssertionError, match="below 0"):
        Chance(1).randrange(0)
