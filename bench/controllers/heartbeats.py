"""What heartbeats cost the active controller: its processor time for each, while as many come in a second as from
20,000 brokers that beat every 2 s.

An open loop on an absolute schedule, a tick's heartbeats at a time, each broker on a connection of its own. Each is
answered and checked.
"""

import asyncio
import time
from itertools import cycle
from pathlib import Path
from typing import Final, NamedTuple

from bench.compare.workload import BadAnswer
from bench.controllers import brokers
from bench.controllers.brokers import Brokers
from bench.controllers.quorums import KAFKA, OURS, Quorum
from bench.controllers.rounds import Setting, contenders, rows, take_turns
from bench.controllers.wire import unless_lost
from bench.facts import percentile
from bench.figures.figure import Goal, Measured, alone

PER_S: Final = 10_000
BROKERS: Final = 1_000
INTERVAL_S: Final = 2.0
TICK_S: Final = 0.005
GOAL_US: Final = Goal(at_most=25)
"""10,000 a second on a quarter of a core."""
QUICK_PER_S: Final = 500
QUICK_BROKERS: Final = 20


class Beaten(NamedTuple):
    count: int
    seconds: float
    cpu_us: float
    """Processor time of the active controller for a heartbeat."""
    p50_us: float
    p99_us: float


def measure(setting: Setting, directory: Path) -> Measured:
    measured = Measured()

    def turn(quorum: Quorum, warm_s: float) -> Beaten:
        return asyncio.run(_turn(setting, quorum, warm_s))

    turns = contenders(setting, measured, {}, turn, (OURS, KAFKA))
    taken = take_turns(setting, measured, directory, turns)
    measured.rows += [
        alone("processor time of one", "us", [each.cpu_us for each in taken[OURS].values()], GOAL_US)
    ] * bool(taken[OURS])
    measured.rows += rows("processor time of one", "us", taken, lambda found: found.cpu_us, against=(KAFKA,))
    measured.rows += rows("answered, p99 since it was due", "us", taken, lambda found: found.p99_us, against=(KAFKA,))
    per_s, count = _rate(setting), _count(setting)
    measured.how = {"per_s": per_s, "brokers": count, "seconds": setting.seconds, "rounds": setting.rounds}
    measured.details = {name: [each._asdict() for each in by_round.values()] for name, by_round in taken.items()}
    return measured


def _rate(setting: Setting) -> int:
    return setting.pick(PER_S, QUICK_PER_S)


def _count(setting: Setting) -> int:
    return setting.pick(BROKERS, QUICK_BROKERS)


async def _turn(setting: Setting, quorum: Quorum, warm_s: float) -> Beaten:
    leader = quorum.active()
    count = _count(setting)
    async with await Brokers.join(quorum.endpoints[leader], brokers.ids(count), INTERVAL_S, count) as joined:
        await _beat(joined, _rate(setting), warm_s)
        before = quorum.cpu_us()
        began = time.perf_counter()
        took_us = await _beat(joined, _rate(setting), setting.seconds)
        seconds = time.perf_counter() - began
        after = quorum.cpu_us()
    node = f"node {leader}"
    cpu_us = (after[node] - before[node]) / len(took_us)
    return Beaten(len(took_us), seconds, cpu_us, percentile(took_us, 50), percentile(took_us, 99))


async def _beat(joined: Brokers, per_s: int, seconds: float) -> list[float]:
    """How long each took, in microseconds, since it was due. BadAnswer: one is refused."""
    total, sent = max(1, int(per_s * seconds)), 0
    took_us: list[float] = []
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    turns = cycle(joined.all.values())
    began = time.perf_counter()

    def on_response(due: float) -> None:
        took_us.append((time.perf_counter() - due) * 1e6)
        if len(took_us) == total:
            ended.set_result(None)

    while sent < total:
        now = time.perf_counter() - began
        for number in range(sent, min(total, int(now * per_s) + 1)):
            joined.send_beat(next(turns), lambda due=began + number / per_s: on_response(due))
            sent = number + 1
        if any(each.lost.done() for each in joined.connections):
            break
        await asyncio.sleep(TICK_S)  # a pace, on an absolute schedule
    await unless_lost(ended, *joined.connections)
    if any(each.is_fenced for each in joined.all.values()):
        raise BadAnswer("a broker that beats has been fenced")
    return took_us
