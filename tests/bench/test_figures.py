"""`bench figures`, small: every figure runs beside its yardstick and says what its JSON promises. Nothing is timed."""

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import fastquorum
from bench import floors
from bench.figures import scale
from bench.figures.command import FIGURES, main
from bench.figures.figure import Figure, Goal, Measured, Row, Setting, alone, over
from bench.figures.pump import Pump
from bench.figures.repeating import BareAwaits, flood, tasks, threads, window
from bench.measure import Spread
from fastquorum import sync
from fastquorum.errors import RecordTooLarge

Result = dict[str, Any]


pytestmark = pytest.mark.long


def run(name: str, directory: Path, capsys: pytest.CaptureFixture[str]) -> Result:
    """The figure's JSON, after what all figures promise was looked at; nothing is left behind."""
    assert main(["--quick", "--only", name, "--format", "json", "--directory", str(directory)]) == 0
    report = json.loads(capsys.readouterr().out)
    assert {"facts", "quick", "figures"} == report.keys()
    (found,) = report["figures"]
    assert (found["name"], found["failed"]) == (name, "")
    assert {"title", "took_s", "how", "rows", "notes", "details"} <= found.keys()
    assert found["rows"]
    for row in found["rows"]:
        for spread in (row["value"], row["yardstick"], row["ratio"]):
            assert spread is None or spread["low"] <= spread["median"] <= spread["high"]
        assert (row["yardstick"] is None) == (row["ratio"] is None) == (row["over"] == "")
        assert row["met"] in ((None,) if row["goal"] == "" else (True, False))
    assert not list(directory.iterdir())
    return dict(found)


def values(found: Result, text: str) -> list[float]:
    """Medians of the rows that are called so."""
    medians = [row["value"]["median"] for row in found["rows"] if text in row["what"]]
    assert medians, f"no row is called {text!r}: {[row['what'] for row in found['rows']]}"
    return medians


def test_barriers_are_held_against_commits_of_the_same_callers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = run("barriers", tmp_path, capsys)
    assert [row["over"] for row in found["rows"]] == ["commits, 64 threads", "commits, a thread's window of 64"]
    assert [row["goal"] for row in found["rows"]] == [">= 5", ""]
    assert all(rate > 0 for rate in values(found, "read barriers"))
    assert all(each["count"] >= 64 for slices in found["details"]["blocking"].values() for each in slices)


@pytest.mark.skipif(not floors.has_compiler(), reason="the yardsticks in C need a compiler")
def test_a_start_is_held_against_reading_the_same_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run("recovery", tmp_path, capsys)
    assert 15 << 20 < found["how"]["log_bytes"] < 17 << 20
    with_goal = {row["what"] for row in found["rows"] if row["goal"]}
    assert with_goal == {"start, closed before", "start, killed before", "log.open and verify"}
    assert {row["over"] for row in found["rows"] if row["over"]} == {
        "reading the files (readinto)",
        "reading memory, mapped (C)",
    }


def test_idle_nodes_are_measured_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run("idle", tmp_path, capsys)
    assert len(values(found, "leader: processor")) == 1
    assert len(values(found, "follower: processor")) == 2
    assert all(0 <= percent < 100 for percent in values(found, "processor"))
    assert all(5 < mib < 1000 for mib in values(found, "resident"))
    assert all(rate >= 0 for rate in values(found, "wake-ups"))


def test_what_an_embedding_program_waits_for_is_held_against_its_bounds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = run("embedding", tmp_path, capsys)
    assert [row["yardstick"]["median"] for row in found["rows"]] == [500, 200, 50]
    assert [row["goal"] for row in found["rows"]] == ["<= 1"] * 3
    assert all(row["value"]["low"] >= 0 for row in found["rows"])
    assert all(each["ready_s"] > 0 and each["closed_s"] > 0 for each in found["details"]["rounds"])


def test_after_each_kill_somebody_else_commits_in_a_later_epoch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = run("failover", tmp_path, capsys)
    assert found["how"]["bound_s"] == 0.4
    kills = found["details"]["kills"]
    assert len(kills) == found["how"]["kills"] == 2
    assert all(each["seconds"] > 0 and each["epochs"] >= 1 for each in kills)
    (p99,) = values(found, "p99")
    assert p99 == pytest.approx(max(each["seconds"] for each in kills), abs=1e-6)  # told in microseconds


