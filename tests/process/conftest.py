"""A live quorum for tests that leave it as they found it: nobody may lose the lead to what they do."""

from collections.abc import Iterator

import pytest

from tests.process.cluster import Cluster, cluster


@pytest.fixture(scope="package")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three nodes that run all through the package's tests."""
    with cluster(tmp_path_factory.mktemp("live")) as quorum:
        yield quorum


@pytest.fixture
def steady(live: Cluster) -> Iterator[Cluster]:
    """The live quorum; afterwards the same leader leads the same epoch."""
    before = (live.leader(), live.epoch())
    yield live
    assert live.alive == list(live.ids)
    assert (live.leader(), live.epoch()) == before
