"""The benchmarks run, small: everybody gives the same result, and the JSON says what it promises. Nothing is timed."""

import json

import pytest

from bench import floors
from bench.__main__ import main
from bench.measure import NANOSECONDS, Case, Contender, Goal, Role, evaluate, measure

needs_compiler = pytest.mark.skipif(not floors.has_compiler(), reason="the yardsticks in C need a compiler")


def contender(name: str, role: Role, ns: float = 1.0, result: int = 1) -> Contender:
    return Contender(name, role, lambda repeat: ns, lambda: result)


def test_nothing_is_timed_while_results_differ() -> None:
    case = Case("add", "1", NANOSECONDS, [contender("native", Role.NATIVE), contender("peer", Role.PEER, result=2)])
    with pytest.raises(AssertionError, match="add, 1: peer differs from native"):
        measure(case, rounds=5, round_ms=0.1)


def test_ratios_are_taken_within_a_round_and_told_with_their_spread() -> None:
    contenders = [contender(name, Role(role)) for name, role in (("native", "native"), ("a", "peer"), ("b", "peer"))]
    goals = [Goal(against=("a", "b"), at_least=2.0), Goal(at_most=15.0)]
    case = Case("add", "1", NANOSECONDS, contenders, goals)
    outcome = evaluate(case, {"native": [10.0, 20.0, 10.0], "a": [30.0, 80.0, 90.0], "b": [40.0, 40.0, 20.0]})
    assert outcome.values["native"] == (10.0, 10.0, 20.0)
    assert [(ratio.against, ratio.ratio) for ratio in outcome.ratios] == [
        ("a", (4.0, 3.0, 9.0)),
        ("b", (2.0, 2.0, 4.0)),
    ]
    assert [(verdict.value.median, verdict.met) for verdict in outcome.verdicts] == [(2.0, True), (10.0, True)]
    assert [str(goal) for goal in goals] == [">= 2 x the best peer", "<= 15"]


@needs_compiler
def test_every_kernel_case_runs_and_reports(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kernels", "--quick", "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert {"date", "commit", "cpu", "kernel", "file_system", "fsync", "build", "peers"} <= report["facts"].keys()
    assert report["quick"] is True
    cases = report["kernels"]
    assert len(cases) > 30
    for case in cases:
        assert case["contenders"]
        for each in [*case["contenders"], *case["ratios"], *case["goals"]]:
            assert 0 < each["low"] <= each["median"] <= each["high"]
    native_over_pure = {case["group"] for case in cases for ratio in case["ratios"] if ratio["over"] == "pure"}
    assert {"CRC-32C", "high watermark", "recovery scan", "encode v2 batch from columns"} <= native_over_pure


@needs_compiler
def test_a_quorum_commits_beside_its_floor_and_keeps_what_it_committed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["commit", "--quick", "--format", "json"]) == 0
    levels = json.loads(capsys.readouterr().out)["commit"]
    assert [level["in_flight"] for level in levels] == [1, 64]
    for level in levels:
        ours, floor = level["contestants"]
        assert (ours["name"], floor["name"]) == ("asyncio, native", "C floor")
        for figure in ("p50_us", "p99_us", "commits_per_s"):
            assert 0 < floor[figure]["low"] <= floor[figure]["high"]
            assert 0 < ours[f"{figure}_over_floor"]["low"] <= ours[f"{figure}_over_floor"]["high"]
