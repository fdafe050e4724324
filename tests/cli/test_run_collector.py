"""What `fastquorum run --controller` has the collector do with an image that grows."""

import gc
from collections.abc import Iterator

import pytest

from fastquorum.cli.node.run import spare_what_is_kept

FULL, YOUNG = 2, 1
"""Generations."""


@pytest.fixture
def collector() -> Iterator[None]:
    """Its settings are everybody's: put back afterwards."""
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()
    gc.collect()


def looks(generation: int) -> int:
    return int(gc.get_stats()[generation]["collections"])


@pytest.mark.usefixtures("collector")
def test_what_a_controller_keeps_is_not_looked_through_again_and_again_as_it_grows() -> None:
    spare_what_is_kept()
    full, young = looks(FULL), looks(YOUNG)
    kept = [[number] for number in range(500_000)]
    assert len(kept) == 500_000
    assert looks(FULL) == full
    assert looks(YOUNG) > young, "what is young is"
