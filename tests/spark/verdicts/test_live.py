"""Audits of directories whose nodes run: rolls, retention and truncation while they are read are no findings."""

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from fastquorum.errors import DirectoryError
from fastquorum.spark.engines.local_jobs import LocalEngine
from fastquorum.spark.pipelines.invariants import findings
from fastquorum.spark.pipelines.replicas import ReplicaVerdict
from fastquorum.spark.stored.live_logs import LOOKS_MAX
from fastquorum.storage.names import checkpoint_name
from fastquorum.types import OffsetAndEpoch
from tests.spark.verdicts.live import Live, happening_before_read

NO_ALARMS = {ReplicaVerdict.SAME, ReplicaVerdict.BEHIND, ReplicaVerdict.TAIL, ReplicaVerdict.STALE}
HAPPENINGS = [Live.retain, Live.append_and_roll, Live.cut_off]


def _nothing() -> None:
    """Its nodes do nothing more."""


def replica_alarms(root: Path) -> set[str]:
    return {row["verdict"] for row in LocalEngine(1).audit_replicas(str(root)).to_pylist()} - NO_ALARMS


def broken_promises(root: Path) -> set[str]:
    return set(findings.as_report(LocalEngine(1).audit_invariants(str(root)))["kinds"])


@pytest.mark.parametrize("happening", HAPPENINGS)
@pytest.mark.parametrize(("audit", "numbers"), [(replica_alarms, (9, 30)), (broken_promises, (14, 40))])
def test_what_a_running_node_does_while_it_is_read_is_no_finding(
    audit: Callable[[Path], set[str]], numbers: tuple[int, ...], happening: Callable[[Live], None], tmp_path: Path
) -> None:
    for number in numbers:
        live = Live(tmp_path / str(number))
        with happening_before_read(number, lambda: happening(live)) as reads:  # noqa: B023
            assert audit(live.root) == set(), number
        assert number in reads


@pytest.mark.parametrize("audit", [replica_alarms, broken_promises])
def test_what_all_append_while_they_are_found_is_no_finding(audit: Callable[[Path], set[str]], tmp_path: Path) -> None:
    """The first one was seen before it had what the last one's mark says is committed."""
    for number in range(8):
        live = Live(tmp_path / str(number))
        with happening_before_read(number, live.append_to_all):
            assert audit(live.root) == set(), number


@pytest.mark.parametrize(("audit", "numbers"), [(replica_alarms, (15, 21)), (broken_promises, (15, 40))])
def test_a_stale_tail_that_is_cut_off_between_two_reads_is_no_finding(
    audit: Callable[[Path], set[str]], numbers: tuple[int, ...], tmp_path: Path
) -> None:
    """Its mark is read before, and its log as it is then; by the end it has caught up, and so has its mark."""
    for number in numbers:
        live = Live(tmp_path / str(number))
        live.depose_first()
        steps = iter((live.cut_off_stale_tail, live.catch_up))
        with happening_before_read(number, lambda: next(steps, _nothing)(), again=True):  # noqa: B023
            assert audit(live.root) == set(), number
        assert next(steps, None) is None


def test_a_log_that_never_stands_still_is_named(tmp_path: Path) -> None:
    """Each time that it is read its snapshot goes, and there is a later one."""
    live = Live(tmp_path)
    offsets = itertools.count(1000)

    def replace_snapshot() -> None:
        (snapshot,) = live.first.log.glob("*.checkpoint")
        snapshot.rename(snapshot.with_name(checkpoint_name(OffsetAndEpoch(next(offsets), 1))))

    wanted = f"checkpoint was removed while it was read, each of {LOOKS_MAX} times: its node runs; read a copy"
    with happening_before_read(8, replace_snapshot, again=True), pytest.raises(DirectoryError, match=wanted):
        LocalEngine(1).audit_replicas(str(live.root))
