"""The campaign of verdicts, short: a few worlds; and it sees what is wrong."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from fastquorum.spark.engines.local_jobs import LocalEngine
from fastquorum.spark.stored import logs
from fastquorum.storage.identity import read_identity
from fastquorum.storage.io.disk import RealDisk
from tests.spark.verdicts.quorum import KERNELS, node_id_of
from tests.spark.verdicts.run import verdicts
from tests.spark.verdicts.worlds import faults, made


class Forgetful(LocalEngine):
    """Leaves out a replica."""

    def audit_replicas(self, path: str) -> pa.Table:
        found = super().audit_replicas(path)
        return found.filter(pc.not_equal(found["directory"], found["directory"][0]))


def test_verdicts_over_a_few_worlds_are_what_is_known_of_them(tmp_path: Path) -> None:
    lines: list[str] = []
    assert verdicts(tmp_path, 2, seed=7, by_spark=False, say=lines.append)["worlds"] == 2
    assert lines == []


def test_an_engine_that_says_something_else_is_a_wrong_verdict(tmp_path: Path) -> None:
    first, *_ = faults(2, tmp_path / "world", {"a forgetful engine": Forgetful(1)})
    assert "by a forgetful engine it is" in first


def test_what_a_majority_holds_and_no_leader_committed_may_be_undecided(tmp_path: Path) -> None:
    """In this world two voters have a later epoch than the three that share a deposed leader's records."""
    assert list(faults(20194, tmp_path / "world", {})) == []


def test_a_directory_without_a_vote_that_is_taken_for_a_voters_is_a_wrong_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this world a voter's directory was formatted under another id, and an older copy of another was put back."""
    assert list(faults(1083, tmp_path / "world", {})) == []
    monkeypatch.setattr(logs, "_directory_id", lambda meta: None)
    (first,) = faults(1083, tmp_path / "world", {})
    assert first.startswith("older_put_back in n2: the replicas' audit is silent")


def test_a_directory_that_the_worlds_have_is_one_that_its_node_reads(tmp_path: Path) -> None:
    for seed in range(6):
        world = made(seed, tmp_path)
        for each in world.replicas:
            if world.layout.is_named:
                identity = read_identity(RealDisk.open_directory(str(each.path), KERNELS))
                assert identity.node_id == node_id_of(each.node.id)
