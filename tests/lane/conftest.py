"""The lanes under test: each twin over each kernel set."""

import pytest

from fastquorum.kernels import load
from fastquorum.kernels.lane import Lane, load_lane
from tests.lane.builders import Make

TWINS: dict[str, type[Lane]] = {"pure": load_lane("pure"), "native": load_lane("native")}


@pytest.fixture(scope="session", params=[("pure", "pure"), ("pure", "native"), ("native", "native")], ids="-".join)
def make(request: pytest.FixtureRequest) -> Make:
    """Makes lanes: (lane twin)-(kernel set). The native lane has its kernels inside."""
    twin, kernels = request.param
    return Make(TWINS[twin], load(kernels))
