"""`fastquorum sim replay`: a seed again, with everything that happens in it."""

import argparse

from fastquorum import sim
from fastquorum.cli.sim.run import add_seed, add_without, show
from fastquorum.cli.terminal.arguments import add_format, explain
from fastquorum.cli.terminal.output import print_json


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Simulate a seed again and print its whole trace, then the report. Exits 1 if an invariant was broken.",
        "fastquorum sim replay --seed 7 | less",
    )
    add_seed(parser)
    add_without(parser)
    add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    report = sim.replay(
        arguments.seed,
        (lambda line: print_json({"trace": line})) if arguments.format == "json" else print,
        arguments.nodes,
        kernels=arguments.kernels,
        controller=arguments.controller,
        without=arguments.without,
    )
    return show(report, arguments.format)
