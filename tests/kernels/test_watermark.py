"""The high watermark, against the definition: the largest offset that a majority has."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastquorum.errors import VoterCountError
from fastquorum.kernels import Kernels

VOTERS = 40
"""Another leader may take in more voters than a quorum is formatted with."""


@settings(max_examples=150)
@given(ends=st.lists(st.integers(-1, 20), min_size=1, max_size=VOTERS), epoch_start=st.integers(-1, 20))
def test_against_the_definition(kernels: Kernels, ends: list[int], epoch_start: int) -> None:
    reached = max(end for end in ends if sum(other >= end for other in ends) > len(ends) // 2)
    expected = reached if reached > epoch_start else -1
    assert kernels.high_watermark(ends, epoch_start) == expected
    assert kernels.high_watermark(tuple(ends), epoch_start) == expected


def test_large_offsets(kernels: Kernels) -> None:
    assert kernels.high_watermark([2**63 - 1, 2**62, 2**63 - 2], 2**62) == 2**63 - 2


def test_one_record_of_the_own_epoch_must_be_on_a_majority(kernels: Kernels) -> None:
    assert kernels.high_watermark([10, 10, 7], 10) == -1
    assert kernels.high_watermark([11, 10, 7], 10) == -1
    assert kernels.high_watermark([11, 11, 7], 10) == 11


def test_without_voters_there_is_none(kernels: Kernels) -> None:
    with pytest.raises(VoterCountError) as caught:
        kernels.high_watermark([], 0)
    assert caught.value.count == 0
