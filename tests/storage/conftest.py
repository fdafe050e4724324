"""What the tests of storage share."""

import pytest

from fastquorum.kernels import Kernels, load


@pytest.fixture(scope="session", params=["pure", "native"])
def kernels(request: pytest.FixtureRequest) -> Kernels:
    """Each kernel set in turn."""
    return load(request.param)


@pytest.fixture(scope="session")
def pure() -> Kernels:
    """For tests of what no kernel has a part in."""
    return load("pure")
