"""The persistent vector against a dict: any changes, in any order, and what came before stays as it was."""

from hypothesis import given
from hypothesis import strategies as st

from fastquorum.controller.image.vector import WIDTH, Vector

POSITIONS = st.one_of(st.integers(0, 2 * WIDTH), st.integers(0, WIDTH**3))
CHANGES = st.lists(st.dictionaries(POSITIONS, st.integers(0, 5), max_size=6), max_size=8)


@given(CHANGES)
def test_it_holds_what_a_dict_holds(rounds: list[dict[int, int]]) -> None:
    vector, model = Vector[int](), dict[int, int]()
    for changes in rounds:
        before, held = vector, dict(model)
        vector = vector.updated(changes)
        model.update(changes)
        assert dict(before.items()) == held, "a change reached what came before it"
        assert list(vector.items()) == sorted(model.items())
        assert list(vector) == [model[at] for at in sorted(model)]
        assert len(vector) == len(model)
        for at in [*model, 0, WIDTH, WIDTH**2 - 1, WIDTH**3, -1]:
            assert vector.get(at) == model.get(at)


@given(CHANGES, CHANGES)
def test_changes_are_those_of_dicts(ones: list[dict[int, int]], others: list[dict[int, int]]) -> None:
    shared = Vector[int]().updated({1: 1, WIDTH: 2})
    one, other = shared, shared
    for changes in ones:
        one = one.updated(changes)
    for changes in others:
        other = other.updated(changes)
    a, b = dict(one.items()), dict(other.items())
    expected = [(at, a.get(at), b.get(at)) for at in sorted({*a, *b}) if a.get(at) != b.get(at)]
    assert list(one.changes_to(other)) == expected
    assert (one == other) is (a == b)


def test_a_change_copies_one_path_and_shares_the_rest() -> None:
    vector = Vector[object]().updated({at: object() for at in range(WIDTH**2)})
    changed = vector.updated({5: object()})
    assert [ours is theirs for ours, theirs in zip(vector._root, changed._root, strict=True)] == [
        False,
        *[True] * (WIDTH - 1),
    ]
