"""The campaign of verdicts, short: a few worlds; and it sees what is wrong."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.spark.local_jobs import LocalEngine
from tests.spark.verdicts.run import verdicts
from tests.spark.verdicts.worlds import faults


class Forgetful(LocalEngine):
    """Leaves out a replica."""

    def audit_replicas(self, path: str) -> pa.Table:
        found = super().audit_replicas(path)
        return found.filter(pc.not_equal(found["directory"], found["directory"][0]))


def test_verdicts_over_a_few_worlds_are_what_is_known_of_them(tmp_path: Path) -> None:
    said: list[str] = []
    assert verdicts(tmp_path, 2, seed=7, by_spark=False, say=said.append)["worlds"] == 2
    assert said == []


def test_an_engine_that_says_something_else_is_a_wrong_verdict(tmp_path: Path) -> None:
    first, *_ = faults(2, tmp_path / "world", {"a forgetful engine": Forgetful(1)})
    assert "by a forgetful engine it is" in first


def test_what_a_majority_holds_and_no_leader_committed_may_be_undecided(tmp_path: Path) -> None:
    """In this world two voters have a later epoch than the three that share a deposed leader's records."""
    assert list(faults(20194, tmp_path / "world", {})) == []
