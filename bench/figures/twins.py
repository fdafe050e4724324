"""Whole quorums with native kernels over ones with pure kernels, in every workload of `bench commit`."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from bench import commit
from bench.figures.figure import Measured, Row, Setting, over

COMMITS: Final = 200


def measure(setting: Setting, directory: Path) -> Measured:
    rounds, commits = setting.pick(7, 1), setting.pick(COMMITS, 8)
    apis = setting.pick(("asyncio", "blocking"), ("asyncio",))
    levels = setting.pick(commit.IN_FLIGHT, commit.IN_FLIGHT[:2])
    measured = Measured(how={"rounds": rounds, "in_flight": list(levels), "commits_a_slice": commits})
    with ExitStack() as running:
        trios = {
            (api, kernels): running.enter_context(_trio(directory, api, kernels))
            for api in apis
            for kernels in ("native", "pure")
        }
        for trio in trios.values():
            trio.measure(1, 20)  # warm
        for level in levels:
            setting.say(f"native over pure: {level} in flight ...")
            taken: dict[tuple[str, str], list[dict[str, Any]]] = {who: [] for who in trios}
            appends = commits if level == 1 else commits * level // 4
            for turn in range(rounds):
                for who in taken if turn % 2 == 0 else reversed(taken):
                    taken[who].append(trios[who].measure(level, appends))
            for api in apis:
                measured.rows += _rows(f"{level} in flight, {api}", taken[api, "native"], taken[api, "pure"])
            measured.details[str(level)] = {", ".join(who): each for who, each in taken.items()}
        for trio in trios.values():
            trio.assert_all_values_are_there()
    return measured


def _trio(directory: Path, api: str, kernels: str) -> commit.CommitTrio:
    return commit.CommitTrio(commit.Contestant(f"{api}, {kernels}", kernels, api == "blocking"), directory)


def _rows(what: str, native: list[dict[str, Any]], pure: list[dict[str, Any]]) -> list[Row]:
    return [
        over(f"{what}: {name}", unit, [each[figure] for each in native], "pure", [each[figure] for each in pure])
        for name, unit, figure in (
            ("commits", "/s", "commits_per_s"),
            ("p50", "us", "p50_us"),
            ("p99", "us", "p99_us"),
            ("processor", "us a commit", "cpu_us_per_commit"),
        )
    ]
