"""A node of ours in an embedding program, loaded from asyncio, from uvloop or from a blocking thread.

usage: python -m bench.compare.programs.ours asyncio|uvloop|blocking OPTIONS-OF-OPEN-AS-JSON
"""

import asyncio
import importlib
import json
import sys
from typing import Any

import fastquorum
from bench.compare.programs import loops

READY_S = 60.0


async def serve_async(options: dict[str, Any]) -> None:
    loop = asyncio.get_running_loop()
    async with await fastquorum.open(**options) as quorum:
        await quorum.wait_ready(READY_S)
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            command = json.loads(line)
            if command["do"] == "who":
                answer: dict[str, Any] = {"leads": quorum.is_leader}
            else:
                answer = await loops.run_async(command, quorum.append, quorum.append_nowait, quorum.append_each)
            print(json.dumps(answer), flush=True)


def serve_blocking(options: dict[str, Any]) -> None:
    with fastquorum.sync.open(**options) as quorum:
        quorum.wait_ready(READY_S)
        loops.serve(
            lambda: quorum.is_leader,
            lambda command: loops.run_blocking(command, quorum.append, quorum.append_nowait, quorum.append_each),
        )


def main(api: str, options: str) -> None:
    if api == "blocking":
        serve_blocking(json.loads(options))
    elif api == "uvloop":
        with asyncio.Runner(loop_factory=importlib.import_module("uvloop").new_event_loop) as runner:
            runner.run(serve_async(json.loads(options)))
    else:
        asyncio.run(serve_async(json.loads(options)))


if __name__ == "__main__":
    main(*sys.argv[1:])