def test_cost_is_told_by_records_epochs_and_observers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run("scale", tmp_path, capsys)
    assert all(cost > 0 for cost in values(found, "10,000 records, "))
    assert all(cost > 0 for cost in values(found, "4 epochs, "))
    assert len(values(found, "slope")) == 4
    assert all(cost > 0 for cost in values(found, "5 observers, "))
    few, many = (found["details"]["observers"][level] for level in ("1", "5"))
    # Every observer and both followers get every byte.
    assert many[0]["sent_bytes"] / few[0]["sent_bytes"] == pytest.approx((5 + 2) / (1 + 2), rel=0.01)
    assert len([row for row in found["rows"] if row["goal"]]) == 5


def test_native_quorums_are_held_against_pure_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run("native over pure", tmp_path, capsys)
    assert {row["over"] for row in found["rows"]} == {"pure"}
    assert all(rate > 0 for rate in values(found, "1 in flight, asyncio: commits"))
    assert all(rate > 0 for rate in values(found, "64 in flight, asyncio: commits"))


def test_commits_go_on_while_python_computes_and_while_it_is_held(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = run("slow python", tmp_path, capsys)
    assert all(p99 > 0 for p99 in values(found, "raw Produce, 1 in flight"))
    assert all(p99 > 0 for p99 in values(found, "confluent-kafka, 64 in flight"))
    assert found["details"]["held"]["commits"] > 0
    assert values(found, "elections") == [0.0]


def test_what_is_too_much_is_refused_and_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run("overload", tmp_path, capsys)
    assert found["how"]["knee_records_per_s"]["one by one"] > 0
    assert values(found, "records committed")[0] > 0
    assert all(0 <= share <= 1 for share in values(found, "of what was offered"))
    assert found["details"]["flood"]["accepted"] > 0
    assert found["details"]["flood"]["elections"] == 0


@pytest.mark.skipif(not floors.has_compiler(), reason="the yardsticks in C need a compiler")
def test_batches_are_held_against_the_floor_of_as_many_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = run("bytes", tmp_path, capsys)
    assert [row["over"] for row in found["rows"]] == ["", "C floor"]
    assert all(rate > 1000 for rate in values(found, "records in batches"))


# --- arithmetic, and what is refused ----------------------------------------------------------------------------------


def test_ratios_are_taken_within_a_round_and_goals_hold_for_their_median() -> None:
    row = over("x", "/s", [10.0, 30.0, 20.0], "y", [10.0, 10.0, 5.0], Goal(at_least=3.0))
    assert row.ratio == (3.0, 1.0, 4.0)
    assert (row.met, str(row.goal)) == (True, ">= 3")
    assert alone("x", "s", [1.0, 3.0, 2.0], Goal(at_most=1.9)).met is False
    assert alone("x", "s", [1.0]).met is None


def test_a_cost_that_grows_with_its_size_has_slope_one_and_a_flat_one_zero() -> None:
    def fitted(costs: list[float]) -> float:
        sizes = (1_000, 10_000, 100_000)
        pairs = [(size, Spread(cost, cost, cost)) for size, cost in zip(sizes, costs, strict=True)]
        return scale.slope_row("x", pairs).value.median

    assert fitted([1.0, 1.0, 1.0]) == pytest.approx(0.0, abs=1e-9)
    assert fitted([1.0, 10.0, 100.0]) == pytest.approx(1.0)


def test_a_figure_that_fails_is_told_and_ends_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(setting: Setting, directory: Path) -> Measured:
        from bench.compare.cluster import ContenderFailed

        raise ContenderFailed("node 1 has ended; it said: no")

    def works(setting: Setting, directory: Path) -> Measured:
        return Measured([Row("x", "s", Spread(1.0, 1.0, 1.0))])

    figures = (Figure("first", "fails", fails), Figure("second", "works", works))
    monkeypatch.setattr("bench.figures.command.FIGURES", figures)
    saved = tmp_path / "saved.json"
    assert main(["--directory", str(tmp_path), "--save", str(saved)]) == 1
    shown = capsys.readouterr().out
    assert "lost: node 1 has ended" in shown
    assert "| x " in shown
    assert [each["failed"] for each in json.loads(saved.read_text())["figures"]] == [
        "node 1 has ended; it said: no",
        "",
    ]


def test_wrong_usage_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no figure's name contains 'nosuch'"):
        main(["--only", "nosuch"])
    with pytest.raises(SystemExit, match="--directory"):
        main(["--directory", str(tmp_path / "nowhere")])
    with pytest.raises(SystemExit, match="cannot be written"):
        main(["--save", str(tmp_path / "nowhere" / "file.json")])


def test_all_goals_that_nothing_else_measures_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    shown = capsys.readouterr().out
    names = [each.name for each in FIGURES]
    assert len(set(names)) == len(names) > 1
    for line, name in zip(shown.splitlines(), names, strict=True):
        assert line.startswith(f"{name} ")


# --- the loops that run in a node's process ---------------------------------------------------------------------------


def test_a_pump_appends_while_its_node_leads_and_notes_the_first_commit(tmp_path: Path) -> None:
    with sync.open(tmp_path / "node", node_id=1) as quorum:
        quorum.wait_ready(30)
        before = time.monotonic_ns()
        pump = Pump(quorum, appends_per_ms=1)
        deadline = time.monotonic() + 30
        while not (epochs := pump.epochs()) and time.monotonic() < deadline:
            time.sleep(0.01)  # between two looks
        (epoch, found), *others = epochs.items()
        assert (int(epoch), others) == (quorum.epoch, [])
        assert before <= found["first_ns"] <= time.monotonic_ns()
        assert found["commits"] >= 1


def test_a_window_and_a_flood_account_for_every_append(tmp_path: Path) -> None:
    with sync.open(tmp_path / "node", node_id=1, append_queue_records_max=64) as quorum:
        quorum.wait_ready(30)
        start = quorum.high_watermark
        found = window(quorum.append_nowait, in_flight=4, appends=10, batch=5)
        assert (found["count"], quorum.high_watermark) == (50, start + 50)
        found = flood(quorum.append_nowait, seconds=0.2)
        assert found["refused"] > 0
        assert quorum.high_watermark == start + 50 + found["accepted"]


def test_tasks_and_threads_call_until_the_time_is_up_and_tell_what_fails(tmp_path: Path) -> None:
    async def call_async() -> None:
        async with await fastquorum.open(tmp_path / "async", node_id=1) as quorum:
            await quorum.wait_ready(30)
            start = quorum.high_watermark
            found = await tasks(lambda: quorum.append(b"x"), in_flight=8, seconds=0.05)
            assert found["count"] == quorum.high_watermark - start
            assert (await tasks(quorum.read_barrier, in_flight=8, seconds=0.05))["count"] >= 8
            assert (await tasks(BareAwaits().wait, in_flight=8, seconds=0.05))["count"] >= 8

    asyncio.run(call_async())
    with sync.open(tmp_path / "node", node_id=1) as quorum:
        quorum.wait_ready(30)
        start = quorum.high_watermark
        found = threads(lambda: quorum.append(b"x"), in_flight=8, seconds=0.05)
        assert found["count"] == quorum.high_watermark - start >= 8
        with pytest.raises(RecordTooLarge):
            threads(lambda: quorum.append(bytes(20 << 20)), in_flight=2, seconds=0.05)


def test_what_computes_in_a_process_ends_with_its_standard_input() -> None:
    command = [sys.executable, "-m", "bench.figures.computing"]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root, env=os.environ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == b"begun\n"
        process.stdin.close()
        assert process.wait(30) == 0


def test_an_image_is_folded_kept_asked_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run("image", tmp_path, capsys)
    assert found["how"]["partitions"] == 10_000
    assert [row["goal"] for row in found["rows"]] == [">= 500000", "<= 2048", "", "", "", "<= 50"], found["rows"]
    assert all(row["value"]["median"] > 0 for row in found["rows"])
    assert found["how"]["snapshot_bytes"] > 100 * found["how"]["partitions"]
