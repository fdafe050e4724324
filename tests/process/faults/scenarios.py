"""The long forms of the faults: each asserts what the short one does, and reports what the fault cost, as a ratio to
the same quorum without it, measured in alternating stretches of one run.
"""

import random
import signal
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.process.cluster import Cluster, cluster
from tests.process.faults.consumers import StoppedConsumer, forget_peak, peak_resident_bytes, resident_bytes
from tests.process.faults.figures import Figures, figures, ratio
from tests.process.faults.observers import observer
from tests.process.faults.settings import ONE_SEGMENT, ROOMY
from tests.process.faults.slow_disk import with_slow_disks
from tests.process.history import History
from tests.process.judged import under_load
from tests.process.processes import WAIT_S

SLOW_S = 0.1
WRITERS = 4
Report = dict[str, Any]
Tell = Callable[[str], None]


class Plan:
    """How long, and where."""

    def __init__(self, root: Path, seconds: float, rounds: int, megabytes: int, seed: int, tell: Tell) -> None:
        self.root = root
        self.seconds = seconds
        """Length of a measured stretch."""
        self.rounds = rounds
        self.megabytes = megabytes
        self.random = random.Random(seed)
        self.tell = tell


def stretch(history: History, seconds: float) -> Figures:
    """Let it run for so long."""
    begin_s = time.monotonic()
    time.sleep(seconds)
    return figures(history, begin_s, time.monotonic())


@contextmanager
def undisturbed(quorum: Cluster) -> Iterator[None]:
    """Nobody is deposed."""
    before = (quorum.leader(), quorum.epoch())
    yield
    assert (quorum.leader(), quorum.epoch()) == before, "there was an election"


def slow_follower(plan: Plan) -> Report:
    """One follower's syncs take 100 ms longer; against the quorum with it down, and with all well."""
    rounds: list[dict[str, Figures]] = []
    with with_slow_disks(plan.root, settings=ROOMY) as (quorum, disks):
        victim = next(node_id for node_id in quorum.ids if node_id != quorum.leader())
        with under_load(quorum, writers=WRITERS) as (_, history), undisturbed(quorum):
            stretch(history, 1.0)
            for number in range(plan.rounds):
                found = {"well": stretch(history, plan.seconds)}
                disks[victim].slow_down(SLOW_S)
                found["slow"] = stretch(history, plan.seconds)
                disks[victim].heal()
                quorum.kill(victim)
                found["down"] = stretch(history, plan.seconds)
                quorum.start(victim, environment=disks[victim].environment)
                quorum.ready(victim)
                quorum.nodes[victim].wait_caught_up(quorum.nodes[quorum.leader()].status()["high_watermark"])
                rounds.append(found)
                slow, down = found["slow"].acked_per_s, found["down"].acked_per_s
                plan.tell(f"round {number + 1}: {slow:,.0f}/s with it slow, {down:,.0f}/s with it down")
    return {
        "rounds": [{name: each.as_json() for name, each in one.items()} for one in rounds],
        "ratios": [ratio(rounds, "slow", "down"), ratio(rounds, "slow", "well")],
    }


def hung_leader(plan: Plan) -> Report:
    """The leader's disk hangs; the time until the next acknowledgement, against the stall that is borne."""
    stall_ms, until_ms = 500, list[float]()
    settings = {**ROOMY, "disk.stall.max.ms": stall_ms, "log.mark.interval.ms": 50}
    with with_slow_disks(plan.root, settings=settings) as (quorum, disks), under_load(quorum) as (_, history):
        for number in range(plan.rounds):
            assert history.wait_acked(50, WAIT_S)
            old, epoch = quorum.leader(), quorum.epoch()
            began_s = time.monotonic()
            disks[old].hang()
            quorum.wait_leader(not_in=[old], after_epoch=epoch)
            assert history.wait_acked(5, WAIT_S)
            until_ms.append((time.monotonic() - began_s) * 1e3)
            disks[old].heal()
            quorum.nodes[old].wait(lambda each, above=epoch: each["event"] == "ready" and each["epoch"] > above)  # type: ignore[misc]
            plan.tell(f"round {number + 1}: replaced after {until_ms[-1]:.0f} ms")
    over = [each / stall_ms for each in until_ms]
    return {
        "stall_ms": stall_ms,
        "acknowledged_again_ms": [round(each, 1) for each in until_ms],
        "ratios": [
            {
                "of": "hang until the fifth commit after it",
                "to": "disk.stall.max",
                "median": round(statistics.median(over), 2),
                "max": round(max(over), 2),
            }
        ],
    }


def late_voter(plan: Plan) -> Report:
    """A voter comes when there is a lot to fetch: what the others commit meanwhile, against before."""
    quorum = Cluster(plan.root / "quorum", settings=ROOMY)
    try:
        quorum.start(1, 2)
        quorum.ready(1, 2)
        with under_load(quorum, writers=WRITERS, value_bytes=10_000) as (_, history), undisturbed(quorum):
            while history.count("acked") < plan.megabytes * 100:
                stretch(history, 1.0)
                plan.tell(f"{history.count('acked') // 100} of {plan.megabytes} MB are in the log")
            before = stretch(history, plan.seconds)
            end_offset = quorum.nodes[quorum.leader()].status()["high_watermark"]
            quorum.start(3)
            quorum.ready(3)
            begin_s = time.monotonic()
            quorum.nodes[3].wait_caught_up(end_offset)
            meanwhile = figures(history, begin_s, time.monotonic())
    finally:
        quorum.close()
    return {
        "megabytes": plan.megabytes,
        "before": before.as_json(),
        "meanwhile": meanwhile.as_json(),
        "ratios": [ratio([{"before": before, "meanwhile": meanwhile}], "meanwhile", "before")],
    }


