"""`fastquorum sim sweep`: many seeds, over several processes."""

import argparse
import dataclasses
import multiprocessing
import os
import re
import signal
import sys
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Literal

from fastquorum import sim
from fastquorum.cli.sim.run import add_controller
from fastquorum.cli.terminal.arguments import add_format, explain, positive
from fastquorum.cli.terminal.output import print_json, progress
from fastquorum.errors import FatalError

Kernels = Literal["mixed", "native", "pure"]


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Simulate the seeds from A up to, not including, B, and print those in which an invariant was broken (with "
        "--format json: all, one a line). Exits 1 if there is one.",
        "fastquorum sim sweep --seeds 0:1000 --jobs 8",
    )
    parser.add_argument("--seeds", metavar="A:B", type=seeds, required=True)
    parser.add_argument("--jobs", metavar="J", type=positive, default=os.cpu_count() or 1, help="default: one per CPU")
    parser.add_argument("--kernels", choices=("mixed", "native", "pure"), default="mixed", help="default: mixed")
    parser.add_argument(
        "--shrink",
        action="store_true",
        help="shrink each failed seed: find the smallest run that breaks the same invariant",
    )
    add_controller(parser)
    add_format(parser)


def seeds(text: str) -> range:
    """An argparse type."""
    match = re.fullmatch(r"(\d+):(\d+)", text)
    if match is None or int(match[1]) >= int(match[2]):
        raise argparse.ArgumentTypeError(f"{text!r} is not A:B with A below B")
    return range(int(match[1]), int(match[2]))


def run(arguments: argparse.Namespace) -> int:
    failed = []
    with progress("seeds", len(arguments.seeds)) as advance:
        for report in _reports(arguments):
            advance(1)
            if not report.ok:
                failed.append(report.seed)
            if arguments.format == "json":
                print_json(dataclasses.asdict(report))
            elif not report.ok:
                print(report)
            if not report.ok and arguments.shrink:
                _show_shrunk(sim.shrink(report, kernels=arguments.kernels), arguments.format)
            sys.stdout.flush()
    if arguments.format == "table":
        print(f"{len(arguments.seeds)} seeds, {len(failed)} failed{': ' if failed else ''}{str(failed)[1:-1]}")
    return 1 if failed else 0


def _show_shrunk(report: sim.Report, format_name: str) -> None:
    if format_name == "json":
        print_json(dataclasses.asdict(report))
    else:
        print(f"shrunk to {report.events} events: {report.repro}")


def _reports(arguments: argparse.Namespace) -> Iterator[sim.Report]:
    """In the order of the seeds: seed number n is the business of process n % jobs. FatalError if one dies."""
    wanted: range = arguments.seeds
    jobs, kernels, controller = min(arguments.jobs, len(wanted)), arguments.kernels, arguments.controller
    if jobs == 1:
        yield from sim.sweep(wanted, kernels=kernels, controller=controller)
        return
    # Spawned, not forked: the progress bar has a thread.
    context = multiprocessing.get_context("spawn")
    processes, receivers = [], []
    for number in range(jobs):
        receiver, sender = context.Pipe(duplex=False)
        processes.append(
            context.Process(target=_simulate, args=(sender, wanted[number::jobs], kernels, controller), daemon=True)
        )
        receivers.append(receiver)
        processes[-1].start()
        sender.close()  # so that its end is heard of
    try:
        for number, seed in enumerate(wanted):
            try:
                yield receivers[number % jobs].recv()
            except EOFError as error:
                how = f"sim run --seed {seed}{' --controller' if controller else ''}"
                raise FatalError(f"the process that simulated seed {seed} died: try `{how}`") from error
    finally:
        for process in processes:
            process.terminate()
            process.join()


def _simulate(sender: Connection, seeds: range, kernels: Kernels, controller: bool) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then ends us
    for report in sim.sweep(seeds, kernels=kernels, controller=controller):
        try:
            sender.send(report)
        except BrokenPipeError:
            return  # the parent is gone, killed perhaps
