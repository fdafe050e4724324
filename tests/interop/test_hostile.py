"""Hostile crowds, in short. The long form: `python -m tests.interop.campaign hostile`, with `--log` and `--kernels`."""

from collections.abc import Iterator

import pytest

from .hostile import Load, hostile_nodes, many_descriptors, withstand
from .hostile_kinds import kinds, short
from .nodes import Nodes

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    with many_descriptors(), hostile_nodes() as started:
        yield started


@pytest.mark.parametrize("name", short())
def test_a_crowd_of_each_kind_changes_no_leader(nodes: Nodes, name: str) -> None:
    figures = withstand(nodes, name, kinds()[name], Load(60, 0.3))
    assert (figures["problems"], figures["unanswered"]) == ([], 0)
