"""The watchdog of the replica's thread: it counts its own looks, so that lost time is not taken for a thread that
hangs."""

import threading
from collections.abc import Callable, Iterator
from itertools import count, repeat

import pytest

from fastquorum.node.io.watchdog import LOOKS, Watchdog

WAIT_S = 20.0
FIRST = 1
"""The look that sees the turn for the first time."""


def hung_at(turns: Iterator[int], looks: int) -> list[int]:
    """After which looks it said that the thread hangs."""
    seen, done, told = count(1), threading.Event(), list[int]()
    last = 0

    def turn() -> int:
        nonlocal last
        last = next(seen)
        if last > looks:
            done.set()
        return next(turns)

    watchdog = Watchdog(stall_us_max=4_000, turn=turn, on_hung=lambda: told.append(last), name="watchdog")
    watchdog.start()
    assert done.wait(WAIT_S)
    watchdog.stop()
    return told


def endless(values: Callable[[int], int]) -> Iterator[int]:
    return map(values, count())


def test_a_turn_that_does_not_end_is_told_once() -> None:
    assert hung_at(repeat(7), 5 * LOOKS) == [FIRST + LOOKS]


@pytest.mark.parametrize(
    "turns",
    [
        pytest.param(repeat(8), id="it waits for events"),
        pytest.param(endless(lambda look: 2 * look + 1), id="it is always at work, and gets on"),
        pytest.param(endless(lambda look: 2 * (look // LOOKS) + 1), id="each turn is just short enough"),
    ],
)
def test_a_thread_that_gets_on_is_left_alone(turns: Iterator[int]) -> None:
    assert hung_at(turns, 5 * LOOKS) == []


def test_the_next_turn_that_hangs_is_told_too() -> None:
    turns = endless(lambda look: 1 if look < 2 * LOOKS else 3)
    assert hung_at(turns, 5 * LOOKS) == [FIRST + LOOKS, FIRST + 3 * LOOKS]
