"""`fastquorum load`: puts a quorum under load, and tells what it took."""

import argparse
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from fastquorum.cli.doctor import machine
from fastquorum.cli.terminal import interrupts
from fastquorum.cli.terminal.arguments import (
    add_format,
    add_kernels,
    explain,
    load_kernels,
    natural,
    parse_bootstrap,
    positive,
    positive_seconds,
)
from fastquorum.cli.terminal.output import print_json, tell, working
from fastquorum.cli.terminal.outputs import Outputs, check_directory, check_file
from fastquorum.errnos import reason
from fastquorum.errors import UsageError
from fastquorum.load.plan import APIS, ARRIVALS, DRIVERS, IN_FLIGHT_MAX, TICK_US_MAX, TOPIC, WORKLOADS, Driver, LoadPlan
from fastquorum.node.io.sources import read_settings

if TYPE_CHECKING:
    from fastquorum.load.runs import Runs
    from fastquorum.load.stage import Stage

RATE: Final = 10_000.0
SECONDS: Final = 10.0
SWEEP_SECONDS: Final = 5.0
RECORD_BYTES: Final = 100
RECORD_OVERHEAD_BYTES: Final = 10
BATCH_OVERHEAD_BYTES: Final = 61
NODES: Final = 3
FREE_SHARE_MAX: Final = 0.9
EXIT_NOTHING: Final = 1
_UNITS: Final = {"": 1.0, "k": 1e3, "m": 1e6}


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Append records at a given rate, whatever the quorum does (open loop), and report throughput and latency. "
        "Latency counts from when an append was due, not from when it could be sent.\n"
        "Without --bootstrap three nodes are started on this machine, each a process. With the embedded driver the "
        "leader's process appends, as a program does that embeds a node.\n"
        "Ctrl-C ends the run early and still reports. Exits 1 if nothing was acknowledged.",
        "fastquorum load --rate 20k --seconds 30 --data /mnt/disk --html load.html",
        "fastquorum load --sweep --svg charts --history bench/history",
        "fastquorum load --rate 5k --kill-leader-at 4 --html kill.html",
        "fastquorum load --closed 64 --driver kafka --bootstrap h1:9093",
        "fastquorum load --closed 1 --seconds 2 --trace commits.json",
        "fastquorum load compare before.json after.json",
    )
    _add_load(parser)
    _add_quorum(parser)
    _add_output(parser)


