"""A process of a load run: runs a node of the quorum under load, or generates the load, or both. `stage` starts them.

    python -m fastquorum.load.worker OPTIONS        (JSON: see `WorkerOptions`)

Takes JSON lines on stdin: {"do": "prepare"}, {"do": "generate", ...} (see `Worker.job_of`), {"do": "end"} ends the
generating, {"do": "observe" or "tell"} see `Worker.observed`; the end of stdin ends the process. Says JSON lines on
stdout: opened, prepared, leadership, interval (with raw samples behind it, see `tally`), generated, observing,
observed, failed. Times are on the monotonic clock, which all processes of a machine share.
"""

import asyncio
import contextlib
import gc
import json
import queue
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, TypedDict

import fastquorum
from fastquorum.errors import FastQuorumError
from fastquorum.kernels import load as load_kernels
from fastquorum.load.driving import embedded_asyncio
from fastquorum.load.driving.embedded import BlockingDriver
from fastquorum.load.driving.generating import Driver, Job, generate
from fastquorum.load.driving.kafka_driver import KafkaDriver
from fastquorum.load.driving.leader_search import READY_S, LeaderWatch, LoadTarget
from fastquorum.load.driving.null_target import own_appends_per_s
from fastquorum.load.driving.payloads import Payloads, make_payloads
from fastquorum.load.driving.schedule import Schedule
from fastquorum.load.driving.tally import LoadTally
from fastquorum.load.driving.wire_driver import WireDriver
from fastquorum.load.observing import Observing, allow_tracing
from fastquorum.load.plan import LoadPlan
from fastquorum.types import LISTENER_NAME, Endpoint

Command = dict[str, Any]


class WorkerOptions(TypedDict):
    """The argument of a worker's process."""

    plan: dict[str, Any]
    """Plan for payloads and driver; every phase brings its own rate."""
    node: dict[str, Any] | None
    """Arguments of `fastquorum.open`, with the path; None: no node here."""
    bootstrap: list[tuple[str, int]] | None
    """Where to find the quorum, for a generator without a node; None: a node that generates only if it is embedded."""
    kernels: str
    tracer_pid: int
    """Process that may trace this one, with all its children; 0: only processes that may anyway."""


