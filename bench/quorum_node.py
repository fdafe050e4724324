"""One process of the quorum under test: runs a node, and appends when told to. `bench.commit` starts three.

Reads JSON lines from stdin and answers each with one on stdout: {"do": "who"}, {"do": "values"}, and {"do": "measure",
"in_flight": N, "appends": M}; the end of stdin ends it. The node lives in this process, so that whoever leads is
measured as an embedding program sees it: appends made in asyncio, or by a blocking thread, and the replica in a thread
of its own.
"""

import argparse
import asyncio
import json
import sys
import time
from collections import deque
from typing import Any

import fastquorum
from bench.facts import percentile

VALUE = b"x" * 100
READY_S = 30.0


async def serve_async(options: dict[str, Any]) -> None:
    loop = asyncio.get_running_loop()
    async with await fastquorum.open(**options) as quorum:
        await quorum.wait_ready(READY_S)
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            command = json.loads(line)
            match command["do"]:
                case "who":
                    answer: dict[str, Any] = {"leader": quorum.leader, "is_leader": quorum.is_leader, "cpu_s": _cpu()}
                case "measure":
                    answer = await _measure_async(quorum, command["in_flight"], command["appends"])
                case "values":
                    batches = [batch async for batch in quorum.committed(follow=False)]
                    answer = {"values": sum(len(batch.records) for batch in batches)}
                case _:
                    return
            print(json.dumps(answer), flush=True)


async def _measure_async(quorum: Any, in_flight: int, appends: int) -> dict[str, Any]:
    """Each of `in_flight` tasks appends, awaits the offset, appends again."""
    took: list[int] = []
    left = appends

    async def appender() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            began = time.perf_counter_ns()
            await quorum.append(VALUE)
            took.append(time.perf_counter_ns() - began)

    began = time.perf_counter_ns()
    await asyncio.gather(*(appender() for _ in range(in_flight)))
    return _figures(took, time.perf_counter_ns() - began)


def serve_blocking(options: dict[str, Any]) -> None:
    with fastquorum.sync.open(**options) as quorum:
        quorum.wait_ready(READY_S)
        for line in sys.stdin:
            command = json.loads(line)
            match command["do"]:
                case "who":
                    answer: dict[str, Any] = {"leader": quorum.leader, "is_leader": quorum.is_leader, "cpu_s": _cpu()}
                case "measure":
                    answer = _measure_blocking(quorum, command["in_flight"], command["appends"])
                case "values":
                    answer = {"values": sum(len(batch.records) for batch in quorum.committed(follow=False))}
                case _:
                    return
            print(json.dumps(answer), flush=True)


def _measure_blocking(quorum: Any, in_flight: int, appends: int) -> dict[str, Any]:
    """One thread; the window is kept full, the oldest append waited for."""
    took: list[int] = []
    window: deque[tuple[int, Any]] = deque()
    began = time.perf_counter_ns()
    for _ in range(appends):
        if len(window) == in_flight:
            _settle(window, took)
        window.append((time.perf_counter_ns(), quorum.append_nowait(VALUE)))
    while window:
        _settle(window, took)
    return _figures(took, time.perf_counter_ns() - began)


def _settle(window: deque[tuple[int, Any]], took: list[int]) -> None:
    began, pending = window.popleft()
    pending.result()
    took.append(time.perf_counter_ns() - began)


def _figures(took: list[int], total_ns: int) -> dict[str, Any]:
    return {
        "commits": len(took),
        "commits_per_s": len(took) / total_ns * 1e9,
        "p50_us": percentile(took, 50) / 1e3,
        "p99_us": percentile(took, 99) / 1e3,
    }


def _cpu() -> float:
    return time.process_time()  # os.times counts hundredths of a second


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--blocking", action="store_true")
    parser.add_argument("options", help="of fastquorum.open, as JSON")
    arguments = parser.parse_args()
    options = json.loads(arguments.options)
    if arguments.blocking:
        serve_blocking(options)
    else:
        asyncio.run(serve_async(options))


if __name__ == "__main__":
    main()
