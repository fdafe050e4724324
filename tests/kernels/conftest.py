"""The kernel sets under test. Native is required: where it cannot be loaded its tests fail, they do not skip."""

from typing import NamedTuple

import pytest

from fastquorum.kernels import Kernels, load


class Twins(NamedTuple):
    pure: Kernels
    native: Kernels


@pytest.fixture(scope="session", params=["pure", "native"])
def kernels(request: pytest.FixtureRequest) -> Kernels:
    """Each kernel set in turn."""
    return load(request.param)


@pytest.fixture(scope="session")
def twins() -> Twins:
    """Both kernel sets at once, for tests that feed them the same input."""
    return Twins(load("pure"), load("native"))
