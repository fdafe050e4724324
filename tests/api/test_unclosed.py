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


@pytest.mark.parametrize("action", ["always", "error"])
def test_a_process_that_exits_tells_of_those_it_left_open_and_closes_their_directories(
    tmp_path: Path, action: str
) -> None:
    """All of them, even where a warning is an exception, of which Python shows the first."""
    code = """
import sys
from fastquorum import sync
opened = [sync.open(f"{sys.argv[1]}/{name}", node_id=1) for name in "abc"]
opened[2].close()
"""
    command = [sys.executable, "-W", f"{action}::ResourceWarning", "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    words = "ResourceWarning: unclosed <fastquorum.sync.Quorum of node 1 at"
    warned = [name for name in "abc" if f"{words} {tmp_path / name}>" in done.stderr]
    assert warned == ["a", "b"] if action == "always" else len(warned) == 1 and warned != ["c"]
    for name in "ab":
        assert list((tmp_path / name).glob("*/*.index")), "as a close leaves it"
