"""A process that runs one node and does with it what a figure asks for.

usage: python -m bench.figures.node asyncio|blocking OPTIONS-OF-OPEN-AS-JSON

Takes a JSON object a line on stdin, `{"do": ..., ...}`, and answers each with one on stdout; the end of stdin ends it.
Times on the monotonic clock, which all processes of a machine share, are in nanoseconds.
"""

import asyncio
import ctypes
import json
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

import fastquorum
from bench.figures import repeating
from bench.figures.calls import Calls
from bench.figures.computing import Computing
from bench.figures.pump import Pump
from fastquorum.errors import NotLeader, NotReady
from fastquorum.kernels import load

READY_S: Final = 60.0
Answer = dict[str, Any]


class Commands:
    """What can be done with a node by its blocking API."""

    def __init__(self, quorum: "fastquorum.sync.Quorum", opened_s: float) -> None:
        self._quorum = quorum
        self._opened_s = opened_s
        self._computing = Computing()
        self._pump: Pump | None = None

    def who(self) -> Answer:
        return {**standing(self._quorum), "opened_s": self._opened_s}

    def window(self, in_flight: int, appends: int, batch: int) -> Answer:
        """One thread appends, the window kept full: so many appends of so many values."""
        return repeating.window(self._quorum.append_nowait, in_flight, appends, batch)

    def calls(self, in_flight: int, appends: int) -> Answer:
        """Run `window` with one value each; return the calls of the thread that appends and waits."""
        with Calls() as calls:
            self.window(in_flight, appends, 1)
        return calls.per_commit(appends)

    def values(self) -> Answer:
        """How many were committed, read back."""
        return {"values": sum(len(batch.records) for batch in self._quorum.committed(follow=False))}

    def threads(self, what: str, in_flight: int, seconds: float) -> Answer:
        """So many threads, each of which appends or asks for a read barrier, again and again."""
        return repeating.threads(_call(self._quorum, what), in_flight, seconds)

    def flood(self, seconds: float) -> Answer:
        """Append as fast as one thread can, whatever is refused."""
        return repeating.flood(self._quorum.append_nowait, seconds)

    def transfer(self, to: int) -> Answer:
        """Hand the lead over; whoever is elected then, it is another epoch."""
        with suppress(NotReady, NotLeader):
            self._quorum.transfer_leadership(to, timeout=READY_S)
        return {}

    def compute(self, on: bool) -> Answer:
        """Have a Python thread of this process compute, without end."""
        self._computing.turn(on)
        return {}

    def hold(self, seconds: float) -> Answer:
        """One call of C that keeps the interpreter for itself so long."""
        before = standing(self._quorum)
        begin_ns = time.monotonic_ns()
        ctypes.PyDLL(None).usleep(int(seconds * 1_000_000))
        end_ns = time.monotonic_ns()
        return {"begin_ns": begin_ns, "end_ns": end_ns, "before": before, "after": standing(self._quorum)}

    def pump(self, appends_per_ms: int) -> Answer:
        """From now on append for as long as this node leads, now or later."""
        self._pump = Pump(self._quorum, appends_per_ms)
        return {}

    def pumped(self) -> Answer:
        assert self._pump is not None
        return {"epochs": self._pump.epochs()}


def serve_blocking(options: dict[str, Any]) -> None:
    opening = fastquorum.sync.open  # imports what it needs: no part of a start that is measured
    load(options.get("kernels", "native"))
    began = time.perf_counter()
    with opening(**options) as quorum:
        commands = Commands(quorum, time.perf_counter() - began)
        quorum.wait_ready(READY_S)
        for line in sys.stdin:
            fields = json.loads(line)
            say(getattr(commands, fields.pop("do"))(**fields))


async def serve_async(options: dict[str, Any]) -> None:
    loop = asyncio.get_running_loop()
    async with await fastquorum.open(**options) as quorum:
        await quorum.wait_ready(READY_S)
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            fields = json.loads(line)
            match fields["do"]:
                case "who":
                    say(standing(quorum))
                case "values":
                    say({"values": sum([len(batch.records) async for batch in quorum.committed(follow=False)])})
                case "window":
                    append = partial(quorum.append, repeating.values(fields["batch"]))
                    say(await repeating.as_many(append, fields["in_flight"], fields["appends"]))
                case "calls":
                    append = partial(quorum.append, repeating.values(1))
                    with Calls() as calls:
                        await repeating.as_many(append, fields["in_flight"], fields["appends"])
                    say(calls.per_commit(fields["appends"]))
                case "tasks":
                    call = _call(quorum, fields["what"])
                    say(await repeating.tasks(call, fields["in_flight"], fields["seconds"]))


def standing(quorum: Any) -> Answer:
    return {
        "leads": quorum.is_leader,
        "node_id": quorum.node_id,
        "leader": quorum.leader,
        "epoch": quorum.epoch,
        "high_watermark": quorum.high_watermark,
        "end_offset": quorum.end_offset,
        "cpu_s": time.process_time(),
    }


def _call(quorum: Any, what: str) -> Callable[[], Any]:
    if what == "append":
        append, value = quorum.append, repeating.VALUE
        return lambda: append(value)
    if what == "bare_await":
        return repeating.BareAwaits().wait
    assert what == "read_barrier", what
    barrier: Callable[[], Any] = quorum.read_barrier
    return barrier


def say(answer: Answer) -> None:
    print(json.dumps(answer), flush=True)


def main(api: str, options: str) -> None:
    if api == "asyncio":
        asyncio.run(serve_async(json.loads(options)))
    else:
        serve_blocking(json.loads(options))


if __name__ == "__main__":
    main(*sys.argv[1:])
