"""The active controller is killed, until the next one has created a topic for a client that keeps asking.

The client asks both that are left, each again as soon as it has refused. Timeouts are Kafka's defaults, said to
everybody. The killed one is started again, and the next is killed when it has caught up.
"""

import asyncio
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from bench.compare.cluster import ContenderFailed
from bench.controllers import brokers, creating
from bench.controllers.brokers import Brokers
from bench.controllers.quorums import KAFKA, OURS, TIMEOUTS, Quorum
from bench.controllers.rounds import Setting, contenders, rows, take_turns
from bench.controllers.wire import Connection
from bench.figures.figure import Goal, Measured
from fastquorum.types import Endpoint
from fastquorum.wire.error_codes import ErrorCode, error_name
from fastquorum.wire.messages.topics import CreateTopicsResponse

SESSION_MS: Final = 600_000
"""Nobody beats meanwhile, and nobody is to be fenced."""
PATIENCE_S: Final = 60.0
ASK_AGAIN_S: Final = 0.005
REFUSED: Final = (ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT)
GOAL: Final = Goal(at_most=0.33)


def measure(setting: Setting, directory: Path) -> Measured:
    measured = Measured()

    def turn(quorum: Quorum, warm_s: float) -> list[float]:
        return _turn(setting, quorum)

    turns = contenders(setting, measured, {"broker.session.timeout.ms": SESSION_MS}, turn, (OURS, KAFKA))
    taken = take_turns(setting, measured, directory, turns)
    measured.rows += rows("killed until the next topic, a round's median", "s", taken, statistics.median, GOAL)
    measured.rows += rows("killed until the next topic, a round's slowest", "s", taken, max)
    how: dict[str, Any] = {"kills": setting.kills, "rounds": setting.rounds}
    measured.how = how | {name.removeprefix("controller.quorum."): value for name, value in TIMEOUTS.items()}
    measured.details = {name: list(by_round.values()) for name, by_round in taken.items()}
    return measured


def _turn(setting: Setting, quorum: Quorum) -> list[float]:
    asyncio.run(_join(quorum.endpoints[quorum.active()]))
    found = []
    for number in range(setting.kills):
        found.append(asyncio.run(_kill_once(quorum, f"kill-{number}")))
        quorum.wait_caught_up()
    return found


async def _join(endpoint: Endpoint) -> None:
    async with await Brokers.join(endpoint, brokers.ids(creating.REPLICAS), SESSION_MS / 1e3):
        pass


async def _kill_once(quorum: Quorum, name: str) -> float:
    """Seconds."""
    leader = quorum.active()
    await _keep_asking([quorum.endpoints[leader]], f"{name}-before")
    killed_at = quorum.kill(leader)
    others = [endpoint for node_id, endpoint in quorum.endpoints.items() if node_id != leader]
    at = await _keep_asking(others, f"{name}-after")
    quorum.start(leader)
    return at - killed_at


async def _keep_asking(endpoints: Sequence[Endpoint], name: str) -> float:
    """When somebody had created a topic, by time.monotonic."""
    tasks = [asyncio.create_task(_ask(each, f"{name}-{number}")) for number, each in enumerate(endpoints)]
    try:
        done, _ = await asyncio.wait(tasks, timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
        if not done:
            raise ContenderFailed(f"nobody has created a topic within {PATIENCE_S:.0f} s")
        return done.pop().result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def _ask(endpoint: Endpoint, name: str) -> float:
    connection = await Connection.open(endpoint)
    try:
        while True:
            request = creating.request([creating.placed(name, 1)])
            (result,) = (await connection.ask(request, creating.VERSION, CreateTopicsResponse)).topics
            if result.error_code == ErrorCode.NONE:
                return time.monotonic()
            if result.error_code not in REFUSED:
                raise ContenderFailed(f"topic {name}: {error_name(result.error_code)}, {result.error_message}")
            await asyncio.sleep(ASK_AGAIN_S)  # between two questions
    finally:
        connection.close()