def stopped_consumers(plan: Plan) -> Report:
    """1, 10, 100 consumers that each ask for 200 answers of 1 MiB and read none: memory, and what others commit."""
    steps: list[Report] = []
    rounds: list[dict[str, Figures]] = []
    with cluster(plan.root / "quorum", settings=ROOMY) as quorum:
        leader = quorum.leader()
        pid = quorum.nodes[leader].pid
        with under_load(quorum, writers=WRITERS, value_bytes=10_000) as (_, history), undisturbed(quorum):
            assert history.wait_acked(1000, WAIT_S)
            for count in (1, 10, 100):
                well = stretch(history, plan.seconds)
                forget_peak(pid)
                before = resident_bytes(pid)
                with ExitStack() as stopped:
                    for _ in range(count):
                        stopped.enter_context(StoppedConsumer(quorum.endpoint(leader), 200, 1 << 20))
                    beside = stretch(history, plan.seconds)
                    peak = peak_resident_bytes(pid)
                rounds.append({"well": well, "beside": beside})
                grown = (peak - before) / (1 << 20)
                steps.append({"consumers": count, "grown_mib": round(grown, 1), "beside": beside.as_json()})
                rates = f"{beside.acked_per_s:,.0f}/s beside them, {well.acked_per_s:,.0f}/s without"
                plan.tell(f"{count} consumers: {grown:.0f} MiB more, {rates}")
    return {"steps": steps, "ratios": [ratio(rounds, "beside", "well")]}


def joining_observers(plan: Plan) -> Report:
    """Ten observers join one after the other, and stay: what is committed with them, against without."""
    with (
        cluster(plan.root / "quorum", settings=ROOMY) as quorum,
        ExitStack() as joined,
        under_load(quorum, writers=WRITERS) as (_, history),
        undisturbed(quorum),
    ):
        assert history.wait_acked(1000, WAIT_S)
        without = stretch(history, plan.seconds)
        begin_s = time.monotonic()
        for number in range(10):
            joined.enter_context(observer(quorum, plan.root / f"observer{number}", 100 + number))
        joining = figures(history, begin_s, time.monotonic())
        beside = stretch(history, plan.seconds)
        plan.tell(f"{without.acked_per_s:,.0f}/s without, {beside.acked_per_s:,.0f}/s with ten")
        assert history.count("refused") == 0
    one = {"without": without, "joining": joining, "with": beside}
    return {
        "stretches": {name: each.as_json() for name, each in one.items()},
        "ratios": [ratio([one], "joining", "without"), ratio([one], "with", "without")],
    }


def pauses(plan: Plan) -> Report:
    """Random nodes are stopped for random times, shorter and longer than the fetch timeout: nothing is lost, and who is
    stopped for less than it, or only follows, deposes nobody."""
    fetch_s, elections = 1.0, 0
    settings = {**ROOMY, "controller.quorum.fetch.timeout.ms": int(fetch_s * 1e3)}
    with cluster(plan.root / "quorum", settings=settings) as quorum, under_load(quorum) as (_, history):
        for number in range(plan.rounds * 4):
            assert history.wait_acked(20, WAIT_S)
            leader, epoch = quorum.leader(), quorum.epoch()
            victim = plan.random.choice(quorum.ids)
            pause_s = plan.random.choice([0.1, 0.4, 1.5, 3.0]) * fetch_s
            quorum.nodes[victim].signal(signal.SIGSTOP)
            time.sleep(pause_s)
            quorum.nodes[victim].signal(signal.SIGCONT)
            assert history.wait_acked(20, WAIT_S)
            elections += quorum.epoch() != epoch
            if victim != leader or pause_s < 0.5 * fetch_s:
                assert quorum.epoch() == epoch, f"node {victim}, stopped for {pause_s} s, cost an election"
            plan.tell(f"pause {number + 1}: node {victim} for {pause_s:.1f} s, epoch {quorum.epoch()}")
    return {"pauses": plan.rounds * 4, "elections": elections}


def computing(plan: Plan) -> Report:
    """A Python thread that computes beside the leader's node, and C that holds its interpreter: a client's commits."""
    rounds: list[dict[str, Figures]] = []
    with cluster(plan.root / "quorum", settings=ONE_SEGMENT) as quorum:
        process = quorum.nodes[quorum.leader()]
        with under_load(quorum) as (_, history), undisturbed(quorum):
            stretch(history, 1.0)
            for number in range(plan.rounds):
                found = {"idle": stretch(history, plan.seconds)}
                for what, began, ended in (("compute", "computing", "computed"), ("hold", "holding", "held")):
                    before = len(process.events)
                    process.tell(f"{what} {plan.seconds}")
                    process.wait_event(began, after=before)
                    begin_s = time.monotonic()
                    process.wait_event(ended, after=before)
                    found[began] = figures(history, begin_s, time.monotonic())
                    assert history.wait_acked(20, WAIT_S)
                rounds.append(found)
                beside, held = found["computing"].acked_per_s, found["holding"].acked
                plan.tell(f"round {number + 1}: {beside:,.0f}/s beside Python, {held} while C held the interpreter")
    return {
        "rounds": [{name: each.as_json() for name, each in one.items()} for one in rounds],
        "ratios": [ratio(rounds, "computing", "idle"), ratio(rounds, "holding", "idle")],
    }
