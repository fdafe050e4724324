"""Seeds as rows: the reports of `sim sweep`, and of what failed the least that still fails."""

import json
from typing import Any

import pytest

from fastquorum import sim
from fastquorum.cli.main import main
from fastquorum.spark.pipelines.sim_sweep import SCHEMA, as_report, simulated
from tests.sim.campaign import MUTANTS
from tests.sim.mutants import Patches


@pytest.mark.long
def test_rows_are_the_reports_of_the_simulator() -> None:
    rows = simulated(range(3, 5))
    assert rows.schema == SCHEMA
    expected = list(sim.sweep(range(3, 5)))
    assert rows["trace_hash"].to_pylist() == [each.trace_hash for each in expected]
    assert [json.loads(text) for text in rows["faults"].to_pylist()] == [each.faults for each in expected]
    report = as_report(rows)
    assert (report["seeds"], report["ok"], report["failed"]) == (2, 2, [])
    assert report["totals"]["events"] == sum(each.events for each in expected)
    assert report["faults"]["kill"] == sum(each.faults.get("kill", 0) for each in expected)


def test_a_seed_that_fails_is_shrunk_and_its_commands_show_it_again(capsys: pytest.CaptureFixture[str]) -> None:
    with Patches() as patches:
        MUTANTS["K1"].apply(patches)  # votes are forgotten
        report = as_report(simulated((1,), kernels="pure"))
        (failed,) = report["failed"]
        reports = [again(failed[name], capsys) for name in ("repro", "shrunk_repro")]
    assert report["invariants"] == {"S3": 1}
    assert [each["invariant"] for each in reports] == ["S3", "S3"]
    assert [each["events"] for each in reports] == [failed["events"], failed["shrunk_events"]]
    assert failed["shrunk_events"] < failed["events"]
    assert failed["shrunk_trace_tail"] == reports[1]["trace_tail"]


def again(command: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """What the command says."""
    assert main([*command.split()[1:], "--kernels", "pure", "--format", "json"]) == 1
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    return report


def test_a_sweep_on_this_machine_shrinks_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    with Patches() as patches:
        MUTANTS["K1"].apply(patches)
        words = ["sim", "sweep", "--seeds", "1:2", "--jobs", "1", "--kernels", "pure", "--shrink"]
        assert main(words) == 1
        expected = as_report(simulated((1,), kernels="pure"))["failed"][0]
    output = capsys.readouterr().out.splitlines()
    assert f"shrunk to {expected['shrunk_events']} events: {expected['shrunk_repro']}" in output


def test_unshrunk_it_is_only_told() -> None:
    with Patches() as patches:
        MUTANTS["K1"].apply(patches)
        (row,) = simulated((1,), kernels="pure", shrinks=False).to_pylist()
    assert (row["ok"], row["invariant"], row["shrunk_repro"]) == (False, "S3", None)


@pytest.mark.long
def test_clusters_are_simulated_too() -> None:
    rows = simulated((1,), controller=True)
    assert rows["brokers"][0].as_py() > 1
    assert rows["trace_hash"].to_pylist() == [sim.run(1, controller=True).trace_hash]
