"""Hostile crowds, in short: the long form is `python -m tests.interop.campaign hostile`."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from .hostile import GROWTH_MIB_MAX, RECORD_BYTES, kinds, many_descriptors, withstand
from .nodes import Nodes, running

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with many_descriptors(), running(Path(tmp_path_factory.mktemp("nodes"))) as started:
        for _ in range(8):
            started.append(os.urandom(RECORD_BYTES))
        yield started


@pytest.mark.parametrize("name", kinds())
def test_a_crowd_of_each_kind_changes_no_leader(nodes: Nodes, name: str) -> None:
    figures = withstand(nodes, name, 60, 0.3, GROWTH_MIB_MAX)
    assert (figures["problems"], figures["unanswered"]) == ([], 0)
