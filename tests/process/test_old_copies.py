"""A voter whose directory is replaced by an older copy has forgotten what it acknowledged: no quorum can bear that. Who
still has it keeps it, however often it is started, so that somebody can take it from there."""

import shutil
from pathlib import Path

import pytest

from fastquorum import log
from fastquorum.errors import FatalError
from fastquorum.kernels import load
from fastquorum.storage.io.disk import RealDisk
from fastquorum.storage.log.mark import read_mark
from fastquorum.storage.names import LOG_DIRECTORY
from tests.process.cluster import Cluster, cluster

KERNELS = load("native")


def _append(quorum: Cluster, node_id: int, *values: str) -> None:
    for value in values:
        quorum.nodes[node_id].append(value, 10)
        assert "error" not in quorum.nodes[node_id].appended(value)


def _committed(quorum: Cluster, node_id: int) -> int:
    """Return the high watermark in the node's own directory."""
    mark = read_mark(RealDisk(str(quorum.path(node_id)), KERNELS), KERNELS, LOG_DIRECTORY)
    return 0 if mark is None else mark.committed


def _values(path: Path) -> list[bytes]:
    return [record.value for record in log.open(str(path)).records() if record.value is not None]


@pytest.mark.parametrize("kernels", ["native", pytest.param("pure", marks=pytest.mark.long)])
def test_what_it_knew_to_be_committed_it_keeps_however_often_it_is_started(tmp_path: Path, kernels: str) -> None:
    with cluster(tmp_path, kernels=dict.fromkeys((1, 2, 3), kernels)) as quorum:
        quorum.ready()
        leader = quorum.leader()
        forgetful, absent = (node_id for node_id in quorum.ids if node_id != leader)
        _append(quorum, leader, "first")
        quorum.kill(forgetful)
        shutil.copytree(quorum.path(forgetful), tmp_path / "copy")
        quorum.start(forgetful)
        quorum.ready(forgetful)
        quorum.kill(absent)
        acknowledged = ["second", "third"]
        _append(quorum, leader, *acknowledged)
        end = quorum.nodes[leader].status()["high_watermark"]
        quorum.nodes[leader].wait_status(lambda _: _committed(quorum, leader) >= end)
        quorum.kill(leader, forgetful)
        shutil.rmtree(quorum.path(forgetful))
        (tmp_path / "copy").rename(quorum.path(forgetful))
        quorum.start(forgetful, absent)
        quorum.ready(forgetful, absent)
        _append(quorum, quorum.wait_leader(not_in=[leader]), "without them")
        for _ in range(2):
            quorum.start(leader)
            assert quorum.nodes[leader].ended() == FatalError.exit_code
            (failed,) = quorum.nodes[leader].reported("failed")
            assert f"everything below {end} is committed: keep this directory" in failed["text"]
        assert {each.encode() for each in acknowledged} <= set(_values(quorum.path(leader)))
