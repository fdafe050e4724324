"""A program that embeds quorums for its own tests, and what it waits for: one line of JSON, in seconds.

python -m bench.figures.embedded_program testing|opening DIRECTORY
"""

import asyncio
import json
import sys
import time
from collections.abc import Callable
from typing import Final

import fastquorum

PULSE_S: Final = 0.001
"""The loop's own work while a node is opened in it."""
READY_S: Final = 60.0


def testing(directory: str) -> dict[str, float]:
    """A quorum of three of `fastquorum.testing`, the process's first, until it is ready and until it is closed."""
    from fastquorum.testing import quorum

    began = time.perf_counter()
    with quorum(3) as nodes:
        ready = time.perf_counter()
        nodes.leader.append(b"x")
        closing = time.perf_counter()
    closed = time.perf_counter()
    return {"ready_s": ready - began, "closed_s": closed - closing}


def opening(directory: str) -> dict[str, float]:
    """The longest time for which the process's first `open` kept its loop from other work."""
    return {"blocked_s": asyncio.run(_opening(directory))}


async def _opening(directory: str) -> float:
    gaps = [0.0]

    async def beat() -> None:
        before = time.perf_counter()
        while True:
            await asyncio.sleep(PULSE_S)
            now = time.perf_counter()
            gaps.append(now - before - PULSE_S)
            before = now

    beating = asyncio.create_task(beat())
    await asyncio.sleep(20 * PULSE_S)  # what the loop does at its own start is not the opening's
    gaps.clear()
    async with fastquorum.open(directory, node_id=1) as node:
        await asyncio.sleep(PULSE_S)  # the beat that was late because of the opening is counted
        worst_s = max(gaps)
        beating.cancel()
        await node.wait_ready(READY_S)
    return worst_s


WHAT: Final[dict[str, Callable[[str], dict[str, float]]]] = {"testing": testing, "opening": opening}


def main() -> None:
    what, directory = sys.argv[1:]
    print(json.dumps(WHAT[what](directory)))


if __name__ == "__main__":
    main()
