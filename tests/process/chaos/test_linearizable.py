"""The checker itself: right about histories whose answer is known, and about all small ones by brute force."""

import itertools
import math
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from tests.process.chaos.linearizable import Append, Barrier, Operation, violations


def test_appends_one_after_the_other_are_linearizable() -> None:
    history = [Append(b"a", 0, 1, 10), Append(b"b", 2, 3, 11)]
    assert violations(history, {b"a": 10, b"b": 11}) == []


def test_appends_at_the_same_time_may_be_in_either_order() -> None:
    history = [Append(b"a", 0, 3, 11), Append(b"b", 1, 2, 10)]
    assert violations(history, {b"a": 11, b"b": 10}) == []


def test_an_append_before_one_that_had_been_acknowledged_is_found() -> None:
    history = [Append(b"a", 0, 1, 11), Append(b"b", 2, 3, 10)]
    [found] = violations(history, {b"a": 11, b"b": 10})
    assert "b'b'" in found
    assert "began after" in found


def test_an_acknowledged_append_that_is_gone_or_moved_is_found() -> None:
    assert violations([Append(b"a", 0, 1, 10)], {}) != []
    assert violations([Append(b"a", 0, 1, 10)], {b"a": 11}) != []


def test_a_barrier_that_misses_what_was_acknowledged_is_found() -> None:
    history: list[Operation] = [Append(b"a", 0, 1, 10), Barrier(2, 3, 10)]
    assert violations(history, {b"a": 10}) != []


def test_a_barrier_may_miss_what_is_under_way() -> None:
    history: list[Operation] = [Append(b"a", 0, 2, 10), Barrier(1, 3, 10)]
    assert violations(history, {b"a": 10}) == []


def test_a_barrier_that_covers_what_began_after_it_is_found() -> None:
    history: list[Operation] = [Barrier(0, 1, 11), Append(b"a", 2, 3, 10)]
    assert violations(history, {b"a": 10}) != []


def test_a_later_barrier_that_covers_less_is_found() -> None:
    assert violations([Barrier(0, 1, 11), Barrier(2, 3, 10)], {}) != []
    assert violations([Barrier(0, 1, 11), Barrier(2, 3, 11)], {}) == []


def test_an_unanswered_append_may_be_there_late_or_not_at_all() -> None:
    history: list[Operation] = [Append(b"a", 0), Barrier(1, 2, 10), Append(b"b", 3, 4, 10)]
    assert violations(history, {b"b": 10}) == []
    assert violations(history, {b"b": 10, b"a": 11}) == []


def test_an_unanswered_append_is_not_there_before_it_was_asked_for() -> None:
    history: list[Operation] = [Append(b"b", 0, 1, 10), Append(b"a", 2)]
    assert violations(history, {b"a": 9, b"b": 10}) != []


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Operation], dict[bytes, int]]:
    """Up to five operations at random times, acknowledged at random places of a log that holds some of them."""
    count = draw(st.integers(1, 5))
    offsets = draw(st.permutations(range(count)))
    operations: list[Operation] = []
    log: dict[bytes, int] = {}
    for number in range(count):
        began = draw(st.integers(0, 6))
        ended = began + draw(st.integers(1, 4))
        kind = draw(st.sampled_from(["append", "unanswered", "absent", "barrier"]))
        value = b"%d" % number
        if kind == "barrier":
            operations.append(Barrier(began, ended, draw(st.integers(0, count))))
            continue
        operations.append(Append(value, began, ended, offsets[number]) if kind == "append" else Append(value, began))
        if kind != "absent":
            log[value] = offsets[number]
    return operations, log


def _explains(order: Sequence[Operation], log: dict[bytes, int]) -> bool:
    """Is this order one in which a single log could have done it, and does it agree with real time?"""
    for earlier, later in itertools.combinations(order, 2):
        if later.ended_s < earlier.began_s:
            return False
    covered = -1.0
    for operation in order:
        at = operation.end_offset - 0.5 if isinstance(operation, Barrier) else log[operation.value]
        if at < covered:
            return False
        covered = at
    return True


@given(histories())
def test_it_agrees_with_a_search_through_all_orders(case: tuple[list[Operation], dict[bytes, int]]) -> None:
    operations, log = case
    acting = [each for each in operations if isinstance(each, Barrier) or each.value in log]
    searched = any(_explains(order, log) for order in itertools.permutations(acting))
    assert (violations(operations, log) == []) == searched


def test_infinitely_long_operations_constrain_nobody() -> None:
    history: list[Operation] = [Append(b"a", 0, math.inf), Append(b"b", 1, 2, 3)]
    assert violations(history, {b"a": 7, b"b": 3}) == []
