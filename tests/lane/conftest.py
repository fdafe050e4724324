"""The lanes under test: each twin over each kernel set."""

import pytest

from fastquorum.kernels import load
from fastquorum.kernels.lane import Lane, load_lane
from tests.lane.builders import Make

TWINS: dict[str, type[Lane]] = {"pure": load_lane("pure")}


@pytest.fixture(
    scope="session", params=[(twin, kernels) for twin in TWINS for kernels in ("pure", "native")], ids="-".join
)
def make(request: pytest.FixtureRequest) -> Make:
    """Makes lanes: (lane twin)-(kernel set)."""
    twin, kernels = request.param
    return Make(TWINS[twin], load(kernels))
