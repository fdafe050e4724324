"""The leader-epoch cache, against a model that looks at every entry."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastquorum.errors import CorruptionError
from fastquorum.kernels import Kernels

ENTRIES = [(1, 0), (3, 10), (4, 20), (9, 25)]


def test_lookups(kernels: Kernels) -> None:
    cache = kernels.EpochCache(ENTRIES)
    assert len(cache) == 4
    assert (cache.latest_epoch, cache.latest_start) == (9, 25)
    assert [cache.epoch_for(offset) for offset in (-1, 0, 9, 10, 19, 20, 25, 1000)] == [-1, 1, 1, 3, 3, 4, 9, 9]
    answers = [cache.end_offset_for(epoch, 30) for epoch in (0, 1, 2, 3, 4, 5, 8, 9, 10)]
    assert answers == [(0, 0), (1, 10), (1, 10), (3, 20), (4, 25), (4, 25), (4, 25), (9, 30), (9, 30)]


def test_an_empty_cache(kernels: Kernels) -> None:
    cache = kernels.EpochCache()
    assert (len(cache), cache.latest_epoch, cache.latest_start, cache.entries()) == (0, -1, -1, [])
    assert cache.epoch_for(0) == -1
    assert cache.end_offset_for(0, 0) == (-1, -1)
    cache.truncate_to(0)
    cache.truncate_before(10)
    assert cache.entries() == []


def test_assignments(kernels: Kernels) -> None:
    cache = kernels.EpochCache()
    assert cache.assign(0, 0)
    assert not cache.assign(0, 50), "the latest epoch goes on"
    assert cache.assign(2, 0), "an epoch without a record is replaced"
    assert cache.assign(5, 7)
    assert cache.entries() == [(2, 0), (5, 7)]
    for epoch, start, reason in ((4, 9, "epoch"), (-1, 9, "epoch"), (6, 6, "offset"), (6, -1, "offset")):
        with pytest.raises(CorruptionError) as caught:
            cache.assign(epoch, start)
        assert caught.value == CorruptionError(reason, offset=start)
    assert cache.entries() == [(2, 0), (5, 7)]
    for epoch, start, reason in ((-1, 0, "epoch"), (0, -1, "offset")):
        with pytest.raises(CorruptionError) as caught:
            kernels.EpochCache().assign(epoch, start)
        assert caught.value == CorruptionError(reason, offset=start)


@pytest.mark.parametrize("entries", [[(-1, 0)], [(0, -1)], [(1, 0), (1, 5)], [(1, 5), (2, 5)], [(2, 0), (1, 5)]])
def test_entries_must_ascend(kernels: Kernels, entries: list[tuple[int, int]]) -> None:
    with pytest.raises(CorruptionError) as caught:
        kernels.EpochCache(entries)
    assert caught.value == CorruptionError("epoch", offset=entries[-1][1])


def test_truncation(kernels: Kernels) -> None:
    for end, kept in ((26, 4), (25, 3), (11, 2), (10, 1), (0, 0), (-1, 0)):
        cache = kernels.EpochCache(ENTRIES)
        cache.truncate_to(end)
        assert cache.entries() == ENTRIES[:kept]
    for start, entries in (
        (-1, ENTRIES),
        (0, ENTRIES),
        (5, [(1, 5), *ENTRIES[1:]]),
        (10, ENTRIES[1:]),
        (11, [(3, 11), *ENTRIES[2:]]),
        (1000, [(9, 1000)]),
    ):
        cache = kernels.EpochCache(ENTRIES)
        cache.truncate_before(start)
        assert cache.entries() == entries


@settings(max_examples=100)
@given(
    epochs=st.sets(st.integers(0, 30), max_size=8),
    starts=st.sets(st.integers(0, 60), min_size=8, max_size=8),
    epoch=st.integers(0, 32),
    offset=st.integers(-1, 70),
)
def test_against_a_model(kernels: Kernels, epochs: set[int], starts: set[int], epoch: int, offset: int) -> None:
    entries = list(zip(sorted(epochs), sorted(starts), strict=False))
    cache = kernels.EpochCache(entries)
    assert cache.entries() == entries
    covering = [e for e, start in entries if start <= offset]
    assert cache.epoch_for(offset) == (covering[-1] if covering else -1)
    below = [e for e, _ in entries if e <= epoch]
    above = [start for e, start in entries if e > epoch]
    if not entries:
        expected = (-1, -1)
    elif not above:
        expected = (entries[-1][0], 99)
    else:
        expected = (below[-1] if below else epoch, above[0])
    assert cache.end_offset_for(epoch, 99) == expected
