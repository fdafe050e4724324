"""`fastquorum sim run`: one seed, start to end."""

import argparse
import dataclasses

from fastquorum import sim
from fastquorum.cli.terminal.arguments import add_format, explain, natural, positive
from fastquorum.cli.terminal.output import print_json
from fastquorum.sim.swarm import HARDSHIPS


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Simulate a quorum: the code of the real nodes over simulated time, network and disks, with faults. The seed "
        "decides everything; the same seed gives the same trace.\n"
        "Exits 1 if an invariant was broken.",
        "fastquorum sim run --seed 7 --nodes 5",
    )
    add_seed(parser)
    add_without(parser)
    add_format(parser)


def add_seed(parser: argparse.ArgumentParser) -> None:
    """Arguments of the commands that simulate one seed."""
    parser.add_argument("--seed", metavar="N", type=natural, required=True)
    parser.add_argument(
        "--nodes", metavar="N", type=positive, choices=range(1, 6), help="voters, 1 to 5 (default: drawn)"
    )
    parser.add_argument(
        "--kernels",
        choices=("mixed", "native", "pure"),
        default="mixed",
        help="mixed: some nodes native, some pure (default: mixed); the trace is the same",
    )
    add_controller(parser)


def add_without(parser: argparse.ArgumentParser) -> None:
    """`--without`, as reports of shrunk runs say it."""
    parser.add_argument(
        "--without",
        metavar="FAULT,...",
        type=lambda text: tuple(text.split(",")),
        default=(),
        help=f"faults to leave out: {', '.join(HARDSHIPS)}",
    )


def add_controller(parser: argparse.ArgumentParser) -> None:
    """`--controller`, of all commands that simulate."""
    parser.add_argument(
        "--controller",
        action="store_true",
        help="the nodes are the controllers of a cluster: brokers and an administrator use them, and fail as well",
    )


def run(arguments: argparse.Namespace) -> int:
    report = sim.run(
        arguments.seed,
        arguments.nodes,
        kernels=arguments.kernels,
        controller=arguments.controller,
        without=arguments.without,
    )
    return show(report, arguments.format)


def show(report: sim.Report, how: str) -> int:
    """Print it; the exit code."""
    if how == "json":
        print_json(dataclasses.asdict(report))
    else:
        print(report)
    return 0 if report.ok else 1