def _add_load(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the load")
    group.add_argument("--rate", metavar="R", type=rate, help="records a second: 500, 100k, 1.5M (default: 10k)")
    group.add_argument("--closed", metavar="N", type=positive, help="closed loop instead: N appends in flight")
    group.add_argument(
        "--sweep",
        action="store_true",
        help="double the rate, from --rate or 1k, until the quorum falls behind; find the knee; then offer twice that",
    )
    group.add_argument(
        "--seconds", metavar="S", type=positive_seconds, help="time of each run (default: 10; with --sweep: 5)"
    )
    group.add_argument("--warmup", metavar="S", type=seconds, default=2.0, help="warm-up before measuring (default: 2)")
    group.add_argument("--workload", choices=WORKLOADS, default="values", help="what is appended (default: values)")
    group.add_argument(
        "--record-bytes", metavar="B", type=positive, help="size of a value, in values and keys (default: 100)"
    )
    group.add_argument("--batch", metavar="N", type=positive, help="records an append (default: 1; topics 9, isr 20)")
    group.add_argument(
        "--arrivals", choices=ARRIVALS, default="even", help="arrivals evenly spread, or at random (default: even)"
    )
    group.add_argument(
        "--tick-us",
        metavar="U",
        type=positive,
        default=TICK_US_MAX,
        help="arrivals come in groups of this length (at most 1000)",
    )
    group.add_argument(
        "--in-flight-max",
        metavar="N",
        type=positive,
        help=f"most appends in flight; arrivals beyond them are not sent (default: {IN_FLIGHT_MAX:,})",
    )
    group.add_argument(
        "--timeout", metavar="S", type=positive_seconds, default=10.0, help="timeout of an append (default: 10)"
    )
    group.add_argument("--seed", metavar="N", type=natural, default=1, help="seed of payloads and random arrivals")
    group.add_argument(
        "--kill-leader-at", metavar="S", type=seconds, help="SIGKILL the leader's process, this long after the start"
    )


def _add_quorum(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the quorum")
    group.add_argument(
        "--driver",
        choices=DRIVERS,
        help="embedded: the API, in the leader's process (default); client: our wire client (default with "
        "--bootstrap); kafka: confluent-kafka",
    )
    group.add_argument("--api", choices=APIS, default="blocking", help="API of the embedded driver (default: blocking)")
    group.add_argument("--bootstrap", metavar="HOST:PORT,...", help="load this quorum, and start none")
    group.add_argument("--topic", metavar="NAME", help=f"what clients call the log (default: {TOPIC})")
    group.add_argument(
        "--data", metavar="DIR", help="where the nodes' data goes: the disk to measure (default: temporary)"
    )
    group.add_argument("--keep", action="store_true", help="keep the nodes' directories, and print where they are")
    group.add_argument("--config", metavar="FILE", help="settings of the started nodes, properties or .toml")
    add_kernels(group)  # type: ignore[arg-type]


def _add_output(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the result")
    group.add_argument("--html", metavar="FILE", help="one self-contained page with charts")
    group.add_argument("--svg", metavar="DIR", help="charts as SVG files")
    group.add_argument("--png", metavar="DIR", help="charts as PNG files (needs matplotlib: the extra [bench])")
    group.add_argument("--hdr", metavar="PREFIX", help="PREFIX.hlog and PREFIX.hgrm, for HdrHistogram's tools")
    group.add_argument(
        "--trace", metavar="FILE", help="the stages of each node's last batches, for Perfetto (ui.perfetto.dev)"
    )
    group.add_argument("--history", metavar="DIR", help="save the result there as a JSON file")
    add_format(group)  # type: ignore[arg-type]


def rate(text: str) -> float:
    """An argparse type: records a second, with k or M for thousands and millions."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kKmM]?)", text)
    value = float(match[1]) * _UNITS[match[2].lower()] if match else 0.0
    if not 0 < value <= 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a rate above 0, as 500, 100k or 1.5M")
    return value


def seconds(text: str) -> float:
    """An argparse type: 0 and up."""
    value = float(text)
    if not 0 <= value < 1e9:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds from 0")
    return value


def run(arguments: argparse.Namespace) -> int:
    result, runs = carry_out(arguments)
    outputs = Outputs()
    try:
        if arguments.format == "json":
            print_json(result)
        else:
            from fastquorum.cli.load.view import show

            show(result)
        sys.stdout.flush()
    finally:  # the reader of stdout may have gone: the files are written all the same
        write_files(arguments, result, runs, outputs)
    for path in outputs.paths:
        tell(f"written: {path}")
    if result["interrupted"]:
        return interrupts.EXIT_INTERRUPTED
    steps = result.get("steps", [result])
    return 0 if outputs.is_complete and any(step["acknowledged"] for step in steps) else EXIT_NOTHING


def carry_out(
    arguments: argparse.Namespace, around: "Callable[[Stage], AbstractContextManager[object]]" = nullcontext
) -> "tuple[dict[str, Any], Runs]":
    """The result, and the runs that it is of. `around` is entered around what is measured."""
    plan = plan_of(arguments)
    _check_outputs(arguments, plan)
    if arguments.config:
        read_settings({}, arguments.config, {})  # a mistake in it is said before nodes are started with it
    load_kernels(arguments.kernels)  # said in our words if they are missing
    with _directory(arguments) as root:
        runs, result = _measured(arguments, plan, root, around)
    return result, runs


def _driver(arguments: argparse.Namespace) -> Driver:
    driver: Driver = arguments.driver or ("client" if arguments.bootstrap else "embedded")
    return driver


def plan_of(arguments: argparse.Namespace) -> LoadPlan:
    """UsageError for words that do not go together."""
    driver = _driver(arguments)
    _check(arguments, driver)
    is_sized = arguments.workload in ("values", "keys")
    from fastquorum.load.driving.payloads import check_plan, default_records_per_append

    plan = LoadPlan(
        driver=driver,
        api=arguments.api,
        topic=arguments.topic or TOPIC,
        workload=arguments.workload,
        record_bytes=(arguments.record_bytes or RECORD_BYTES) if is_sized else 0,
        records_per_append=arguments.batch or default_records_per_append(arguments.workload),
        records_per_s=None if arguments.closed else arguments.rate or (None if arguments.sweep else RATE),
        closed=arguments.closed or 0,
        seconds=arguments.seconds or (SWEEP_SECONDS if arguments.sweep else SECONDS),
        warmup_s=arguments.warmup,
        arrivals=arguments.arrivals,
        tick_us=arguments.tick_us,
        in_flight_max=arguments.in_flight_max or IN_FLIGHT_MAX,
        timeout_s=arguments.timeout,
        seed=arguments.seed,
    )
    check_plan(plan)
    return plan


def _check(arguments: argparse.Namespace, driver: str) -> None:
    both = [name for name in ("rate", "sweep") if getattr(arguments, name) and arguments.closed]
    if both:
        raise UsageError(f"--closed and --{both[0]} exclude each other", "a closed loop has no rate")
    if arguments.in_flight_max and arguments.closed and arguments.closed > arguments.in_flight_max:
        raise UsageError(f"--closed {arguments.closed} is more than --in-flight-max {arguments.in_flight_max}")
    if arguments.tick_us > TICK_US_MAX:
        raise UsageError(f"--tick-us {arguments.tick_us}: a tick is {TICK_US_MAX} us at most")
    if arguments.record_bytes and arguments.workload not in ("values", "keys"):
        raise UsageError(
            f"--record-bytes: the records of --workload {arguments.workload} have sizes of their own", "leave it out"
        )
    if driver == "embedded" and arguments.topic:
        raise UsageError("--topic is for drivers over sockets: the embedded one appends to the log", "leave it out")
    if arguments.topic and not (arguments.bootstrap or arguments.config):
        raise UsageError("--topic needs an existing log (--bootstrap), or one that --config names (topic.name)")
    if driver != "embedded" and arguments.api == "asyncio":
        raise UsageError(f"--api asyncio is for the embedded driver, not for {driver}", "leave it out")
    if arguments.bootstrap:
        for name in ("data", "config", "keep", "trace"):
            if getattr(arguments, name):
                raise UsageError(f"--{name} is for nodes that are started here, --bootstrap starts none")
        if driver == "embedded":
            raise UsageError(
                "--driver embedded needs a node in its process", "leave --bootstrap out, or use --driver client"
            )
        if arguments.kill_leader_at is not None:
            raise UsageError("--kill-leader-at kills nodes that are started here, --bootstrap starts none")
    if arguments.sweep and arguments.kill_leader_at is not None:
        raise UsageError("--kill-leader-at and --sweep exclude each other", "give a --rate")
    if arguments.sweep and arguments.hdr:
        raise UsageError("--hdr is for a single run", "each step's histogram stands in the result: --history")
    if arguments.sweep and arguments.trace:
        raise UsageError("--trace is for a single run", "give a --rate")
    if driver == "kafka":
        from fastquorum.load.driving.kafka_driver import load_client

        load_client()


def _check_outputs(arguments: argparse.Namespace, plan: LoadPlan) -> None:
    """Before the run, not after it."""
    if arguments.png:
        from fastquorum.load.reports.png import load_matplotlib

        load_matplotlib()
    if arguments.hdr and not os.path.basename(arguments.hdr):
        raise UsageError(f"--hdr {arguments.hdr} names a directory", f"say how the files begin: {arguments.hdr}run")
    for name, suffix in (("html", ""), ("hdr", ".hlog"), ("trace", "")):
        path = getattr(arguments, name)
        if path:
            check_file(f"--{name}", path + suffix)
    for name in ("svg", "png", "history"):
        path = getattr(arguments, name)
        if path:
            check_directory(f"--{name}", path)
    at = arguments.kill_leader_at
    if at is not None and at >= plan.seconds:
        raise UsageError(f"--kill-leader-at {at:g} is after the end of the run, {plan.seconds:g} s")


@contextmanager
def _directory(arguments: argparse.Namespace) -> Iterator[str]:
    """A new directory for the nodes; removed in the end, unless it is to be kept."""
    parent = arguments.data or tempfile.gettempdir()
    try:
        root = tempfile.mkdtemp(prefix="fastquorum-load-", dir=parent)
    except OSError as error:
        raise UsageError(
            f"--data {parent} cannot be used: {reason(error)}", "name a directory on the disk to measure"
        ) from error
    try:
        yield root
    except BaseException:
        if not arguments.keep:
            shutil.rmtree(root, ignore_errors=True)
        raise
    if arguments.keep:
        tell(f"the nodes' directories are in {root}")
    else:
        shutil.rmtree(root, ignore_errors=True)


def _measured(
    arguments: argparse.Namespace,
    plan: LoadPlan,
    root: str,
    around: "Callable[[Stage], AbstractContextManager[object]]",
) -> "tuple[Runs, dict[str, Any]]":
    from fastquorum.cli.load.view import watching
    from fastquorum.load.running import Wish
    from fastquorum.load.runs import FIRST_RATE, Runs
    from fastquorum.load.stage import local_stage, remote_stage
    from fastquorum.trace import CAPACITY

    facts = machine.measured_on(root)
    if not arguments.bootstrap:
        _check_disk(plan, root, arguments.sweep)
    if plan.records_per_s is None and not plan.closed:
        import dataclasses

        plan = dataclasses.replace(plan, records_per_s=FIRST_RATE)
    wish = Wish()
    is_traced = around is not nullcontext
    with working("looking for the leader" if arguments.bootstrap else "three nodes start"):
        stage = (
            remote_stage(plan, root, parse_bootstrap(arguments.bootstrap), arguments.kernels)
            if arguments.bootstrap
            else local_stage(plan, root, arguments.kernels, arguments.config, os.getpid() if is_traced else 0)
        )
    with stage, _ctrl_c(wish), watching() as watcher:
        runs = Runs(stage, plan, facts, wish, watcher)
        runs.around = around
        runs.trace_capacity = CAPACITY if arguments.trace else 0
        result = runs.sweep() if arguments.sweep else runs.run(arguments.kill_leader_at)
    return runs, result


def _check_disk(plan: LoadPlan, root: str, is_sweep: bool) -> None:
    """Nothing is measured on a disk that the run fills, and little on one that forgets."""
    kind, _ = machine.file_system(root)
    if kind in machine.VOLATILE:
        tell(f"the data is on {kind}, where a sync costs nothing: name a disk with --data")
    if plan.closed or is_sweep or plan.records_per_s is None:
        return
    size = plan.record_bytes + RECORD_OVERHEAD_BYTES + BATCH_OVERHEAD_BYTES / plan.records_per_append
    needed = int(plan.records_per_s * (plan.seconds + plan.warmup_s) * size * NODES)
    free = shutil.disk_usage(root).free
    if needed > FREE_SHARE_MAX * free:
        raise UsageError(
            f"the run would write {needed / 1e9:.1f} GB, and {root} has {free / 1e9:.1f} GB left",
            "make it shorter or slower, or name another disk with --data",
        )


@contextmanager
def _ctrl_c(wish: Any) -> Iterator[None]:
    """The first Ctrl-C ends the run, which still reports; the second ends everything."""

    def on_signal(number: int, frame: FrameType | None) -> None:
        if wish.is_over:
            raise KeyboardInterrupt
        wish.is_over = True

    before = signal.signal(signal.SIGINT, on_signal)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def write_files(arguments: argparse.Namespace, result: dict[str, Any], runs: "Runs", outputs: Outputs) -> None:
    """Write every file that was asked for. The history, which holds all of the result, comes first."""
    from fastquorum.load.reports import files, history

    writers: dict[str, Callable[[str], list[str]]] = {
        "history": lambda path: [history.save(path, result)],
        "hdr": lambda path: files.write_hdr(path, result, runs.intervals),
        "svg": lambda path: files.write_charts(path, result, "svg"),
        "png": lambda path: files.write_charts(path, result, "png"),
        "html": lambda path: [files.write_page(path, result)],
        "trace": lambda path: [files.write_trace(path, runs.traces)],
    }
    for name, write in writers.items():
        path = getattr(arguments, name)
        if path:
            outputs.write(f"--{name} {path}", partial(write, path))
