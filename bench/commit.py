"""A commit by a quorum of three processes, against the C floor of the same minute.

The floor (`floor/floor.c`) is what the machine allows: three processes, blocking, ship + write + fdatasync, a majority.
The quorum is three processes of ours; whoever is elected appends, once from asyncio and once from a blocking thread.
Floor and quorums take turns within a round; ratios are taken within a round.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bench import floors
from bench.cases import Setting
from bench.figures.figure import folder
from bench.figures.trio import Trio
from bench.measure import Spread
from bench.report import table
from fastquorum.kernels import load

BATCH_OVERHEAD, RECORD_OVERHEAD, VALUE_BYTES = 61, 7, 100
IN_FLIGHT = (1, 64, 256)
GOALS = {(1, "asyncio, native"): 1.5, (1, "blocking, native"): 1.3}
"""The most that a commit's p50 may be of the floor's."""


class Contestant(NamedTuple):
    name: str
    kernels: str
    is_blocking: bool


CONTESTANTS = (
    Contestant("asyncio, native", "native", False),
    Contestant("blocking, native", "native", True),
    Contestant("asyncio, pure", "pure", False),
)


class CommitTrio(Trio):
    """Whoever leads appends, and is measured as an embedding program sees it."""

    def __init__(self, contestant: Contestant, directory: Path | str) -> None:
        api = "blocking" if contestant.is_blocking else "asyncio"
        place = folder(directory, contestant.name.replace(", ", "-"))
        super().__init__(contestant.name, place, api, kernels=contestant.kernels)
        self.appended = 0

    def measure(self, in_flight: int, appends: int) -> dict[str, Any]:
        leader = self.await_leader()
        before = self.cpu_s()
        found = leader.ask("window", in_flight=in_flight, appends=appends, batch=1)
        self.appended += appends
        return {
            "p50_us": found["p50_us"],
            "p99_us": found["p99_us"],
            "commits_per_s": found["per_s"],
            "cpu_us_per_commit": (self.cpu_s() - before) / appends * 1e6,
        }

    def assert_all_values_are_there(self) -> None:
        """On the leader, which is asked to read back what it committed."""
        found = self.await_leader().ask("values")["values"]
        assert found == self.appended, f"{self.appended} values were committed, {found} are there"


def run(setting: Setting) -> list[dict[str, Any]]:
    """One result per number in flight."""
    load("native")  # fails here, with advice, rather than in three processes
    rounds, commits = (2, 10) if setting.is_quick else (9, 250)
    contestants = CONTESTANTS[:1] if setting.is_quick else CONTESTANTS
    levels = IN_FLIGHT[:2] if setting.is_quick else IN_FLIGHT
    with (
        tempfile.TemporaryDirectory(dir=setting.directory, prefix="fastquorum-bench-") as directory,
        _trios(contestants, directory) as trios,
    ):
        for trio in trios.values():
            trio.measure(1, 20)  # warm
            trio.assert_all_values_are_there()
        results = [_level(setting, trios, level, rounds, commits, directory) for level in levels]
        for trio in trios.values():
            trio.assert_all_values_are_there()
    return results


@contextmanager
def _trios(contestants: Sequence[Contestant], directory: str) -> Iterator[dict[str, CommitTrio]]:
    with ExitStack() as running:
        yield {each.name: running.enter_context(CommitTrio(each, directory)) for each in contestants}


def _level(
    setting: Setting, trios: dict[str, CommitTrio], in_flight: int, rounds: int, commits: int, directory: str
) -> dict[str, Any]:
    print(f"commit, {in_flight} in flight ...", file=sys.stderr, flush=True)
    taken: dict[str, list[dict[str, Any]]] = {name: [] for name in trios}
    if setting.has_compiler:
        taken["C floor"] = []
    # The pace of the disk, not of the interpreter, decides how long a round takes: groups count as one commit.
    appends = commits if in_flight == 1 else commits * in_flight // 4
    for turn in range(rounds):
        names = list(taken) if turn % 2 == 0 else list(reversed(taken))
        for name in names:
            if name == "C floor":
                taken[name].append(_floor(directory, commits, in_flight))
            else:
                taken[name].append(trios[name].measure(in_flight, appends))
    return _evaluate(in_flight, taken)


def _floor(directory: str, commits: int, in_flight: int) -> dict[str, Any]:
    """Groups of `in_flight` records a commit; rates count records."""
    size = BATCH_OVERHEAD + in_flight * (RECORD_OVERHEAD + VALUE_BYTES)
    done = subprocess.run(
        [str(floors.commit_program()), directory, str(commits), str(size)], check=True, capture_output=True, text=True
    )
    figures: dict[str, Any] = json.loads(done.stdout)
    figures["commits_per_s"] *= in_flight
    return figures


def _evaluate(in_flight: int, taken: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    floor = taken.get("C floor")
    contestants = []
    for name, rounds in taken.items():
        entry: dict[str, Any] = {"name": name}
        for figure in ("p50_us", "p99_us", "commits_per_s", "cpu_us_per_commit"):
            if figure in rounds[0]:
                entry[figure] = Spread.of([each[figure] for each in rounds])._asdict()
        if floor is not None and name != "C floor":
            for figure in ("p50_us", "p99_us", "commits_per_s"):
                pairs = zip(rounds, floor, strict=True)
                entry[f"{figure}_over_floor"] = Spread.of([ours[figure] / c[figure] for ours, c in pairs])._asdict()
            goal = GOALS.get((in_flight, name))
            if goal is not None:
                entry["goal"] = f"p50 <= {goal:g} x C floor"
                entry["met"] = entry["p50_us_over_floor"]["median"] <= goal
        contestants.append(entry)
    result: dict[str, Any] = {"in_flight": in_flight, "contestants": contestants}
    native, pure = (taken.get(f"asyncio, {kernels}") for kernels in ("native", "pure"))
    if native and pure:
        for figure in ("p50_us", "commits_per_s"):
            pairs = zip(native, pure, strict=True)
            result[f"native_over_pure_{figure}"] = Spread.of([a[figure] / b[figure] for a, b in pairs])._asdict()
    return result


def commit_table(results: Sequence[dict[str, Any]]) -> list[str]:
    """A Markdown table, a contestant a line."""
    rows = [("in flight", "who", "p50 us", "p99 us", "commits/s", "CPU us a commit", "p50 / floor", "rate / floor", "")]
    for result in results:
        for entry in result["contestants"]:
            goal = f"{entry['goal']}: {'met' if entry['met'] else 'NOT met'}" if "goal" in entry else ""
            rows.append(
                (
                    str(result["in_flight"]),
                    entry["name"],
                    f"{entry['p50_us']['median']:.0f}",
                    f"{entry['p99_us']['median']:.0f}",
                    f"{entry['commits_per_s']['median']:,.0f}",
                    f"{entry['cpu_us_per_commit']['median']:.0f}" if "cpu_us_per_commit" in entry else "",
                    _spread(entry.get("p50_us_over_floor")),
                    _spread(entry.get("commits_per_s_over_floor")),
                    goal,
                )
            )
    return table(rows)


def _spread(spread: dict[str, float] | None) -> str:
    return "" if spread is None else f"{spread['median']:.2f} x ({spread['low']:.2f}-{spread['high']:.2f})"
