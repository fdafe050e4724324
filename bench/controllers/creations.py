"""Topics created a second, with three replicas each: one a request with many requests in flight, and many a request."""

import asyncio
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from bench.compare import fetch
from bench.compare.cluster import Cluster
from bench.compare.contenders import JVM_WARM_S, zookeeper_servers
from bench.compare.fetch import Missing
from bench.compare.workload import BadAnswer
from bench.controllers import brokers, zookeeper
from bench.controllers.brokers import Brokers
from bench.controllers.creating import Creations
from bench.controllers.loop import Load, Work, closed_loop
from bench.controllers.quorums import Quorum
from bench.controllers.rounds import Setting, contenders, leave_out, rows, take_turns
from bench.controllers.wire import Connection
from bench.figures.figure import Goal, Measured
from fastquorum.types import LISTENER_NAME, Endpoint

ZOOKEEPER: Final = "ZooKeeper"
BROKERS: Final = 6
HEARTBEAT_S: Final = 2.0
BATCH, QUICK_BATCH = 1_000, 50
GOAL: Final = Goal(at_least=3)
ONE, MANY = "one a request", "many a request"

Loads = Mapping[str, Load]


def measure(setting: Setting, directory: Path) -> Measured:
    measured = Measured()
    batch = setting.pick(BATCH, QUICK_BATCH)

    def turn(quorum: Quorum, warm_s: float) -> Loads:
        return asyncio.run(_at_controller(setting, quorum, warm_s, batch))

    turns = contenders(setting, measured, {}, turn)
    try:
        turns[ZOOKEEPER] = _zookeeper(setting, batch)
    except Missing as missing:
        leave_out(setting, measured, ZOOKEEPER, str(missing))
    taken = take_turns(setting, measured, directory, turns)
    of = {ONE: f"one a request, {setting.in_flight} in flight", MANY: f"{batch:,} a request, one in flight"}
    for how, what in of.items():
        measured.rows += rows(what, "topics/s", taken, lambda loads, how=how: loads[how].per_s, GOAL)
    measured.how = {"replicas": 3, "brokers": BROKERS, "seconds": setting.seconds, "rounds": setting.rounds}
    measured.details = {
        name: [{how: load.as_json() for how, load in loads.items()} for loads in by_round.values()]
        for name, by_round in taken.items()
    }
    return measured


async def _at_controller(setting: Setting, quorum: Quorum, warm_s: float, batch: int) -> Loads:
    endpoint = quorum.endpoints[quorum.active()]
    async with await Brokers.join(endpoint, brokers.ids(BROKERS), HEARTBEAT_S):
        connections = [await Connection.open(endpoint) for _ in range(setting.in_flight)]
        works = [Creations("warm", 1), Creations("one", 1), Creations("many", batch)]
        loads = await _loads(setting, connections, works, warm_s, quorum.cpu_us)
    topics, acknowledged = len(quorum.image().topics.ids), sum(each.created for each in works)
    if topics != acknowledged:
        raise BadAnswer(f"{acknowledged} topics were acknowledged, and there are {topics}")
    return loads


async def _loads(
    setting: Setting,
    connections: list[Connection],
    works: list[Work],
    warm_s: float,
    cpu_us: Callable[[], Mapping[str, float]],
) -> Loads:
    """Warmed up with one a request, and with many a request, before each is measured."""
    warm, one, many = works
    try:
        before = await closed_loop(connections, warm, warm_s, cpu_us)
        singles = await closed_loop(connections, one, setting.seconds, cpu_us, before)
        before = await closed_loop(connections[:1], many, warm_s / 2, cpu_us)
        return {ONE: singles, MANY: await closed_loop(connections[:1], many, setting.seconds, cpu_us, before)}
    finally:
        for each in connections:
            each.close()


# --- ZooKeeper --------------------------------------------------------------------------------------------------------


def _zookeeper(setting: Setting, batch: int) -> Callable[[Path], Loads]:
    path = f"{fetch.jars('zookeeper')}/*"

    def turn(directory: Path) -> Loads:
        plan, ports = zookeeper_servers(path, directory)
        with Cluster(ZOOKEEPER, plan, directory) as cluster:
            port = ports[cluster.leader]
            return asyncio.run(_at_zookeeper(setting, cluster, port, batch))

    return turn


async def _at_zookeeper(setting: Setting, cluster: Cluster, port: int, batch: int) -> Loads:
    endpoint = Endpoint(LISTENER_NAME, "127.0.0.1", port)
    connections = [await zookeeper.connected(endpoint) for _ in range(setting.in_flight)]
    await zookeeper.make_root(connections[0])
    before = _znodes(port)
    works = [zookeeper.Znodes("warm", 1), zookeeper.Znodes("one", 1), zookeeper.Znodes("many", batch)]
    loads = await _loads(setting, connections, works, setting.warm_s(JVM_WARM_S), cluster.cpu_us)
    there, acknowledged = _znodes(port) - before, sum(each.created for each in works)
    if there != 2 * acknowledged:
        raise BadAnswer(f"two znodes for each of {acknowledged} topics were acknowledged, and there are {there}")
    return loads


def _znodes(port: int) -> int:
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(b"mntr")
        response = b""
        while got := connection.recv(1 << 16):
            response += got
    return zookeeper.count_znodes(response.decode())
