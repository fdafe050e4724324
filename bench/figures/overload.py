"""Twice as much offered as the quorum can take: what is committed still, what becomes of the rest, memory, elections.

The load generator of `fastquorum load`: first the knee is searched for, as its sweep does, then knee and twice the knee
take turns, in the process of the node that leads. Once a record an append, where one thread cannot offer much more than
three nodes on the same cores take, and once in batches, where it can. How fast a refusal comes is seen by one thread
that appends without a pause, to a quorum of one.
"""

import math
from pathlib import Path
from typing import Any, Final, NamedTuple

from bench.figures.figure import Goal, Measured, Row, Setting, alone, folder, over
from bench.figures.trio import SOON, Node
from fastquorum.config import QuorumConfig
from fastquorum.load.plan import LoadPlan
from fastquorum.load.running import NOT_SENT, Wish
from fastquorum.load.runs import DOUBLINGS_MAX, Runs, Watching, keeps_up
from fastquorum.load.stage import local_stage

MIB: Final = 1 << 20
THROUGHPUT, NONE = Goal(at_least=0.9), Goal(at_most=0.0)
FLOODED: Final = 4096
"""What may wait of a flood: less than usual, so that it is full at once."""
OVERLOADED: Final = "overloaded"
QUEUE_MIB: Final = QuorumConfig().append_queue_bytes_max / MIB
Result = dict[str, Any]


class Load(NamedTuple):
    name: str
    records_per_append: int
    records_per_s: float
    """Where the search for the knee begins."""


LOADS: Final = (Load("one by one", 1, 16_000.0), Load("batches of 1,000", 1_000, 200_000.0))
QUICK: Final = (Load("one by one", 1, 40_000.0),)


def measure(setting: Setting, directory: Path) -> Measured:
    rounds, seconds = setting.pick(5, 1), setting.pick(3.0, 0.4)
    measured = Measured(how={"rounds": rounds, "slice_s": seconds, "knee_records_per_s": {}})
    for load in setting.pick(LOADS, QUICK):
        _offer(setting, folder(directory, load.name), load, rounds, seconds, measured)
    _flood(setting, folder(directory, "flood"), measured)
    return measured


def _offer(setting: Setting, directory: Path, load: Load, rounds: int, seconds: float, measured: Measured) -> None:
    plan = LoadPlan(
        records_per_s=load.records_per_s,
        records_per_append=load.records_per_append,
        seconds=seconds,
        warmup_s=setting.pick(1.0, 0.2),
    )
    watching = Watching(on_phase=lambda name, length: setting.say(f"overload, {load.name}: {name} ..."))
    with local_stage(plan, str(directory), "native", None) as stage:
        runs = Runs(stage, plan, {}, Wish(), watching)
        rate, steps = _knee(runs, bisections=setting.pick(3, 0))
        taken: list[tuple[Result, Result]] = []
        for _ in range(rounds):
            at_knee = runs.offer(rate)
            taken.append((at_knee, runs.offer(2 * rate)))
    measured.how["knee_records_per_s"][load.name] = round(rate)
    measured.rows += _rows(load.name, taken)
    if not keeps_up(steps[0], steps[0]):
        measured.notes.append(f"{load.name}: even the lightest load was too much: it stands for the knee")
    measured.details[load.name] = {
        "search": [_summary(step) for step in steps],
        "rounds": [[_summary(step) for step in pair] for pair in taken],
    }
    measured.notes += sorted({pair[1]["generator"]["how"] for pair in taken if pair[1]["generator_was_bottleneck"]})


def _knee(runs: Runs, bisections: int) -> tuple[float, list[Result]]:
    """Find the highest offered load that the quorum keeps up with, like the sweep of `fastquorum load`."""
    steps = [runs.run()]
    rate, good, bad = runs.plan.records_per_s, runs.plan.records_per_s, math.inf
    assert rate is not None
    assert good is not None
    for _ in range(DOUBLINGS_MAX):
        if not keeps_up(steps[-1], steps[0]):
            bad = rate
            break
        good, rate = rate, 2 * rate
        steps.append(runs.offer(rate))
    for _ in range(bisections if bad > good else 0):
        rate = math.sqrt(good * bad)
        steps.append(runs.offer(rate))
        good, bad = (rate, bad) if keeps_up(steps[-1], steps[0]) else (good, rate)
    return good, steps


def _rows(load: str, taken: list[tuple[Result, Result]]) -> list[Row]:
    knee, twice = ([pair[at]["achieved_per_s"] for pair in taken] for at in (0, 1))
    before, after = ([_resident_mib(pair[at]) for pair in taken] for at in (0, 1))
    grown = [max(later - earlier, 0.0) for earlier, later in zip(before, after, strict=True)]
    return [
        over(f"{load}: records committed, twice the knee offered", "/s", twice, "at the knee", knee, THROUGHPUT),
        alone(
            f"{load}: refused with Overloaded, of what was offered", "", [_share(pair[1], OVERLOADED) for pair in taken]
        ),
        alone(
            f"{load}: lost in any other way, of what was offered", "", [_other_share(pair[1]) for pair in taken], NONE
        ),
        alone(
            f"{load}: not sent as the generator was too slow, of what was offered",
            "",
            [_unsent(pair[1]) for pair in taken],
        ),
        alone(f"{load}: elections", "", [float(len(pair[1]["elections"])) for pair in taken], NONE),
        alone(f"{load}: p99 of what was taken", "us", [pair[1]["latency_us"]["p99"] for pair in taken]),
        alone(f"{load}: most resident memory of a node", "MiB", after),
        alone(
            f"{load}: its growth from the knee to twice the knee (what may wait: {QUEUE_MIB:g} MiB)",
            "MiB",
            grown,
            Goal(at_most=QUEUE_MIB),
        ),
    ]


def _share(result: Result, kind: str) -> float:
    return float(result["errors"].get(kind, 0) / max(result["appends"], 1))


def _other_share(result: Result) -> float:
    return sum(_share(result, kind) for kind in result["errors"] if kind not in (OVERLOADED, NOT_SENT))


def _unsent(result: Result) -> float:
    return _share(result, NOT_SENT)


def _resident_mib(result: Result) -> float:
    return max(each["resident_bytes_max"] for each in result["nodes"]) / MIB


def _summary(result: Result) -> Result:
    kept = ("offered_per_s", "achieved_per_s", "latency_us", "errors", "elections", "nodes", "generator_was_bottleneck")
    return {name: result[name] for name in kept}


def _flood(setting: Setting, directory: Path, measured: Measured) -> None:
    seconds = setting.pick(2.0, 0.3)
    options = {"path": str(directory / "node"), "node_id": 1, "append_queue_records_max": FLOODED, **SOON}
    node = Node("overload, flood", "blocking", options, directory / "node.stderr")
    try:
        epoch = node.ask("who")["epoch"]
        found = node.ask("flood", seconds=seconds)
        elections = node.ask("who")["epoch"] - epoch
    finally:
        node.stop()
    measured.details["flood"] = {**found, "elections": elections, "seconds": seconds}
    if found["refused"]:
        for rank in ("p50", "p99"):
            measured.rows.append(alone(f"a refusal takes, {rank}", "us", [found[f"refused_{rank}_us"]]))
    else:
        measured.notes.append("one thread that appends without a pause was not refused anything")
