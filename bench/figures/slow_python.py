"""What a busy Python costs those who commit by Kafka's protocol: their p99 with a thread that computes beside each
node.

The thread competes with its node's Python for the interpreter, and with everybody for the cores. To tell the two apart,
the same computing is done in three processes of its own as well. Then the leader's interpreter is held by one call of
C: what clients commit meanwhile, and who is elected.
"""

import importlib.util
import json
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Final

from bench.compare.cluster import Process
from bench.compare.workload import Workload, parse
from bench.figures.figure import Goal, Measured, Row, Setting, alone, over
from bench.figures.trio import SOON, Trio

ANSWER_S: Final = 120.0
ONE: Final = Workload("1 in flight", 1)
MANY: Final = Workload("64 in flight", 64)
QUIET, THREADS, PROCESSES = "nothing computes", "a thread in each node computes", "three processes compute"
P99, NO_ELECTION = Goal(at_most=1.5), Goal(at_most=0.0)
LONGEST_PART: Final = Goal(at_most=0.2)
"""Part of the time that the interpreter is held: a longer pause between two answers means that commits stopped."""
BEFORE_S, AFTER_S = 1.0, 0.5


def measure(setting: Setting, directory: Path) -> Measured:
    rounds, seconds, hold_s = setting.pick(7, 1), setting.pick(1.5, 0.1), setting.pick(5.0, 0.5)
    measured = Measured(how={"rounds": rounds, "slice_s": seconds, "held_s": hold_s})
    with (
        Trio("slow python", directory, options={**SOON, "fetch_timeout_us": 2_000_000}) as trio,
        ExitStack() as running,
    ):
        clients = _clients(running, trio, directory, measured, setting.pick((ONE, MANY), (MANY,)))
        taken: dict[tuple[str, str], list[dict[str, float]]] = {}
        warm = setting.pick(1, 0)
        for turn in range(-warm, rounds):
            setting.say(f"slow python: round {turn + 1} of {rounds} ...")
            for condition in _turned((QUIET, THREADS, PROCESSES), turn):
                with _computing(trio, condition, directory):
                    for name, client, workload in clients:
                        found = _p99(name, client, workload, seconds)
                        if turn >= 0:  # what comes before warms up
                            taken.setdefault((name, condition), []).append(found)
        measured.rows += _rows([name for name, _, _ in clients], taken)
        measured.details["computing"] = {f"{name}; {condition}": each for (name, condition), each in taken.items()}
        setting.say(f"slow python: the leader's interpreter is held for {hold_s:g} s ...")
        _hold(trio, clients[0][1], hold_s, measured)
    return measured


def _clients(
    running: ExitStack, trio: Trio, directory: Path, measured: Measured, workloads: Sequence[Workload]
) -> list[tuple[str, Process, Workload]]:
    endpoint = trio.endpoint_of(trio.await_leader())
    raw = running.enter_context(_client("bench.figures.producing", endpoint, directory))
    clients = [("raw Produce, 1 in flight", raw, ONE)]
    if importlib.util.find_spec("confluent_kafka") is None:
        measured.notes.append("left out: confluent-kafka is not installed: pip install '.[bench]'")
    else:
        kafka = running.enter_context(_client("bench.compare.programs.kafka_client", endpoint, directory))
        clients += [(f"confluent-kafka, {each.name}", kafka, each) for each in workloads]
    return clients


@contextmanager
def _client(module: str, endpoint: str, directory: Path) -> Iterator[Process]:
    client = Process(module, [sys.executable, "-m", module, endpoint], directory / f"{module}.stderr", {})
    try:
        yield client
    finally:
        client.ask_to_end()
        client.stop(speaks=True)


@contextmanager
def _computing(trio: Trio, condition: str, directory: Path) -> Iterator[None]:
    with ExitStack() as running:
        if condition == THREADS:
            for node in trio.nodes:
                node.ask("compute", on=True)
                running.callback(node.ask, "compute", on=False)
        if condition == PROCESSES:
            command = [sys.executable, "-m", "bench.figures.computing"]
            for number in range(len(trio.nodes)):
                process = Process("computing", command, directory / f"computing-{number}.stderr", {})
                running.callback(process.stop, speaks=True)
                running.callback(process.ask_to_end)
                process.ask({}, ANSWER_S)  # it says that it has begun; what it is asked does not matter
        yield


def _turned(conditions: Sequence[str], turn: int) -> Sequence[str]:
    return conditions if turn % 2 == 0 else conditions[::-1]


def _p99(name: str, client: Process, workload: Workload, seconds: float) -> dict[str, float]:
    figures = parse(name, client.ask(workload.request(seconds), ANSWER_S))
    assert figures.errors == 0, f"{name}: {figures.errors} errors: {figures.error}"
    ranks = figures.percentiles_us
    return {"p50_us": ranks[50.0], "p99_us": ranks[99.0], "per_s": figures.commits_per_s}


def _rows(names: Sequence[str], taken: dict[tuple[str, str], list[dict[str, float]]]) -> list[Row]:
    rows = []
    for name in names:
        p99 = {
            condition: [each["p99_us"] for each in taken[name, condition]] for condition in (QUIET, THREADS, PROCESSES)
        }
        what = f"p99, {name}: {THREADS}"
        rows.append(over(what, "us", p99[THREADS], QUIET, p99[QUIET], P99))
        rows.append(over(what, "us", p99[THREADS], PROCESSES, p99[PROCESSES]))
    return rows


# --- the interpreter held ---------------------------------------------------------------------------------------------


def _hold(trio: Trio, raw: Process, hold_s: float, measured: Measured) -> None:
    leader = trio.await_leader()
    epochs = {node.ask("who")["epoch"] for node in trio.nodes}
    answers: list[str] = []
    command = {"do": "record", "seconds": BEFORE_S + hold_s + AFTER_S}
    recording = threading.Thread(target=lambda: answers.append(raw.ask(command, ANSWER_S)))
    recording.start()
    threading.Event().wait(BEFORE_S)  # commits without the call, to compare with
    held = leader.ask("hold", seconds=hold_s)
    recording.join()
    assert answers, "the producer failed: its message is above"
    done = [tuple(each) for each in json.loads(answers[0])["done"]]
    error = json.loads(answers[0])["error"]
    after = {node.ask("who")["epoch"] for node in trio.nodes}
    begin, end = held["begin_ns"], held["end_ns"]
    inside = [each for each in done if each[0] >= begin and each[1] <= end]
    before = [each for each in done if each[1] < begin]
    pause = _longest_pause(begin, end, [answered for _, answered in inside])
    rate = len(inside) / (end - begin) * 1e9
    usual = len(before) / max(begin - before[0][0], 1) * 1e9 if before else 0.0
    name = f"the leader's interpreter held for {hold_s:g} s"
    measured.rows += [
        alone(f"{name}: elections", "", [float(max(after) - min(epochs))], NO_ELECTION),
        alone(f"{name}: longest time without a commit, of it", "", [pause / (end - begin)], LONGEST_PART),
    ]
    if usual:
        measured.rows.append(over(f"{name}: commits by a raw Produce client", "/s", [rate], "just before", [usual]))
    if error:
        measured.notes.append(f"the producer ended early: {error}")
    measured.details["held"] = {"commits": len(inside), "longest_pause_s": pause / 1e9, "standing": held}


def _longest_pause(begin: int, end: int, answered: Sequence[int]) -> int:
    edges = [begin, *answered, end]
    return max(later - earlier for earlier, later in pairwise(edges))
