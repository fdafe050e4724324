"""How often each node syncs for a topic, one in flight, as strace counts it: what is acknowledged must be on a
majority's disks."""

import asyncio
import shutil
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench.compare.syncs import DURABLE_FROM, NO_STRACE, Trace, tracer
from bench.controllers import brokers
from bench.controllers.brokers import Brokers
from bench.controllers.creating import REPLICAS, Creations
from bench.controllers.loop import closed_loop
from bench.controllers.quorums import DIRECTORY_IDS, Quorum
from bench.controllers.rounds import Setting, contenders, leave_out
from bench.controllers.wire import Connection
from bench.figures.figure import Goal, Measured, Row, folder
from bench.measure import Spread
from fastquorum.types import NodeId

HEARTBEAT_S: Final = 2.0
GOAL: Final = Goal(at_least=DURABLE_FROM)
"""Goal of the median node: two of three nodes."""


def measure(setting: Setting, directory: Path) -> Measured:
    measured = Measured()
    if shutil.which("strace") is None:
        leave_out(setting, measured, "syncs", NO_STRACE)
        return measured

    def turn(quorum: Quorum, warm_s: float) -> Sequence[float]:
        return asyncio.run(_syncs(setting, quorum))

    turns = contenders(setting, measured, {}, turn, prefix=lambda at, node_id: tracer(_file(at, node_id)))
    for place, (name, take) in enumerate(turns.items()):
        setting.say(f"counting syncs: {name} ...")
        found = take(folder(directory, f"turn-{place}"))
        measured.details[name] = list(found)
        spread = Spread(statistics.median(found), min(found), max(found))
        measured.rows.append(Row(f"{name}: syncs a topic, of three nodes", "", spread, goal=GOAL))
    return measured


def _file(directory: Path, node_id: NodeId) -> Path:
    return directory / f"node-{node_id}.strace"


async def _syncs(setting: Setting, quorum: Quorum) -> list[float]:
    """Return the syncs of each node for a topic."""
    endpoint = quorum.endpoints[quorum.active()]
    async with await Brokers.join(endpoint, brokers.ids(REPLICAS), HEARTBEAT_S):
        connection = await Connection.open(endpoint)
        work = Creations("topic", 1)
        warm = await closed_loop([connection], work, setting.seconds / 2, quorum.cpu_us)
        traces = [Trace(_file(quorum.directory, node_id)) for node_id in DIRECTORY_IDS]
        for trace in traces:
            trace.more()
        before = work.created
        await closed_loop([connection], work, setting.seconds, quorum.cpu_us, warm)
        counted = [trace.more().syncs / (work.created - before) for trace in traces]
        connection.close()
        return counted
