"""A handle that nobody closed is told of, as Python tells of files: by a ResourceWarning that names it."""

import asyncio
import gc
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

import fastquorum as fq
from fastquorum import sync
from tests.api.nodes import CLUSTER_ID, QUICK
from tests.broker.clusters import OFTEN, one_controller


def warned(work: Callable[[], object]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        work()
        gc.collect()
    return [str(each.message) for each in caught if each.category is ResourceWarning]


def test_it_names_the_node_and_its_directory(tmp_path: Path) -> None:
    nodes = []

    def forgotten() -> None:
        quorum = sync.open(tmp_path, **QUICK, node_id=1)
        nodes.append(quorum._node)

    assert warned(forgotten) == [f"unclosed <fastquorum.sync.Quorum of node 1 at {tmp_path}>"]
    nodes.pop().stop()

    async def left_open() -> None:
        quorum = await fq.open(tmp_path, **QUICK, node_id=1)
        nodes.append(quorum._node)

    found = warned(lambda: asyncio.run(left_open()))
    assert found == [f"unclosed <fastquorum.api.quorum.Quorum of node 1 at {tmp_path}>"]
    nodes.pop().stop()


def test_of_one_that_was_closed_nothing_is_said(tmp_path: Path) -> None:
    def closed() -> None:
        with sync.open(tmp_path, **QUICK, node_id=1):
            pass
        sync.open(tmp_path, **QUICK, node_id=1).close()

    assert warned(closed) == []


def test_a_membership_is_told_of_too(tmp_path: Path) -> None:
    members = []
    with one_controller(tmp_path) as bootstrap:

        def forgotten() -> None:
            membership = sync.join(bootstrap=bootstrap, broker_id=7, cluster_id=CLUSTER_ID, **OFTEN)
            members.append(membership._member)

        assert warned(forgotten) == ["unclosed <fastquorum.broker.io.blocking.Membership of broker 7>"]
        members.pop().abort()


@pytest.mark.parametrize("is_closed", [True, False])
def test_a_process_that_exits_tells_of_those_it_left_open(tmp_path: Path, is_closed: bool) -> None:
    code = f"import sys; from fastquorum import sync; q = sync.open(sys.argv[1], node_id=1); {is_closed} and q.close()"
    command = [sys.executable, "-W", "always::ResourceWarning", "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert ("ResourceWarning: unclosed <fastquorum.sync.Quorum of node 1" in done.stderr) is not is_closed
