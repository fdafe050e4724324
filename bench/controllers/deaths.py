"""A broker that leads many partitions dies; the time goes until the new leaders of all of them are committed.

It dies twice: one broker asks to be fenced, from that request on; another one falls silent, from the end of its session
on, which is its last answered heartbeat and the session's timeout. An observer of the metadata log tells when.
"""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from bench.compare.workload import BadAnswer
from bench.controllers import brokers, creating
from bench.controllers.brokers import Brokers
from bench.controllers.quorums import Quorum
from bench.controllers.rounds import Setting, contenders, rows, take_turns
from bench.controllers.watching import Key, Watch
from bench.controllers.wire import Connection
from bench.figures.figure import Goal, Measured
from fastquorum.types import NodeId
from fastquorum.wire.messages.topics import CreateTopicsResponse

IN_A_TOPIC: Final = 100
IN_A_REQUEST: Final = 5_000
"""Partitions; Kafka takes 10,000 records."""
PATIENCE_S: Final = 120.0
BEATS: Final = 4.5
"""In a session's timeout: as Kafka's defaults have it, every 2 s of 9 s."""
GOAL: Final = Goal(at_most=2)
FENCED, ANSWERED, SILENT = "fenced", "answered", "silent"
ROWS: Final = {
    FENCED: "asks to be fenced, until observed",
    ANSWERED: "asks to be fenced, until answered",
    SILENT: "is silent, from its session's end until observed",
}

Times = Mapping[str, float]
"""Seconds."""


def measure(setting: Setting, directory: Path) -> Measured:
    measured = Measured()

    def turn(quorum: Quorum, warm_s: float) -> Times:
        return asyncio.run(_turn(setting, quorum))

    settings = {"broker.session.timeout.ms": setting.session_ms}
    turns = contenders(setting, measured, settings, turn)
    taken = take_turns(setting, measured, directory, turns)
    for how, what in ROWS.items():
        measured.rows += rows(
            what, "ms", taken, lambda times, how=how: times[how] * 1e3, None if how == ANSWERED else GOAL
        )
    names = ("partitions", "brokers", "leaders", "session_ms", "rounds")
    measured.how = {"replicas": 3, **{name: getattr(setting, name) for name in names}}
    measured.details = {name: list(by_round.values()) for name, by_round in taken.items()}
    return measured


async def _turn(setting: Setting, quorum: Quorum) -> Times:
    leader = quorum.active()
    endpoint = quorum.endpoints[leader]
    members = brokers.ids(setting.brokers)
    fenced, silent = members[:2]
    asking = await Connection.open(endpoint)
    async with await Brokers.join(endpoint, members, setting.session_ms / 1e3 / BEATS) as joined:
        began = time.monotonic()
        led = await _create(asking, list(replicas(setting, members)))
        created_s = time.monotonic() - began
        for victim in (fenced, silent):
            if len(led[victim]) != setting.leaders:
                raise BadAnswer(f"broker {victim} leads {len(led[victim])} partitions, not {setting.leaders}")
        described = quorum.describe()
        if described.leader_id != leader:
            raise BadAnswer("another controller is active by now")
        watching = await Connection.open(endpoint)  # not before it has something to ask
        watch = Watch(watching, described.high_watermark, described.leader_epoch)
        times = {"created": created_s} | await _fence(joined, watch, fenced, led[fenced])
        times[SILENT] = await _fall_silent(setting, joined, watch, silent, led[silent])
        asking.close()
        watching.close()
    _check(quorum, led[fenced] | led[silent], {fenced, silent}, setting.partitions)
    return times


async def _fence(joined: Brokers, watch: Watch, victim: NodeId, led: set[Key]) -> Times:
    watch.expect(led)
    broker = joined.silence(victim)
    began = time.monotonic()
    answer = await joined.beat(broker, want_fence=True)
    answered = time.monotonic() - began
    if not answer.is_fenced:
        raise BadAnswer(f"broker {victim} has asked to be fenced, and is not")
    return {ANSWERED: answered, FENCED: await watch.committed(PATIENCE_S) - began}


async def _fall_silent(setting: Setting, joined: Brokers, watch: Watch, victim: NodeId, led: set[Key]) -> float:
    watch.expect(led)
    broker = joined.all[victim]
    await joined.beat(broker)  # the last one; what was sent before is answered too
    joined.silence(victim)
    at = await watch.committed(setting.session_ms / 1e3 + PATIENCE_S)
    return at - (broker.answered_at + setting.session_ms / 1e3)


# --- partitions -------------------------------------------------------------------------------------------------------


def replicas(setting: Setting, members: Sequence[NodeId]) -> Iterator[list[NodeId]]:
    """Yield the replicas of each partition, the leader first: the victims lead `leaders` each, the others the rest in
    turn. Followers are anywhere in the ring."""
    count = len(members)
    for number in range(setting.partitions):
        leader = number // setting.leaders
        if leader >= 2:
            leader = 2 + number % (count - 2)
        step = 1 + number // count % (count - 2)
        yield [members[(leader + each) % count] for each in (0, step, step + 1)]


async def _create(connection: Connection, replicas: Sequence[Sequence[NodeId]]) -> dict[NodeId, set[Key]]:
    """Which partitions each leads."""
    led: dict[NodeId, set[Key]] = {}
    topics = [replicas[at : at + IN_A_TOPIC] for at in range(0, len(replicas), IN_A_TOPIC)]
    step = IN_A_REQUEST // IN_A_TOPIC
    for at in range(0, len(topics), step):
        part = {f"topic-{number}": each for number, each in enumerate(topics[at : at + step], at)}
        wanted = [creating.assigned(name, each) for name, each in part.items()]
        answer = await connection.ask(creating.request(wanted), creating.VERSION, CreateTopicsResponse)
        topic_ids = creating.created(answer)
        for name, of_topic in part.items():
            for number, each in enumerate(of_topic):
                led.setdefault(each[0], set()).add((topic_ids[name], number))
    return led


def _check(quorum: Quorum, led: set[Key], gone: set[NodeId], partitions: int) -> None:
    """BadAnswer: what is committed is not so."""
    topics = quorum.image().topics.by_id
    there = sum(len(topic.partitions) for topic in topics.values())
    if there != partitions:
        raise BadAnswer(f"{partitions} partitions were created, and there are {there}")
    for topic_id, number in led:
        partition = topics[topic_id].partitions.get(number)
        if partition is None or partition.leader in gone or not partition.has_leader or gone & set(partition.isr):
            raise BadAnswer(f"partition {number} of a dead broker's has come to {partition}")
