"""`fastquorum sim sweep`: many seeds, over several processes."""

import argparse
import dataclasses
import functools
import multiprocessing
import os
import re
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

from fastquorum import sim
from fastquorum.cli.arguments import add_format, explain, positive
from fastquorum.cli.output import print_json, progress


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Simulate the seeds from A up to, not including, B, and print those in which a promise was broken (with "
        "--format json: all, one a line). Exits 1 if there is one.",
        "fastquorum sim sweep --seeds 0:1000 --jobs 8",
    )
    parser.add_argument("--seeds", metavar="A:B", type=seeds, required=True)
    parser.add_argument("--jobs", metavar="J", type=positive, default=os.cpu_count() or 1, help="default: one per CPU")
    parser.add_argument("--kernels", choices=("mixed", "native", "pure"), default="pure", help="default: pure")
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
        for report in _reports(arguments.seeds, min(arguments.jobs, len(arguments.seeds)), arguments.kernels):
            advance(1)
            if not report.ok:
                failed.append(report.seed)
            if arguments.format == "json":
                print_json(dataclasses.asdict(report))
            elif not report.ok:
                print(report)
            sys.stdout.flush()
    if arguments.format == "table":
        print(f"{len(arguments.seeds)} seeds, {len(failed)} failed{': ' if failed else ''}{str(failed)[1:-1]}")
    return 1 if failed else 0


def _reports(wanted: range, jobs: int, kernels: str) -> Iterator[sim.Report]:
    """In the order of the seeds."""
    simulate = functools.partial(_simulate, kernels)
    if jobs == 1:
        yield from map(simulate, wanted)
        return
    # Spawned, not forked: the progress bar has a thread. Ctrl-C is for this process alone.
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), initializer=_ignore_interrupts)
    try:
        yield from pool.map(simulate, wanted, chunksize=max(1, min(16, len(wanted) // (jobs * 4))))
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _simulate(kernels: str, seed: int) -> sim.Report:
    return sim.run(seed, kernels="mixed" if kernels == "mixed" else "native" if kernels == "native" else "pure")
