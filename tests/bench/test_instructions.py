"""`bench instructions`: what is made of callgrind's files and of a baseline. Callgrind itself runs in CI."""

import json
from pathlib import Path

import pytest

from bench import instructions
from bench.instructions import CALLS, JITTER, MORE_CALLS, Change, compare, main, per_call

BUILD = "x86_64, release, sse42, GNU 12.2.0, Python 3.11"


def dump(calls: int, kernel: str, total: int) -> str:
    head = f"version: 1\ndesc: Trigger: Client Request: {calls}, {kernel}\n\nevents: Ir"
    return f"{head}\nfn=(1) f\n+1 {total}\n\ntotals: {total}\n"


def test_a_call_is_the_difference_of_two_runs_so_that_what_is_done_once_falls_out() -> None:
    once = 5000
    files = [dump(calls, "split frames, 200 B x 320", once + 700 * calls) for calls in (MORE_CALLS, CALLS)]
    end = "desc: Trigger: Program termination\ntotals: 10\n"
    assert per_call([*files, end]) == {"split frames, 200 B x 320": 700.0}


def test_only_growth_beyond_the_tolerance_is_a_breach() -> None:
    changes = compare({"a": 1030.0, "b": 1031.0, "c": 969.0, "d": 5.0}, dict.fromkeys("abc", 1000.0))
    assert [each.verdict(0.03) for each in changes] == ["", "GREW", "shrank", "new"]
    assert changes[3] == Change("d", 5.0, None)


def test_the_interpreters_jitter_is_no_breach_however_small_the_kernel() -> None:
    changes = compare({"a": 322.0 + JITTER, "b": 323.0 + JITTER}, {"a": 322.0, "b": 322.0})
    assert [each.verdict(0.03) for each in changes] == ["", "GREW"]


def run(monkeypatch: pytest.MonkeyPatch, baseline: Path, counts: dict[str, float], *arguments: str) -> int:
    monkeypatch.setattr(instructions, "BASELINE", baseline)
    monkeypatch.setattr(instructions, "count", lambda moved=0: (counts, BUILD))
    return main(list(arguments))


def test_the_baseline_of_this_build_decides_and_another_build_has_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    baseline = tmp_path / "instructions.json"
    baseline.write_text(json.dumps({"another build": {"a": 1.0}}))
    assert run(monkeypatch, baseline, {"a": 1000.0}) == 0
    assert "no baseline for" in capsys.readouterr().err
    assert run(monkeypatch, baseline, {"a": 1000.0, "b": 100.0}, "--update") == 0
    assert json.loads(baseline.read_text()) == {"another build": {"a": 1.0}, BUILD: {"a": 1000.0, "b": 100.0}}
    assert run(monkeypatch, baseline, {"a": 1010.0, "b": 90.0}) == 0
    capsys.readouterr()
    assert run(monkeypatch, baseline, {"a": 1040.0, "b": 100.0}) == 1
    assert "more than 3% and 25 instructions over the baseline: a" in capsys.readouterr().err
    assert run(monkeypatch, baseline, {"a": 1040.0, "b": 100.0}, "--tolerance", "0.05") == 0
    assert run(monkeypatch, baseline, {"a": 1000.0}) == 1
    assert "in the baseline, not counted: b" in capsys.readouterr().err


def test_a_kernel_that_grew_is_counted_again_elsewhere_in_memory_and_its_least_count_decides(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    baseline = tmp_path / "instructions.json"
    baseline.write_text(json.dumps({BUILD: {"a": 1000.0, "b": 1000.0}}))
    monkeypatch.setattr(instructions, "BASELINE", baseline)
    rounds = [{"a": 1040.0, "b": 1000.0}, {"a": 1050.0, "b": 1090.0}, {"a": 1010.0, "b": 1000.0}]
    counted: list[int] = []
    monkeypatch.setattr(instructions, "count", lambda moved=0: (counted.append(moved), (rounds[moved], BUILD))[1])
    assert main([]) == 0
    assert counted == [0, 1, 2]
    rounds[2]["a"] = 1040.0
    assert main([]) == 1
    rounds[0]["a"] = 1030.0
    counted.clear()
    assert main([]) == 0
    assert counted == [0]


def test_the_stored_baseline_is_readable_and_counts_something() -> None:
    stored = json.loads(instructions.BASELINE.read_text())
    assert stored
    assert all(count > 0 for build in stored.values() for count in build.values())