class Voice:
    """Sends messages to the parent, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._out = sys.stdout.buffer

    def report(self, header: dict[str, Any], samples: bytes) -> None:
        with self._lock:
            self._out.write(json.dumps(header).encode() + b"\n" + samples)
            self._out.flush()

    def say(self, word: str, **fields: Any) -> None:
        self.report({"say": word, "at_ns": time.monotonic_ns(), **fields}, b"")

    def leadership(self, leadership: fastquorum.Leadership) -> None:
        self.say("leadership", epoch=leadership.epoch, leader_id=leadership.leader_id, is_self=leadership.is_self)


class Ears:
    """Hears the parent: commands to be carried out one after the other, and the order to end at once."""

    def __init__(self) -> None:
        self.job: Job | None = None
        self._commands: queue.Queue[Command] = queue.Queue()
        self._ended_phase = -1
        threading.Thread(target=self._listen, name="commands", daemon=True).start()

    def next(self) -> Command:
        return self._commands.get()

    def begin(self, job: Job, phase: int) -> None:
        """This is what an order to end is about from now on."""
        self.job = job
        if phase <= self._ended_phase:
            job.is_over = True

    def _listen(self) -> None:
        for line in sys.stdin:
            command = json.loads(line)
            if command["do"] == "end":
                self._ended_phase = command["phase"]
                self._end()
            else:
                self._commands.put(command)
        self._ended_phase = sys.maxsize
        self._end()
        self._commands.put({"do": "quit"})

    def _end(self) -> None:
        if self.job is not None:
            self.job.is_over = True


class Worker:
    def __init__(self, options: WorkerOptions) -> None:
        self.plan = LoadPlan.from_json(options["plan"])
        self.options = options
        self.voice = Voice()
        self.ears = Ears()
        self.observing: Observing | None = None
        """Observes the node in this process; None without one."""
        self._payloads: Payloads | None = None
        self._own_rate = 0.0

    @property
    def payloads(self) -> Payloads:
        if self._payloads is None:
            self._payloads = make_payloads(self.plan)
        return self._payloads

    def prepare(self) -> None:
        """Make the payloads, and measure what the generator itself costs. Once; not in a thread with an event loop."""
        if self.plan.driver == "embedded" and not self._own_rate:
            self._own_rate = own_appends_per_s(self.plan.api, self.payloads)
        assert self.payloads
        self.voice.say("prepared")

    def commands(self, ready: Callable[[], None], carry_out: Callable[[Job], int]) -> None:
        """Carry out every command; return when there will be none any more."""
        while (command := self.ears.next())["do"] != "quit":
            if command["do"] == "prepare":
                ready()  # else the first arrivals of the schedule would wait for it, and be late
                self.prepare()
                continue
            if self.observed(command):
                continue
            ready()
            job = self.job_of(command)
            self.ears.begin(job, command["phase"])
            before = cpu_s()
            self.finished(command, carry_out(job), cpu_s() - before)

    def observed(self, command: Command) -> bool:
        """True if the command was about looking at this node, and is carried out."""
        if self.observing is None:
            return False
        if command["do"] == "observe":
            self.observing.begin(command["trace_capacity"])
            self.voice.say("observing")
        elif command["do"] == "tell":
            self.voice.say("observed", **self.observing.end(command["trace_path"]))
        else:
            return False
        return True

    def job_of(self, command: Command) -> Job:
        """{"phase", "plan", "seconds", "start_ns", "first_tick"}."""
        plan, start_ns, seconds = LoadPlan.from_json(command["plan"]), command["start_ns"], command["seconds"]
        gc.collect()
        gc.freeze()  # payloads and modules need not be looked at again
        return Job(
            payloads=self.payloads,
            tally=LoadTally(self.voice.report, command["phase"], max(start_ns, time.monotonic_ns())),
            start_ns=start_ns,
            in_flight_max=plan.closed or plan.in_flight_max,
            timeout_ns=int(plan.timeout_s * 1e9),
            schedule=None if plan.closed else Schedule(plan, seconds, plan.seed + command["phase"]),
            first_tick=command["first_tick"],
            end_ns=start_ns + int(seconds * 1e9),
        )

    def finished(self, command: Command, next_tick: int, cpu: float) -> None:
        self.voice.say(
            "generated",
            phase=command["phase"],
            next_tick=next_tick,
            cpu_s=cpu,
            own_appends_per_s=self._own_rate,
        )


def serve_blocking(worker: Worker, node: dict[str, Any]) -> None:
    """A node, driven by the blocking API if it is told to generate."""
    with fastquorum.sync.open(**node) as quorum:
        worker.observing = Observing(quorum)
        worker.voice.say("opened", endpoint=str(quorum.endpoint))

        def watch() -> None:
            with contextlib.suppress(FastQuorumError):
                for leadership in quorum.leadership():
                    worker.voice.leadership(leadership)

        def run(job: Job) -> int:
            return generate(BlockingDriver(quorum, job.tally, job.timeout_ns), job)

        threading.Thread(target=watch, name="leadership", daemon=True).start()
        worker.commands(lambda: _ready(quorum), run)


def _ready(quorum: "fastquorum.sync.Quorum") -> None:
    quorum.wait_ready(READY_S)


async def serve_asyncio(worker: Worker, node: dict[str, Any]) -> None:
    """The same by the asyncio API."""
    loop = asyncio.get_running_loop()
    async with await fastquorum.open(**node) as quorum:
        worker.observing = Observing(quorum)
        worker.voice.say("opened", endpoint=str(quorum.endpoint))

        async def watch() -> None:
            async for leadership in quorum.leadership():
                worker.voice.leadership(leadership)

        watching = asyncio.create_task(watch())
        while (command := await loop.run_in_executor(None, worker.ears.next))["do"] != "quit":
            if command["do"] == "prepare":
                await quorum.wait_ready(READY_S)
                await loop.run_in_executor(None, worker.prepare)
                continue
            if worker.observed(command):
                continue
            await quorum.wait_ready(READY_S)
            job = worker.job_of(command)
            worker.ears.begin(job, command["phase"])
            before = cpu_s()
            tick = await embedded_asyncio.generate(quorum, job)
            worker.finished(command, tick, cpu_s() - before)
        watching.cancel()


def serve_sockets(worker: Worker, bootstrap: list[Endpoint]) -> None:
    """No node: generate through a client."""
    plan = worker.plan
    timeout_ns = int(plan.timeout_s * 1e9)
    silent = LoadTally(lambda header, samples: None, -1, 0)

    def led_by(found: LoadTarget) -> None:
        worker.voice.say("leadership", epoch=found.epoch, leader_id=found.node_id, is_self=False)

    with contextlib.ExitStack() as stack:
        driver: Driver
        if plan.driver == "kafka":
            stack.enter_context(LeaderWatch(bootstrap, plan.topic, led_by))
            driver = KafkaDriver(bootstrap, plan.topic, silent, timeout_ns)
        else:
            kernels = load_kernels("pure" if worker.options["kernels"] == "pure" else "native")
            driver = WireDriver(bootstrap, plan.topic, kernels, silent, timeout_ns, led_by)
        stack.callback(driver.close)
        worker.voice.say("opened", endpoint="")

        def run(job: Job) -> int:
            driver.retarget(job.tally)
            return generate(driver, job)

        worker.commands(lambda: None, run)


def cpu_s() -> float:
    """Return the processor time of this process, all threads, in seconds."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then ends us
    options: WorkerOptions = json.loads(sys.argv[1])
    allow_tracing(options["tracer_pid"])
    worker = Worker(options)
    node, bootstrap = options["node"], options["bootstrap"]
    try:
        if bootstrap is not None:
            serve_sockets(worker, [Endpoint(LISTENER_NAME, host, port) for host, port in bootstrap])
            return 0
        assert node is not None, "neither a node nor a way to one"
        if worker.plan.api == "asyncio":
            asyncio.run(serve_asyncio(worker, node))
        else:
            serve_blocking(worker, node)
    except (FastQuorumError, OSError) as error:
        worker.voice.say("failed", kind=type(error).__name__, error=str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
